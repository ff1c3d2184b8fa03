"""One partition of a journal while it is written: what is fresh, which segment it goes to, and what may go.

Rotation, when a segment is full and everything is committed:

    next file as .tmp: header, POSITIONS, sync     a crash here leaves a .tmp, which is worth nothing
    SEAL in the full segment, sync                 a crash here leaves a sealed last segment: opening makes the next
    rename, sync of the directory                  from here on the next segment is the last

In this order a full disk is found out before the segment is sealed, so that it can go on; rotation is tried again with
the next commit. Retention removes whole sealed segments, the oldest first, and syncs the directory after each, or else
a loss of power might bring back an older one than it takes away.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal

import msgspec

from echoic.errors import JournalError, LimitExceededError, LocalError
from echoic.recorder.blocks import BLOCK_PAYLOAD_BYTES_MAX, BlockHead, BlockKind, SegmentHeader, parse_segment_header
from echoic.recorder.catalog import SEGMENT, TEMPORARY, U64_MAX, Catalog, said
from echoic.recorder.mending import Mended, load_segment, mend
from echoic.recorder.segment import SegmentWriter, begin_segment
from echoic.recorder.standing import Standing, encode_gap
from echoic.wire import Batch, Buffer
from echoic.wire.frames import size_of

__all__ = ["SEGMENT_BYTES_MAX", "JournalOptions", "PartitionWriter", "Retention", "is_put_aside"]

SEGMENT_BYTES_MAX: Final = 256 * 1024 * 1024
I64_MAX: Final = 2**63 - 1


class Retention(msgspec.Struct, frozen=True):
    """How much of a partition is kept; 0 is no limit. Whole segments go, the oldest first, never the last one."""

    bytes_max: int = 0
    age_ns_max: int = 0


class JournalOptions(msgspec.Struct, frozen=True):
    """How a journal is written. `partitions` counts only when it is made."""

    partitions: int = 1
    segment_bytes_max: int = SEGMENT_BYTES_MAX
    retention: Retention = Retention()
    durability: Literal["disk", "os"] = "disk"
    """With `os` nothing is synced: what was acknowledged survives the end of the process, not a loss of power."""


class Sealed(msgspec.Struct, frozen=True):
    """A segment that is full."""

    first: int
    bytes: int
    sealed_ns: int


class PartitionWriter:
    """Appends to the last segment of a partition.

    Invariant: `standing` is what the journal has when everything pending is committed, `durable` what it has for sure.
    """

    def __init__(self, catalog: Catalog, number: int, journal: bytes, options: JournalOptions) -> None:
        self.durable = Standing()
        self.recovered: list[str] = []
        self.trouble = ""
        self.events = self.bytes = self.duplicates = self.gaps = 0
        self._catalog = catalog
        self._number = number
        self._journal = journal
        self._options = options
        self._standing = Standing()
        self._advanced: dict[int, int] = {}
        self._sealed: list[Sealed] = []
        self._segment: SegmentWriter

    def open(self, now_ns: int) -> None:
        """Take up the last segment, or begin the first one of a journal that is being made.

        Raises:
            JournalError: It is damaged, or cannot be read or written.
        """
        catalog, number = self._catalog, self._number
        directory = catalog.partition(number)
        with said("open the partition", directory):
            for name in catalog.names(number):
                if name.endswith(TEMPORARY):
                    catalog.storage.remove(f"{directory}/{name}")
            catalog.storage.sync_directory(directory)  # whoever wrote before may have ended before it came to this
        segments = catalog.segments(number)
        if not segments:
            raise JournalError(f"the partition has no segments - at {directory}")
        mended = mend(catalog, number, segments[-1], self._journal, durable=self._options.durability == "disk")
        self.recovered += mended.notes
        self._standing = mended.standing
        self.durable.positions.update(mended.standing.positions)
        self._list_sealed(segments, now_ns)
        path = catalog.segment(number, segments[-1])
        if mended.sealed:
            mended.file.close()
            self._sealed.append(Sealed(segments[-1], mended.size, mended.time_ns))
            self._go_on(mended.sequence, now_ns)
            return
        self._use(mended, path)
        if not mended.marked:
            self._mark(now_ns)

    def create(self, now_ns: int) -> None:
        """Write the first segment.

        Raises:
            JournalError: It cannot be written.
        """
        self._go_on(0, now_ns)
        self._segment.close()

    @property
    def head(self) -> int:
        """The sequence of the next event when everything pending is committed."""
        return self._segment.sequence

    @property
    def first(self) -> int:
        """The sequence of the first event that is still there."""
        segment = self._segment  # looked at first: other threads ask too, while it is sealed and followed by another
        oldest = self._sealed[:1]
        return oldest[0].first if oldest else segment.first

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return len(self._sealed) + 1

    @property
    def pending_bytes(self) -> int:
        """How many bytes the next commit writes."""
        return self._segment.pending_bytes

    @property
    def failed(self) -> bool:
        """Whether the journal must be opened again."""
        return self._segment.failed

    def append(self, batch: Batch, source: int, first: int, now_ns: int) -> int:
        """Add what is fresh in a batch to what the next commit writes; return how many events that is.

        Raises:
            LocalError: A number is out of range.
            LimitExceededError: A single event is too large, so that no journal can have it.
            JournalError: The journal must be opened again.
            MalformedBatchError: A part of the batch is fresh, and it cannot be cut.
        """
        count = batch.count
        self._check(source, first, count, now_ns)
        known = self._standing.positions.get(source, first)
        if first < known:
            duplicates = min(known - first, count)
            self.duplicates += duplicates
            if duplicates == count:
                return 0
            batch = list(batch.parts((duplicates, count - duplicates)))[1]
            first, count = known, count - duplicates
        if not count:
            return 0
        parts = _payloads_of(batch)  # may fail, so it comes before anything is added
        segment = self._segment
        if first > known:
            self._add_gap(source, known, first - known, "never arrived", now_ns)
        segment.describe(batch.format, now_ns)
        number = first
        for payload, part in parts:
            head = BlockHead(BlockKind.BATCH, segment.sequence, now_ns, segment.synced, source, number, part)
            segment.add(head, payload)
            number += part
        self._advance(source, number)
        self.events += count
        return count

    def miss(self, source: int, first: int, last: int, reason: str, now_ns: int) -> None:
        """Add that events of a source will never come, up to and including `last`.

        Raises:
            LocalError: A number is out of range.
        """
        self._check(source, first, max(0, last - first + 1), now_ns)
        known = self._standing.positions.get(source, first)
        if last < max(first, known):
            return
        if first > known:
            self._add_gap(source, known, first - known, "never arrived", now_ns)
        first = max(first, known)
        self._add_gap(source, first, last - first + 1, reason, now_ns)
        self._advance(source, last + 1)

    def commit(self, now_ns: int) -> dict[int, int]:
        """Put everything pending on the disk; return the sources that advanced and where they go on.

        Raises:
            JournalError: It cannot be written.
        """
        segment = self._segment
        before = segment.size
        segment.commit(now_ns)
        self.bytes += segment.size - before
        advanced, self._advanced = self._advanced, {}
        for source, position in advanced.items():
            self.durable.advance(source, position)
        self.trouble = ""
        if segment.size >= self._options.segment_bytes_max and segment.sequence > segment.first and not segment.failed:
            self._rotate(now_ns)
        self._retain(now_ns)
        return advanced

    def settle(self, now_ns: int) -> bool:
        """Make the mark of the last commit durable too; return whether it is, or has to be tried again later.

        Raises:
            JournalError: The journal must be opened again.
        """
        settled = self._segment.settle(now_ns)
        self._retain(now_ns)
        return settled

    def trim(self, upto: int) -> None:
        """Remove the segments whose events are all before a sequence.

        Raises:
            JournalError: One cannot be removed.
        """
        while self._sealed and self._follower(0) <= upto:
            self._remove_oldest()

    def close(self) -> None:
        """Let go of the files."""
        self._segment.close()

    def _check(self, source: int, first: int, count: int, now_ns: int) -> None:
        if not (0 <= source <= U64_MAX and 0 <= first <= U64_MAX - count and -I64_MAX <= now_ns <= I64_MAX):
            raise LocalError(
                f"source {source}, number {first} and time {now_ns} must be at least 0 and fit into 64 bits"
            )
        if self._segment.sequence > U64_MAX - count:
            raise JournalError(f"the partition has no sequence numbers left - at {self._segment.path}")
        if self._segment.failed:
            raise JournalError(f"writing failed before, the journal must be opened again - at {self._segment.path}")

    def _add_gap(self, source: int, first: int, count: int, reason: str, now_ns: int) -> None:
        segment = self._segment
        head = BlockHead(BlockKind.GAP, segment.sequence, now_ns, segment.synced, source, first)
        segment.add(head, [encode_gap(count, reason)])
        self.gaps += 1

    def _advance(self, source: int, position: int) -> None:
        self._standing.advance(source, position)
        self._advanced.pop(source, None)  # the order is that of the last words, or `durable` would forget others
        self._advanced[source] = position

    def _rotate(self, now_ns: int) -> None:
        """End the segment and begin the next; when that fails before the seal, the segment just goes on."""
        segment = self._segment
        path = self._catalog.segment(self._number, segment.sequence)
        try:
            begun = self._begin(segment.sequence, now_ns)
        except OSError as error:
            self.trouble = f"cannot begin a segment: {error.strerror or error} - at {path}"
            return
        try:
            segment.seal(now_ns)
        except JournalError as error:
            self._catalog.abandon(path, begun.file)
            self.trouble = str(error)
            return
        self._sealed.append(Sealed(segment.first, segment.size, now_ns))  # at no moment is it in neither place
        try:
            self._enter(begun, path)
        except OSError as error:
            begun.file.close()
            del self._sealed[-1]
            segment.failed = True  # it is sealed, and whether the next is there is not known
            self.trouble = f"cannot name a segment: {error.strerror or error} - at {path}"
            return
        segment.close()

    def _go_on(self, sequence: int, now_ns: int) -> None:
        """Begin a segment where none is being written."""
        path = self._catalog.segment(self._number, sequence)
        if is_put_aside(self._catalog, self._number, sequence):
            raise JournalError(f"the segment was damaged and is not there, `recover` makes up for it - at {path}")
        with said("begin a segment", path):
            begun = self._begin(sequence, now_ns)
            try:
                self._enter(begun, path)
            except OSError:
                begun.file.close()
                raise

    def _begin(self, sequence: int, now_ns: int) -> Mended:
        header = SegmentHeader(self._journal, self._number, sequence, now_ns)
        path = self._catalog.segment(self._number, sequence)
        durable = self._options.durability == "disk"
        return begin_segment(self._catalog, path, header, self._standing, durable=durable)

    def _enter(self, begun: Mended, path: str) -> None:
        """Give a segment that was begun its name, and use it."""
        self._catalog.storage.rename(path + TEMPORARY, path)
        self._catalog.storage.sync_directory(self._catalog.partition(self._number))
        self._use(begun, path)

    def _use(self, mended: Mended, path: str) -> None:
        """Make a segment the one that is written, with an index that holds what it has."""
        catalog, durable = self._catalog, self._options.durability == "disk"
        index = catalog.index(self._number, mended.header.sequence)
        try:
            catalog.put(index, mended.index, sync=False)
            file = catalog.storage.open(index, write=True)
        except OSError:
            file = None  # it is a hint: the segment does without
        self._segment = SegmentWriter(mended, path, file, durable=durable)

    def _mark(self, now_ns: int) -> None:
        """Have a block say that what was found is on the disk."""
        try:
            self._segment.commit(now_ns)
            self._segment.settle(now_ns)
        except JournalError:
            self._segment.close()
            raise

    def _list_sealed(self, segments: Sequence[int], now_ns: int) -> None:
        """Find out size and age of the segments before the last; the next one's header says when one was sealed."""
        if self._options.retention == Retention():
            self._sealed = [Sealed(sequence, 0, now_ns) for sequence in segments[:-1]]  # nobody asks
            return
        for sequence, follower in pairwise(segments):
            try:
                size = len(load_segment(self._catalog, self._number, sequence))
                data = load_segment(self._catalog, self._number, follower)
                sealed_ns = parse_segment_header(data, "").time_ns
            except JournalError:
                size, sealed_ns = 0, now_ns  # nothing is known of it, so it is not removed for its age or size
            self._sealed.append(Sealed(sequence, size, sealed_ns))

    def _retain(self, now_ns: int) -> None:
        """Remove what is not to be kept any more; what cannot be removed is tried again later."""
        retention = self._options.retention
        try:
            while self._sealed and self._is_excess(retention, now_ns):
                self._remove_oldest()
        except JournalError as error:
            self.trouble = str(error)

    def _is_excess(self, retention: Retention, now_ns: int) -> bool:
        if retention.age_ns_max and now_ns - self._sealed[0].sealed_ns > retention.age_ns_max:
            return True
        if not retention.bytes_max:
            return False
        return sum(sealed.bytes for sealed in self._sealed) + self._segment.size > retention.bytes_max

    def _follower(self, place: int) -> int:
        """Return the first sequence of the segment behind a sealed one."""
        return self._sealed[place + 1].first if place + 1 < len(self._sealed) else self._segment.first

    def _remove_oldest(self) -> None:
        first = self._sealed[0].first
        path = self._catalog.segment(self._number, first)
        storage = self._catalog.storage
        with said("remove a segment", path):
            for name in (self._catalog.index(self._number, first), path):
                if storage.exists(name):
                    storage.remove(name)
            storage.sync_directory(self._catalog.partition(self._number))
        del self._sealed[0]


def is_put_aside(catalog: Catalog, partition: int, sequence: int) -> bool:
    """Whether a segment was damaged and put aside.

    Raises:
        JournalError: The partition cannot be listed.
    """
    names = catalog.names(partition)
    return any(name.startswith(f"{sequence:020}{SEGMENT}") and name.endswith(".damaged") for name in names)


def _payloads_of(batch: Batch) -> list[tuple[list[Buffer], int]]:
    """Return the payloads of the blocks for a batch, and how many events each has; they have bytes of their own.

    What arrived is a view of a buffer that is used again, and an array may be changed by its owner.
    """
    buffers = batch.buffers()
    size = sum(map(size_of, buffers))
    if size <= BLOCK_PAYLOAD_BYTES_MAX:
        own = all(type(buffer) is bytes for buffer in buffers)
        return [(buffers if own else [b"".join(buffers)], batch.count)]
    if batch.count == 1:
        raise LimitExceededError(
            f"an event has {size} bytes, limit is {BLOCK_PAYLOAD_BYTES_MAX} - at `{batch.format.name}`"
        )
    half = batch.count // 2
    return [payload for part in batch.parts((half, batch.count - half)) for payload in _payloads_of(part)]
