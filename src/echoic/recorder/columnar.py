"""Files of columns: Parquet, Arrow IPC and CSV, written from a journal and read into one.

All three are written from the stream of RecordBatches that a journal gives to anybody, so an export costs no more
memory than a few batches. Parquet and Arrow files keep the schema with its metadata, in which the descriptor is, so
what is read back has the type that was recorded: its enumerations, sizing fields and byte order included.

A journal's own knowledge of each event goes along on demand, in columns behind the event's:

    _sequence  _source  _number  _time  _partition        uint64, uint64, uint64, timestamp[ns, UTC], uint32

The reader tells them from fields of the events by their names and by being there all together. Nothing that is in a
file is believed: each batch is validated before it is used, since Arrow's own files are memory as it was.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet

from echoic.errors import JournalError
from echoic.formats import Format
from echoic.recorder import csv_files
from echoic.recorder.arrow_stream import own_types

__all__ = ["CHANNEL_KEY", "STAMPS", "Columns", "read_columns", "write_columns"]

ColumnarFormat = Literal["parquet", "arrow", "csv"]
Progress = Callable[[int], None]

CHANNEL_KEY: Final = b"echoic.channel"
STAMP_TYPES: Final = pyarrow.schema(own_types())
STAMPS: Final = tuple(STAMP_TYPES.names)
BATCH_ROWS_MAX: Final = 65_536


@dataclass(frozen=True, slots=True)
class Columns:
    """A file of columns that is being read.

    `batches` have the columns of the format and, if the journal's own knowledge is in the file, those of `STAMPS`.
    """

    format: Format
    channel: str
    rows: int | None
    stamped: bool
    batches: Iterator[pyarrow.RecordBatch]


def write_columns(
    reader: pyarrow.RecordBatchReader, file: Path, kind: ColumnarFormat, channel: str, progress: Progress
) -> int:
    """Write everything that a reader gives into a file, and return how many events that were."""
    stamps = _stamps_of(reader.schema)
    metadata = {**(reader.schema.metadata or {}), CHANNEL_KEY: channel.encode()}
    schema = reader.schema.with_metadata(metadata)
    events = 0
    with _writer(file, kind, schema, stamps) as write:
        for batch in reader:
            write(batch.replace_schema_metadata(metadata))
            events += batch.num_rows
            progress(events)
    return events


@contextmanager
def _writer(
    file: Path, kind: ColumnarFormat, schema: pyarrow.Schema, stamps: Sequence[str]
) -> Iterator[Callable[[pyarrow.RecordBatch], object]]:
    """Open a file, and give what writes a batch into it."""
    if kind == "parquet":
        with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as parquet:
            yield parquet.write_batch
    elif kind == "arrow":
        with pyarrow.ipc.new_file(str(file), schema) as stream:
            yield stream.write_batch
    else:
        format = _format_without(schema, stamps)
        columns = csv_files.flat_schema(format)
        for name in stamps:
            columns = columns.append(schema.field(name))
        with pyarrow.csv.CSVWriter(file, columns) as lines:
            yield lambda batch: lines.write_batch(csv_files.flat_batch(batch, format, stamps))


@contextmanager
def read_columns(file: Path, kind: ColumnarFormat, declared: Format | None) -> Iterator[Columns]:
    """Open a file of columns; without a declared type, that of the events is found in the file.

    Raises:
        FormatError: A column cannot be a field of an event.
        JournalError: The file is not there, not of this kind, or damaged; also later, while it is read.
    """
    with ExitStack() as stack:
        with _complaining(file, kind):
            opened = _opened(file, kind, declared, stack)
        yield replace(opened, batches=_guarded(opened.batches, file, kind))


def _opened(file: Path, kind: ColumnarFormat, declared: Format | None, stack: ExitStack) -> Columns:
    if kind == "parquet":
        parquet = stack.enter_context(pyarrow.parquet.ParquetFile(file))
        batches = parquet.iter_batches(BATCH_ROWS_MAX)
        return _columns(parquet.schema_arrow, declared, parquet.metadata.num_rows, batches)
    if kind == "arrow":
        # Read and not mapped: a mapped file that somebody cuts short would end this process.
        reader = stack.enter_context(_arrow_reader(stack.enter_context(pyarrow.OSFile(str(file), "rb"))))
        return _columns(reader.schema, declared, None, _arrow_batches(reader))
    return _csv_columns(file, declared)


def _guarded(batches: Iterator[pyarrow.RecordBatch], file: Path, kind: str) -> Iterator[pyarrow.RecordBatch]:
    with _complaining(file, kind):
        yield from batches


@contextmanager
def _complaining(file: Path, kind: str) -> Iterator[None]:
    """Turn what Arrow says of a file into one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise JournalError(f"there is no file {file}") from error
    except (pyarrow.ArrowException, OSError, UnicodeError) as error:
        raise JournalError(f"cannot read {file} as {kind}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].rstrip(". ") or type(error).__name__


def _columns(
    schema: pyarrow.Schema, declared: Format | None, rows: int | None, batches: Iterator[pyarrow.RecordBatch]
) -> Columns:
    stamps = _stamps_of(schema)
    plain = _plain_schema(schema)
    channel = (schema.metadata or {}).get(CHANNEL_KEY, b"").decode("utf-8", "replace")
    format = declared if declared is not None else _format_without(plain, stamps)
    return Columns(format, channel, rows, bool(stamps), _checked(batches, plain))


def _csv_columns(file: Path, declared: Format | None) -> Columns:
    """Open a CSV file: once for the names and types of its columns, once for its lines."""
    guessed = csv_files.line_schema(file, STAMP_TYPES)
    stamps = _stamps_of(guessed)
    events = pyarrow.schema([column for column in guessed if column.name not in stamps])
    format = declared if declared is not None else Format.of(csv_files.nested_schema(events))
    types = pyarrow.unify_schemas([csv_files.flat_schema(format), STAMP_TYPES])

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for lines in csv_files.read_lines(file, types):
            batch = csv_files.nested_batch(lines, format)
            for stamp in stamps:
                batch = batch.append_column(stamp, lines.column(stamp))
            yield batch

    return Columns(format, "", None, bool(stamps), batches())


def _stamps_of(schema: pyarrow.Schema) -> tuple[str, ...]:
    """Return the columns that are the journal's and not the events': all, or none."""
    ends = schema.names[-len(STAMPS) :] == list(STAMPS)
    return STAMPS if ends and schema.types[-len(STAMPS) :] == STAMP_TYPES.types else ()


def _format_without(schema: pyarrow.Schema, stamps: Sequence[str]) -> Format:
    """Return the type of the events in columns, which is the recorded one if the descriptor agrees with them."""
    metadata: Any = schema.metadata
    return Format.of(pyarrow.schema([column for column in schema if column.name not in stamps], metadata))


def _plain_schema(schema: pyarrow.Schema) -> pyarrow.Schema:
    """Return a schema in which moments and spans of time are nanoseconds, and small floats are float32."""
    columns = [column if column.name in STAMPS else column.with_type(_plain_type(column.type)) for column in schema]
    metadata: Any = schema.metadata
    return pyarrow.schema(columns, metadata)


def _plain_type(kind: Any) -> Any:  # noqa: ANN401 - pyarrow's types
    if pyarrow.types.is_timestamp(kind) or pyarrow.types.is_duration(kind):
        return pyarrow.int64()
    return pyarrow.float32() if pyarrow.types.is_float16(kind) else kind


def _checked(batches: Iterator[pyarrow.RecordBatch], plain: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        batch.validate(full=True)
        if batch.schema.types == plain.types:
            yield batch
        else:
            columns = [_plain_column(column, kind) for column, kind in zip(batch.columns, plain.types, strict=True)]
            yield pyarrow.RecordBatch.from_arrays(columns, schema=plain)


def _plain_column(column: Any, kind: Any) -> Any:  # noqa: ANN401 - pyarrow's types
    if pyarrow.types.is_timestamp(column.type) and kind == pyarrow.int64():
        column = column.cast(pyarrow.timestamp("ns", column.type.tz))
    elif pyarrow.types.is_duration(column.type):
        column = column.cast(pyarrow.duration("ns"))
    return column.cast(kind)


def _arrow_reader(source: Any) -> Any:  # noqa: ANN401 - pyarrow's readers
    """Return a reader of an Arrow file, or of a stream that was written into a file."""
    head = source.read(6)
    source.seek(0)
    if head == b"ARROW1":
        return pyarrow.ipc.open_file(source)
    return pyarrow.ipc.open_stream(source)


def _arrow_batches(reader: Any) -> Iterator[pyarrow.RecordBatch]:  # noqa: ANN401 - pyarrow's readers
    if isinstance(reader, pyarrow.ipc.RecordBatchStreamReader):
        yield from reader
        return
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)
