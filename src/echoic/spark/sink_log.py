"""Which files of a Parquet table count: the log that Spark's file sink keeps, read without Spark.

The file sink is exactly once because a file counts only when it is listed. Tasks write files under random names
straight into the table's folder; when all are there, the driver writes one log file for the batch, by renaming. A
driver that is killed in mid-batch leaves files that no log file names, and runs the batch again under other names.

    table/_spark_metadata/0            v1
                          1            {"path":"file:///.../part-00000-c1d2.snappy.parquet","size":1234,...,"action":"add"}
                          9.compact    everything up to batch 9 in one file
                          10           only batch 10

Spark's own readers look here. Every other reader (pyarrow, DuckDB, Polars) that just lists the folder counts rows of
killed batches twice, so these are given the list: see `committed_files` in `tables.py`.

The log is read while it is being written: a file that Spark has compacted away between listing and reading it is no
damage, so reading starts over, a few times. The paths in the log are absolute, thus a table that was moved to another
folder is not readable, by Spark neither.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from echoic.errors import PipelineError

__all__ = ["LOG_FOLDER", "last_batch", "listed_files"]

LOG_FOLDER: Final = "_spark_metadata"
BATCH_FILE: Final = re.compile(r"(\d+)(\.compact)?")
ATTEMPTS: Final = 5


class _Entry(msgspec.Struct, frozen=True):
    """One line of the log."""

    path: str
    action: str = "add"


def last_batch(log: Path) -> int:
    """Return the number of the last batch in a log folder of Spark's (sink, offsets or commits), -1 if there is none.

    Raises:
        PipelineError: The folder cannot be read.
    """
    return max((batch for batch, _ in _batches(log)), default=-1)


def listed_files(table: Path) -> tuple[str, ...]:
    """Return the paths of all committed files of a table, in the order in which they were committed.

    Raises:
        PipelineError: The log cannot be read, or is damaged.
    """
    for _ in range(ATTEMPTS):
        try:
            return tuple(_replayed(table / LOG_FOLDER))
        except FileNotFoundError:
            continue
    raise PipelineError(f"the log of table {table} lost a file while it was read, {ATTEMPTS} times in a row")


def _batches(log: Path) -> list[tuple[int, bool]]:
    """Return (batch, compact?) for every file of a log."""
    try:
        matches = [BATCH_FILE.fullmatch(file.name) for file in log.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise PipelineError(f"cannot read the log {log}: {error.strerror}") from error
    return sorted((int(match[1]), match[2] is not None) for match in matches if match)


def _replayed(log: Path) -> Iterator[str]:
    files: dict[str, None] = {}
    for name in _needed(log):
        for entry in _entries(log / name):
            if entry.action == "delete":
                files.pop(entry.path, None)
            else:
                files[entry.path] = None
    return (_local_path(path, log) for path in files)


def _needed(log: Path) -> list[str]:
    """Return the names of the last compacted file and of the batches after it.

    Raises:
        PipelineError: A batch between them is not there.
    """
    batches = _batches(log)
    compacted = max((batch for batch, compact in batches if compact), default=-1)
    later = [batch for batch, compact in batches if batch > compacted and not compact]
    expected = later[0] if later and compacted < 0 else compacted + 1
    for batch in later:
        if batch != expected:
            raise PipelineError(f"the log {log} lacks batch {expected}, but has batch {batch}")
        expected += 1
    return ([f"{compacted}.compact"] if compacted >= 0 else []) + [str(batch) for batch in later]


def _entries(file: Path) -> Iterator[_Entry]:
    try:
        header, *lines = file.read_bytes().splitlines()
    except ValueError as error:
        raise PipelineError(f"the log file {file} is empty") from error
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PipelineError(f"cannot read the log file {file}: {error.strerror}") from error
    if header != b"v1":
        raise PipelineError(
            f"the log file {file} is of version `{header[:20].decode(errors='replace')}`, known is `v1`"
        )
    for number, line in enumerate(lines, 2):
        try:
            yield msgspec.json.decode(line, type=_Entry)
        except msgspec.MsgspecError as error:
            raise PipelineError(f"the log file {file} is damaged: {error} - at line {number}") from error


def _local_path(path: str, log: Path) -> str:
    parts = urlsplit(path)
    if parts.scheme not in {"", "file"}:
        raise PipelineError(f"the log {log} lists {path}, which is no local file: read the table with Spark")
    return unquote(parts.path)
