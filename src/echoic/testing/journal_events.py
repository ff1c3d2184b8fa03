"""Events to fill journals with: what an event holds follows from its source and number alone.

So whoever finds an event in a journal knows whether it is the right one, byte by byte, without having kept it, and a
source that sends again after a crash sends the same. The type of a source's events changes every `RUN_EVENTS` numbers:
one of fixed size, one with text, one with an array; a batch lies within such a run.
"""

from functools import lru_cache
from itertools import pairwise
from typing import Final

import numpy

from echoic.formats import event
from echoic.wire import Batch

__all__ = ["RUN_EVENTS", "batch_of", "record_of", "records_of"]

RUN_EVENTS: Final = 16
PLAIN: Final = numpy.dtype([("source", "<u8"), ("number", "<u8"), ("value", "<f8")])
WIDE: Final = numpy.dtype([("number", "<i4"), ("cells", "<f4", (7,)), ("source", "<u2")], align=True)


@event
class Note:
    """An event whose size differs from one to the next."""

    source: int
    number: int
    text: str


def batch_of(source: int, first: int, count: int) -> Batch:
    """Return events of a source; at most as many as there are in the run of `first`."""
    run, start = divmod(first, RUN_EVENTS)
    return _run_of(source, run).select(numpy.arange(start, min(start + count, RUN_EVENTS)))


def record_of(source: int, number: int) -> tuple[int, bytes]:
    """Return the token and the bytes of an event."""
    run, place = divmod(number, RUN_EVENTS)
    return _run_of(source, run).format.token, _records_of_run(source, run)[place]


def records_of(batch: Batch) -> list[bytes]:
    """Return the bytes of each event of a batch."""
    records, bounds = batch.records, batch.bounds
    return [bytes(records[start:end]) for start, end in pairwise(bounds)]


@lru_cache(maxsize=4096)
def _run_of(source: int, run: int) -> Batch:
    numbers = range(run * RUN_EVENTS, (run + 1) * RUN_EVENTS)
    match (source + run) % 3:
        case 0:
            return Batch.of(numpy.array([(source, number, number / 7) for number in numbers], PLAIN))
        case 1:
            return Batch.of([Note(source, number, "§" * (number * 7 % 31)) for number in numbers])
        case _:
            return Batch.of(numpy.array([(number, [number * source] * 7, source) for number in numbers], WIDE))


@lru_cache(maxsize=4096)
def _records_of_run(source: int, run: int) -> list[bytes]:
    return records_of(_run_of(source, run))
