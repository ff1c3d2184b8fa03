"""SQLite: a table with a column for each field, a transaction for each commit, from tuples and to tuples.

The write-ahead log with `synchronous = full` is its fastest way to be durable: one sync for a transaction. Tuples
become Arrow columns in the end, because that is what everybody has to deliver.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow

from echoic.testing.bench.events import PAYLOADS, Records
from echoic.testing.bench.journal import Commit, Keeper, Wish

__all__ = ["KEEPERS"]

FILE = "events.sqlite"
ROWS = 65_536
DTYPE = PAYLOADS["100 B"].dtype
assert DTYPE is not None
assert DTYPE.names is not None
NAMES = DTYPE.names
TYPES = {name: pyarrow.from_numpy_dtype(DTYPE[name]) for name in NAMES}


@contextmanager
def _keep(folder: Path, batches: Sequence[Records]) -> Iterator[Commit]:
    rows = [row for batch in batches for row in batch.tolist()]
    with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as base:
        base.execute("pragma journal_mode = wal")
        base.execute("pragma synchronous = full")
        kinds = ", ".join(f"{name} {'integer' if DTYPE[name].kind == 'i' else 'real'}" for name in NAMES)
        base.execute(f"create table events ({kinds})")
        insert = f"insert into events values ({', '.join('?' * len(NAMES))})"

        def commit() -> None:
            base.execute("begin")
            base.executemany(insert, rows)
            base.execute("commit")

        yield commit


def _read(folder: Path, wish: Wish) -> Iterator[pyarrow.RecordBatch]:
    names = wish.columns or NAMES
    with closing(sqlite3.connect(folder / FILE)) as base:
        query, values = f"select {', '.join(names)} from events", ()
        if wish.colder_than is not None:
            query, values = f"{query} where temperature < ?", (wish.colder_than,)
        cursor = base.execute(query, values)
        while rows := cursor.fetchmany(ROWS):
            columns = zip(*rows, strict=True)
            arrays = [pyarrow.array(column, TYPES[name]) for name, column in zip(names, columns, strict=True)]
            yield pyarrow.record_batch(arrays, list(names))


KEEPERS = [Keeper("SQLite", _keep, _read)]
