"""One segment as a reader sees it: a file that another process may be writing.

    | header | POSITIONS | FORMAT | BATCH | BATCH | COMMIT | BATCH | BATC
                                                  ^ committed      ^ not whole yet
               taken from the mapped file         | looked at in copies

What is committed is known from the marks in sound blocks, or from there being a next segment. It never changes again,
so it is mapped and used where it lies. What follows may be cut off at any moment, by a writer whose disk is full or by
a recovery, and bytes of a mapped file that is cut end the process that looks at them: so those are read in copies, and
looked at again each time.

Blocks are found by their places: those at which this reader has been, or what the index says, which is believed only
after the block there has been found sound and to have the sequence number that the index says. Between such a place and
the block that is wanted, every block is checked. Where one is broken, the next sound one is searched for; the hole in
the sequence numbers shows what was lost.

Places are noted every 16 KiB as a growing segment is surveyed. The index has an entry for each 256 KiB, and is looked
up again every 4 MiB; a journal of lone events has thousands of blocks in that. Whoever follows one, as a stream of
Spark's does, asks for another few hundred events each time, and would spend most of its time walking there.
"""

import struct
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from echoic.errors import JournalError
from echoic.formats.descriptor import token
from echoic.recorder.blocks import (
    BLOCK_HEAD_BYTES,
    BLOCK_PAYLOAD_BYTES_MAX,
    HEAD,
    KINDS,
    SEGMENT_HEADER_BYTES,
    BlockHead,
    BlockKind,
    parse_block,
    parse_segment_header,
)
from echoic.recorder.catalog import Catalog, said
from echoic.recorder.index import IndexEntry, load_index
from echoic.recorder.scanning import likely_heads, peek
from echoic.wire import Buffer

__all__ = ["Chunk", "Described", "SegmentReader"]

LATE_BYTES: Final = 1024 * 1024
SURVEY_BYTES: Final = 2 * BLOCK_PAYLOAD_BYTES_MAX + BLOCK_HEAD_BYTES  # holds a whole block wherever it begins
PLACES_MAX: Final = 4096
PLACE_BYTES: Final = 16 * 1024
INDEXED_BYTES: Final = 4 * 1024 * 1024
INDEX_BYTES_MAX: Final = 64 * 1024 * 1024
SEARCH_BYTES_MAX: Final = 512 * 1024 * 1024  # what may be checksummed while searching for one block
TOKEN: Final = struct.Struct("<Q")


class Chunk(msgspec.Struct, frozen=True):
    """Whole committed blocks of one segment, the first with events being the one that holds `sequence`.

    It is what travels to remote readers. If `sequence` is not what was asked for but a later one, what is between
    cannot be read, for a `reason`; there may then be no blocks at all.
    """

    seed: int
    """From which the checksums of the blocks go on."""
    formats: tuple[bytes, ...]
    """Descriptors of the types that its batches have."""
    blocks: Buffer
    sequence: int
    """The sequence number of the first event."""
    end: int
    """The sequence number that follows that of the last event."""
    file: str = ""
    offset: int = 0
    reason: str = ""
    checked: bool = False
    """Whether this process has found the blocks sound, as they lie in the file; so it is with none that travelled."""


class Described(msgspec.Struct, frozen=True):
    """A type that a segment describes, and when that was."""

    descriptor: bytes
    time_ns: int


