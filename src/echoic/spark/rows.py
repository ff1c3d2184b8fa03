"""Rows of Spark as events of a channel: the way back from `schema`.

    bigint, int, smallint, tinyint, decimal(p,0)    any integer or enumeration that holds the values, or a float
    double, float                                   float64, float32
    boolean, string, binary                         bool, string, bytes; texts also char[n], filled up with zeros
    timestamp                                       float64: seconds since 1970; int64, uint64: nanoseconds
    date                                            any integer: days since 1970
    array, struct                                   arrays, records, by the same rules

A column that the type has not is left out, and a field with a default need have no column: the rules of type extension.
What a type can never take is refused by `check_columns` before a row is sent. What a value decides, that a bigint fits
an int32 or that nothing is null, is seen when it is written, and fails the task.

A channel without a type gets that of the rows (`format_of`). It has no fields for what a journal knows of each event
(`_sequence` and the like), since the channel's own journal will know that anew.
"""

import re
from typing import Any, Final, TypeAlias

import pyarrow
import pyarrow.compute
from pyarrow import types
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from echoic.errors import EncodeError, FormatError, PipelineError
from echoic.formats import MISSING, NATIVE, Field, Format, format_of_schema, type_of
from echoic.spark.schema import METADATA
from echoic.wire import Batch

__all__ = ["arrow_schema_of_rows", "check_columns", "events_of", "format_of"]

MICROSECONDS: Final = 1_000_000
INT64_DIGITS: Final = 18
UINT64_DIGITS: Final = 20

Column: TypeAlias = "pyarrow.Array[Any]"


def arrow_schema_of_rows(struct: StructType) -> pyarrow.Schema:
    """Return the Arrow schema in which Spark gives rows.

    Raises:
        PipelineError: A column has a type that Arrow has not.
    """
    try:
        found: pyarrow.Schema = to_arrow_schema(struct, timezone="UTC")
    except PySparkException as error:
        raise PipelineError(f"the rows cannot be written: {error}") from error
    return found


def format_of(schema: pyarrow.Schema, channel: str) -> Format:
    """Return the event type that rows have by themselves, called as the channel is.

    Raises:
        PipelineError: A column cannot be a field; the message says which, and what to do.
    """
    words = re.findall(r"[A-Za-z0-9]+", channel.rpartition("/")[2])
    name = "".join(word[:1].upper() + word[1:] for word in words) or "Row"
    fields = [
        pyarrow.field(field.name, _plain_type(field.type, f"{name}.{field.name}"), field.nullable)
        for field in schema
        if field.name not in METADATA
    ]
    try:
        return format_of_schema(pyarrow.schema(fields), name if not name[0].isdigit() else f"Row{name}")
    except FormatError as error:
        raise PipelineError(f"the rows cannot be events of channel `{channel}`: {error}") from error


def check_columns(schema: pyarrow.Schema, format: Format, channel: str) -> None:
    """Refuse rows that can never be events of a type.

    Raises:
        PipelineError: A column is missing or has a type that its field cannot be made of; all of them are named.
    """
    problems = []
    for field in format.fields:
        index = schema.get_field_index(field.name)
        if index >= 0:
            try:
                _fitted(pyarrow.array([], schema.field(index).type), field, f"{format.name}.{field.name}")
            except EncodeError as error:
                problems.append(str(error))
        elif field.name in schema.names:
            problems.append(f"there are several columns `{field.name}`")
        elif field.default is MISSING:
            problems.append(f"there is no column `{field.name}`")
    if problems:
        raise PipelineError(
            f"the rows cannot be events of channel `{channel}`, which are `{format.name}`: {'; '.join(problems)}"
        )


def events_of(batch: pyarrow.RecordBatch, format: Format) -> Batch:
    """Return rows as events of a type.

    Raises:
        EncodeError: A value does not fit its field, or is null where that cannot be.
    """
    fields = [field for field in format.fields if field.name in batch.schema.names]
    columns = [_fitted(batch.column(field.name), field, f"{format.name}.{field.name}") for field in fields]
    schema = pyarrow.schema([pyarrow.field(field.name, type_of(field)) for field in fields])
    return Batch.of(pyarrow.RecordBatch.from_arrays(columns, schema=schema), format.on(NATIVE))


def _plain_type(kind: Any, path: str) -> Any:  # noqa: ANN401 - pyarrow's types
    """Return the type of a field that takes a column of a type."""
    if types.is_timestamp(kind):
        return pyarrow.float64()
    if types.is_date(kind):
        return pyarrow.int32()
    if types.is_decimal(kind):
        if kind.scale or kind.precision > UINT64_DIGITS:
            raise PipelineError(f"`{kind}` cannot be a field: cast the column to double or bigint - at `{path}`")
        return pyarrow.int64() if kind.precision <= INT64_DIGITS else pyarrow.uint64()
    if types.is_struct(kind):
        return pyarrow.struct(
            [
                pyarrow.field(field.name, _plain_type(field.type, f"{path}.{field.name}"), field.nullable)
                for field in kind
            ]
        )
    if types.is_list(kind):
        return pyarrow.list_(_plain_type(kind.value_type, path))
    return kind


