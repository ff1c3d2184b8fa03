"""Domains as they are typed: the few values that stand for all values of a type while a script is explored.

int=0..2            0, 1, 2
str=red,green       "red", "green"
bool=true           true
colour=red,rgb(0)   terms; so it is for the type `term`
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from echoic.errors import LocalError, MalformedTermError

if TYPE_CHECKING:
    from echoic.terms import Value

__all__ = ["domain_of"]

RANGE: Final = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})")
NAME: Final = re.compile(r"[a-z][A-Za-z0-9_-]*")
VALUES_MAX: Final = 1000


def domain_of(words: Iterable[str]) -> "dict[str, tuple[Value, ...]]":
    """Return the values of types.

    Raises:
        LocalError: A word is not `TYPE=VALUES`.
    """
    found: dict[str, tuple[Value, ...]] = {}
    for word in words:
        name, _, text = word.partition("=")
        if not NAME.fullmatch(name) or not text:
            raise LocalError(f"expected TYPE=FIRST..LAST or TYPE=VALUE,VALUE, got `{word}` - at --domain")
        found[name] = _values(name, text, word)
    return found


def _values(name: str, text: str, word: str) -> "tuple[Value, ...]":
    from echoic.terms import Term, TermList, accepts, parse_text

    span = RANGE.fullmatch(text)
    if span is not None:
        first, last = int(span[1]), int(span[2])
        if not first <= last < first + VALUES_MAX:
            raise LocalError(f"expected 1 to {VALUES_MAX} values, got `{word}` - at --domain")
        numbers = range(first, last + 1)
        return tuple(map(float, numbers)) if name == "real" else tuple(numbers)
    if name == "str" and '"' not in text:
        return tuple(text.split(","))
    try:
        values = parse_text(f"[{text}]")
    except MalformedTermError as error:
        raise LocalError(f"`{word}` has no values: {error} - at --domain") from error
    elements = values.elements if isinstance(values, TermList) else ()
    for value in elements:
        if not accepts(Term(name), value):
            raise LocalError(f"`{value}` is not of type `{name}`: `{word}` - at --domain")
    return elements
