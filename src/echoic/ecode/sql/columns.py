"""Fields as columns of Spark: their types, their names, and what a row must have to be an event.

    uint8, uint16, uint32     SMALLINT, INT, BIGINT: the next that holds every value      uint64    DECIMAL(20,0)
    char, char[n], bytes      BINARY                                                      records   STRUCT

A row is an event only if every field that the code names is there: one that is null, or lies in a record that is null,
or is an array with another length than its type has or with a null in it, cannot be said in a record. Such a row is
left out, and so `usable` is part of the condition, whatever the code does with the field.
"""

import struct
from typing import Final

from echoic.ecode.checking.places import number_of
from echoic.ecode.numbers import Number
from echoic.ecode.sql.terms import Chars, Integer, Real, Truth, constant, refused
from echoic.ecode.typed import Location, Position
from echoic.formats import Field, Format, Kind

__all__ = [
    "column_of",
    "element_of",
    "literal",
    "load_column",
    "load_parameter",
    "parameter_text",
    "spark_type",
    "usable",
]

SIGNED: Final = {1: "TINYINT", 2: "SMALLINT", 4: "INT", 8: "BIGINT"}
UNSIGNED: Final = {1: "SMALLINT", 2: "INT", 4: "BIGINT", 8: "DECIMAL(20,0)"}
FLOATS: Final = {4: "FLOAT", 8: "DOUBLE"}
LETTERS: Final = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d"}
LETTERS_UNSIGNED: Final = {"uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q"}
SLOT: Final = struct.Struct("=II")
PRINTABLE: Final = frozenset(range(0x20, 0x7F)) - frozenset(
    b"'\\$"
)  # `${` is replaced by Spark, inside of literals too


def spark_type(field: Field) -> str:
    """Return the type of a single element of a field, as SQL spells it; that of a record is left to its fields."""
    number = number_of(field)
    if field.kind in (Kind.CHAR, Kind.BYTES):
        return "BINARY"
    if field.kind is Kind.STRING:
        return "STRING"
    if field.kind is Kind.BOOL:
        return "BOOLEAN"
    if number is None:
        return "STRUCT"
    return (FLOATS if number.floating else SIGNED if number.signed else UNSIGNED)[number.size]


def quoted(name: str) -> str:
    """Return a name as SQL takes it, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def element_of(format: Format, location: Location) -> tuple[str, Field]:
    """Return the text of a place in a record of columns, and the field that was named last.

    Raises:
        ECodeError: An index is known at run time only.
    """
    if location.element is not None:
        raise refused("an index of a dynamic array may be outside of it, which faults", location.at)
    if location.indexes:
        raise refused("an index is computed", location.indexes[0].at)
    text, begin, field = "", 0, location.field
    for name in location.path:
        field = format.by_name[name]
        text = f"{text}.{quoted(name)}" if text else quoted(name)
        begin += field.offset
        dimensions = field.fixed_dimensions[:-1] if _is_text(field) else field.fixed_dimensions
        if dimensions and not field.dynamic:
            size = field.size * (field.fixed_dimensions[-1] if _is_text(field) else 1)
            number = (location.offset - begin) // size
            begin += number * size
            for step in _steps(number, dimensions):
                text = f"get({text}, {step})"
        format = field.record or format
    return text, field


def _is_text(field: Field) -> bool:
    """Tell whether the last dimension of a field is the length of a char array."""
    return field.kind is Kind.CHAR and bool(field.fixed_dimensions)


def _steps(number: int, dimensions: tuple[int, ...]) -> list[int]:
    """Return the indexes of an element by its number, row major."""
    steps = []
    for dimension in reversed(dimensions):
        number, step = divmod(number, dimension)
        steps.append(step)
    return steps[::-1]


def load_column(text: str, field: Field, number: Number, at: Position) -> Integer | Real | Truth:
    """Return what a column holds.

    Raises:
        ECodeError: It is of a type that SQL computes with in another way.
    """
    if field.kind is Kind.CHAR:
        raise refused("a single character is one of several bytes to SQL", at)
    if field.kind is Kind.BOOL:
        return Truth(text, number)
    if number.floating:
        return Real(text, number)
    kind = spark_type(field)
    if kind == UNSIGNED[8]:
        raise refused("an unsigned integer of 64 bits may be larger than those of SQL", at)
    if kind != "BIGINT":
        text = f"CAST({text} AS BIGINT)"
    return Integer(text, number.smallest, number.largest, number)


def column_of(text: str, field: Field, at: Position) -> Chars:
    """Return the text that a column holds.

    Raises:
        ECodeError: It is a char array.
    """
    if field.kind is Kind.CHAR:
        raise refused("a char array ends at its first NUL, which SQL does not know", at)
    return Chars(text, binary=field.kind is Kind.BYTES)


def load_parameter(block: bytes, location: Location, number: Number) -> Integer | Real:
    """Return a number of the parameter block.

    Raises:
        ECodeError: An index is known at run time only.
    """
    _check_place(location)
    letter = (LETTERS | LETTERS_UNSIGNED)[number.name]
    (value,) = struct.unpack_from(f"={letter}", block, location.offset)
    return constant(int(bool(value)) if location.field.kind is Kind.BOOL else value, number)


def parameter_text(block: bytes, location: Location) -> bytes:
    """Return a text of the parameter block.

    Raises:
        ECodeError: An index is known at run time only.
    """
    _check_place(location)
    if location.field.kind is Kind.CHAR:
        width = location.field.fixed_dimensions[-1]
        return block[location.offset : location.offset + width].partition(b"\0")[0]
    begin, length = SLOT.unpack_from(block, location.offset)
    return block[begin : begin + length]


def _check_place(location: Location) -> None:
    if location.element is not None or location.indexes:
        raise refused("an index into parameters is computed, or may be outside of its array", location.at)


def literal(data: bytes) -> Chars:
    """Return a text that is known."""
    if all(byte in PRINTABLE for byte in data):
        return Chars(f"'{data.decode()}'", binary=False, known=data)
    try:
        data.decode()
    except UnicodeDecodeError:
        return Chars(f"X'{data.hex()}'", binary=True, known=data)
    return Chars(f"CAST(X'{data.hex()}' AS STRING)", binary=False, known=data)


def usable(format: Format, path: tuple[str, ...]) -> str:
    """Return the condition that a field of a row can be one of a record."""
    return _usable(quoted(path[0]), format.by_name[path[0]], path[1:], 0)


def _usable(text: str, field: Field, inner: tuple[str, ...], depth: int) -> str:
    """Return the condition for a field inside of `depth` of its dimensions, and for what is named inside of it."""
    dimensions = field.dimensions[:-1] if _is_text(field) else field.dimensions
    if depth < len(dimensions):
        dimension, variable = dimensions[depth], f"{text.partition('.')[0].strip('`')}_{depth}"
        each = f"forall({text}, {quoted(variable)} -> {_usable(quoted(variable), field, inner, depth + 1)})"
        length = f"(size({text}) = {dimension})" if isinstance(dimension, int) else f"({text} IS NOT NULL)"
        return f"({length} AND {each})"
    if inner and field.record is not None:
        return _usable(f"{text}.{quoted(inner[0])}", field.record.by_name[inner[0]], inner[1:], 0)
    return f"({text} IS NOT NULL)"