def _fitted(column: Column, field: Field, path: str) -> Column:
    """Return a column as the type of its field.

    Raises:
        EncodeError: It cannot be had so.
    """
    return _cast(column, type_of(field), field, path)


def _cast(column: Column, wanted: Any, field: Field, path: str) -> Column:  # noqa: ANN401 - pyarrow's types
    kind: Any = column.type
    if kind == wanted:
        return column
    if types.is_list(kind) and (types.is_list(wanted) or types.is_fixed_size_list(wanted)):
        return _cast_list(column, wanted, field, path)
    if types.is_struct(kind) and types.is_struct(wanted) and field.record is not None:
        return _cast_struct(column, wanted, field.record, path)
    if types.is_fixed_size_binary(wanted) and (types.is_binary(kind) or types.is_string(kind)):
        return _padded(column, wanted, path)
    if not _suits(kind, wanted):
        raise EncodeError(f"expected `{field.spelling}`, got a column of `{kind}` - at `{path}`")
    try:
        return _cast_number(column, wanted)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError) as error:
        raise EncodeError(f"a value does not fit `{field.spelling}`: {error} - at `{path}`") from error


def _suits(kind: Any, wanted: Any) -> bool:  # noqa: ANN401 - pyarrow's types
    """Whether values of one type can be values of another, if they are not too large."""
    if types.is_timestamp(kind):
        return wanted in (pyarrow.float64(), pyarrow.int64(), pyarrow.uint64())
    if types.is_integer(wanted):
        return types.is_integer(kind) or types.is_date(kind) or (types.is_decimal(kind) and not kind.scale)
    if types.is_floating(wanted):
        return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    return False


def _cast_number(column: Column, wanted: Any) -> Column:  # noqa: ANN401 - pyarrow's types
    compute: Any = pyarrow.compute
    kind: Any = column.type
    if types.is_timestamp(kind):
        micros = column.cast(pyarrow.timestamp("us", kind.tz)).cast(pyarrow.int64())
        if types.is_floating(wanted):
            found: Column = compute.divide(compute.cast(micros, wanted), pyarrow.scalar(float(MICROSECONDS)))
            return found
        return compute.multiply_checked(micros, pyarrow.scalar(1000, pyarrow.int64())).cast(wanted)  # type: ignore[no-any-return] # stubs have none
    if types.is_date(kind):
        return column.cast(pyarrow.date32()).cast(pyarrow.int32()).cast(wanted)
    return column.cast(wanted, safe=not types.is_floating(wanted))


def _cast_list(column: Any, wanted: Any, field: Field, path: str) -> Column:  # noqa: ANN401 - pyarrow's types
    """Return lists with elements of another type, or of one length."""
    if column.null_count:
        raise EncodeError(f"the column has {column.null_count} nulls, `{field.spelling}` has none - at `{path}`")
    values = _cast(column.flatten(), wanted.value_type, field, path)
    lengths = column.value_lengths()
    if types.is_fixed_size_list(wanted):
        size = wanted.list_size
        wrong = [length for length in lengths.unique().to_pylist() if length != size]
        if wrong:
            raise EncodeError(f"expected {size} elements, got {wrong[0]} - at `{path}`")
        maker: Any = pyarrow.FixedSizeListArray
        made: Column = maker.from_arrays(values, type=wanted)
        return made
    ends: Any = pyarrow.compute.cumulative_sum(lengths.cast(pyarrow.int32()))
    offsets: Any = pyarrow.concat_arrays([pyarrow.array([0], pyarrow.int32()), ends])
    lists: Column = pyarrow.ListArray.from_arrays(offsets, values, type=wanted)
    return lists


def _cast_struct(column: Any, wanted: Any, record: Format, path: str) -> Column:  # noqa: ANN401 - pyarrow's types
    if column.null_count:
        raise EncodeError(f"the column has {column.null_count} nulls, a record has none - at `{path}`")
    names = [field.name for field in column.type]
    parts = []
    for field, inner in zip(wanted, record.fields, strict=True):
        if field.name not in names:
            raise EncodeError(f"there is no field `{field.name}` - at `{path}`")
        parts.append(_cast(column.flatten()[names.index(field.name)], field.type, inner, f"{path}.{field.name}"))
    made: Column = pyarrow.StructArray.from_arrays(parts, fields=list(wanted))
    return made


def _padded(column: Column, wanted: Any, path: str) -> Column:  # noqa: ANN401 - pyarrow's types
    """Return texts as fixed numbers of bytes, filled up with zeros."""
    width = wanted.byte_width
    values: list[bytes | None] = column.cast(pyarrow.binary()).to_pylist()
    for value in values:
        if value is not None and len(value) > width:
            raise EncodeError(f"a text has {len(value)} bytes, limit is {width} - at `{path}`")
    filled = [None if value is None else value.ljust(width, b"\0") for value in values]
    found: Column = pyarrow.array(filled, wanted)
    return found
