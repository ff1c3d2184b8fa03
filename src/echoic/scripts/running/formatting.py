"""`printf`: directives as in C, for terms.

    %d %i %x %o      integers            %s   text, strings without quotes      %t %l   any term
    %f %e %g         numbers             %%   a percent sign

Flags, width and precision are C's: `%5d`, `%-10s`, `%.2f`. A value of another kind than its directive wants is
printed as text; a directive without a value, and one that there is not, stand for themselves; values without a
directive are not printed. A string is printed without quotes where it is the value itself, and with them inside of
other terms.
"""

import re
from typing import Final

from echoic.errors import LimitExceededError
from echoic.terms import Value, plain, write_text

__all__ = ["format_text", "text_of"]

DIRECTIVE: Final = re.compile(r"%([-+ 0#]*)(\d{0,4})((?:\.\d{0,4})?)([a-zA-Z%])")
INTEGERS: Final = frozenset("dixXo")
REALS: Final = frozenset("feEgG")
TEXTS: Final = frozenset("stl")
DECIMAL_BITS_MAX: Final = 10_000  # Python writes no more than 4300 digits
CHARACTERS_MAX: Final = 1 << 22  # of a term: one of thirty nodes that share may take a billion


def text_of(value: Value) -> str:
    """Return a value as people want to read it: a string is its characters, and what is too large says so."""
    if isinstance(value, str):
        return value
    try:
        return write_text(value, characters_max=CHARACTERS_MAX)
    except (LimitExceededError, ValueError):
        return hex(value) if isinstance(value, int) else "<too large>"


def format_text(text: str, values: tuple[Value, ...]) -> str:
    """Return a text with values in the place of its directives."""
    rest = iter(values)

    def replaced(found: re.Match[str]) -> str:
        flags, width, precision, letter = found.groups()
        if letter == "%":
            return "%"
        if letter not in INTEGERS | REALS | TEXTS:
            return found[0]
        value = next(rest, None)
        return found[0] if value is None else _formatted(value, flags, width, precision, letter)

    return DIRECTIVE.sub(replaced, text)


def _formatted(value: Value, flags: str, width: str, precision: str, letter: str) -> str:
    bare = plain(value)
    if letter in INTEGERS and type(bare) is int and bare.bit_length() < DECIMAL_BITS_MAX:
        return f"%{flags}{width}{precision}{letter}" % bare
    if letter in REALS and type(bare) is float and (flags or width or precision or letter != "f"):
        return f"%{flags}{width}{precision}{letter}" % bare
    limit = int(precision[1:] or 0) if precision and letter in TEXTS else None
    text = text_of(value)[:limit]
    return text.ljust(int(width or 0)) if "-" in flags else text.rjust(int(width or 0))
