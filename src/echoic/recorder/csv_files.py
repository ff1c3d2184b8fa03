"""CSV files: events as lines of cells, and back.

    at.x,at.y,symbol,samples          nested records become columns with dots, arrays a cell of JSON
    1.5,2.0,"IBM","[1.0,2.0]"

A cell says nothing about its type, so the way back is exact only with the type at hand (`declared`). Without it types
are guessed from the first 16 MiB: int64, float64, bool, or text, in which arrays and bytes stay as they are spelled.
A text that is not there is an empty cell without quotes, an empty text has quotes. Other spellings are those of
`json_events`, but for numbers that are none, which stand here as `nan`, `inf` and `-inf`.

Columns of numbers and text pass through Arrow's own reader and writer; only arrays, bytes and characters are spelled
in Python, cell by cell.
"""

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow
import pyarrow.csv

from echoic.errors import EncodeError, FormatError
from echoic.formats import MISSING, Field, Format, Kind, char_width, shown, type_of
from echoic.recorder.json_events import plain_value, value_of

__all__ = ["flat_batch", "flat_schema", "line_schema", "nested_batch", "nested_schema", "read_lines"]

BLOCK_BYTES: Final = 16 * 1024 * 1024
JSON_CELL: Final = msgspec.json.Encoder()


def flat_schema(format: Format) -> pyarrow.Schema:
    """Return the columns in which a CSV file has events of a format."""
    return pyarrow.schema([pyarrow.field(path, _cell_type(field)) for path, field in _leaves(format)])


def flat_batch(batch: pyarrow.RecordBatch, format: Format, stamps: Sequence[str] = ()) -> pyarrow.RecordBatch:
    """Return the columns of events as a CSV file has them, and those called `stamps` as they are."""
    columns: list[Any] = []
    for path, field in _leaves(format):
        first, *rest = path.split(".")
        column: Any = batch.column(first)
        for name in rest:
            column = column.flatten()[column.type.get_field_index(name)]  # null where the record is
        columns.append(_spelled(column, field))
    schema = flat_schema(format)
    for name in stamps:
        columns.append(batch.column(name))
        schema = schema.append(batch.schema.field(name))
    return pyarrow.RecordBatch.from_arrays(columns, schema=schema)


def nested_schema(schema: pyarrow.Schema) -> pyarrow.Schema:
    """Return the schema of guessed columns: those with dots become records.

    Raises:
        FormatError: A column and a record have the same name.
    """
    tree: dict[str, Any] = {}
    for column in schema:
        *outer, last = column.name.split(".")
        inside = tree
        for name in outer:
            inside = inside.setdefault(name, {})
            if not isinstance(inside, dict):
                raise FormatError(f"the column is inside of another that is no record - at `{shown(column.name)}`")
        if last in inside:
            raise FormatError(f"two columns have the same name - at `{shown(column.name)}`")
        inside[last] = _guessed(column.type)
    return pyarrow.schema(_fields_of(tree))


def nested_batch(batch: pyarrow.RecordBatch, format: Format) -> pyarrow.RecordBatch:
    """Return the columns of a CSV file as events of a format have them; columns of other names are left out.

    Raises:
        EncodeError: A cell is not spelled as its field must be, or a column is missing.
    """
    names = set(batch.schema.names)
    present = [field for field in format.fields if any(path in names for path, _ in _leaves_of(field, ""))]
    missing = [field.name for field in format.fields if field not in present and field.default is MISSING]
    if missing or not present:
        told = ", ".join(f"`{name}`" for name in missing) or "of its fields"
        raise EncodeError(f"the file has no column {told} - at `{format.name}`")
    arrays = [_gathered(batch, field, "") for field in present]
    schema = pyarrow.schema([(field.name, array.type) for field, array in zip(present, arrays, strict=True)])
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def line_schema(path: Path, types: pyarrow.Schema) -> pyarrow.Schema:
    """Return the columns of a CSV file; the types of those that are not given are guessed from the first lines.

    Raises:
        pyarrow.ArrowException: The file cannot be read so.
    """
    with _open(path, types) as lines:
        return lines.schema


