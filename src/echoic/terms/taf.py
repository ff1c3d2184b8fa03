"""The shared text form of terms (TAF): text in which a value that was written before is `#` and a number.

    f(test,test)   ->   !f(test,#A)

A text begins with `!`. A value whose text is longer than the next abbreviation would be gets the next number, from 0
on, when it is whole. Numbers are written to the base 64 with the digits `A-Za-z0-9+/`, the first digit counting most,
without leading `A`s: `#A`, ..., `#/`, `#BA`. The list of annotations of a value has no number, each of them may have
one. Lengths are those of the text as it stands, abbreviations in it and all, in characters; so a reader counts as the
writer did.
"""

from typing import Final

from echoic.errors import EncodeError, LimitExceededError, MalformedTermError
from echoic.terms.references import refers
from echoic.terms.term import Value
from echoic.terms.text import CHARACTERS_MAX, Abbreviations, Reader, Writer, check_length

__all__ = ["parse_taf", "write_taf"]

MARK: Final = "!"


def parse_taf(text: str, *, characters_max: int = CHARACTERS_MAX) -> Value:
    """Return the value that a shared text says.

    Raises:
        MalformedTermError: It is not one; the text of the error shows the line with a caret.
        LimitExceededError: It is longer than `characters_max`.
    """
    check_length(text, characters_max)
    if not text.startswith(MARK):
        raise MalformedTermError(f"a shared text begins with `!`, this with `{text[:20]}`")
    return Reader(text, len(MARK), abbreviations=Abbreviations()).read()


def write_taf(value: Value, *, characters_max: int = CHARACTERS_MAX) -> str:
    """Return a value as shared text.

    Raises:
        EncodeError: There is a reference in it.
        LimitExceededError: It takes more than `characters_max`.
    """
    if refers(value):
        raise EncodeError("a reference is not written as shared text")
    writer = Writer(Abbreviations())
    pieces = [MARK]
    for piece in writer.write(value):
        pieces.append(piece)
        if writer.written > characters_max:
            raise LimitExceededError(f"a term takes more than {characters_max} characters as shared text")
    return "".join(pieces)
