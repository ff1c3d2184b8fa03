"""MCAP: messages with a channel, a time and a sequence number, written by its library for Python.

A message for each event, which is how it is used, and a message for each batch, which is how it would be used by
somebody in a hurry. Messages are not gathered in chunks, because a chunk is not written before it is full. The library
reads without an index here, message after message, and can leave out neither fields nor events.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import numpy
import pyarrow
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer

from echoic.testing.bench.events import PAYLOADS, Records
from echoic.testing.bench.journal import BATCH, Commit, Keeper, Wish
from echoic.testing.bench.journal.plain import columns_of

__all__ = ["KEEPERS"]

FILE = "events.mcap"
ROWS = 65_536
SIZE = PAYLOADS["100 B"].records(1).itemsize


@contextmanager
def _keep(folder: Path, batches: Sequence[Records], *, size: int) -> Iterator[Commit]:
    data = b"".join(batch.tobytes() for batch in batches)
    messages = [data[start : start + size] for start in range(0, len(data), size)]
    with (folder / FILE).open("wb") as file:
        writer = Writer(file, compression=CompressionType.NONE, use_chunking=False)
        writer.start(profile="", library="")
        channel = writer.register_channel("readings", "ndr", writer.register_schema("Reading", "", b""))

        def commit() -> None:
            for number, message in enumerate(messages):
                writer.add_message(channel, number, message, number, number)
            file.flush()
            os.fdatasync(file.fileno())

        yield commit
        writer.finish()


def _read(folder: Path, wish: Wish, *, size: int) -> Iterator[pyarrow.RecordBatch]:
    with (folder / FILE).open("rb") as file:
        messages = (message.data for _, _, message in make_reader(file).iter_messages(log_time_order=False))
        while data := b"".join(islice(messages, ROWS * SIZE // size)):
            yield columns_of(numpy.frombuffer(data, PAYLOADS["100 B"].dtype), wish)


KEEPERS = [
    Keeper(name, partial(_keep, size=size), partial(_read, size=size), selective=False)
    for name, size in (("MCAP, a message per event", SIZE), ("MCAP, a message per batch", BATCH * SIZE))
]
