"""The loop that everybody would write: gather the records, write them, fdatasync. Nothing is checked, named or found.

It is the limit for whoever writes the same bytes from Python. Read, its file is one NumPy array whose columns are
copied apart, since Arrow wants each in one piece.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy

from echoic.testing.bench.events import Records
from echoic.testing.bench.journal.keepers import Commit, Keeper, Wish, batch_of_events

if TYPE_CHECKING:
    import pyarrow

__all__ = ["PLAIN", "columns_of"]

FILE: Final = "events.bin"
ROWS: Final = 65_536


@contextmanager
def _keep(folder: Path, batches: Sequence[Records]) -> Iterator[Commit]:
    pieces = [batch.view(numpy.uint8).data for batch in batches]
    descriptor = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def commit() -> None:
        os.writev(descriptor, pieces)
        os.fdatasync(descriptor)

    try:
        yield commit
    finally:
        os.close(descriptor)


def _read(folder: Path, wish: Wish) -> "Iterator[pyarrow.RecordBatch]":
    records = numpy.memmap(folder / FILE, batch_of_events(1).dtype, "r")
    for start in range(0, len(records), ROWS):
        yield columns_of(records[start : start + ROWS], wish)


def columns_of(records: Records, wish: Wish) -> "pyarrow.RecordBatch":
    """Return the columns of records that a wish asks for."""
    import pyarrow

    if wish.colder_than is not None:
        records = records[records["temperature"] < wish.colder_than]
    names = wish.columns or records.dtype.names or ()
    return pyarrow.record_batch([pyarrow.array(numpy.ascontiguousarray(records[name])) for name in names], list(names))


PLAIN: Final = Keeper("plain loop", _keep, _read)
