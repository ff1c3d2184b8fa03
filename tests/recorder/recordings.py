"""Journals for tests of reading: written by the real writer, or block by block to have any bytes at all."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

import numpy

from echoic.formats import Format, event, float64, int32
from echoic.recorder import JournalOptions, JournalWriter, LocalShelf, Storage
from echoic.recorder.blocks import BlockHead, BlockKind, SegmentHeader, encode_block, encode_segment_header
from echoic.recorder.catalog import VERSION, Catalog, JournalInfo
from echoic.recorder.reader import Hole, Missing, PartitionReader, Recorded
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.wire import Batch, Buffer

SECOND = 1_000_000_000
BEGIN = 1_760_000_000 * SECOND
CHANNEL = "trades"
DTYPE = numpy.dtype([("number", "<i8"), ("price", "<f8"), ("venue", "<i4"), ("lot", "<i4")])


@event
class Trade:
    number: int
    price: float64
    venue: int32 = 0


def rows(start: int, count: int) -> Batch:
    """Events of fixed size, whose first field counts."""
    array = numpy.zeros(count, DTYPE)
    array["number"] = numpy.arange(start, start + count)
    array["price"] = array["number"] / 2
    array["lot"] = 100
    return Batch.of(array)


def disk() -> SimulatedDisk:
    return SimulatedDisk(Random(6))


class Scribe:
    """The real writer, and the numbers of each source's events."""

    def __init__(self, storage: Storage, channel: str = CHANNEL, **options: object) -> None:
        self.storage = storage
        self.channel = channel
        self.writer = JournalWriter.open(storage, channel, JournalOptions(**options), id=bytes(range(16)), now_ns=BEGIN)
        self._next = dict(self.writer.positions)

    def write(self, events: Batch | Sequence[object], source: int = 0, at: float = 0.0, *, commit: bool = True) -> None:
        batch = events if isinstance(events, Batch) else Batch.of(events)
        first = self._next.get(source, 0)
        self.writer.append(batch, source, first, BEGIN + round(at * SECOND))
        self._next[source] = first + batch.count
        if commit:
            self.commit()

    def commit(self) -> None:
        self.writer.commit(BEGIN)

    def shelf(self) -> LocalShelf:
        return LocalShelf(self.storage, self.channel)

    def close(self) -> None:
        self.writer.close(BEGIN)


Head = Callable[[int], BlockHead]


class Forger:
    """A journal of one segment, made of whatever blocks one likes, with right checksums."""

    def __init__(self) -> None:
        self.storage = disk()
        catalog = Catalog(self.storage, CHANNEL)
        self.storage.make_directory(catalog.partition(0))
        catalog.write_info(JournalInfo(VERSION, bytes(range(16)).hex(), CHANNEL, 1, BEGIN))
        self.path = catalog.segment(0, 0)
        header, self.seed = encode_segment_header(SegmentHeader(bytes(range(16)), 0, 0, BEGIN))
        self.data = bytearray(header)
        self.add(BlockKind.POSITIONS)

    def add(self, kind: BlockKind, payload: Iterable[Buffer] = (), sequence: int = 0, **head: int) -> int:
        """Add a block and return where it lies."""
        offset = len(self.data)
        made = BlockHead(kind, sequence, head.pop("time_ns", BEGIN), **head)
        self.data += b"".join(encode_block(made, list(payload), self.seed))
        return offset

    def batch(self, batch: Batch, sequence: int, **head: int) -> int:
        return self.add(BlockKind.BATCH, batch.buffers(), sequence, count=head.pop("count", batch.count), **head)

    def format(self, format: Format, sequence: int = 0) -> int:
        return self.add(BlockKind.FORMAT, [format.descriptor], sequence)

    def shelf(self, sequence: int, *, spoil: Iterable[int] = ()) -> LocalShelf:
        """Commit, write the file with some bytes changed, and open it."""
        self.add(BlockKind.COMMIT, (), sequence, synced=len(self.data))
        data = bytearray(self.data)
        for offset in spoil:
            data[offset] ^= 0x20
        self.storage.open(self.path, write=True, create=True).append([bytes(data)])
        return LocalShelf(self.storage, CHANNEL)


def items(shelf: LocalShelf, start: int = 0, end: int = 1 << 60, partition: int = 0) -> list[Recorded | Hole | Missing]:
    return list(PartitionReader(shelf, partition, start).read(end))


def numbers(found: Iterable[object]) -> list[int]:
    """What the first field of all events says."""
    return [int(number) for item in found if isinstance(item, Recorded) for number in item.array["number"]]


def holes(found: Iterable[object]) -> Iterator[Hole]:
    return (item for item in found if isinstance(item, Hole))
