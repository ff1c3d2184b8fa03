"""Batches and Arrow RecordBatches.

Arrow wants columns in this machine's byte order, so a batch is copied once on its way there. Fixed formats go column by
column through NumPy; variable ones through `columns` or, when they have arrays of records or of text, through objects.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard

import numpy

from echoic.errors import EncodeError, FormatError, LimitExceededError, MalformedBatchError
from echoic.formats import (
    MISSING,
    NATIVE,
    Field,
    Format,
    Kind,
    char_width,
    element_dtype,
    format_of_schema,
    mismatches,
    type_of,
)
from echoic.wire.columns import Columns
from echoic.wire.decode import decoder_of
from echoic.wire.encode import encoder_of
from echoic.wire.frames import Buffer
from echoic.wire.reader import utf8

if TYPE_CHECKING:
    import pyarrow

__all__ = ["c_stream", "from_record_batch", "is_record_batch", "to_record_batch"]

Array: TypeAlias = numpy.ndarray[Any, Any]

TEXT_BYTES_MAX: Final = (1 << 31) - 1  # Arrow counts them with 32 bits


def is_record_batch(value: object) -> "TypeGuard[pyarrow.RecordBatch]":
    """Tell whether a value is a RecordBatch, without importing pyarrow for the question."""
    record_batch = getattr(sys.modules.get("pyarrow"), "RecordBatch", None)  # another thread may be importing it
    return record_batch is not None and isinstance(value, record_batch)


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
    if isinstance(value, numpy.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(item, field) for item in value]
    if field.record is not None:
        return {inner.name: _plain(getattr(value, inner.name), inner) for inner in field.record.fields}
    return value.ljust(char_width(field), b"\0") if field.kind is Kind.CHAR else value


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
        width = char_width(field)
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
    data, lengths, present = columns.texts(slots, path, terminated=terminated)
    if len(data) > TEXT_BYTES_MAX:
        raise LimitExceededError(
            f"the texts of a batch have {len(data)} bytes, limit is {TEXT_BYTES_MAX} - at `{path}`"
        )
    places = numpy.concatenate(([0], numpy.cumsum(lengths))).astype(numpy.int32)
    missing = field.optional and not bool(present.all())
    validity = pyarrow.py_buffer(numpy.packbits(present, bitorder="little").tobytes()) if missing else None
    buffers: Any = [validity, pyarrow.py_buffer(places.data), pyarrow.py_buffer(data)]
    array: Any = pyarrow.Array.from_buffers(pyarrow.binary(), len(lengths), buffers)
    if not terminated:
        return array  # type: ignore[no-any-return]
    try:
        return array.cast(pyarrow.string())  # type: ignore[no-any-return]
    except pyarrow.ArrowInvalid:
        for index, text in enumerate(array.to_pylist()):
            try:
                utf8(text or b"", path)
            except MalformedBatchError as error:
                raise MalformedBatchError(f"{error}, record {index} of {len(array)}") from error
        raise


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

    blocks, lengths = columns.vectors(field, slots, sizing, path)
    dtype = numpy.dtype(f"S{char_width(field)}") if field.kind is Kind.CHAR else element_dtype(field, format)
    inner = replace(field, dimensions=field.fixed_dimensions)
    flat = numpy.frombuffer(b"".join(blocks), dtype)
    values = _fixed_column(inner, flat, kind.value_type)
    offsets = numpy.concatenate(([0], numpy.cumsum(lengths))).astype(numpy.int32)
    places: Any = pyarrow.array(offsets)
    made: pyarrow.Array[Any] = pyarrow.ListArray.from_arrays(places, values, type=kind)
    return made


def from_record_batch(
    batch: "pyarrow.RecordBatch", format: Format
) -> tuple[Format, list[Buffer], Sequence[int] | None]:
    """Return the records that Arrow columns hold: their own format, and the pieces and bounds of a batch.

    A RecordBatch is an event type like any other, so what `format` asks of it is what it asks of any source. Only the
    columns that `format` names are looked at.

    Raises:
        EncodeError: A column is missing, has nulls where none can be, or another type than its field can be made of.
    """
    names = [field.name for field in format.fields if field.name in batch.schema.names]
    missing = [field.name for field in format.fields if field.name not in names and field.default is MISSING]
    if missing or any(batch.schema.names.count(name) > 1 for name in names):
        told = ", ".join(f"`{name}`" for name in missing) or "of its own for each name"
        raise EncodeError(f"the RecordBatch has no column {told} - at `{format.name}`")
    chosen = batch.select(names)
    own = _own_format(chosen.schema, format)
    columns = {
        field.name: _plain_column(chosen.column(field.name), field, f"{format.name}.{field.name}")
        for field in own.fields
    }
    for name, column in columns.items():
        _check_nulls(column, format.field(name), f"{format.name}.{name}")
    return own, *_records(own, columns, batch.num_rows)


def _own_format(schema: "pyarrow.Schema", format: Format) -> Format:
    """Return the format of the columns: that of `format` itself where the types agree, else what the columns tell.

    Raises:
        EncodeError: `format` cannot be made of these columns.
    """
    if list(zip(schema.names, schema.types, strict=True)) == [(field.name, type_of(field)) for field in format.fields]:
        return format.on(NATIVE)
    try:
        own = _sized(format_of_schema(schema, format.name), format)
    except FormatError as error:
        raise EncodeError(f"{error}, so the RecordBatch cannot be `{format.name}`") from error
    problems = mismatches(own, format)
    if problems:
        raise EncodeError(f"the RecordBatch cannot be `{format.name}`: {'; '.join(problems)}")
    return own


def _sized(own: Format, format: Format) -> Format:
    """Return the format of columns with the sizing fields that `format` has, since Arrow's lists have none."""
    fields = []
    for field in own.fields:
        sizing = format.field(field.name).sizing
        if field.dynamic and sizing in own.by_name:
            fields.append(replace(field, dimensions=(sizing, *field.dimensions[1:])))
        else:
            fields.append(field)
    return Format.place(own.name, fields, NATIVE)


