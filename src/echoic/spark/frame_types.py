"""The event type that the rows of a frame have.

Spark has fewer types than events have: what was uint32 at the source is a bigint here, and an array has any length. So
code that computes with such fields may mean something else here than it means at the source, unless somebody says
which types the fields have: the user (`declared`), or whoever made the frame, in the metadata of its columns
(`schema.column_metadata`), which Spark keeps as long as a column is passed on as it is. Otherwise fields have the
types of their columns:

    boolean, tinyint ... bigint, float, double     the same                 string    string
    decimal(20,0)                                  uint64, as the source has it       binary    bytes
    array<double>, struct<...>                     float64[], a record

A column that can be no field, such as a timestamp, a map or a variant, is left out: code cannot name it, and passes it
on.
"""

from dataclasses import replace
from typing import Final

from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from echoic.errors import FormatError, PipelineError, RemoteError
from echoic.formats import NATIVE, Field, Format, Kind, format_of_schema, format_of_text
from echoic.spark.schema import TYPE_KEY, struct_of

__all__ = ["check_columns", "format_of_frame", "format_of_type"]

ROW: Final = "Row"
PLAIN: Final = (
    BooleanType(),
    ByteType(),
    ShortType(),
    IntegerType(),
    LongType(),
    FloatType(),
    DoubleType(),
    StringType(),
    BinaryType(),
)


def format_of_type(declared: object) -> Format:
    """Return an event type that was given as a class, a format or a text such as `Mean{at: float}`.

    Raises:
        FormatError: It is none.
    """
    return (format_of_text(declared) if isinstance(declared, str) else Format.of(declared)).on(NATIVE)


def format_of_frame(schema: StructType) -> Format:
    """Return the type of the columns of a frame, without those that cannot be fields.

    Raises:
        FormatError: No column can be one.
    """
    fields = [field for column in schema if (field := _field(column)) is not None]
    return Format.place(ROW, fields, NATIVE)


def check_columns(schema: StructType, format: Format, names: frozenset[str]) -> None:
    """Check that a frame has the columns that fields of a declared type are in.

    Raises:
        PipelineError: One is missing, or has another type.
    """
    expected = struct_of(format, metadata=False)
    for name in sorted(names):
        wanted = expected[name].dataType.simpleString()
        if name not in schema.names:
            raise PipelineError(f"there is no column `{name}`, the frame has {', '.join(schema.names[:12])}")
        found = schema[name].dataType.simpleString()
        if found != wanted:
            raise PipelineError(
                f"the type declares `{format.field(name).spelling}`, which is {wanted} in Spark, "
                f"but the column is {found} - at column `{name}`"
            )


def _field(column: StructField) -> Field | None:
    """Return a column as a field, None if it cannot be one."""
    told = _told(column)
    if told is not None:
        return told
    if column.dataType == DecimalType(20, 0):
        return Field(column.name, Kind.UINT, 8)
    if not _plain(column.dataType):
        return None
    try:
        (field,) = format_of_schema(to_arrow_schema(StructType([column]), timezone="UTC"), ROW).fields
    except FormatError:
        return None
    return replace(field, optional=False)


def _told(column: StructField) -> Field | None:
    """Return the field that the metadata of a column tells of; None if it tells nothing, or of another type."""
    told = column.metadata.get(TYPE_KEY)
    if not isinstance(told, str):
        return None
    try:
        (field,) = Format.from_descriptor(bytes.fromhex(told)).on(NATIVE).fields
    except (ValueError, RemoteError):  # somebody else's metadata, or that of another time
        return None
    (kind,) = (each.dataType for each in struct_of(Format.place(ROW, [field], NATIVE), metadata=False))
    return replace(field, name=column.name) if kind.simpleString() == column.dataType.simpleString() else None


def _plain(kind: DataType) -> bool:
    """Tell whether Arrow's type for one of Spark's says all of it.

    It does not for strings with an order of their own, nor for what is a record to Arrow only, as a variant is.
    """
    if isinstance(kind, ArrayType):
        return _plain(kind.elementType)
    if isinstance(kind, StructType):
        return all(_plain(field.dataType) for field in kind)
    return kind in PLAIN
