"""The events that the benchmarks of Spark read: instruments, stock trades, and the paper's wind fields.

Journals are written straight by their writer, as a hub would write them: batches of a thousand events, or of sixteen
where an event has 75 KB. A few different batches take turns; nobody here compresses a journal, and what Parquet makes
of repetition is kept small by values that are drawn at random. The recorder's clock advances by ten microseconds with
each trade and ten milliseconds with each field, so that windows of event time become more with the data, not larger.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import numpy
import pyarrow
from numpy.typing import NDArray

from echoic.formats import Array, event, float64, int32
from echoic.recorder import Disk, JournalOptions, JournalWriter
from echoic.testing.bench.events import PAYLOADS
from echoic.wire import Batch

__all__ = ["FIELDS", "READINGS", "TRADES", "Recorded", "Series", "record"]

START_NS: Final = 1_700_000_000_000_000_000
COMMIT_BYTES: Final = 32 * 1024 * 1024
BATCHES: Final = 64
SYMBOLS: Final = 500
LAYERS, POINTS = 37, 253
ID: Final = bytes(range(16))


@event
class Trade:
    """A stock trade (ECho, section 1)."""

    at: float64
    symbol: str
    price: float64
    volume: int32


@event
class WindField:
    """One step of an atmosphere model, in the paper's grid (ECho, section 5)."""

    at: float64
    wind: Annotated[NDArray[Any], Array[float64, LAYERS, POINTS]]


@dataclass(frozen=True, slots=True)
class Series:
    """Events of one kind, without end.

    Attributes:
        channel: What they are called.
        step_ns: How much later each of them is recorded than the one before.
        batches: What is recorded, in turn.
    """

    channel: str
    step_ns: int
    batches: "Sequence[Batch]"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A journal that was written for a benchmark."""

    folder: Path
    channel: str
    events: int
    bytes: int
    write_seconds: float


def _readings(batch: int = 1000) -> Series:
    made = PAYLOADS["100 B"].records(BATCHES * batch)
    chance = numpy.random.default_rng(1)
    for name in made.dtype.names or ():
        if made.dtype[name] == numpy.float64:
            made[name] = chance.normal(50.0, 20.0, len(made)).round(2)
    made["temperature"] = chance.uniform(0.0, 100.0, len(made)).round(2)
    return Series("readings", 10_000, [Batch.of(part) for part in made.reshape(BATCHES, batch)])


def _trades(batch: int = 1000) -> Series:
    chance = numpy.random.default_rng(2)
    symbols = numpy.array([f"{chr(65 + number % 26)}{number:03d}" for number in range(SYMBOLS)])
    batches = []
    for _ in range(BATCHES):
        columns = {
            "at": chance.uniform(0.0, 1e6, batch).round(3),
            "symbol": symbols[chance.integers(0, SYMBOLS, batch)],
            "price": chance.uniform(0.0, 100.0, batch).round(2),
            "volume": chance.integers(1, 1000, batch, numpy.int32),
        }
        batches.append(Batch.of(pyarrow.RecordBatch.from_pydict(columns), Trade))
    return Series("trades", 10_000, batches)


def _fields(batch: int = 16) -> Series:
    chance = numpy.random.default_rng(3)
    batches = []
    for number in range(8):
        fields = [WindField(float(number), chance.normal(10.0, 4.0, (LAYERS, POINTS))) for _ in range(batch)]
        batches.append(Batch.of(fields, WindField))
    return Series("fields", 10_000_000, batches)


READINGS, TRADES, FIELDS = _readings, _trades, _fields


def record(folder: Path, series: Series, events: int, partitions: int = 2) -> Recorded:
    """Write a journal of so many events, rounded up to whole batches in each partition."""
    begun = time.perf_counter()
    with _writer(folder, series.channel, partitions) as writer:
        written = pending = size = 0
        numbers = [0] * partitions
        for number, batch in enumerate(_endless(series.batches)):
            if written >= events and number % partitions == 0:
                break
            source = number % partitions
            writer.append(batch, source + partitions, numbers[source], START_NS + written * series.step_ns)
            numbers[source] += len(batch)
            written += len(batch)
            pending += sum(len(memoryview(piece).cast("B")) for piece in batch.buffers())
            if pending >= COMMIT_BYTES:
                writer.commit(START_NS)
                size, pending = size + pending, 0
    return Recorded(folder, series.channel, written, size + pending, time.perf_counter() - begun)


@contextmanager
def _writer(folder: Path, channel: str, partitions: int) -> Iterator[JournalWriter]:
    options = JournalOptions(partitions, durability="os")
    writer = JournalWriter.open(Disk(folder), channel, options, id=ID, now_ns=START_NS)
    try:
        yield writer
    finally:
        writer.close(START_NS)


def _endless(batches: Sequence[Batch]) -> Iterator[Batch]:
    while True:
        yield from batches
