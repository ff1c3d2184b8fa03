"""Arrow IPC: a file in the streaming format, one record batch after the other.

The format with a footer cannot be read before it is closed, so a crash would cost everything: not equally durable. It
is read mapped into memory, without a copy.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow
import pyarrow.compute
import pyarrow.ipc

from echoic.testing.bench.events import Records
from echoic.testing.bench.journal import Commit, Keeper, Wish
from echoic.testing.bench.journal.plain import columns_of

__all__ = ["KEEPERS"]

FILE = "events.arrows"


@contextmanager
def _keep(folder: Path, batches: Sequence[Records]) -> Iterator[Commit]:
    columns = [columns_of(batch, Wish()) for batch in batches]
    path = str(folder / FILE)
    with pyarrow.OSFile(path, "wb") as file, pyarrow.ipc.new_stream(file, columns[0].schema) as stream:
        descriptor = os.open(path, os.O_WRONLY)

        def commit() -> None:
            for batch in columns:
                stream.write_batch(batch)
            os.fdatasync(descriptor)

        try:
            yield commit
        finally:
            os.close(descriptor)


def _read(folder: Path, wish: Wish) -> Iterator[pyarrow.RecordBatch]:
    with pyarrow.memory_map(str(folder / FILE)) as file:
        schema = pyarrow.ipc.open_stream(file).schema
        file.seek(0)
        wanted = [schema.get_field_index(name) for name in wish.columns] or None
        for batch in pyarrow.ipc.open_stream(file, options=pyarrow.ipc.IpcReadOptions(included_fields=wanted)):
            if wish.colder_than is None:
                yield batch
            else:
                yield batch.filter(pyarrow.compute.less(batch.column("temperature"), wish.colder_than))


KEEPERS = [Keeper("Arrow IPC", _keep, _read)]