def _plain_column(column: Any, field: Field, path: str) -> Any:  # noqa: ANN401 - pyarrow's types
    """Return a column without dictionaries and 64-bit offsets."""
    import pyarrow

    try:
        return column.cast(type_of(field))
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, pyarrow.ArrowTypeError) as error:
        raise EncodeError(f"expected `{field.spelling}`, got Arrow `{column.type}`: {error} - at `{path}`") from error


def _records(own: Format, columns: dict[str, Any], rows: int) -> tuple[list[Buffer], Sequence[int] | None]:
    if own.variable:
        lists = [column.to_pylist() for column in columns.values()]
        return encoder_of(own).encode([dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)])
    result = numpy.zeros(rows, own.dtype)
    for field in own.fields:
        _fill(result[field.name], field, columns[field.name])
    return [result.view(numpy.uint8).data if result.size else b""], None


def _check_nulls(column: Any, field: Field, path: str) -> None:  # noqa: ANN401 - pyarrow's types
    """Refuse nulls wherever a record has no way to say them."""
    import pyarrow.types as is_

    if column.null_count and not field.optional:
        raise EncodeError(f"the column has {column.null_count} nulls, `{field.spelling}` has none - at `{path}`")
    if is_.is_fixed_size_list(column.type) or is_.is_list(column.type):
        _check_nulls(column.flatten(), replace(field, dimensions=(), optional=False), path)
    elif field.record is not None and is_.is_struct(column.type):
        for inner in field.record.fields:
            _check_nulls(column.field(inner.name), inner, f"{path}.{inner.name}")


def _fill(target: Array, field: Field, column: Any) -> None:  # noqa: ANN401 - pyarrow's types
    """Write a column of fixed-size values into a column of the structured array."""
    for _ in range(len(field.dimensions) - (field.kind is Kind.CHAR and bool(field.dimensions))):
        column = column.flatten()
    if field.record is not None:
        for inner in field.record.fields:
            _fill(target[inner.name], inner, column.field(inner.name))
        return
    values = column.to_numpy(zero_copy_only=False)
    if field.kind is Kind.CHAR:
        values = values.astype(f"S{char_width(field)}")
    target[...] = values.reshape(target.shape)
