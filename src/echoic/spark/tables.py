"""Tables that streams fill: checked before a query starts, written exactly once, readable by everybody.

    table = TableSettings("tables/trades", partition_by=("symbol",))
    query = write_stream(frame, table, checkpoint="state/trades", name="trades").trigger(availableNow=True).start()
    read_table(spark, "tables/trades")                          a DataFrame of what was committed
    table_dataset("tables/trades").to_table()                   the same without Spark
    duckdb.read_parquet(list(committed_files("tables/trades")), union_by_name=True)

A table is a folder of Parquet files. Which of them count is told by the log of Spark's file sink (`sink_log.py`) or,
when the format is "delta", by a Delta log (`delta.py`). The file sink is Spark's own: nothing is written that Spark
does. What it does not do, and what is done here before the query starts, is to notice these four mistakes, each of
which would lose rows in silence or fail in the middle of the night:

    the schema has changed its types          `table_schema.py` says what may change
    another query has filled this table       the sink skips every batch whose number it has seen, whoever wrote it
    the table was emptied or is another one   the checkpoint says rows are in the table, and they are not
    the folder has files of somebody else     they vanish for Spark's readers with the first batch

The middle two are seen from three numbers, for a batch is written to the checkpoint's offsets first, then to the
table's log, then to the checkpoint's commits:  last commit <= last batch in the table <= last offset.

Beside the files lies `_table.json`: the schema and the partition columns of all rows there ever were, and to which
checkpoint the table belongs. Without it each start would read the footers of all files, the type of a partition column
would be a guess from the folders' names, and two queries could begin a table together. It is written before the query
starts, thus it may know columns that no row has come for. When it contradicts the frame, the files decide.

A killed batch leaves its files behind. They harm nobody who reads the list, but they take room: `remove_uncommitted`
removes those that are older than any batch can be, and a Delta query removes its own when it starts again.

Folders are local, or mounted where the driver and the executors see them. For other file systems (`hdfs:`, `s3a:`) the
schema is asked of Spark, and the batch numbers are not compared.
"""

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec
import pyarrow
import pyarrow.parquet
from pyspark.errors import AnalysisException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from echoic.errors import PipelineError
from echoic.spark.folders import local_folder, remove_files
from echoic.spark.sink_log import LOG_FOLDER, last_batch, listed_files
from echoic.spark.table_schema import extended

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = [
    "TableSettings",
    "check_table",
    "committed_files",
    "read_table",
    "remove_uncommitted",
    "table_dataset",
    "write_stream",
]

NOTE: Final = "_table.json"
DELTA_LOG: Final = "_delta_log"
SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
DAY_SECONDS: Final = 86_400.0


class TableSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a table is and how it is stored.

    `partition_by` are columns whose values become folders: few values each, or there will be many small files.
    """

    path: str | Path
    format: Literal["parquet", "delta"] = "parquet"
    partition_by: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where it is, as text: a path, or an address such as s3a://bucket/trades."""
        return str(self.path)


class _Note(msgspec.Struct, frozen=True):
    """What lies beside the files of a Parquet table, in `_table.json`."""

    schema: str
    partition_by: tuple[str, ...] = ()
    checkpoint: str = ""

    @property
    def struct(self) -> StructType:
        return StructType.fromJson(json.loads(self.schema))


def write_stream(frame: "DataFrame", table: TableSettings, *, checkpoint: str | Path, name: str) -> "DataStreamWriter":
    """Return the writer of a query that appends the rows of a streaming frame to a table, exactly once.

    Everything about the table is checked and its schema extended. What is left to do is `.trigger(...)` and `.start()`.
    One query at a time may fill a Parquet table; a Delta table takes several.

    Raises:
        PipelineError: The frame does not fit the table, the checkpoint is not that of the table, or one of the two
            folders cannot be read or written.
    """
    checkpoint = str(checkpoint)
    schema = check_table(frame.sparkSession, table, frame.schema)
    folder = local_folder(table.place)
    writer = frame.writeStream.queryName(name).outputMode("append").option("checkpointLocation", checkpoint)
    if table.format == "delta":
        return _delta_writer(writer, frame, table, checkpoint)
    if folder is not None:
        state = local_folder(checkpoint)
        _check_owner(folder, state)
        _check_batches(folder, state)
        _check_strangers(folder)
        _write_note(folder, _Note(schema.json(), table.partition_by, str(state or checkpoint)))
    if table.partition_by:
        writer = writer.partitionBy(*table.partition_by)
    return writer.format("parquet").option("path", table.place if folder is None else str(folder))