class SegmentReader:
    """One segment of a journal. `head` is the sequence number behind the last committed event."""

    def __init__(self, catalog: Catalog, partition: int, first: int, journal: str) -> None:
        """Open it.

        Raises:
            JournalError: It cannot be read, or is not this segment of this journal.
        """
        self.first: Final = first
        self.path: Final = catalog.segment(partition, first)
        self._catalog = catalog
        self._partition = partition
        with said("open a segment", f"`{self.path}`"):
            self._file = catalog.storage.open(self.path)
            self._finalizer = weakref.finalize(self, self._file.close)
            data = self._file.read(0, SEGMENT_HEADER_BYTES)
        header = parse_segment_header(data, f"`{self.path}`, offset 0")
        if (header.sequence, header.partition, header.journal.hex()) != (first, partition, journal):
            raise JournalError(
                f"this is the segment from {header.sequence} on of partition {header.partition} of journal "
                f"{header.journal.hex()}, expected {first}, {partition} and {journal} - at `{self.path}`, offset 0"
            )
        self._seed: Final = header.seed
        self._view = memoryview(b"")
        self._entries: list[IndexEntry] | None = None
        self._indexed = 0
        self._places: list[tuple[int, int]] = []  # (sequence, offset): no event from this one on lies before it
        self._noted = 0
        self._described: dict[int, Described] = {}
        self._borrowed: dict[int, bytes | None] = {}
        self._described_to = (SEGMENT_HEADER_BYTES, first)
        self._surely_described_to = SEGMENT_HEADER_BYTES
        self._walked = SEGMENT_HEADER_BYTES
        self._searched = -1
        self._sure = (-1, -1)
        self.head = first
        self.committed = SEGMENT_HEADER_BYTES
        self.sealed = False
        self.finished = False

    def close(self) -> None:
        """Let go of the file; what was taken from it stays good."""
        self._finalizer()

    def finish(self, head: int) -> None:
        """Take note that there is a next segment, which begins with a sequence number: all of this is committed.

        Raises:
            JournalError: The segment cannot be read.
        """
        if not self.finished:
            with said("read a segment", f"`{self.path}`"):
                self.committed = self._file.size()
            self.finished = True
        self.head = head

    def refresh(self) -> None:
        """Look for what was committed since the last time.

        Raises:
            JournalError: The segment cannot be read.
        """
        if self.finished:
            return
        with said("read a segment", f"`{self.path}`"):
            if self._walked == SEGMENT_HEADER_BYTES:
                self._begin_late()
            base = self._walked
            while data := self._file.read(base, SURVEY_BYTES):
                self._survey(data, base)
                if len(data) < SURVEY_BYTES:
                    return
                base = max(self._walked, base + BLOCK_PAYLOAD_BYTES_MAX)

    def _begin_late(self) -> None:
        """Begin to survey a long segment near its end."""
        for entry in reversed(self._index()[-2:]):
            head = parse_block(self._file.read(entry.offset, LATE_BYTES), 0, self._seed)
            if head is not None and head.sequence == entry.sequence and entry.offset > self._walked:
                self._walked = entry.offset
                return

    def _survey(self, data: bytes, base: int) -> None:
        """Take note of the marks in some bytes at the end of the segment, and of what they say is committed."""
        start, size = max(self._walked - base, 0), base + len(data)
        if self._searched == size and parse_block(data, start, self._seed) is None:
            return  # nothing has come since this was looked through
        self._searched = size
        pending: list[tuple[int, BlockHead]] = []
        for offset, head in self._walk(data, start):
            pending.append((base + offset, head))
            if self.committed < head.synced <= base + offset:
                self.committed = head.synced
                pending = self._settle(pending)
        self._settle(pending)

    def _settle(self, pending: list[tuple[int, BlockHead]]) -> list[tuple[int, BlockHead]]:
        """Count blocks that are committed; return those that are not."""
        left = []
        for offset, head in pending:
            end = offset + head.block_bytes
            if offset <= self.committed:
                self.head = max(self.head, head.sequence)
            if end > self.committed:
                left.append((offset, head))
                self.sealed = self.sealed or head.kind is BlockKind.SEAL
                continue
            self._walked = max(self._walked, end)
            self.head = max(self.head, _after(head))
            if offset - self._noted >= PLACE_BYTES:
                self._noted = offset
                self._remember(head.sequence, offset)
        return left

    def take(self, sequence: int, bytes_max: int, elsewhere: Callable[[], Sequence[bytes]] = tuple) -> Chunk | None:
        """Return committed blocks, from the one that holds an event on; None if there is none yet.

        At least one block with events is in it, however long that is.

        Args:
            sequence: Which event.
            bytes_max: How much to return.
            elsewhere: Returns the descriptors that other segments have, for when that of a type is damaged here.

        Raises:
            JournalError: The segment cannot be read.
        """
        if sequence >= self.head:
            return None
        data = self._mapped()
        taken = _Taken(sequence, bytes_max, self._place_before(sequence))
        for offset, head in self._walk(data, taken.begin):
            if not taken.add(offset, head, data):
                break
        else:
            taken.end_at(self.committed, whole=self.finished)
        reason = self._reason(taken, sequence)
        if taken.first < 0:
            return Chunk(self._seed, (), b"", self.head, self.head, self.path, taken.end, reason)
        self._remember(taken.after, taken.reached)
        blocks = data[taken.begin : taken.reached]
        formats = self._formats(taken.tokens, taken.reached, elsewhere)
        return Chunk(self._seed, formats, blocks, taken.first, taken.after, self.path, taken.begin, reason, True)

    def _reason(self, taken: "_Taken", sequence: int) -> str:
        """Return why events that should come first cannot be read, "" if they can."""
        if 0 <= taken.first <= sequence:
            return ""
        if taken.broken is None:
            return f"`{self.path}` does not have them"
        return f"`{self.path}` is damaged from offset {taken.broken[0]} to {taken.broken[1]}"

    def leap(self, sequence: int, since_ns: int, until_ns: int) -> int:
        """Return a later sequence number, if the index says that all before it was recorded at another time.

        What the index says of times is believed of a stretch whose ends are found to be as it says.

        Raises:
            JournalError: The segment cannot be read.
        """
        entries = self._index()
        at = max(bisect_left(entries, sequence + 1, key=lambda entry: entry.sequence) - 1, 0)
        while at < len(entries):
            entry = entries[at]
            inside = entry.sequence <= sequence < entry.sequence + entry.events
            apart = entry.time_max_ns < since_ns or entry.time_min_ns >= until_ns
            if not inside or not apart or not self._as_said(entry):
                break
            sequence, at = entry.sequence + entry.events, at + 1
        return sequence

    def described(self) -> tuple[Described, ...]:
        """Return the types of all committed batches, in the order in which they are described.

        Raises:
            JournalError: The segment cannot be read.
        """
        self._describe(self.committed, None)
        return tuple(self._described.values())

    def _mapped(self) -> memoryview:
        if len(self._view) < self.committed:
            with said("read a segment", f"`{self.path}`"):
                self._view = self._file.view()
        return self._view[: self.committed]

    def _walk(self, data: Buffer, offset: int) -> Iterator[tuple[int, BlockHead]]:
        """Yield every sound block; where one is broken, the search goes on behind it."""
        size = len(data)
        while offset < size:
            head = parse_block(data, offset, self._seed)
            if head is None:
                found = search(data, offset, self._seed)
                if found is None:
                    return
                offset, head = found
            yield offset, head
            offset += head.block_bytes

    def _place_before(self, sequence: int) -> int:
        """Return where to begin looking for an event, behind no block that has to do with it."""
        at = bisect_right(self._places, (sequence, self.committed))
        near, place = self._places[at - 1] if at else (self.first, SEGMENT_HEADER_BYTES)
        entries = self._index()
        at = bisect_left(entries, sequence, key=lambda entry: entry.sequence)
        for entry in reversed(entries[max(at - 2, 0) : at]):
            if entry.sequence <= near:
                break
            if self._is_at(entry.offset, entry.sequence):
                return entry.offset
        return place

    def _is_at(self, offset: int, sequence: int) -> bool:
        """Tell whether a sound block with a sequence number lies at a place."""
        if self._sure == (offset, sequence):
            return True
        data = self._mapped()
        if not SEGMENT_HEADER_BYTES <= offset < len(data) or offset & 7:
            return False
        head = parse_block(data, offset, self._seed)
        if head is None or head.sequence != sequence:
            return False
        self._sure = (offset, sequence)
        return True

    def _as_said(self, entry: IndexEntry) -> bool:
        after = entry.sequence + entry.events
        if not self._is_at(entry.offset, entry.sequence):
            return False
        return self._is_at(entry.end, after) or (entry.end == self.committed and after == self.head)

    def _index(self) -> list[IndexEntry]:
        """Return what the index says, which for a growing segment is looked up again from time to time."""
        if self._entries is None or self.committed - self._indexed >= INDEXED_BYTES:
            self._indexed = self.committed
            self._entries = self._load_index()
        return self._entries

    def _load_index(self) -> list[IndexEntry]:
        try:
            file = self._catalog.storage.open(self._catalog.index(self._partition, self.first))
            try:
                data = file.read(0, INDEX_BYTES_MAX)
            finally:
                file.close()
            return load_index(data, self._seed, self._file.size())
        except OSError:
            return []  # it is only a hint

    def _remember(self, sequence: int, offset: int) -> None:
        """Note a place at which a sound block begins or ends; if there are many, every other one is forgotten."""
        if len(self._places) >= PLACES_MAX:
            del self._places[::2]
        at = bisect_left(self._places, (sequence, 0))
        if at == len(self._places) or self._places[at][0] != sequence:
            self._places.insert(at, (sequence, offset))

    def _formats(self, tokens: set[int], end: int, elsewhere: Callable[[], Sequence[bytes]]) -> tuple[bytes, ...]:
        """Return the descriptors of types; those that are not described anywhere are left out."""
        if not tokens <= self._described.keys():
            self._describe(end, tokens)
        if not tokens <= self._described.keys() and end > self._surely_described_to:
            self._describe_surely(end)
        unknown = tokens - self._described.keys()
        if not unknown <= self._borrowed.keys():
            found = {token(descriptor): descriptor for descriptor in elsewhere()}
            self._borrowed.update({each: found.get(each) for each in unknown})
        here = [self._described[each].descriptor for each in sorted(tokens - unknown)]
        there = [self._borrowed[each] for each in sorted(unknown)]
        return (*here, *(descriptor for descriptor in there if descriptor is not None))

    def _describe(self, end: int, tokens: set[int] | None) -> None:
        """Find the types that are described before some place, all of them or those that are asked for.

        Stretches in which the index says that there are none are passed over.
        """
        data = self._mapped()[:end]
        for entry in self._index():
            offset, _ = self._described_to
            if entry.end > end or (tokens is not None and tokens <= self._described.keys()):
                break
            if entry.offset == offset and not entry.formats and self._as_said(entry):
                self._described_to = (entry.end, entry.sequence + entry.events)
            elif entry.end > offset:
                self._describe_in(data[: entry.end])
        if tokens is None or not tokens <= self._described.keys():
            self._describe_in(data)

    def _describe_in(self, data: memoryview) -> None:
        for offset, head in self._hop(data, *self._described_to):
            self._described_to = (offset + head.block_bytes, _after(head))
            if head.kind is BlockKind.FORMAT and parse_block(data, offset, self._seed) is not None:
                self._learn(data, offset, head)

    def _describe_surely(self, end: int) -> None:
        """Find every type before some place by checking each block: a damaged length may have led past some."""
        data = self._mapped()[:end]
        for offset, head in self._walk(data, SEGMENT_HEADER_BYTES):
            if head.kind is BlockKind.FORMAT:
                self._learn(data, offset, head)
        self._surely_described_to = end

    def _learn(self, data: memoryview, offset: int, head: BlockHead) -> None:
        start = offset + BLOCK_HEAD_BYTES
        descriptor = bytes(data[start : start + head.payload_bytes])
        self._described.setdefault(token(descriptor), Described(descriptor, head.time_ns))

    def _hop(self, data: memoryview, offset: int, sequence: int) -> Iterator[tuple[int, BlockHead]]:
        """Yield blocks without looking at what is in them, as long as their heads follow from each other."""
        size = len(data)
        while offset + BLOCK_HEAD_BYTES <= size:
            payload_bytes, kind, found, *_ = HEAD.unpack_from(data, offset)
            follows = kind in KINDS and payload_bytes <= size - offset - BLOCK_HEAD_BYTES
            if not follows or (found != sequence and kind != BlockKind.POSITIONS):
                yield from self._walk(data, offset)
                return
            head = peek(data, offset)
            yield offset, head
            offset, sequence = offset + head.block_bytes, _after(head)


