"""Pure. Filters of Spark's as E-Code, so that what they leave out never leaves the reader.

    where price > 75 and symbol in ('IBM', 'SUN')
    !(input.price <= param.v1) && (input.symbol == param.v2 || input.symbol == param.v3)

Spark takes what is pushed for done and does not look again, so only what means the same to the last bit is taken; all
else is given back. The values are parameters and not part of the code: no text of a query is ever compiled.

* To Spark, a NaN is larger than every number; to C it compares with none. `x > v` is therefore said as `!(x <= v)`.
* A null passes no comparison in Spark. Columns that may be null, because they are optional or were not there in earlier
  types, are left to Spark.
* Only numbers, truth values and the equality of texts are compared; unsigned 64-bit numbers are decimals to Spark, so
  they, like times and bytes, are left to it.

What a query asks of `_sequence` and `_partition` says where in the journal to look (`narrowed`). It is given back as
well: that costs little, and keeps this simple.
"""

import math
from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
)

from echoic.formats import Field, Format, Kind
from echoic.spark.offsets import Range
from echoic.spark.reading import Pushed

__all__ = ["narrowed", "pushed"]

VALUES_MAX: Final = 256
TEXT_BYTES_MAX: Final = 4096
INT64_MAX: Final = (1 << 63) - 1

Comparison = EqualTo | EqualNullSafe | GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual

SPELLINGS: Final = {
    EqualTo: "{left} == {right}",
    EqualNullSafe: "{left} == {right}",
    LessThan: "{left} < {right}",
    LessThanOrEqual: "{left} <= {right}",
    GreaterThan: "!({left} <= {right})",
    GreaterThanOrEqual: "!({left} < {right})",
}


class Said(msgspec.Struct):
    """Code, and the values it names, as far as filters have been said."""

    terms: list[str]
    values: dict[str, object]

    def name(self, value: object) -> str:
        """Return how the code calls a value."""
        key = f"v{len(self.values)}"
        self.values[key] = value
        return f"param.{key}"


def pushed(filters: Sequence[Filter], format: Format, nullable: Collection[str]) -> tuple[Pushed | None, list[Filter]]:
    """Return what filters say as code, None if that is nothing, and those that are left to Spark.

    Args:
        filters: What all rows must pass.
        format: The type of what is read.
        nullable: Its columns that may be null, or that Spark sees as another type.
    """
    said = Said([], {"unused": 0})  # a block of parameters has at least one
    left = []
    for each in filters:
        term = _term(each, format, nullable, said) if len(said.values) < VALUES_MAX else None
        if term is None:
            left.append(each)
        elif term:
            said.terms.append(f"({term})")
    return (Pushed(" && ".join(said.terms), said.values) if said.terms else None), left


def narrowed(ranges: Sequence[Range], filters: Sequence[Filter]) -> list[Range]:
    """Return where rows can be that pass filters, by what they ask of `_sequence` and `_partition`."""
    found = list(ranges)
    for each in filters:
        found = [part for one in found if (part := _narrowed(one, each)).rows > 0]
    return found


def _narrowed(part: Range, each: Filter) -> Range:
    if not isinstance(each, Comparison) or isinstance(each.value, bool) or not isinstance(each.value, int):
        return part
    match each.attribute, each:
        case ("_partition",), EqualTo() | EqualNullSafe():
            return part if part.partition == each.value else Range(part.partition, part.start, part.start)
        case ("_sequence",), _:
            low, high = _bounds(each, each.value)
            return Range(part.partition, max(part.start, low), max(min(part.end, high), part.start))
        case _:
            return part


def _bounds(each: Comparison, value: int) -> tuple[int, int]:
    """Return the first number that passes a comparison, and the one behind the last."""
    match each:
        case GreaterThan():
            return value + 1, INT64_MAX
        case GreaterThanOrEqual():
            return value, INT64_MAX
        case LessThan():
            return 0, value
        case LessThanOrEqual():
            return 0, value + 1
        case _:
            return value, value + 1


def _term(each: Filter, format: Format, nullable: Collection[str], said: Said) -> str | None:
    """Return a filter as code, "" if every row passes, None if it is left to Spark."""
    if isinstance(each, Not):
        inner = _term(each.child, format, nullable, said)
        return None if inner is None else f"!({inner or 1})"
    path = getattr(each, "attribute", ())
    field = _field(format, path, nullable)
    if field is None:
        return None
    left = f"input.{field.name}"
    match each:
        case IsNotNull():
            return ""
        case IsNull():
            return "0"
        case In():
            return _any(left, field, each.value, said)
        case EqualTo() | EqualNullSafe() | LessThan() | LessThanOrEqual() | GreaterThan() | GreaterThanOrEqual():
            return _comparison(left, field, each, said)
        case _:
            return None


def _field(format: Format, path: Sequence[str], nullable: Collection[str]) -> Field | None:
    """Return a field that is a number or a text and never null, None if there is no such one."""
    found = format.by_name.get(path[0]) if len(path) == 1 else None
    if found is None or found.dimensions or found.optional or found.name in nullable or not _comparable(found):
        return None
    return found


def _comparable(field: Field) -> bool:
    """Whether Spark's type of a field has values that E-Code compares alike."""
    if field.kind is Kind.ENUM and field.enumeration is not None:
        return field.enumeration.signed or field.size < 8
    return field.kind in (Kind.INT, Kind.FLOAT, Kind.BOOL, Kind.STRING) or (field.kind is Kind.UINT and field.size < 8)


def _comparison(left: str, field: Field, each: Comparison, said: Said) -> str | None:
    if not _fits(field, each.value):
        return None
    if field.kind is Kind.BOOL:
        if not isinstance(each, EqualTo | EqualNullSafe):
            return None
        return left if each.value else f"!{left}"
    if field.kind is Kind.STRING and not isinstance(each, EqualTo | EqualNullSafe):
        return None
    return SPELLINGS[type(each)].format(left=left, right=said.name(each.value))


def _any(left: str, field: Field, values: Sequence[object], said: Said) -> str | None:
    if field.kind is Kind.BOOL or len(values) + len(said.values) > VALUES_MAX:
        return None
    if not values or not all(_fits(field, value) for value in values):
        return None
    return " || ".join(f"{left} == {said.name(value)}" for value in values)


def _fits(field: Field, value: object) -> bool:
    """Whether a value is one that a field of this kind can be compared with."""
    match field.kind:
        case Kind.BOOL:
            return isinstance(value, bool)
        case Kind.FLOAT:
            return isinstance(value, float) and not math.isnan(value)
        case Kind.STRING:
            return isinstance(value, str) and "\0" not in value and len(value.encode()) <= TEXT_BYTES_MAX
        case _:
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= INT64_MAX
