"""Spark's streams into Delta tables, exactly once: the data source "echoic-delta".

    spark.dataSource.register(EchoicDelta)
    frame.writeStream.format("echoic-delta").option("path", "tables/trades").option("checkpointLocation", ...).start()

Executors write Parquet files with pyarrow into the table's folder, which they and the driver must see; the driver adds
all of them in one commit of the Delta log (`delta_log.py` tells why that is exactly once). `delta-spark` does the same
and more, for tables in object stores too, but comes with jars that have to be fetched; here a wheel is enough.

Options: `path`, and `partition_by`, columns separated by commas whose values become folders. Tables are appended to,
never overwritten. To read one use `read_table`, which gives the committed files to Spark's own Parquet reader.

A file is called `part-<partition>-<query>-<batch>-<random>.parquet`, so that what a killed query left behind can be
told from what another query is writing. A task that fails removes its files; those of a whole batch that fails are
removed by `abort`; those of a killed driver, of a killed worker, and of a task that ended only after Spark had given up
its batch, when the query starts again by `write_stream`.

Values of partition columns are text in Delta's log. Whole numbers, texts, booleans and dates have one spelling each
and are taken; others are refused. An empty text becomes null, as Delta has it.
"""

import contextlib
import os
import uuid
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow
import pyarrow.parquet
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from echoic.errors import PipelineError
from echoic.spark import delta_log
from echoic.spark.delta_log import Part
from echoic.spark.folders import local_folder

__all__ = ["DeltaStreamWriter", "DeltaWriter", "EchoicDelta", "Written"]

OPEN_MAX: Final = 64
"""How many files a task has open. With more partition values than that, a value may get several files."""
SPELLABLE: Final = (BooleanType, ByteType, DateType, IntegerType, LongType, ShortType, StringType)
NULL_FOLDER: Final = "__HIVE_DEFAULT_PARTITION__"
ESCAPED: Final = frozenset("\"#%'*/:=?\\{}[]^\x7f").union(map(chr, range(32)))
"""What Hive, and thus Spark, does not have in the name of a folder."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What a task has written."""

    query: str
    parts: tuple[Part, ...]


class EchoicDelta(DataSource):
    """The data source "echoic-delta"."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "echoic-delta"

    def writer(self, schema: StructType, overwrite: bool) -> "DeltaWriter":
        """Return the writer of a batch query.

        Raises:
            PipelineError: An option is missing or wrong, or the rows do not fit the table.
        """
        return DeltaWriter(*_target(self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> "DeltaStreamWriter":  # noqa: N802 - Spark's name
        """Return the writer of a streaming query.

        Raises:
            PipelineError: An option is missing or wrong, or the rows do not fit the table.
        """
        return DeltaStreamWriter(*_target(self.options, schema, overwrite=overwrite))


class DeltaStreamWriter(DataSourceStreamArrowWriter):
    """Adds each batch of a streaming query to a table, once."""

    def __init__(self, path: str, schema: StructType, partition_by: tuple[str, ...]) -> None:
        self.path = path
        self.schema = schema
        self.partition_by = partition_by

    def write(  # type: ignore[override]  # the base of Spark's Arrow writers takes rows
        self, iterator: Iterator[pyarrow.RecordBatch]
    ) -> Written:
        """Write the rows of one task, and return the files.

        Raises:
            PipelineError: The rows cannot be written; nothing of them is left.
        """
        task = _task()
        query, batch = task.getLocalProperty("sql.streaming.queryId"), task.getLocalProperty("streaming.sql.batchId")
        if query is None or batch is None:
            raise PipelineError(f"table {self.path} is written outside of a streaming query")
        label = f"part-{task.partitionId():05d}-{query}-{batch}"
        return Written(query, write_parts(iterator, self.path, self.schema, self.partition_by, label))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Add the files of all tasks to the table, unless the batch has been added before.

        Raises:
            PipelineError: The table cannot be written.
        """
        written = [message for message in messages if isinstance(message, Written)]
        if any(message.parts for message in written):
            delta_log.prepared(self.path, self.schema, self.partition_by)
            if not delta_log.commit(self.path, written[0].query, batchId, _parts(written)):
                _remove(self.path, _parts(written))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        """Remove the files of a batch that failed."""
        _remove(self.path, _parts(messages))


class DeltaWriter(DataSourceArrowWriter):
    """Appends the rows of a batch query to a table, all or none."""

    def __init__(self, path: str, schema: StructType, partition_by: tuple[str, ...]) -> None:
        self.path = path
        self.schema = schema
        self.partition_by = partition_by
        self.query = str(uuid.uuid4())

    def write(  # type: ignore[override]  # the base of Spark's Arrow writers takes rows
        self, iterator: Iterator[pyarrow.RecordBatch]
    ) -> Written:
        """Write the rows of one task, and return the files.

        Raises:
            PipelineError: The rows cannot be written; nothing of them is left.
        """
        label = f"part-{_task().partitionId():05d}-{self.query}-0"
        return Written(self.query, write_parts(iterator, self.path, self.schema, self.partition_by, label))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Add the files of all tasks to the table.

        Raises:
            PipelineError: The table cannot be written.
        """
        delta_log.prepared(self.path, self.schema, self.partition_by)
        delta_log.commit(self.path, self.query, None, _parts(messages))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the files of a query that failed."""
        _remove(self.path, _parts(messages))


