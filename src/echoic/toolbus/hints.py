"""Type hints: what a Python tool says of its arguments, as types of terms, and the values between the two.

    Python                        type of terms            a value arrives as
    bool int float str bytes      bool int real str blob   itself
    list, list[int]               list, list(int)          list
    tuple[int, str]               [int,str]                tuple
    Term, object, no hint         term                     itself
    Annotated[Term, "val(int)"]   val(int)                 itself
    int | str                     term, and then either    itself

A value that does not fit its hint is refused, in both directions. The one kindness is that an integer will do where a
handler says it returns a float.
"""

import inspect
import types
import typing
from collections.abc import Sequence
from typing import Any, Final

from echoic.errors import EncodeError, FormatError
from echoic.terms import Annotated, Placeholder, Term, TermList, Value, accepts, parse_text, plain, value_of
from echoic.terms.text import show

__all__ = ["BASE_NAMES", "TERM", "from_hint", "pattern_of", "shortened", "to_hint", "type_of"]

TERM: Final = Term("term")
BASE: Final = {
    bool: Term("bool"),
    int: Term("int"),
    float: Term("real"),
    str: Term("str"),
    bytes: Term("blob"),
    list: Term("list"),
    tuple: Term("list"),
    TermList: Term("list"),
}
BASE_NAMES: Final = frozenset({"bool", "int", "real", "str", "blob", "bstr", "list", "term"})
SHOWN_CHARACTERS_MAX: Final = 200


def type_of(hint: object) -> Value:
    """Return the type of terms that a hint stands for.

    Raises:
        FormatError: It stands for none.
    """
    if hint is inspect.Parameter.empty or hint in (Any, object, Term, Placeholder):
        return TERM
    if isinstance(hint, Term | Placeholder | TermList):
        return hint
    if isinstance(hint, type) and hint in BASE:
        return BASE[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _annotated(arguments)
    if origin in (typing.Union, types.UnionType):
        for each in arguments:
            type_of(each)
        return TERM
    if origin in (list, Sequence) and len(arguments) == 1:
        return Term("list", type_of(arguments[0]))
    if origin is tuple and Ellipsis in arguments:
        return Term("list", type_of(arguments[0]))
    if origin is tuple:
        return TermList(*map(type_of, arguments))
    raise FormatError(f"`{hint}` is not the type of a term: expected bool, int, float, str, bytes, list, tuple or Term")


def to_hint(hint: object, value: Value) -> object:
    """Return a value as a handler wants it.

    Raises:
        EncodeError: It does not fit the hint.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        for each in arguments:
            if accepts(type_of(each), value):
                return to_hint(each, value)
        raise _misfit(hint, value)
    wanted = type_of(hint)
    if not accepts(wanted, value):
        raise _misfit(wanted, value)
    if wanted is TERM:
        return value
    return _opened(hint, plain(value))


def from_hint(hint: object, result: object) -> Value:
    """Return what a handler has made as a value.

    Raises:
        EncodeError: It is none, or does not fit the hint.
    """
    if hint is float and type(result) is int:
        result = float(result)
    value = value_of(result)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if not any(accepts(type_of(each), value) for each in arguments):
            raise _misfit(hint, value)
        return value
    wanted = type_of(hint)
    if not accepts(wanted, value):
        raise _misfit(wanted, value)
    return value


def pattern_of(type_: Value) -> Value:
    """Return the pattern of a type, as interfaces have it: `val(int)` is `val(<int>)`, `int` is `<int>`."""
    match type_:
        case Term(name=name, args=args) if args and name not in BASE_NAMES:
            return Term(name, *map(pattern_of, args))
        case TermList(elements=elements):
            return TermList(*map(pattern_of, elements))
        case Placeholder():
            return type_
        case _:
            return Placeholder(type_)


def shortened(value: object) -> str:
    """Return the text of a value for people, which is not long however large the value is."""
    text = (
        show(value)
        if isinstance(value, int | float | str | bytes | Term | TermList | Placeholder | Annotated)
        else repr(value)
    )
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[:SHOWN_CHARACTERS_MAX]}..."


def _annotated(arguments: tuple[Any, ...]) -> Value:
    """Return the type that `Annotated[...]` tells, else that of what is annotated."""
    for told in arguments[1:]:
        if isinstance(told, str):
            return parse_text(told)
        if isinstance(told, Term | Placeholder | TermList):
            return told
    return type_of(arguments[0])


def _opened(hint: object, value: Value) -> object:
    """Return a value that fits its hint as the kind of object the hint names; nests as deep as the hint does."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _opened(arguments[0], value)
    if not isinstance(value, TermList) or hint is TermList:
        return value
    if hint is tuple or origin is tuple:
        if not arguments or Ellipsis in arguments:
            arguments = (arguments[0] if arguments else object,) * len(value)
        return tuple(map(_opened, arguments, value))
    if hint is list or origin in (list, Sequence):
        element = arguments[0] if arguments else object
        return [_opened(element, each) for each in value]
    return value


def _misfit(wanted: object, value: Value) -> EncodeError:
    return EncodeError(f"expected `{wanted}`, got `{shortened(value)}`")
