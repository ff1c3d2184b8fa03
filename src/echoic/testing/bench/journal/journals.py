"""The journal of echoic, as a keeper: its writer and its reader, without a hub.

The batches that are appended are NumPy arrays, as they would come from a source in the same process; the writer copies
them, since what arrives from elsewhere lies in a buffer that is used again.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.testing.bench.events import Records
from echoic.testing.bench.journal.keepers import Commit, Keeper, Wish
from echoic.wire import Batch

if TYPE_CHECKING:
    import pyarrow

__all__ = ["CHANNEL", "JOURNAL"]

CHANNEL: Final = "readings"
SOURCE: Final = 1
ID: Final = bytes(range(16))


@contextmanager
def _keep(folder: Path, batches: Sequence[Records]) -> Iterator[Commit]:
    from echoic.recorder import Disk, JournalWriter

    writer = JournalWriter.open(Disk(folder), CHANNEL, id=ID, now_ns=time.time_ns())
    number = 0

    def commit() -> None:
        nonlocal number
        for records in batches:
            writer.append(Batch.of(records), SOURCE, number, time.time_ns())
            number += len(records)
        writer.commit(time.time_ns())

    try:
        yield commit
    finally:
        writer.close(time.time_ns())


def _read(folder: Path, wish: Wish) -> "Iterator[pyarrow.RecordBatch]":
    from echoic.recorder import Journal

    where = "" if wish.colder_than is None else "input.temperature < param.limit"
    params = None if wish.colder_than is None else {"limit": wish.colder_than}
    yield from Journal(folder, CHANNEL).arrow(columns=wish.columns or None, where=where, params=params)


JOURNAL: Final = Keeper("echoic, journal", _keep, _read)
