"""Event types as Spark sees them: a StructType, and the one Arrow schema that batches of it must have.

    bool, int8 ... int64, float32, float64     the same
    uint8, uint16, uint32                      smallint, int, bigint: the next that holds every value
    uint64                                     decimal(20,0)
    enumeration                                its integer
    string                                     string
    bytes, char, char[n]                       binary
    float64[37][253], float32[n]               array<array<double>>, array<float>
    record                                     struct
    _sequence _source _number                  bigint, what the journal knows of each event
    _time _partition                           timestamp, int

What a column cannot tell of its field, such as the length of an array, is in the metadata of the column.

Every column may be null: a field that is there today may be missing in events of yesterday or of tomorrow, and a
running query keeps the schema with which it began.

*One schema for all that was recorded.* It has the fields of the newest type, as that declares them, and behind these
the fields that only earlier types have. `columns_of` decides it on the driver, once for a query; events of whatever
type are given its columns where they are read, by the rules of type extension.

*Exactly this schema.* Spark looks at the first batch only and takes the buffers of the others as they are, so a column
of another type is read as rubbish or ends the worker. `fitted` therefore looks at every column of every batch; those
that are right already cost nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pyarrow
import pyarrow.compute
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
    TimestampType,
)

from echoic.errors import PipelineError
from echoic.formats import NATIVE, Field, Format, Kind, type_of

__all__ = ["METADATA", "TYPE_KEY", "arrow_schema_of", "column_metadata", "columns_of", "fitted", "struct_of"]

TYPE_KEY: Final = "echoic.type"
METADATA: Final[dict[str, DataType]] = {
    "_sequence": LongType(),
    "_source": LongType(),
    "_number": LongType(),
    "_time": TimestampType(),
    "_partition": IntegerType(),
}

PLAIN: Final[dict[pyarrow.DataType, DataType]] = {
    pyarrow.bool_(): BooleanType(),
    pyarrow.int8(): ByteType(),
    pyarrow.int16(): ShortType(),
    pyarrow.int32(): IntegerType(),
    pyarrow.int64(): LongType(),
    pyarrow.uint8(): ShortType(),
    pyarrow.uint16(): IntegerType(),
    pyarrow.uint32(): LongType(),
    pyarrow.uint64(): DecimalType(20, 0),
    pyarrow.float32(): FloatType(),
    pyarrow.float64(): DoubleType(),
    pyarrow.string(): StringType(),
    pyarrow.binary(): BinaryType(),
}

Column: TypeAlias = "pyarrow.Array[Any]"


def columns_of(formats: Sequence[Format], name: str) -> Format:
    """Return the type with the fields of all types, the newest of which is the last.

    Args:
        formats: The types that were recorded, in the order in which they came.
        name: The channel, for messages.

    Raises:
        PipelineError: There is no type.
    """
    if not formats:
        raise PipelineError(
            f"nothing was recorded yet, so there is no type: give it by the option `declared`, such as "
            f"`Mean{{at: float}}` - at channel `{name}`"
        )
    fields: dict[str, Field] = {}
    for format in reversed(formats):
        for field in format.fields:
            fields.setdefault(field.name, field)
    return Format.place(formats[-1].name, fields.values(), NATIVE)


def struct_of(format: Format, *, metadata: bool) -> StructType:
    """Return the columns that events of a type have in Spark.

    Raises:
        PipelineError: The type has a column that the journal has for itself, or two that differ in case only.
    """
    fields = [
        StructField(field.name, _spark_type(type_of(field)), metadata=column_metadata(field)) for field in format.fields
    ]
    if metadata:
        fields += [StructField(name, kind) for name, kind in METADATA.items()]
    names: dict[str, str] = {}
    for field in fields:
        other = names.setdefault(field.name.lower(), field.name)
        if other != field.name or [each.name for each in fields].count(field.name) > 1:
            reason = "set `metadata` to `false`, or read other `columns`" if metadata else "read other `columns`"
            raise PipelineError(
                f"`{other}` and `{field.name}` are the same column to Spark: {reason} - at `{format.name}`"
            )
    return StructType(fields)


def column_metadata(field: Field) -> dict[str, str]:
    """Return what tells the type of a field whose column does not tell it: unsigned, of a fixed length, or characters.

    Spark keeps it as long as a column is passed on as it is. Code that is run over a frame means by it what it means
    at a source (`frame_types`).
    """
    if not _more_than_its_column(field):
        return {}
    dimensions = tuple("" if isinstance(dimension, str) else dimension for dimension in field.dimensions)
    return {TYPE_KEY: Format.place("Row", [replace(field, dimensions=dimensions)], NATIVE).descriptor.hex()}


def _more_than_its_column(field: Field) -> bool:
    unsigned = field.kind is Kind.UINT or (field.enumeration is not None and not field.enumeration.signed)
    inside = field.record is not None and any(map(_more_than_its_column, field.record.fields))
    return unsigned or inside or field.kind is Kind.CHAR or bool(field.fixed_dimensions)


def arrow_schema_of(struct: StructType) -> pyarrow.Schema:
    """Return the schema that Spark asks of batches."""
    found: pyarrow.Schema = to_arrow_schema(struct, timezone="UTC")
    return found


def fitted(batch: pyarrow.RecordBatch, schema: pyarrow.Schema) -> pyarrow.RecordBatch:
    """Return a batch with exactly the columns of a schema: missing ones are null, others are dropped.

    Raises:
        PipelineError: A value does not fit its column.
    """
    columns: list[Any] = []
    for field in schema:
        index = batch.schema.get_field_index(field.name)
        if index < 0:
            columns.append(pyarrow.nulls(batch.num_rows, field.type))
        else:
            column = batch.column(index)
            columns.append(column if column.type == field.type else _cast(column, field))
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def _spark_type(kind: Any) -> DataType:  # noqa: ANN401 - pyarrow's types
    found = PLAIN.get(kind)
    if found is not None:
        return found
    if pyarrow.types.is_fixed_size_binary(kind):
        return BinaryType()
    if pyarrow.types.is_struct(kind):
        return StructType([StructField(field.name, _spark_type(field.type)) for field in kind])
    return ArrayType(_spark_type(kind.value_type))


def _cast(column: Column, field: "pyarrow.Field[Any]") -> Column:
    """Return a column as another type; what the journal counts in 64 bits is taken as it is, whatever its first bit."""
    if field.name in METADATA and column.type == pyarrow.uint64() and field.type == pyarrow.int64():
        return column.view(pyarrow.int64())
    options = pyarrow.compute.CastOptions(target_type=field.type, allow_time_truncate=True)
    try:
        made: Column = pyarrow.compute.cast(column, options=options)  # type: ignore[call-overload] # the stubs lack it
        return made
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        raise PipelineError(
            f"events have `{column.type}`, the schema asks for `{field.type}`: {error} - at column `{field.name}`"
        ) from error
