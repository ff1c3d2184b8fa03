"""Batches and Arrow RecordBatches.

Arrow wants columns in this machine's byte order, so a batch is copied once on its way there. Fixed formats go column by
column through NumPy; variable ones through `columns` or, when they have arrays of records or of text, through objects.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy

from echoic.errors import EncodeError, MalformedBatchError
from echoic.formats import Field, Format, Kind
from echoic.wire.columns import Columns
from echoic.wire.decode import decoder_of
from echoic.wire.encode import encoder_of
from echoic.wire.frames import Buffer

if TYPE_CHECKING:
    import pyarrow

__all__ = ["c_stream", "from_record_batch", "is_record_batch", "to_record_batch"]

Array: TypeAlias = numpy.ndarray[Any, Any]


def is_record_batch(value: object) -> "TypeGuard[pyarrow.RecordBatch]":
    """Tell whether a value is a RecordBatch, without importing pyarrow for the question."""
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(value, arrow.RecordBatch)


def c_stream(batch: "pyarrow.RecordBatch", requested_schema: object) -> object:
    """Return a batch as a stream of Arrow's C interface."""
    import pyarrow

    table: Any = pyarrow.Table.from_batches([batch])
    return table.__arrow_c_stream__(requested_schema)


def to_record_batch(format: Format, records: memoryview, bounds: Sequence[int]) -> "pyarrow.RecordBatch":
    """Return records as Arrow columns.

    Raises:
        MalformedBatchError: A record contradicts the format, or a string is not UTF-8.
    """
    import pyarrow

    schema = format.arrow_schema
    if not format.variable:
        fixed = (
            numpy.frombuffer(records, format.dtype, len(bounds) - 1)
            if len(bounds) > 1
            else numpy.empty(0, format.dtype)
        )
        arrays = [_fixed_column(field, fixed[field.name], schema.field(field.name).type) for field in format.fields]
    elif Columns.suits(format):
        columns = Columns(format, records, bounds)
        arrays = _variable_columns(format, columns, columns.fixed, schema, format.name)
    else:
        events = decoder_of(format).decode(records, bounds)
        arrays = [
            pyarrow.array(
                [_plain(getattr(event, field.name), field) for event in events], schema.field(field.name).type
            )
            for field in format.fields
        ]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def _plain(value: Any, field: Field) -> object:  # noqa: ANN401 - whatever a field holds
    """Return a field's value in the words that Arrow takes: dicts, lists, numbers, text."""
    if field.kind is Kind.CHAR and field.dimensions:
        width = field.fixed_dimensions[-1]
        return (
            numpy.char.ljust(value, width, b"\0").tolist()
            if isinstance(value, numpy.ndarray)
            else value.ljust(width, b"\0")
        )
    if isinstance(value, numpy.ndarray):
        return value.tolist()
    if isinstance(value, list):
        return [_plain(item, field) for item in value]
    if field.record is not None:
        return {inner.name: _plain(getattr(value, inner.name), inner) for inner in field.record.fields}
    return value


def _fixed_column(field: Field, values: Array, kind: "pyarrow.DataType") -> "pyarrow.Array[Any]":
    """Return a column of fixed-size values; dimensions become nested lists around the flat values."""
    import pyarrow

    if field.record is not None:
        flat = values.reshape(-1)
        struct_type = _innermost(kind, len(field.dimensions))
        parts = [
            _fixed_column(nested, flat[nested.name], struct_type.field(nested.name).type)
            for nested in field.record.fields
        ]
        array: Any = pyarrow.StructArray.from_arrays(parts, fields=list(struct_type))
    elif field.kind is Kind.CHAR:
        width = field.fixed_dimensions[-1] if field.dimensions else 1
        flat = numpy.ascontiguousarray(values)
        array = pyarrow.FixedSizeBinaryArray.from_buffers(
            pyarrow.binary(width), flat.size, [None, pyarrow.py_buffer(flat.tobytes())]
        )
    else:
        flat = numpy.ascontiguousarray(values).reshape(-1)
        array = pyarrow.array(flat.astype(flat.dtype.newbyteorder("="), copy=False))
    made: pyarrow.Array[Any] = _nested(array, kind)
    return made


def _innermost(kind: Any, depth: int) -> Any:  # noqa: ANN401 - pyarrow's types
    for _ in range(depth):
        kind = kind.value_type
    return kind


def _nested(array: Any, kind: Any) -> Any:  # noqa: ANN401 - pyarrow's types
    """Wrap flat values into the fixed-size lists of `kind`."""
    import pyarrow

    levels = []
    while pyarrow.types.is_fixed_size_list(kind):
        levels.append(kind)
        kind = kind.value_type
    for level in reversed(levels):
        array = pyarrow.FixedSizeListArray.from_arrays(array, type=level)
    return array


