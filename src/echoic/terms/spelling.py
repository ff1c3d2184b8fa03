r"""How the smallest parts of a term are spelled in text: names, strings, numbers, blobs.

    string     "q \" s"            escapes \n \t \r \b \f \\ \" \' and octal \0 to \377; anything else stands for itself
    name       f  get-text  a+b    a letter, then letters, digits and _ - + * $
    integer    42  -7              any number of digits up to `DIGITS_MAX`
    real       3.14  -1.0e-07      with a point or an exponent; written with a point and all digits that count

The text form of ATerms has no spelling for what follows. These are ours, and no other library reads them:

    blob       @blob"aGVsbG8="             base64 of its bytes
    real       @real"7ff8000000000000"     infinities and not-a-number, by the 64 bits, in hexadecimal
    integer    @int"-1f00"                 in hexadecimal, beyond `DIGITS_MAX` digits: decimal takes quadratic time
    name       @name"two words"(1)         a name without quotes that has other characters than names have

Measured (one core of a small machine): looking for characters to escape takes 3 ns a character where there are none,
and 20 to 60 ns where there are some. That is what the binary forms do without.
"""

import binascii
import math
import re
import struct
from collections.abc import Callable
from typing import Final

from echoic.errors import MalformedTermError
from echoic.terms.term import REAL

__all__ = ["NAME", "spell_blob", "spell_integer", "spell_name", "spell_real", "spell_string", "unescape"]

NAME: Final = r"[^\W\d_][\w\-+*$]*+"
DIGITS_MAX: Final = 4300  # as Python's own limit, beyond which it refuses to convert

_BITS_MAX: Final = 14_000  # fewer than DIGITS_MAX digits
_NAME: Final = re.compile(NAME)
_SPECIAL: Final = re.compile(r'[\x00-\x1f"\\\x7f]')
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_LETTERS: Final = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f", "\\": "\\", '"': '"', "'": "'"}
_MEANINGS: Final = {letter: meaning for meaning, letter in _LETTERS.items()}
_SPELLED: Final = str.maketrans(
    {chr(code): f"\\{code:03o}" for code in (*range(32), 127)}
    | {meaning: f"\\{letter}" for meaning, letter in _LETTERS.items() if meaning != "'"}
)


def spell_string(text: str) -> str:
    """Return a string in quotes, with escapes."""
    return f'"{text.translate(_SPELLED)}"' if _SPECIAL.search(text) else f'"{text}"'


def spell_name(name: str) -> str:
    """Return the name of a term that is not quoted."""
    return name if _NAME.fullmatch(name) else f"@name{spell_string(name)}"


def spell_integer(number: int) -> str:
    """Return an integer."""
    return str(number) if number.bit_length() <= _BITS_MAX else f'@int"{number:x}"'


def spell_real(number: float) -> str:
    """Return a real so that the same bits are read back."""
    if not math.isfinite(number):
        return f'@real"{REAL.pack(number)[::-1].hex()}"'
    spelled = repr(number)
    digits, exponent, power = spelled.partition("e")
    return spelled if "." in digits else f"{digits}.0{exponent}{power}"


def spell_blob(blob: bytes) -> str:
    """Return a blob."""
    return f'@blob"{binascii.b2a_base64(blob, newline=False).decode("ascii")}"'


def unescape(quoted: str) -> str:
    """Return what stands between the quotes of a string.

    Raises:
        MalformedTermError: There is no such escape.
    """
    inner = quoted[1:-1]
    return _ESCAPE.sub(_meaning, inner) if "\\" in inner else inner


def read_number(spelled: str) -> int | float:
    """Return an integer or a real.

    Raises:
        MalformedTermError: An integer has too many digits for this form, or a real is beyond what 64 bits hold.
    """
    if spelled.lstrip("-").isdigit():
        if len(spelled) > DIGITS_MAX:
            raise MalformedTermError(f"an integer of {len(spelled)} characters, limit is {DIGITS_MAX}: use `@int`")
        return int(spelled)
    number = float(spelled)
    if math.isinf(number):
        raise MalformedTermError(f"the real `{spelled:.40}` is beyond 64 bits")
    return number


def _meaning(found: re.Match[str]) -> str:
    escape = found[1]
    if escape[0] in "01234567":
        return chr(int(escape, 8))
    if escape not in _MEANINGS:
        raise MalformedTermError(f"there is no escape `\\{escape}`")
    return _MEANINGS[escape]


def _integer(digits: str) -> int:
    if not re.fullmatch("-?[0-9a-f]+", digits):
        raise ValueError(digits)
    return int(digits, 16)


def _real(digits: str) -> float:
    number: float
    (number,) = REAL.unpack(bytes.fromhex(digits)[::-1])
    return number


def _blob(spelled: str) -> bytes:
    return binascii.a2b_base64(spelled, strict_mode=True)


_OWN: Final[dict[str, Callable[[str], bytes | float | int]]] = {"blob": _blob, "int": _integer, "real": _real}


def read_own(word: str, quoted: str) -> bytes | float | int:
    """Return the value of one of the spellings that are ours.

    Raises:
        MalformedTermError: There is no such spelling, or this is not one.
    """
    read = _OWN.get(word)
    if read is None:
        raise MalformedTermError(f"there is no `@{word}`, but `@blob`, `@int`, `@name` and `@real`")
    try:
        return read(unescape(quoted))
    except (ValueError, struct.error) as error:
        raise MalformedTermError(f"`@{word}{quoted:.40}` cannot be read") from error