def read_lines(path: Path, types: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    """Yield the lines of a CSV file as columns.

    Raises:
        pyarrow.ArrowException: The file cannot be read so.
    """
    with _open(path, types) as lines:
        yield from lines


def _open(path: Path, types: pyarrow.Schema) -> pyarrow.csv.CSVStreamingReader:
    return pyarrow.csv.open_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict(zip(types.names, types.types, strict=True)),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _leaves(format: Format) -> list[tuple[str, Field]]:
    return [leaf for field in format.fields for leaf in _leaves_of(field, "")]


def _leaves_of(field: Field, prefix: str) -> list[tuple[str, Field]]:
    path = prefix + field.name
    if field.record is None or field.dimensions:
        return [(path, field)]
    return [leaf for inner in field.record.fields for leaf in _leaves_of(inner, f"{path}.")]


def _is_listed(field: Field) -> bool:
    """Tell whether a cell holds JSON: an array, but for characters, which are one text."""
    return len(field.dimensions) > (field.kind is Kind.CHAR and not field.dynamic)


def _cell_type(field: Field) -> Any:  # noqa: ANN401 - some Arrow type
    if _is_listed(field) or field.kind in (Kind.CHAR, Kind.BYTES):
        return pyarrow.string()
    return type_of(field)


def _spelled(column: Any, field: Field) -> Any:  # noqa: ANN401 - pyarrow's types
    if not _is_listed(field) and field.kind not in (Kind.CHAR, Kind.BYTES):
        return column
    texts = [None if value is None else _cell(value, field) for value in column.to_pylist()]
    return pyarrow.array(texts, pyarrow.string())


def _cell(value: Any, field: Field) -> str:  # noqa: ANN401 - whatever a field holds
    if _is_listed(field):
        return JSON_CELL.encode(plain_value(value, field)).decode()
    if field.kind is Kind.CHAR:
        return str(value.rstrip(b"\0").decode("latin-1"))
    return base64.b64encode(value).decode()


def _gathered(batch: pyarrow.RecordBatch, field: Field, prefix: str) -> Any:  # noqa: ANN401 - pyarrow's types
    path = prefix + field.name
    if field.record is not None and not field.dimensions:
        parts = [_gathered(batch, inner, f"{path}.") for inner in field.record.fields]
        kind: Any = type_of(field)
        return pyarrow.StructArray.from_arrays(parts, fields=list(kind))
    if path not in batch.schema.names:
        raise EncodeError(f"the file has no column `{path}`")
    return _understood(batch.column(path), field, path)


def _understood(column: Any, field: Field, path: str) -> Any:  # noqa: ANN401 - pyarrow's types
    if field.kind is Kind.STRING and not field.dimensions:
        return column if field.optional else column.fill_null("")
    if not _is_listed(field) and field.kind not in (Kind.CHAR, Kind.BYTES):
        return column
    values = [_value(text, field, path) for text in column.to_pylist()]
    try:
        return pyarrow.array(values, type_of(field))
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise EncodeError(f"a cell is no `{field.spelling}`: {error} - at `{path}`") from error


def _value(text: str | None, field: Field, path: str) -> object:
    if text is None or text == "":
        if _is_listed(field):
            return [] if field.dynamic else None
        return None if text is None and field.optional else _padded(b"", field)
    try:
        value = msgspec.json.decode(text) if _is_listed(field) else text
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise EncodeError(f"a cell is not JSON: {error} - at `{path}`") from error
    return _padded(value_of(value, field, path), field)


def _padded(value: object, field: Field) -> object:
    """Return a value with characters as long as Arrow wants them, also inside of arrays and records."""
    if isinstance(value, list):
        return [_padded(item, field) for item in value]
    if isinstance(value, dict) and field.record is not None:
        return {inner.name: _padded(value[inner.name], inner) for inner in field.record.fields}
    if isinstance(value, bytes) and field.kind is Kind.CHAR:
        return value.ljust(char_width(field), b"\0")
    return value


def _guessed(kind: Any) -> Any:  # noqa: ANN401 - pyarrow's types
    """Return the type that a column is read as; dates and the like stay text, and so does what is always empty."""
    plain = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_boolean(kind)
    return kind if plain else pyarrow.string()


def _fields_of(tree: dict[str, Any]) -> list[Any]:
    return [
        pyarrow.field(name, pyarrow.struct(_fields_of(kind)), nullable=False)
        if isinstance(kind, dict)
        else pyarrow.field(name, kind, nullable=pyarrow.types.is_string(kind))
        for name, kind in tree.items()
    ]