def _variable_columns(
    format: Format,
    columns: Columns,
    fixed: Array,
    schema: Any,  # noqa: ANN401 - a schema or a struct type
    path: str,
) -> "list[pyarrow.Array[Any]]":
    import pyarrow

    arrays: list[Any] = []
    for field in format.fields:
        here, kind, values = f"{path}.{field.name}", schema.field(field.name).type, fixed[field.name]
        if field.record is not None and field.record.variable:
            parts = _variable_columns(field.record, columns, values, kind, here)
            arrays.append(pyarrow.StructArray.from_arrays(parts, fields=list(kind)))
        elif field.text:
            arrays.append(_text_column(field, columns, values, here))
        elif field.dynamic:
            sizing = fixed[field.sizing] if field.sizing else None
            arrays.append(_vector_column(field, format, columns, values, sizing, kind, here))
        else:
            arrays.append(_fixed_column(field, values, kind))
    return arrays


def _text_column(field: Field, columns: Columns, slots: Array, path: str) -> "pyarrow.Array[Any]":
    import pyarrow

    terminated = field.kind is Kind.STRING
    texts = columns.texts(slots, path, terminated=terminated)
    if not field.optional:
        texts = [b"" if text is None else text for text in texts]
    array = pyarrow.array(texts, pyarrow.binary())
    if not terminated:
        return array
    try:
        return array.cast(pyarrow.string())
    except pyarrow.ArrowInvalid as error:
        raise MalformedBatchError(f"a string is not UTF-8 - at `{path}`") from error


def _vector_column(
    field: Field,
    format: Format,
    columns: Columns,
    slots: Array,
    sizing: Array | None,
    kind: Any,  # noqa: ANN401 - an Arrow list type
    path: str,
) -> "pyarrow.Array[Any]":
    import pyarrow

    from echoic.formats.to_dtype import element_dtype

    blocks, lengths = columns.vectors(field, slots, sizing, path)
    dtype = element_dtype(field, format)
    if field.kind is Kind.CHAR:
        inner = Field(field.name, Kind.CHAR, 1, dimensions=field.fixed_dimensions)
    else:
        inner = Field(
            field.name, field.kind, field.size, dimensions=field.fixed_dimensions, enumeration=field.enumeration
        )
    flat = numpy.frombuffer(b"".join(blocks), dtype)
    values = _fixed_column(inner, flat, kind.value_type)
    offsets = numpy.concatenate(([0], numpy.cumsum(lengths))).astype(numpy.int32)
    places: Any = pyarrow.array(offsets)
    made: pyarrow.Array[Any] = pyarrow.ListArray.from_arrays(places, values, type=kind)
    return made


def from_record_batch(format: Format, batch: "pyarrow.RecordBatch") -> tuple[list[Buffer], Sequence[int] | None]:
    """Return the pieces and bounds of the records that Arrow columns hold.

    Raises:
        EncodeError: A column is missing, has nulls where none can be, or has another type.
    """
    missing = [field.name for field in format.fields if field.name not in batch.schema.names]
    if missing:
        raise EncodeError(f"the RecordBatch has no column {', '.join(f'`{name}`' for name in missing)}")
    for field in format.fields:
        nulls = batch.column(field.name).null_count
        if nulls and not field.optional:
            raise EncodeError(
                f"the column has {nulls} nulls, `{field.spelling}` has none - at `{format.name}.{field.name}`"
            )
    if format.variable:
        return encoder_of(format).encode(batch.select([field.name for field in format.fields]).to_pylist())
    result = numpy.zeros(batch.num_rows, format.dtype)
    for field in format.fields:
        _fill(result[field.name], field, batch.column(field.name), f"{format.name}.{field.name}")
    return [result.view(numpy.uint8).data if result.size else b""], None


def _fill(target: Array, field: Field, column: Any, path: str) -> None:  # noqa: ANN401 - pyarrow's types
    """Write a column of fixed-size values into a column of the structured array."""
    import pyarrow

    for _ in range(len(field.dimensions) - (field.kind is Kind.CHAR and bool(field.dimensions))):
        if not pyarrow.types.is_fixed_size_list(column.type):
            raise EncodeError(f"expected `{field.spelling}`, got Arrow `{column.type}` - at `{path}`")
        column = column.flatten()
    if field.record is not None:
        for nested in field.record.fields:
            inner = column.field(column.type.get_field_index(nested.name))
            _fill(target[nested.name], nested, inner, f"{path}.{nested.name}")
        return
    values = column.to_numpy(zero_copy_only=False)
    if field.kind is Kind.CHAR:
        values = values.astype("S")
    elif not numpy.can_cast(values.dtype, target.dtype.newbyteorder("="), "safe"):
        raise EncodeError(f"expected `{field.spelling}`, got Arrow `{column.type}` - at `{path}`")
    target[...] = values.reshape(target.shape)
