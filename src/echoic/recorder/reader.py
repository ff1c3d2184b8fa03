"""From the blocks of a journal to batches.

A `Shelf` gives chunks: whole committed blocks of one segment, and the descriptors of their types. Here they are
checked, if they have come over a link, cut to what was asked for, and become `Recorded`: batches as they were sent,
views of the mapped file, with who sent them, when they were recorded and where they stand.

    chunk   | FORMAT | BATCH 10..13 | GAP | BATCH 14..20 |      asked for: 12..17
    events                 12 13             14..16             Missing in between

*What cannot be read is never passed over.* A `Hole` is made wherever sequence numbers do not continue: a damaged
stretch, a segment that retention has removed, a block whose type was never described. It says why, and where. What is
`Missing` was never recorded: the recorder knows that a source had sent it, and no more.

A block has one time for all of its events, and wall clocks step, so a range of time is a filter on blocks and not a
place to begin and one to end: by what the index says, stretches without any such block are not looked at.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy

from echoic.errors import EchoicError, JournalError, LimitExceededError, UnknownFormatError
from echoic.formats import Registry
from echoic.formats.descriptor import token
from echoic.recorder.blocks import BlockHead, BlockKind, parse_block
from echoic.recorder.scanning import payload_of, peek
from echoic.wire import Batch, parse_batch

if TYPE_CHECKING:
    import pyarrow

    from echoic.recorder.shelf import Chunk, Shelf

__all__ = [
    "ALWAYS",
    "CHUNK_BYTES",
    "Hole",
    "Missing",
    "Numbers",
    "PartitionReader",
    "Recorded",
    "Span",
    "fill_hole",
    "parse_gap",
]

CHUNK_BYTES: Final = 8 * 1024 * 1024
STRETCH_BYTES: Final = 256 * 1024  # what is looked at between two looks at the index, when asked for a time
TIME_MIN: Final = -(1 << 63)
TIME_MAX: Final = (1 << 63) - 1
REASON_BYTES_MAX: Final = 4096
TOKEN_BYTES: Final = 8  # with which a batch begins
NUMBER_MAX: Final = (1 << 63) - (1 << 32)  # so that what a block can count from here on is an int64

Numbers: TypeAlias = numpy.ndarray[Any, numpy.dtype[Any]]


class Recorded(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Events of one source that were recorded together, as they were sent."""

    batch: Batch
    partition: int
    sequence: int
    """The sequence number of the first event, in its partition."""
    source: int
    first: int
    """The number that the first event has among those of its source."""
    time_ns: int
    """When they were recorded, by the recorder's wall clock."""
    chosen: Numbers | None = None
    """How far behind the first each event is, where some are left out; None where all are there."""
    place: str = ""
    """The block, for messages."""

    @property
    def count(self) -> int:
        """How many events there are."""
        return self.batch.count

    @property
    def array(self) -> "numpy.ndarray[Any, Any]":
        """The events as a NumPy structured array: a view of the file for types of fixed size.

        Raises:
            MalformedBatchError: A record contradicts its type.
        """
        return self.batch.array

    @property
    def arrow(self) -> "pyarrow.RecordBatch":
        """The events as Arrow columns.

        Raises:
            MalformedBatchError: A record contradicts its type.
        """
        return self.batch.arrow

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the columns to any library that speaks Arrow's C interface: pandas, polars, DuckDB."""
        return self.batch.__arrow_c_stream__(requested_schema)

    @property
    def sequences(self) -> Numbers:
        """The sequence number of each event."""
        return self._counted(self.sequence)

    @property
    def numbers(self) -> Numbers:
        """The number that each event has among those of its source."""
        return self._counted(self.first)

    def _counted(self, first: int) -> Numbers:
        """Return the numbers of the events when the first has this one; a source may begin beyond 63 bits."""
        steps = self.steps
        return first + steps if first <= NUMBER_MAX else numpy.uint64(first) + steps.astype(numpy.uint64)

    @property
    def steps(self) -> Numbers:
        """How far behind the first event each is."""
        return numpy.arange(self.batch.count, dtype=numpy.int64) if self.chosen is None else self.chosen

    def select(self, numbers: Numbers) -> "Recorded":
        """Return some of the events, by their places in the batch, which ascend.

        Raises:
            MalformedBatchError: The offsets of the batch are not those of records.
        """
        if len(numbers) == self.batch.count:
            return self
        steps = self.steps[numbers]
        return msgspec.structs.replace(self, batch=self.batch.select(numbers), chosen=steps)


