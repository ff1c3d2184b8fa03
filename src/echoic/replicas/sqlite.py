"""A log in a SQLite file: the write-ahead log, one connection that writes and one that reads beside it.

`synchronous` is FULL or NORMAL: with FULL each commit waits for the disk, with NORMAL only the checkpoint does, and a
power cut takes back whole commits, the latest ones first. A file that somebody else has locked is waited for, first by
SQLite itself and then as for a server that is away; a full disk is an error, and the file stays as it was before.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy

from echoic.errors import AddressError, JournalError, UnreachableError
from echoic.replicas.databases import Durability
from echoic.replicas.relational import Dialect, Insertion, RelationalDatabase
from echoic.replicas.rows import Value
from echoic.trust import open_private

__all__ = ["SQLiteDatabase"]

LOCKED_SECONDS_MAX: Final = 5.0
PASSING: Final = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))
PRIMARY: Final = 0xFF  # the other bits of an error code say more of the same
INTEGER_MAX: Final = (1 << 63) - 1
INTEGERS: Final = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def _no_float(values: Sequence[Any]) -> dict[int, Value]:
    """Find NaN, which SQLite takes for NULL, and negative zero, which it takes for zero."""
    numbers = numpy.asarray(values, numpy.float64)
    found = numpy.isnan(numbers) | ((numbers == 0) & numpy.signbit(numbers))
    return {place: None if values[place] else 0.0 for place in numpy.flatnonzero(found).tolist()}


def _no_integer(values: Sequence[Any]) -> dict[int, Value]:
    """Find what has 64 bits; a float is near it, and is in order with integers."""
    if max(values) <= INTEGER_MAX:
        return {}
    return {place: float(value) for place, value in enumerate(values) if value > INTEGER_MAX}


DIALECT: Final = Dialect(
    name="SQLite",
    mark="?",
    quote='"',
    types={
        **dict.fromkeys(INTEGERS, "INTEGER"),
        **dict.fromkeys(("float32", "float64"), "REAL"),
        **dict.fromkeys(("text", "json", "key"), "TEXT"),
        "bool": "BOOLEAN",
        "bytes": "BLOB",
    },
    table_options="",
    tables="SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE",
    columns="SELECT name FROM pragma_table_info(?)",
    misfits={"float32": _no_float, "float64": _no_float, "uint64": _no_integer},
)


class SQLiteDatabase(RelationalDatabase):
    """A log in a file of SQLite.

    Args:
        path: The file; it is made if it is not there.
        durability: `full` waits for the disk at each commit, `normal` does not.

    Raises:
        AddressError: The path is that of no file, such as `:memory:`.
    """

    def __init__(self, path: str | Path, durability: Durability = "normal") -> None:
        if not str(path) or str(path).startswith(":"):
            raise AddressError(f"a log needs a file, `{path}` is none")
        super().__init__(DIALECT, f"SQLite file {path}", lambda: SQLiteConnection(Path(path), durability))


class SQLiteConnection:
    """A connection to a file.

    Raises:
        JournalError: The file cannot be opened, or is something else.
        UnreachableError: Somebody else has locked it.
    """

    def __init__(self, path: Path, durability: Durability) -> None:
        self._place = f"SQLite file {path}"
        # SQLite would make a file that everybody may read. One that is there is not touched: closing it again would end
        # all locks that this process has on it, and others would then take away what SQLite still writes to.
        with contextlib.suppress(OSError):  # SQLite says what is wrong with the path
            os.close(open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        with self._translated():
            self._connection = sqlite3.connect(
                path, timeout=LOCKED_SECONDS_MAX, isolation_level=None, check_same_thread=False
            )
        try:
            with self._translated():
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute(f"PRAGMA synchronous = {durability.upper()}")
        except BaseException:
            self._connection.close()
            raise

    def ask(self, statement: str, values: Sequence[Value] = ()) -> Sequence[Sequence[Any]]:
        """Return the rows that a statement gives.

        Raises:
            JournalError: SQLite refuses.
            UnreachableError: Somebody else has locked the file.
        """
        with self._translated():
            return self._connection.execute(statement, tuple(values)).fetchall()

    def change(self, statement: str, values: Sequence[Value] = ()) -> int:
        """Run a statement and return how many rows it changed.

        Raises:
            JournalError: SQLite refuses.
            UnreachableError: Somebody else has locked the file.
        """
        with self._translated():
            return self._connection.execute(statement, tuple(values)).rowcount

    def insert(self, insertion: Insertion, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows.

        Raises:
            JournalError: SQLite refuses, such as for a full disk.
            UnreachableError: Somebody else has locked the file.
        """
        marks = ", ".join("?" * len(insertion.names))
        statement = f"INSERT INTO {insertion.table} ({', '.join(insertion.names)}) VALUES ({marks})"  # noqa: S608 - quoted
        with self._translated():
            self._connection.executemany(statement, rows)

    def begin(self) -> None:
        """Begin a transaction; the file is ours from here on.

        Raises:
            JournalError: SQLite refuses.
            UnreachableError: Somebody else has locked the file.
        """
        self.change("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Commit it.

        Raises:
            JournalError: SQLite refuses, such as for a full disk; the transaction is still there.
            UnreachableError: Somebody else has locked the file.
        """
        self.change("COMMIT")

    def rollback(self) -> None:
        """Take it back; some errors have done so already."""
        if self._connection.in_transaction:
            self._connection.rollback()

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0)
            kind = UnreachableError if code & PRIMARY in PASSING else JournalError
            raise kind(f"{error} - at {self._place}") from error
