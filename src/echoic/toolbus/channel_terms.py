"""Events of channels as terms, and terms as events.

    Trade(symbol="IBM", price=74.5)    <->    trade("IBM",74.5)

The fields are the arguments, in their order. Numbers, strings, truths and bytes are themselves; arrays are lists; a
record in a record is a term. What else a term has in the place of a string field is written there as text, and read
from it.
"""

import re
from typing import Final

import numpy

from echoic.errors import EncodeError
from echoic.formats import Field, Format, Kind, Record, bind, format_of_text
from echoic.terms import Annotated, Placeholder, Term, TermList, Value, accepts, parse_text, plain, value_of, write_text
from echoic.terms.text import show

__all__ = ["EventMaker", "format_of_pattern", "symbol_of", "term_of_event"]

FIELD_TYPES: Final = {"int": "int", "real": "float", "str": "str", "bool": "bool", "blob": "bytes", "bstr": "bytes"}
WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def symbol_of(format: Format) -> str:
    """Return the function symbol for events of a type: `PriceChanged` is `price-changed`."""
    return WORDS.sub("-", format.name).replace("_", "-").lower()


def format_of_pattern(pattern: Value) -> Format:
    """Return an event type for terms of a pattern: `price(<str>,<real>)` is `Price{value1: str, value2: float}`.

    Raises:
        EncodeError: The pattern is not an application with arguments.
    """
    if not isinstance(pattern, Term) or not pattern.args:
        raise EncodeError(f"`{show(pattern)}` cannot be on a channel: expected a term with arguments")
    fields = ", ".join(f"value{at}: {_field_type(each)}" for at, each in enumerate(pattern.args, 1))
    name = "".join(word.capitalize() for word in re.split(r"\W|_", pattern.name) if word)
    return format_of_text(f"{name}{{{fields}}}")


def term_of_event(event: object, symbol: str, pattern: Value | None = None) -> Term:
    """Return an event as a term.

    Args:
        event: The event.
        symbol: The function symbol of the term.
        pattern: What the term should be like: a string is read as a term where the pattern does not want a string.

    Raises:
        EncodeError: A field has what cannot be in a term.
        MalformedTermError: A string does not spell the term that the pattern wants.
    """
    if not isinstance(event, Record):
        raise EncodeError(f"`{type(event).__name__}` is not an event")
    wanted = pattern.args if isinstance(pattern, Term) else ()
    values = []
    for at, (_, field) in enumerate(event.items()):
        value = _value_of(field)
        if at < len(wanted) and isinstance(value, str) and not accepts(wanted[at], value):
            value = parse_text(value)
        values.append(value)
    return Term(symbol, *values)


class EventMaker:
    """Makes events of one type."""

    def __init__(self, format: Format) -> None:
        self._format = format
        self._make = bind(format).make

    def event(self, term: Value) -> object:
        """Return a term as an event.

        Raises:
            EncodeError: It has not as many arguments as the type has fields, or one does not fit.
        """
        bare = plain(term)
        fields = self._format.fields
        if not isinstance(bare, Term) or len(bare.args) != len(fields):
            raise EncodeError(f"`{show(bare)}` does not have the {len(fields)} fields of `{self._format.name}`")
        return self._make(*map(_field_of, fields, bare.args))


def _field_type(pattern: Value) -> str:
    inner = pattern.type if isinstance(pattern, Placeholder) else pattern
    name = inner.name if isinstance(inner, Term) and not inner.args else ""
    return FIELD_TYPES.get(name, "str")


def _value_of(field: object) -> Value:
    if isinstance(field, numpy.ndarray):
        return value_of(field.tolist())
    if isinstance(field, numpy.generic):
        return value_of(field.item())
    if isinstance(field, Record):
        return term_of_event(field, symbol_of(field.format))
    if isinstance(field, list):
        return TermList(*map(_value_of, field))
    return Term("undefined") if field is None else value_of(field)


def _field_of(field: Field, value: Value) -> object:
    if isinstance(value, Annotated):
        value = value.value
    if field.dimensions:
        if not isinstance(value, TermList):
            raise EncodeError(f"expected a list, got `{show(value)}` - at `{field.name}`")
        return [_field_of_element(field, each) for each in value]
    return _field_of_element(field, value)


def _field_of_element(field: Field, value: Value) -> object:
    if field.kind is Kind.STRING and not isinstance(value, str):
        return write_text(value)
    if field.kind is Kind.FLOAT and type(value) is int:
        return float(value)
    if isinstance(value, Term | TermList | Placeholder | Annotated):
        raise EncodeError(
            f"`{show(value)}` does not fit a field of the kind {field.kind.name.lower()} - at `{field.name}`"
        )
    return value
