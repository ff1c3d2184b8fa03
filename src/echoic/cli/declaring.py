r"""Event types on the command line: the name of a class, or a declaration in one word.

echoic.testing.samples:Trade                             MODULE:CLASS, modules in the current folder are found
Trade{symbol: str, price: float, volume: int = 0}        a declaration, as in `echoic.formats.from_text`
"""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

from echoic.errors import FormatError
from echoic.formats import format_of_text, is_text_of_type

__all__ = ["declared_type", "find_class", "is_declaration"]

CLASS: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*\Z", re.ASCII)


def is_declaration(word: str) -> bool:
    """Tell whether a word names or declares a type, and is not a value."""
    return bool(CLASS.match(word)) or is_text_of_type(word)


def declared_type(word: str) -> object:
    """Return the event type that a word names or declares.

    Raises:
        FormatError: It does neither, or cannot be an event type.
    """
    return format_of_text(word) if is_text_of_type(word) else find_class(word)


def find_class(declared: str) -> object:
    """Return the class that MODULE:CLASS names.

    Raises:
        FormatError: There is no such module or class.
    """
    module, _, name = declared.partition(":")
    if not module or not name:
        raise FormatError(f"expected MODULE:CLASS or a declaration like Trade{{price: float}}, got `{declared}`")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = import_module(module)
    except ImportError as error:
        raise FormatError(f"cannot import `{module}`: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise FormatError(f"`{module}` has no `{name}`")
        found = getattr(found, part)
    return found
