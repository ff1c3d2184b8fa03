"""What a journal must hold: a book beside it, and an eye of its own on the bytes.

The book has, for each partition, every entry the writer was given in order: events, or that some are missing. A prefix
of them is acknowledged. After a crash the journal must hold a prefix of the entries, each of them whole, and no less
than was acknowledged; then the book is cut to what it holds, because sources are told to go on from there.

`find_entries` walks the blocks by the layout alone (`echoic.recorder.blocks`), and uses neither the scanner nor the
reader of the recorder: what those overlook would be overlooked twice. It is strict: a journal that was just opened
has no byte in its segments that is not part of a sound block.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from echoic.formats import Registry
from echoic.recorder.blocks import (
    BLOCK_HEAD_BYTES,
    SEGMENT_HEADER_BYTES,
    BlockHead,
    BlockKind,
    parse_block,
    parse_segment_header,
)
from echoic.testing.journal_events import record_of, records_of
from echoic.testing.ledger import check
from echoic.testing.simulated_disk import SimulatedDisk
from echoic.wire import parse_batch

__all__ = ["Entry", "JournalBook", "Located", "find_entries", "segments_of"]

COUNT: Final = struct.Struct("<Q")
POSITION: Final = struct.Struct("<QQ")
SUFFIX: Final = ".segment"


class Entry(msgspec.Struct, frozen=True):
    """Events of a source that came together, or that are missing. `sequence` is that of the next event if missing."""

    source: int
    first: int
    count: int
    sequence: int
    missing: bool = False

    @property
    def end(self) -> int:
        """The number of the source's next event."""
        return self.first + self.count

    @property
    def sequence_end(self) -> int:
        """The sequence of the partition's next event."""
        return self.sequence if self.missing else self.sequence + self.count


class Located(msgspec.Struct, frozen=True):
    """Where the block of an entry lies, or of something else that is no entry."""

    path: str
    offset: int
    end: int
    kind: BlockKind
    entry: Entry | None


class JournalBook:
    """The entries of every partition, how many are acknowledged, and where every source goes on."""

    def __init__(self, partitions: int) -> None:
        self.logs: Final[list[list[Entry]]] = [[] for _ in range(partitions)]
        self.acknowledged: Final = [0] * partitions
        self.next: dict[int, int] = {}

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return len(self.logs)

    def append(self, source: int, first: int, count: int) -> int:
        """Note events that were given to the writer; return how many of them are fresh.

        A source that is not known begins with what comes first, so nothing is missing before that.
        """
        due = self.next.get(source, first)
        if first > due:
            self._enter(Entry(source, due, first - due, self.head(source % self.partitions), missing=True))
        start = max(first, due)
        if first + count > start:
            self._enter(Entry(source, start, first + count - start, self.head(source % self.partitions)))
        return max(0, first + count - start)

    def miss(self, source: int, first: int, last: int) -> None:
        """Note that the writer was told of events that never come."""
        self._enter(Entry(source, first, last - first + 1, self.head(source % self.partitions), missing=True))

    def head(self, partition: int) -> int:
        """The sequence of the partition's next event."""
        log = self.logs[partition]
        return log[-1].sequence_end if log else 0

    def acknowledge(self) -> None:
        """Note that everything entered is acknowledged."""
        self.acknowledged[:] = [len(log) for log in self.logs]

    def acknowledged_head(self, partition: int) -> int:
        """The sequence behind the last acknowledged event."""
        count = self.acknowledged[partition]
        return self.logs[partition][count - 1].sequence_end if count else 0

    def settle(self, partition: int, found: Sequence[Entry], first: int) -> int:
        """Compare with what a journal holds after a crash, and go on from there; return how many entries are gone.

        Args:
            partition: Which.
            found: Every entry that is there, in order.
            first: The sequence the partition begins with, since earlier segments were given up.

        Raises:
            AssertionError: Something acknowledged is not there, or something is there that was never given to it.
        """
        log, given_up = self.logs[partition], 0
        if found:
            check(found[0] in log, f"partition {partition} begins with {found[0]}, which was never given to it")
            given_up = log.index(found[0])
        else:
            given_up = next((n for n, entry in enumerate(log) if entry.sequence >= first), len(log))
            given_up = max(given_up, self.acknowledged[partition]) if first else 0
        before = log[given_up - 1].sequence_end if given_up else 0
        check(before == first, f"partition {partition} begins with {first}, but its first entry with {before}")
        end = given_up + len(found)
        for expected, entry in zip(log[given_up:end], found, strict=False):
            check(expected == entry, f"partition {partition} has {entry}, expected {expected}")
        check(end <= len(log), f"partition {partition} has {end} entries, {len(log)} were given to it")
        lost = self.acknowledged[partition] - end
        check(lost <= 0, f"partition {partition} has lost {lost} acknowledged entries: {log[end : end + 3]}")
        gone = len(log) - end
        del log[end:]
        self.acknowledged[partition] = end
        return gone

    def count_again(self) -> None:
        """Find anew where the sources go on, after the entries were cut."""
        self.next = {entry.source: entry.end for log in self.logs for entry in log}

    def _enter(self, entry: Entry) -> None:
        self.logs[entry.source % self.partitions].append(entry)
        self.next[entry.source] = entry.end