class Hole(msgspec.Struct, frozen=True):
    """Sequence numbers, from `first` to `last`, whose events cannot be read."""

    partition: int
    first: int
    last: int
    reason: str


class Missing(msgspec.Struct, frozen=True):
    """Events of a source, from `first` to `last`, that never reached the journal."""

    source: int
    first: int
    last: int
    reason: str


class Span(msgspec.Struct, frozen=True):
    """The time of which events are wanted: from `since_ns` on, and before `until_ns`."""

    since_ns: int = TIME_MIN
    until_ns: int = TIME_MAX

    def holds(self, time_ns: int) -> bool:
        """Tell whether a time is within."""
        return self.since_ns <= time_ns < self.until_ns


ALWAYS: Final = Span()


def fill_hole(hole: Hole, channel: str, on_hole: Callable[[Hole], None] | None) -> None:
    """Tell of a hole, or refuse to go on if nobody wants to be told.

    Raises:
        JournalError: Nobody does.
    """
    if on_hole is not None:
        on_hole(hole)
        return
    reason = f": {hole.reason}" if hole.reason else ""
    raise JournalError(
        f"events {hole.first} to {hole.last} cannot be read{reason} - at channel `{channel}`, partition "
        f"{hole.partition}"
    )


def parse_gap(head: BlockHead, payload: memoryview) -> Missing:
    """Return what a GAP block says.

    Raises:
        JournalError: It does not say how many events are missing.
    """
    if len(payload) < 8:
        raise JournalError(f"a block of missing events has {len(payload)} bytes, expected at least 8")
    count = int.from_bytes(payload[:8], "little")
    reason = bytes(payload[8 : 8 + REASON_BYTES_MAX]).decode("utf-8", "replace")
    return Missing(head.source, head.first, head.first + max(count, 1) - 1, reason)