def check_table(spark: "SparkSession", table: TableSettings, schema: StructType) -> StructType:
    """Return the schema that the table has with rows of `schema` in it; nothing is changed.

    Raises:
        PipelineError: A column has another type than in the table, the partition columns or the format differ, or the
            folder cannot be read.
    """
    _check_partition_columns(table, schema)
    folder = local_folder(table.place)
    if folder is not None:
        _check_format(folder, table.format)
    if table.format == "delta":
        from echoic.spark import delta_log

        return delta_log.checked(table.place, schema, table.partition_by)
    if folder is None:
        return extended(_schema_by_spark(spark, table.place), schema, table.place)
    note = _read_note(folder)
    if note is None:
        return extended(_schema_of_files(listed_files(folder)), schema, table.place)
    _check_partitioning(note, table)
    try:
        return extended(note.struct, schema, table.place)
    except PipelineError:
        by = [field for field in note.struct.fields if field.name in note.partition_by]
        written = StructType(_schema_of_files(listed_files(folder)).fields + by)
        return extended(written, schema, table.place)


def read_table(spark: "SparkSession", path: str | Path) -> "DataFrame":
    """Return the committed rows of a table of either format, with all columns there ever were.

    Raises:
        PipelineError: There is no table, or it cannot be read.
    """
    folder = local_folder(path)
    if folder is None:
        return spark.read.option("mergeSchema", "true").parquet(str(path))
    schema, _ = _described(folder)
    reader = spark.read.schema(schema)
    if _is_delta(folder):
        files = committed_files(path)
        rows = reader.option("basePath", str(folder)).parquet(*files) if files else None
    else:
        rows = reader.parquet(str(folder)) if (folder / LOG_FOLDER).is_dir() else None
    return spark.createDataFrame([], schema) if rows is None else rows.select(*(f"`{each}`" for each in schema.names))


def committed_files(path: str | Path) -> tuple[str, ...]:
    """Return the Parquet files whose rows are the table's, for readers other than Spark.

    Raises:
        PipelineError: There is no table, it cannot be read, or a listed file is not there.
    """
    folder = _table_folder(path)
    files = _files(folder)
    for file in files:
        if not Path(file).is_file():
            raise PipelineError(
                f"table {folder} lists {file}, which is not there: was the table moved or cleaned by hand?"
            )
    return files


def table_dataset(path: str | Path) -> "Dataset":
    """Return the committed rows of a table as a dataset of pyarrow, with all columns there ever were.

    Raises:
        PipelineError: There is no table, or it cannot be read.
    """
    import pyarrow.dataset  # brings pandas, which no task of a query needs

    folder = _table_folder(path)
    schema, by = _described(folder)
    arrow = to_arrow_schema(schema, timezone="UTC")
    # Spark writes timestamps as INT96 unless told otherwise, which Arrow would take for nanoseconds.
    parquet = pyarrow.dataset.ParquetFileFormat(
        read_options=pyarrow.dataset.ParquetReadOptions(None, coerce_int96_timestamp_unit="us")
    )
    folders = pyarrow.dataset.partitioning(pyarrow.schema([arrow.field(name) for name in by]), flavor="hive")
    return pyarrow.dataset.dataset(
        list(committed_files(path)),
        schema=arrow,
        format=parquet,
        partitioning=folders if by else None,
        partition_base_dir=str(folder),
    )