def segments_of(disk: SimulatedDisk, channel: str, partition: int) -> list[str]:
    """Return the paths of a partition's segments, in order."""
    folder = f"{channel}/{partition}/"
    return [path for path in disk.files() if path.startswith(folder) and path.endswith(SUFFIX)]


def find_entries(
    disk: SimulatedDisk, channel: str, partition: int, positions: Mapping[int, int] | None = None
) -> Iterator[Located]:
    """Yield every block of a partition, in order, with the entry it holds.

    Args:
        disk: Where the journal is.
        channel: Its name, which needs no quoting.
        partition: Which.
        positions: Where sources go on before the first segment; None if that is not known.

    Raises:
        AssertionError: There is a byte that belongs to no sound block, or blocks do not follow each other, or events
            have other bytes than theirs, or the positions at the beginning of a segment are not those of the entries.
    """
    paths = segments_of(disk, channel, partition)
    sequence: int | None = None
    known: dict[int, int] | None = None if positions is None else dict(positions)
    for place, path in enumerate(paths):
        walk = _Walk(disk.read(path), path, partition, known)
        if sequence is not None:
            check(walk.sequence == sequence, f"a segment begins with {walk.sequence}, expected {sequence} - at {path}")
        yield from walk.blocks()
        check(walk.sealed or place == len(paths) - 1, f"a segment is not sealed and not the last - at {path}")
        sequence, known = walk.sequence, walk.known


class _Walk:
    """One segment, block by block."""

    def __init__(self, data: bytes, path: str, partition: int, known: dict[int, int] | None) -> None:
        self.header: Final = parse_segment_header(data, path)
        check(self.header.partition == partition, f"a segment is of partition {self.header.partition} - at {path}")
        name = f"{self.header.sequence:020}{SUFFIX}"
        check(path.endswith("/" + name), f"a segment begins with {self.header.sequence} - at {path}")
        self.sequence = self.header.sequence
        self.sealed = False
        self.known = known
        self._registry: Final = Registry()
        self._data: Final = data
        self._path: Final = path

    def blocks(self) -> Iterator[Located]:
        """Yield the blocks."""
        offset = SEGMENT_HEADER_BYTES
        while offset < len(self._data):
            head = parse_block(self._data, offset, self.header.seed)
            where = f"{self._path} at {offset} of {len(self._data)}"
            if head is None:
                raise AssertionError(f"there is no sound block in {where}")
            check(not self.sealed, f"a block follows the seal in {where}")
            check(head.sequence == self.sequence, f"a block has {head.sequence}, expected {self.sequence} in {where}")
            check(head.synced <= offset, f"a block claims {head.synced} synced bytes in {where}")
            start = offset + BLOCK_HEAD_BYTES
            entry = self._entry(head, self._data[start : start + head.payload_bytes], where)
            yield Located(self._path, offset, offset + head.block_bytes, head.kind, entry)
            offset += head.block_bytes

    def _entry(self, head: BlockHead, payload: bytes, where: str) -> Entry | None:
        match head.kind:
            case BlockKind.FORMAT:
                self._registry.add_descriptor(payload)
            case BlockKind.BATCH:
                _check_events(head, payload, self._registry, where)
                self.sequence += head.count
                return self._note(Entry(head.source, head.first, head.count, head.sequence))
            case BlockKind.GAP:
                (count,) = COUNT.unpack_from(payload)
                return self._note(Entry(head.source, head.first, count, head.sequence, missing=True))
            case BlockKind.POSITIONS:
                found = dict(POSITION.iter_unpack(payload))
                check(self.known is None or found == self.known, f"positions {found}, expected {self.known} in {where}")
                self.known = found
            case BlockKind.SEAL:
                self.sealed = True
            case BlockKind.COMMIT:
                pass
        return None

    def _note(self, entry: Entry) -> Entry:
        if self.known is not None:
            self.known[entry.source] = entry.end
        return entry


def _check_events(head: BlockHead, payload: bytes, registry: Registry, where: str) -> None:
    batch = parse_batch(payload, registry)
    check(batch.count == head.count, f"a batch of {batch.count} says {head.count} in {where}")
    for place, record in enumerate(records_of(batch)):
        number = head.first + place
        same = (batch.format.token, record) == record_of(head.source, number)
        check(same, f"event {number} of source {head.source} has other bytes in {where}")