class PartitionReader:
    """Reads one partition from a place on; `position` is the sequence number of the next event."""

    def __init__(self, shelf: "Shelf", partition: int, position: int, span: Span = ALWAYS) -> None:
        self.partition: Final = partition
        self.position = position
        self._shelf = shelf
        self._span = span
        self._registry = Registry()
        self._descriptors: dict[int, bytes] = {}

    def read(self, end: int) -> Iterator[Recorded | Hole | Missing]:
        """Yield what is committed before a sequence number, and where it has holes.

        Raises:
            JournalError: The journal cannot be read, or its shelf gives what is not part of it.
        """
        while self.position < end:
            if self._span is not ALWAYS:
                self._leap(end)
            bytes_max = CHUNK_BYTES if self._span is ALWAYS else STRETCH_BYTES
            chunk = self._shelf.chunk(self.partition, self.position, bytes_max) if self.position < end else None
            if chunk is None:
                return
            if chunk.end <= self.position:
                raise JournalError(
                    f"expected events from {self.position} on, got some up to {chunk.end} - at {self._place(chunk, 0)}"
                )
            yield from self._chunk(chunk, end)
            self.position = max(self.position, min(chunk.end, end))

    def _leap(self, end: int) -> None:
        """Pass over what was not recorded in the time that is asked for."""
        to = self._shelf.skip(self.partition, self.position, self._span.since_ns, self._span.until_ns)
        self.position = min(max(to, self.position), end)

    def _chunk(self, chunk: "Chunk", end: int) -> Iterator[Recorded | Hole | Missing]:
        self._descriptors = {token(descriptor): descriptor for descriptor in chunk.formats}
        blocks = memoryview(chunk.blocks)
        for offset, head in self._blocks(chunk):
            payload = payload_of(blocks, offset, head)
            if head.kind is BlockKind.GAP:
                if head.sequence >= self.position and head.sequence < end:
                    yield parse_gap(head, payload)
            elif head.kind is BlockKind.BATCH and head.sequence + head.count > self.position:
                yield from self._hole(head.sequence, end, chunk.reason)
                if head.sequence >= end:
                    return
                yield from self._batch(chunk, offset, head, payload, end)
        yield from self._hole(min(chunk.end, end), end, chunk.reason)

    def _blocks(self, chunk: "Chunk") -> Iterator[tuple[int, BlockHead]]:
        """Yield the blocks of a chunk and where they lie in it.

        Raises:
            JournalError: One is broken, or their sequence numbers go back.
        """
        blocks, sequence = memoryview(chunk.blocks), 0
        offset, size = 0, len(blocks)
        while offset < size:
            head = peek(blocks, offset) if chunk.checked else parse_block(blocks, offset, chunk.seed)
            if head is None:
                raise JournalError(f"a block is broken - at {self._place(chunk, offset)}")
            if head.sequence < sequence:
                raise JournalError(
                    f"sequence number {head.sequence} follows {sequence - 1} - at {self._place(chunk, offset)}"
                )
            sequence = head.sequence + (head.count if head.kind is BlockKind.BATCH else 0)
            yield offset, head
            offset += head.block_bytes

    def _hole(self, sequence: int, end: int, reason: str) -> Iterator[Hole]:
        """Yield the hole before a sequence number, if there is one."""
        stop = min(sequence, end)
        if stop > self.position:
            yield Hole(self.partition, self.position, stop - 1, reason or "the journal does not have them")
            self.position = stop

    def _batch(
        self, chunk: "Chunk", offset: int, head: BlockHead, payload: memoryview, end: int
    ) -> Iterator[Recorded | Hole]:
        start, stop = self.position - head.sequence, min(head.count, end - head.sequence)
        place = self._place(chunk, offset)
        try:
            batch = self._parsed(head, payload)
        except EchoicError as error:
            yield from self._hole(head.sequence + stop, end, f"{error} ({_spot(chunk, offset)})")
            return
        self.position = head.sequence + stop
        if self._span is not ALWAYS and not self._span.holds(head.time_ns):
            return
        if stop - start < head.count:
            batch = list(batch.parts((start, stop - start)))[1]
        first, sequence = head.first + start, head.sequence + start
        yield Recorded(batch, self.partition, sequence, head.source, first, head.time_ns, None, place)

    def _parsed(self, head: BlockHead, payload: memoryview) -> Batch:
        try:
            batch = parse_batch(payload, self._registry)
        except UnknownFormatError:
            self._learn(int.from_bytes(payload[:TOKEN_BYTES], "little"))
            batch = parse_batch(payload, self._registry)
        if batch.count != head.count:
            raise JournalError(f"a block of {head.count} events has a batch of {batch.count}")
        return batch

    def _learn(self, wanted: int) -> None:
        """Know a type from here on, if the chunk describes it.

        A journal may have more types than a registry takes, over the years or of a source that means no good: those
        that were learned before are forgotten then, and learned again where they are needed.

        Raises:
            RemoteError: What is said to describe it does not.
        """
        descriptor = self._descriptors.get(wanted)
        if descriptor is None:
            return
        try:
            self._registry.add_descriptor(descriptor)
        except LimitExceededError:
            self._registry = Registry()
            self._registry.add_descriptor(descriptor)

    def _place(self, chunk: "Chunk", offset: int) -> str:
        return f"channel `{self._shelf.channel}`, partition {self.partition}, {_spot(chunk, offset)}"


def _spot(chunk: "Chunk", offset: int) -> str:
    return f"`{chunk.file}`, offset {chunk.offset + offset}"
