"""Which columns a log's table has: one for each field of the event type, with a name that every database takes.

    Order{symbol: string, price: float64, sequence: int64, legs: Leg[]}     the event type of the log `orders`

    orders:          sequence  sender | symbol  price    sequence_2  legs | exact
    echoic_columns:                     text    float64  int64       {...}[]

Anybody can read such a table with SQL, which is what it is for. Numbers, truth values, text and bytes are what they
are; characters of fixed number are text (Latin-1, without the NULs at their end); arrays and records are JSON, as
exports of journals have it. A missing text is NULL.

Names of fields differ by case, are up to 128 bytes long, and may be those of the log's own columns; names of columns
do not, are not, and must not. So a field whose name is taken gets a number behind it, and which column a field has is
written down beside the log when the column is made. There stands its type as well. When the type of the events grows,
the new fields become new columns, in which older rows have NULL; a field that has changed its type is refused, because
a column would hold both.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Final

import msgspec

from echoic.errors import AddressError, FormatError, IncompatibleTypesError
from echoic.formats import Field, Format, Kind, shown

__all__ = ["EXACT", "SENDER", "SEQUENCE", "Column", "check_log_name", "columns_of"]

SEQUENCE: Final = "sequence"
SENDER: Final = "sender"
EXACT: Final = "exact"
# What PostgreSQL, InnoDB and MariaDB call columns that every table has, or may have.
SYSTEM: Final = "ctid xmin xmax cmin cmax tableoid db_row_id db_trx_id db_roll_ptr row_start row_end"
RESERVED: Final = frozenset((SEQUENCE, SENDER, EXACT, *SYSTEM.split()))
COLUMNS_MAX: Final = 1000  # InnoDB has 1017, PostgreSQL 1600, SQLite 2000
NAME_CHARACTERS_MAX: Final = 60  # PostgreSQL cuts off at 63 bytes, and says nothing
LOG_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./-]*\Z", re.ASCII)
RESERVED_PREFIXES: Final = ("echoic_", "sqlite_", "pg_")


class Column(msgspec.Struct, frozen=True):
    """A column, and the field it is for."""

    field: Field
    name: str
    kind: str
    """What the database must hold: `int8` to `uint64`, `float32`, `float64`, `bool`, `text`, `bytes`, `json`."""
    type: str
    """The type of the field as it is written down; that of arrays and records with all that is inside."""


def check_log_name(log: str) -> None:
    """Refuse a name that cannot be that of a table everywhere.

    Raises:
        AddressError: It has other characters than those of names and paths, is too long, or belongs to the database.
    """
    if not LOG_NAME.match(log) or len(log) > NAME_CHARACTERS_MAX:
        raise AddressError(
            f"`{shown(log)}` cannot be the name of a log, expected 1 to {NAME_CHARACTERS_MAX} letters, digits and _./-"
        )
    if log.casefold().startswith(RESERVED_PREFIXES):
        raise AddressError(f"`{log}` cannot be the name of a log: {', '.join(RESERVED_PREFIXES)} begin names of others")


def columns_of(format: Format, known: Mapping[str, tuple[str, str]]) -> list[Column]:
    """Return the columns of a type's fields, in their order.

    Args:
        format: The type.
        known: For each field that has a column already, the name and the type of it.

    Raises:
        FormatError: It has too many fields for a table.
        IncompatibleTypesError: A field has another type than its column.
    """
    if len(format.fields) > COLUMNS_MAX:
        raise FormatError(
            f"a log's table has {COLUMNS_MAX} columns at most, `{format.name}` {len(format.fields)} fields"
        )
    taken = {name.casefold() for name, _ in known.values()} | RESERVED
    columns = []
    for field in format.fields:
        spelled = _spelled(field)
        name, before = known.get(field.name, ("", spelled))
        if before != spelled:
            raise IncompatibleTypesError(
                f"the log has `{field.name}` as `{shown(before)}`, the type as `{shown(spelled)}`: a column cannot "
                f"change its type - at `{format.name}.{field.name}`"
            )
        columns.append(Column(field, name or _free_name(field.name, taken), _kind(field), spelled))
        taken.add(columns[-1].name.casefold())
    return columns


def _free_name(wanted: str, taken: Iterable[str]) -> str:
    name = wanted[:NAME_CHARACTERS_MAX]
    if name.casefold() not in taken:
        return name
    numbered = (f"{wanted[: NAME_CHARACTERS_MAX - 5]}_{number}" for number in count(2))
    return next(name for name in numbered if name.casefold() not in taken)


def _kind(field: Field) -> str:
    """Return what a database must hold of a field."""
    if field.kind is Kind.CHAR and len(field.dimensions) <= 1 and not field.dynamic:
        return "text"
    if field.dimensions or field.record is not None:
        return "json"
    return _element(field)


def _element(field: Field) -> str:
    match field.kind:
        case Kind.STRING | Kind.CHAR:
            return "text"
        case Kind.BYTES:
            return "bytes"
        case Kind.BOOL:
            return "bool"
        case Kind.FLOAT:
            return f"float{field.size * 8}"
        case _:
            signed = field.enumeration.signed if field.enumeration else field.kind is Kind.INT
            return f"{'int' if signed else 'uint'}{field.size * 8}"


def _spelled(field: Field) -> str:
    """Return a field's type with everything that is inside, without the names of types and of sizing fields."""
    if field.record is not None:
        inner = ", ".join(f"{each.name}: {_spelled(each)}" for each in field.record.fields)
        element = f"{{{inner}}}"
    else:
        element = "char" if field.kind is Kind.CHAR else _element(field)
    return element + "".join("[]" if isinstance(each, str) else f"[{each}]" for each in field.dimensions)