class _Taken:
    """What is to be in a chunk, while blocks are looked at one after the other."""

    def __init__(self, sequence: int, bytes_max: int, begin: int) -> None:
        self._sequence = sequence
        self._bytes_max = bytes_max
        self.begin = self.end = begin
        self.reached = begin
        """Where the last batch ends: what is behind it belongs to the next one."""
        self.first = self.after = -1
        self.broken: tuple[int, int] | None = None
        self.tokens: set[int] = set()

    def add(self, offset: int, head: BlockHead, data: Buffer) -> bool:
        """Take note of a block; tell whether there is room for the next."""
        stop = offset + head.block_bytes
        if offset != self.end:
            if self.first >= 0:
                return False
            self.broken = (self.end, offset)
            self.begin = offset
        if head.kind is BlockKind.BATCH and head.count:
            if self.first >= 0 and stop - self.begin > self._bytes_max:
                return False
            self._add_batch(offset, stop, head, data)
        elif self.begin == offset and head.kind is not BlockKind.GAP:
            self.begin = stop
        self.end = stop
        return True

    def _add_batch(self, offset: int, stop: int, head: BlockHead, data: Buffer) -> None:
        after = head.sequence + head.count
        if after <= self._sequence:
            self.begin, self.broken = stop, None
            return
        self.first = head.sequence if self.first < 0 else self.first
        self.after, self.reached = after, stop
        if head.payload_bytes >= TOKEN.size:
            self.tokens.add(TOKEN.unpack_from(data, offset + BLOCK_HEAD_BYTES)[0])

    def end_at(self, committed: int, *, whole: bool) -> None:
        """Take note that nothing sound follows; a segment that is complete is taken to its end."""
        if self.first >= 0:
            self.reached = self.end if whole else self.reached
        elif self.end < committed:
            self.broken = (self.end, committed)