def remove_uncommitted(path: str | Path, *, older_seconds: float = DAY_SECONDS) -> tuple[str, ...]:
    """Remove files that killed batches left in a table, and return their paths.

    Only files that were last written `older_seconds` ago or earlier: those of a batch that is being written are not
    listed either. Files that a Delta table has removed, but keeps for reading earlier versions, are left alone.

    Raises:
        PipelineError: There is no table, it cannot be read, or a file cannot be removed.
    """
    folder = _table_folder(path)
    if _is_delta(folder):
        from echoic.spark import delta_log

        candidates: Iterable[Path] = delta_log.uncommitted(str(folder))
    else:
        listed = set(_files(folder))
        candidates = [file for file in _parquet_files(folder) if str(file) not in listed]
    return remove_files(candidates, before=time.time() - older_seconds)


def _delta_writer(
    writer: "DataStreamWriter", frame: "DataFrame", table: TableSettings, checkpoint: str
) -> "DataStreamWriter":
    from echoic.spark import delta_log
    from echoic.spark.delta import EchoicDelta

    state = local_folder(checkpoint)
    if state is not None and last_batch(state / "commits") >= 0 and not delta_log.exists(table.place):
        raise PipelineError(
            f"checkpoint {checkpoint} says that rows are in table {table.place}, but there is no such table: "
            "was it removed or renamed? remove the checkpoint too to fill it from the start"
        )
    path = delta_log.prepared(table.place, frame.schema, table.partition_by)
    query = _query_id(state)
    if query is not None:
        remove_files(delta_log.uncommitted(path, query), before=time.time())
    frame.sparkSession.dataSource.register(EchoicDelta)
    return writer.format(EchoicDelta.name()).option("path", path).option("partition_by", ",".join(table.partition_by))


def _check_partition_columns(table: TableSettings, schema: StructType) -> None:
    for name in table.partition_by:
        if name not in schema.names:
            raise PipelineError(
                f"table {table.place} is to be partitioned by `{name}`, which is none of its columns: "
                f"{', '.join(schema.names)}"
            )
    if schema.names and len(set(table.partition_by)) >= len(schema.names):
        raise PipelineError(
            f"table {table.place} is to be partitioned by all of its columns, so that none is left to store"
        )


def _check_format(folder: Path, format: str) -> None:
    try:
        found = "delta" if _is_delta(folder) else "parquet" if (folder / LOG_FOLDER).is_dir() else format
        if folder.exists() and not folder.is_dir():
            raise PipelineError(f"table {folder} is not a folder")
    except OSError as error:
        raise PipelineError(f"cannot read table {folder}: {error.strerror}") from error
    if found != format:
        raise PipelineError(
            f"table {folder} is stored as {found}, not as {format}: choose another folder or that format"
        )


def _check_partitioning(note: _Note, table: TableSettings) -> None:
    if note.partition_by != table.partition_by:
        raise PipelineError(
            f"table {table.place} is partitioned by ({', '.join(note.partition_by)}), not by "
            f"({', '.join(table.partition_by)}): write to another table"
        )


def _check_owner(folder: Path, checkpoint: Path | None) -> None:
    """Let one checkpoint have the table, even before there is a batch; one that was moved still has it.

    Raises:
        PipelineError: The table is that of another checkpoint, or there cannot be a checkpoint.
    """
    note = _read_note(folder)
    owner = local_folder(note.checkpoint) if note and note.checkpoint else None
    if checkpoint is None:
        return
    if owner is not None and owner != checkpoint and owner.is_dir():
        raise PipelineError(
            f"table {folder} is filled by the query of checkpoint {owner}, not of {checkpoint}: another one's batches "
            "would be left out; choose another table, or remove table and checkpoint"
        )
    try:
        checkpoint.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PipelineError(f"cannot write to checkpoint {checkpoint}: {error.strerror}") from error


def _check_batches(folder: Path, checkpoint: Path | None) -> None:
    """Compare the batches that the table has with those that the checkpoint knows.

    Raises:
        PipelineError: They are not of one query.
    """
    if checkpoint is None:
        return
    offered, done = last_batch(checkpoint / "offsets"), last_batch(checkpoint / "commits")
    written = last_batch(folder / LOG_FOLDER)
    if written > offered:
        raise PipelineError(
            f"table {folder} has batches up to {written}, but checkpoint {checkpoint} only up to {offered}: another "
            "query filled it, and Spark would leave out rows; choose another table, or remove table and checkpoint"
        )
    if written < done:
        raise PipelineError(
            f"checkpoint {checkpoint} says that batches up to {done} are in table {folder}, which has them up to "
            f"{written}: was it removed or renamed? remove the checkpoint too to fill it from the start"
        )


