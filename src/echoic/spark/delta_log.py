"""The log of a Delta table: who has committed what, by the package `deltalake`, without Spark and without jars.

A Delta table is a folder of Parquet files and a log of numbered commits, each of which names the files that it adds. A
commit can also carry `txn(application, version)`, and the log keeps the highest version of every application. With the
query's id for the application and the batch for the version this makes batches exactly once:

    Spark                        the table                                 after a kill there
    offsets/7 written
    tasks write their files      files that no commit names                removed when the query starts again
    commit(7)                    one commit: files + txn(query, 7)         the batch runs again, is known, its files go
    commits/7 written

Commits are atomic because exactly one writer can create the log file of a number. When another query was faster,
`deltalake` tries the next number; when it was the same query (two drivers that do not know of each other), the second
one's commit is refused, and what it wrote is taken for what it is, a repetition.

Columns are added by a commit of their own before the one that needs them: a kill between the two leaves a table with
a column that is null everywhere.
"""

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from echoic.errors import PipelineError
from echoic.spark.folders import local_folder
from echoic.spark.table_schema import extended, plain

try:
    from deltalake import CommitProperties, DeltaTable, Schema, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError, DeltaError
    from deltalake.transaction import AddAction
except ImportError as missing:
    raise PipelineError("Delta tables need the package deltalake: pip install 'echoic[delta]'") from missing

__all__ = ["Part", "checked", "commit", "described", "exists", "files", "prepared", "uncommitted"]

READABLE: Final = frozenset({"timestampNtz"})
"""Features of the Delta protocol that do not change which rows the files have."""


class Part(msgspec.Struct, frozen=True):
    """One file that a task has written: its path below the table, and what the log says about it."""

    path: str
    bytes: int
    rows: int
    values: tuple[tuple[str, str | None], ...] = ()


def exists(path: str) -> bool:
    """Tell whether there is a Delta table."""
    return DeltaTable.is_deltatable(str(_folder(path)))


def described(path: str) -> tuple[StructType, tuple[str, ...]]:
    """Return the columns of a table, and those that it is partitioned by.

    Raises:
        PipelineError: The table cannot be read.
    """
    return _described(_opened(path))


def checked(path: str, schema: StructType, partition_by: Sequence[str]) -> StructType:
    """Return the schema that a table has with rows of `schema` in it; there need not be a table.

    Raises:
        PipelineError: Types or partition columns differ from those of the table, or it cannot be read.
    """
    if not exists(path):
        return extended(StructType([]), schema, path)
    known, by = described(path)
    if by != tuple(partition_by):
        raise PipelineError(
            f"table {path} is partitioned by ({', '.join(by)}), not by ({', '.join(partition_by)}): "
            "write to another table"
        )
    return extended(known, schema, path)


def prepared(path: str, schema: StructType, partition_by: Sequence[str]) -> str:
    """Create the table, or add the columns that it lacks, and return its absolute path.

    Raises:
        PipelineError: The rows do not fit the table, or it cannot be written.
    """
    wanted = checked(path, schema, partition_by)
    folder = str(_folder(path))
    try:
        if not exists(path):
            Path(folder).mkdir(parents=True, exist_ok=True)
            columns = Schema.from_json(wanted.json())
            DeltaTable.create(folder, columns, mode="ignore", partition_by=list(partition_by))
        elif wanted != described(path)[0]:
            nothing = to_arrow_schema(wanted, timezone="UTC").empty_table()
            write_deltalake(folder, nothing, mode="append", schema_mode="merge")
    except (DeltaError, OSError) as error:
        raise PipelineError(f"cannot write to table {path}: {_line(error)}") from error
    return folder


def files(path: str) -> tuple[str, ...]:
    """Return the paths of the files that are the table.

    Raises:
        PipelineError: The table cannot be read, or has features that its files alone do not tell.
    """
    table = _opened(path)
    features = set(table.protocol().reader_features or ()) - READABLE
    if features:
        raise PipelineError(
            f"table {path} uses {', '.join(sorted(features))}: read it with `deltalake` or another reader of Delta"
        )
    return tuple(table.file_uris())


def commit(path: str, query: str, batch: int | None, parts: Iterable[Part]) -> bool:
    """Add the files of a batch in one commit; return False, and change nothing, if the batch is known.

    A batch of None is not remembered, and thus always added.

    Raises:
        PipelineError: A file is not there, or the table cannot be written.
    """
    parts = list(parts)
    for part in parts:
        if not (_folder(path) / part.path).is_file():
            raise PipelineError(
                f"table {path} lost {part.path} before it was committed: do two queries share a checkpoint?"
            )
    table = _opened(path)
    if not parts or _knows(table, query, batch):
        return not parts
    transactions = None if batch is None else [Transaction(query, batch, _now_ms())]
    try:
        table.create_write_transaction(
            [_action(part) for part in parts],
            "append",
            table.schema(),
            table.metadata().partition_columns,
            commit_properties=CommitProperties(app_transactions=transactions),
        )
    except CommitFailedError as error:
        if _knows(_opened(path), query, batch):
            return False
        raise PipelineError(f"cannot commit to table {path}: {_line(error)}") from error
    except (DeltaError, OSError) as error:
        raise PipelineError(f"cannot commit to table {path}: {_line(error)}") from error
    return True


def uncommitted(path: str, query: str | None = None) -> tuple[Path, ...]:
    """Return the files that no commit has ever named: all of them, or those of one query.

    Raises:
        PipelineError: The table cannot be read.
    """
    table = _opened(path)
    try:
        # The full list has removed files too, which earlier versions of the table need; the other one has only these.
        loose = table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False, full=True)
        removed = table.vacuum(retention_hours=0, dry_run=True, enforce_retention_duration=False, full=False)
    except (DeltaError, OSError) as error:
        raise PipelineError(f"cannot list the files of table {path}: {_line(error)}") from error
    names = sorted(set(loose) - set(removed))
    return tuple(_folder(path) / name for name in names if name.endswith(".parquet") and (query or "") in name)


def _folder(path: str) -> Path:
    folder = local_folder(path)
    if folder is None:
        raise PipelineError(f"table {path} is not in a local or mounted folder, which a Delta table must be")
    return folder


def _opened(path: str) -> DeltaTable:
    try:
        return DeltaTable(str(_folder(path)))
    except (DeltaError, OSError) as error:
        raise PipelineError(f"cannot read table {path}: {_line(error)}") from error


def _described(table: DeltaTable) -> tuple[StructType, tuple[str, ...]]:
    columns = StructType.fromJson(json.loads(table.schema().to_json()))
    return plain(columns), tuple(table.metadata().partition_columns)


def _knows(table: DeltaTable, query: str, batch: int | None) -> bool:
    version = table.transaction_version(query)
    return batch is not None and version is not None and version >= batch


def _action(part: Part) -> AddAction:
    return AddAction(part.path, part.bytes, dict(part.values), _now_ms(), True, json.dumps({"numRecords": part.rows}))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _line(error: Exception) -> str:
    """Return the first line of an error's message."""
    return str(error).partition("\n")[0]
