r"""Constants as C writes them: which number, character or text a spelling means, and of which type it is.

75.5  1e-3  .5f        float64, float32 with an `f`
37  0x25  045  0b11    the first of int32, int64 that holds it; for other bases than ten also the unsigned ones
37u  37L  37uL         at least unsigned, at least int64, uint64
'A'  '\n'  '\x41'      int32, as in C
"IBM"                  bytes, in UTF-8
"""

import re
from typing import TYPE_CHECKING, Final

from echoic.ecode.numbers import CHAR, FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, Number, convert, wrap
from echoic.ecode.syntax.text import mistake, quoted

if TYPE_CHECKING:
    from echoic.ecode.typed import Position

__all__ = ["read_character", "read_number", "read_string"]

INTEGER: Final = re.compile(
    r"(?:0[xX](?P<hexadecimal>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*))"
    r"(?P<suffix>[uU]?(?:ll|LL|[lL])?|(?:ll|LL|[lL])[uU])\Z"
)
FLOATING: Final = re.compile(r"((?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)([fFlL]?)\Z")
BASES: Final = {"hexadecimal": 16, "binary": 2, "octal": 8, "decimal": 10}
DIGITS_MAX: Final = 64  # as many as uint64 has in the smallest base

ESCAPE: Final = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]+)|(.))|([^\\]+)", re.DOTALL)
ESCAPES: Final = {
    "a": b"\a",
    "b": b"\b",
    "f": b"\f",
    "n": b"\n",
    "r": b"\r",
    "t": b"\t",
    "v": b"\v",
    "\\": b"\\",
    "'": b"'",
    '"': b'"',
    "?": b"?",
}


def read_number(text: str, at: "Position") -> tuple[int | float, Number]:
    """Return the value and the type of a number.

    Raises:
        ECodeError: It is not a number, or too large.
    """
    integer = INTEGER.match(text)
    if integer is not None:
        base = next(name for name in BASES if integer[name])
        return _sized(integer[base], BASES[base], integer["suffix"].lower(), text, at)
    floating = FLOATING.match(text)
    if floating is None:
        raise mistake(at, f"{quoted(text)} is not a number{_advice(text)}")
    digits, suffix = floating.groups()
    if suffix in ("l", "L"):
        raise mistake(at, f"{quoted(text)} is a `long double`, which is not part of E-Code")
    number = FLOAT32 if suffix else FLOAT64
    value = convert(float(digits), number)
    if value in (float("inf"), float("-inf")):
        raise mistake(at, f"{quoted(text)} does not fit `{number}`")
    return value, number


def read_character(text: str, at: "Position") -> int:
    """Return what a character constant means; `text` includes its quotes.

    Raises:
        ECodeError: It is not one byte, or has a bad escape.
    """
    data = _unescape(text[1:-1], at)
    if len(data) != 1:
        raise mistake(at, f"a character constant is one byte, {quoted(text)} has {len(data)}")
    return wrap(data[0], CHAR)


def read_string(text: str, at: "Position") -> bytes:
    """Return the bytes that a string means; `text` includes its quotes.

    Raises:
        ECodeError: It has a bad escape.
    """
    body = text[1:-1]
    return _unescape(body, at) if "\\" in body else body.encode()


def _sized(digits: str, base: int, suffix: str, text: str, at: "Position") -> tuple[int, Number]:
    """Return an integer with the first type of C's list for its base and suffix that can hold it."""
    kept = digits.lstrip("0")
    value = int(kept or "0", base) if len(kept) <= DIGITS_MAX else 1 << DIGITS_MAX
    for number in (INT32, UINT32, INT64, UINT64):
        too_short = "l" in suffix and number.size < INT64.size
        wrong_sign = number.signed if "u" in suffix else not number.signed and base == 10
        if value <= number.largest and not too_short and not wrong_sign:
            return value, number
    if value <= UINT64.largest:
        raise mistake(at, f"{quoted(text)} does not fit `int64` (write {quoted(text.rstrip('lL') + 'u')} for `uint64`)")
    raise mistake(at, f"{quoted(text)} does not fit any integer type, the largest is {UINT64.largest}")


def _advice(text: str) -> str:
    if re.match(r"0[0-9]+\Z", text):
        return " (a leading 0 means octal)"
    if re.match(r"[0-9][0-9_]*\Z", text):
        return " (digits cannot be grouped by `_`)"
    return ""


def _unescape(body: str, at: "Position") -> bytes:
    parts = []
    for found in ESCAPE.finditer(body):
        octal, hexadecimal, named, plain = found.groups()
        if plain is not None:
            parts.append(plain.encode())
            continue
        if named is None:
            code = int(octal, 8) if octal else int(hexadecimal[-DIGITS_MAX:], 16)
            part = bytes([code]) if code < 256 and len(hexadecimal or "") <= DIGITS_MAX else None
        else:
            part = ESCAPES.get(named)
        if part is None:
            place = at[0], at[1] + 1 + found.start()
            raise mistake(place, f"{quoted(found[0])} is not a character")
        parts.append(part)
    return b"".join(parts)