def _check_strangers(folder: Path) -> None:
    if (folder / LOG_FOLDER).is_dir():
        return
    # A query killed in its first batch leaves files and a note, but no log.
    if _read_note(folder) is None and any(True for _ in _parquet_files(folder)):
        raise PipelineError(
            f"folder {folder} has Parquet files that no stream has written: they would vanish for Spark's readers; "
            "choose another folder"
        )


def _query_id(checkpoint: Path | None) -> str | None:
    """Return the id of the query that owns a checkpoint, None if there is none yet."""
    try:
        return None if checkpoint is None else str(json.loads((checkpoint / "metadata").read_bytes())["id"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError) as error:
        raise PipelineError(f"cannot read the query's id from checkpoint {checkpoint}: {error}") from error


def _described(folder: Path) -> tuple[StructType, tuple[str, ...]]:
    """Return all columns of a table that is there, and those that it is partitioned by."""
    if _is_delta(folder):
        from echoic.spark import delta_log

        return delta_log.described(str(folder))
    note = _read_note(_table_folder(str(folder)))
    return (_schema_of_files(_files(folder)), ()) if note is None else (note.struct, note.partition_by)


def _schema_of_files(files: Iterable[str]) -> StructType:
    """Return all columns that files written by Spark have, by the schema that it leaves in each footer."""
    texts: dict[bytes, str] = {}
    for file in files:
        try:
            footer = pyarrow.parquet.read_metadata(file).metadata or {}
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise PipelineError(f"cannot read the Parquet file {file}: {error}") from error
        if SPARK_SCHEMA not in footer:
            raise PipelineError(f"the Parquet file {file} was not written by Spark: it has no schema of Spark's")
        texts.setdefault(footer[SPARK_SCHEMA], file)
    schema = StructType([])
    for text, file in texts.items():
        schema = extended(schema, StructType.fromJson(json.loads(text)), file)
    return schema


def _schema_by_spark(spark: "SparkSession", path: str) -> StructType:
    try:
        return spark.read.option("mergeSchema", "true").parquet(path).schema
    except AnalysisException as error:
        if error.getCondition() in {"PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"}:
            return StructType([])
        raise PipelineError(f"cannot read table {path}: {error.getCondition()}") from error


def _read_note(folder: Path) -> _Note | None:
    try:
        return msgspec.json.decode((folder / NOTE).read_bytes(), type=_Note)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PipelineError(f"cannot read table {folder}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise PipelineError(f"the schema of table {folder} is damaged: {error} - at {NOTE}") from error


def _write_note(folder: Path, note: _Note) -> None:
    if _read_note(folder) == note:
        return
    draft = folder / f"{NOTE}.draft"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(msgspec.json.encode(note))
        draft.replace(folder / NOTE)
    except OSError as error:
        raise PipelineError(f"cannot write to table {folder}: {error.strerror}") from error


def _table_folder(path: str | Path) -> Path:
    folder = local_folder(path)
    if folder is None:
        raise PipelineError(f"table {path} is not in a local folder: read it with Spark")
    if not any((folder / name).exists() for name in (NOTE, LOG_FOLDER, DELTA_LOG)):
        raise PipelineError(f"there is no table in {folder}: it has neither {LOG_FOLDER} nor {DELTA_LOG}")
    return folder


def _files(folder: Path) -> tuple[str, ...]:
    if _is_delta(folder):
        from echoic.spark import delta_log

        return delta_log.files(str(folder))
    return listed_files(folder)


def _parquet_files(folder: Path) -> Iterable[Path]:
    return (file for file in folder.rglob("*.parquet") if not file.name.startswith((".", "_")))


def _is_delta(folder: Path) -> bool:
    return (folder / DELTA_LOG).is_dir()