def _after(head: BlockHead) -> int:
    """Return the sequence number that follows a block."""
    return head.sequence + head.count if head.kind is BlockKind.BATCH else head.sequence


def search(data: Buffer, broken: int, seed: int) -> tuple[int, BlockHead] | None:
    """Return the next sound block behind a broken one, None if there is none or it takes too long to find it.

    If the length in the broken head leads to the block that must follow, that is it. Otherwise what may be a head is
    checksummed, as when a segment is scanned (`scanning`), but a block may be of any sequence number here.
    """
    follower = _follower(data, broken, seed)
    if follower is not None:
        return follower
    view, left = memoryview(data), SEARCH_BYTES_MAX
    for offset in likely_heads(view, broken + 8):
        head = parse_block(data, offset, seed)
        if head is not None:
            return offset, head
        left -= peek(view, offset).block_bytes
        if left <= 0:
            return None
    return None


def _follower(data: Buffer, broken: int, seed: int) -> tuple[int, BlockHead] | None:
    if len(data) - broken < BLOCK_HEAD_BYTES:
        return None
    size, _, sequence, *_, count = HEAD.unpack_from(data, broken)
    offset = broken + BLOCK_HEAD_BYTES + size + (-size & 7)
    head = parse_block(data, offset, seed)
    return (offset, head) if head is not None and head.sequence == sequence + count else None