def write_parts(
    batches: Iterator[pyarrow.RecordBatch], path: str, schema: StructType, partition_by: Sequence[str], label: str
) -> tuple[Part, ...]:
    """Write rows into files of a table that no commit names yet.

    Raises:
        PipelineError: The rows cannot be written; nothing of them is left.
    """
    files = _Files(Path(path), label)
    arrow = to_arrow_schema(schema, timezone="UTC")
    try:
        for batch in batches:
            for values, rows in _by_values(batch.cast(arrow), partition_by):
                files.write(values, rows)
        return files.close()
    except BaseException as error:
        files.discard()
        if isinstance(error, OSError | pyarrow.ArrowException):
            number = error.errno if isinstance(error, OSError) else None
            said = os.strerror(number) if number else str(error)
            raise PipelineError(f"cannot write to table {path}: {said}") from error
        raise


Values = tuple[tuple[str, str | None], ...]


class _Files:
    """The files of one task, one for each combination of partition values."""

    def __init__(self, table: Path, label: str) -> None:
        self._table = table
        self._label = label
        self._open: dict[Values, tuple[Path, pyarrow.parquet.ParquetWriter]] = {}
        self._rows: dict[Path, int] = {}
        self._done: list[Part] = []

    def write(self, values: Values, rows: pyarrow.RecordBatch) -> None:
        if values not in self._open:
            while len(self._open) >= OPEN_MAX:
                self._finish(next(iter(self._open)))
            self._open[values] = self._create(values, rows.schema)
        file, writer = self._open[values]
        writer.write_batch(rows)
        self._rows[file] += rows.num_rows

    def close(self) -> tuple[Part, ...]:
        for values in list(self._open):
            self._finish(values)
        return tuple(self._done)

    def discard(self) -> None:
        for _, writer in self._open.values():
            # Closing writes a footer, which on a full disk fails once more.
            with contextlib.suppress(OSError, pyarrow.ArrowException):
                writer.close()
        for file in self._rows:
            file.unlink(missing_ok=True)

    def _create(self, values: Values, schema: pyarrow.Schema) -> tuple[Path, pyarrow.parquet.ParquetWriter]:
        folder = self._table.joinpath(*(f"{escaped(name)}={_folder_name(value)}" for name, value in values))
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self._label}-{uuid.uuid4().hex}.parquet"
        self._rows[file] = 0
        return file, pyarrow.parquet.ParquetWriter(file, schema, compression="snappy")

    def _finish(self, values: Values) -> None:
        file, writer = self._open[values]
        writer.close()
        del self._open[values]
        name = file.relative_to(self._table).as_posix()
        self._done.append(Part(name, file.stat().st_size, self._rows[file], values))


def escaped(name: str) -> str:
    """Return the name of a folder for the name or a value of a partition column, as Hive spells it."""
    return "".join(f"%{ord(each):02X}" if each in ESCAPED else each for each in name)


def _folder_name(value: str | None) -> str:
    return NULL_FOLDER if value is None else escaped(value)


def _by_values(batch: pyarrow.RecordBatch, by: Sequence[str]) -> Iterator[tuple[Values, pyarrow.RecordBatch]]:
    """Split rows by the values of partition columns, which are left out."""
    if batch.num_rows == 0:
        return
    if not by:
        yield (), batch
        return
    rest = batch.select([name for name in batch.schema.names if name not in by])
    keys = pyarrow.table(
        [*(batch.column(name) for name in by), pyarrow.array(range(batch.num_rows))],
        names=[*(f"key{number}" for number in range(len(by))), "row"],
    )
    groups = keys.group_by(keys.column_names[:-1], use_threads=False).aggregate([("row", "list")])
    for group in groups.to_pylist():
        texts = (_text(group[f"key{number}"]) for number in range(len(by)))
        yield tuple(zip(by, texts, strict=True)), rest.take(pyarrow.array(group["row_list"]))


def _text(value: object) -> str | None:
    if value is None or value == "":
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _target(
    options: MutableMapping[str, str], schema: StructType, *, overwrite: bool
) -> tuple[str, StructType, tuple[str, ...]]:
    """Return what a writer is made of, once the rows are known to fit the table."""
    path = options.get("path", "")
    if not path:
        raise PipelineError("format echoic-delta needs option `path`, the table's folder")
    if overwrite:
        raise PipelineError(f"table {path} can only be appended to: use mode append")
    by = tuple(name.strip() for name in options.get("partition_by", "").split(",") if name.strip())
    for name in by:
        if name not in schema.names:
            raise PipelineError(
                f"`partition_by` names `{name}`, which is none of the columns {', '.join(schema.names)}"
            )
        if not isinstance(schema[name].dataType, SPELLABLE):
            kind = schema[name].dataType.simpleString()
            raise PipelineError(f"column `{name}` is `{kind}`: partition by whole numbers, texts, booleans or dates")
    delta_log.checked(path, schema, by)
    return str(local_folder(path)), schema, by


def _task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise PipelineError("a Delta table is written by tasks of Spark only")
    return task


def _parts(messages: Sequence[WriterCommitMessage | None]) -> tuple[Part, ...]:
    return tuple(part for message in messages if isinstance(message, Written) for part in message.parts)


def _remove(path: str, parts: Sequence[Part]) -> None:
    for part in parts:
        (Path(path) / part.path).unlink(missing_ok=True)
