"""Source text to a checked program, in either spelling."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.ecode.checking import check_signature, check_tree
from echoic.ecode.python_spelling import parse_python, source_of
from echoic.ecode.syntax import SourceText, parse

if TYPE_CHECKING:
    from echoic.ecode.program import Program, Signature, Spelling

__all__ = ["check", "spelled"]

PYTHON: Final = re.compile(r"(?:\s|#[^\n]*\n|(?:from|import)\s[^\n]*\n)*(?:@|def\s)")  # no E-Code begins like this


def check(source: str, signature: "Signature", *, file: str = "<ecode>", spelling: "Spelling" = "ecode") -> "Program":
    """Return the program that a text means for the given types.

    Args:
        source: The code.
        signature: The types it works on.
        file: What to call the text in messages.
        spelling: "ecode" for C's spelling, "python" for a Python function.

    Raises:
        ECodeError: The code is wrong; the error has every problem that was found.
        FormatError: No program can work on these types.
    """
    check_signature(signature)
    text = SourceText(source, file)
    tree = parse_python(text) if spelling == "python" else parse(text)
    return check_tree(tree, signature, text, spelling)


def spelled(code: str | Callable[..., object]) -> "tuple[str, Spelling]":
    """Return the text of code, and how it is spelled: as a Python function, or in C's way.

    Raises:
        ECodeError: The text of a function cannot be had.
    """
    text = code if isinstance(code, str) else source_of(code)
    return text, "python" if PYTHON.match(text) else "ecode"
