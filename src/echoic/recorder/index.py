"""A sparse index of a segment: where to begin for a sequence, and what need not be looked at for a time.

    index := entries, each for a stretch of about 256 KiB of blocks, one behind the other from the first block on
    entry := offset u64 | end u64 | sequence u64 | events u64 | time_min_ns i64 | time_max_ns i64 | formats u32
             | checksum u32 of the 52 bytes before it, continuing from the segment's seed

`sequence` is that of the stretch's first event and `events` how many there are; `formats` is how many FORMAT blocks
are in it, so that whoever begins in the middle knows which stretches describe the types. By time one skips whole
stretches by their least and greatest time, since a wall clock may step and nothing is sorted by it; a stretch without
batches and gaps has a least time above its greatest.

It is only a hint: written without sync, believed only as far as its checksums go and its stretches join, and rebuilt
from the segment whenever it is missing. The end of a segment that has no entry yet is simply walked.
"""

import struct
from typing import Final

import msgspec

from echoic.recorder.blocks import SEGMENT_HEADER_BYTES, BlockHead, BlockKind
from echoic.wire import Buffer
from echoic.wire.frames import checksum

__all__ = ["ENTRY_BYTES", "IndexBuilder", "IndexEntry", "load_index"]

ENTRY: Final = struct.Struct("<QQQQqqI")
CHECKSUM: Final = struct.Struct("<I")
ENTRY_BYTES: Final = ENTRY.size + CHECKSUM.size
STRETCH_BYTES: Final = 256 * 1024
TIME_MIN: Final = -(2**63)
TIME_MAX: Final = 2**63 - 1


class IndexEntry(msgspec.Struct, frozen=True, gc=False):
    """One stretch of blocks."""

    offset: int
    end: int
    sequence: int
    events: int
    time_min_ns: int
    time_max_ns: int
    formats: int


class IndexBuilder:
    """Makes the entries of a segment as its blocks go by."""

    def __init__(self, seed: int, sequence: int) -> None:
        self._seed = seed
        self._end = SEGMENT_HEADER_BYTES
        self._entries: list[bytes] = []
        self._offset = SEGMENT_HEADER_BYTES
        self._sequence = sequence
        self._events = self._formats = 0
        self._time_min_ns, self._time_max_ns = TIME_MAX, TIME_MIN

    def add(self, head: BlockHead, size: int) -> None:
        """Take the next block, which has so many bytes."""
        kind = head.kind
        if kind is BlockKind.BATCH or kind is BlockKind.GAP:
            time_ns = head.time_ns
            self._time_min_ns = min(self._time_min_ns, time_ns)
            self._time_max_ns = max(self._time_max_ns, time_ns)
            self._events += head.count
        elif kind is BlockKind.FORMAT:
            self._formats += 1
        self._end += size
        if self._end - self._offset >= STRETCH_BYTES:
            self._finish(head.sequence + head.count)

    def take(self) -> list[bytes]:
        """Return the entries that were completed since the last time."""
        entries, self._entries = self._entries, []
        return entries

    def _begin(self, sequence: int) -> None:
        self._offset = self._end
        self._sequence = sequence
        self._events = self._formats = 0
        self._time_min_ns, self._time_max_ns = TIME_MAX, TIME_MIN

    def _finish(self, sequence: int) -> None:
        times = self._time_min_ns, self._time_max_ns
        plain = ENTRY.pack(self._offset, self._end, self._sequence, self._events, *times, self._formats)
        self._entries.append(plain + CHECKSUM.pack(checksum([plain], self._seed)))
        self._begin(sequence)


def load_index(data: Buffer, seed: int, size: int) -> list[IndexEntry]:
    """Return the entries that can be believed, of a segment with a seed and of so many bytes."""
    entries: list[IndexEntry] = []
    end = SEGMENT_HEADER_BYTES
    for start in range(0, len(data) - ENTRY_BYTES + 1, ENTRY_BYTES):
        plain = bytes(data[start : start + ENTRY.size])
        (value,) = CHECKSUM.unpack_from(data, start + ENTRY.size)
        entry = IndexEntry(*ENTRY.unpack(plain))
        joined = entry.offset == end < entry.end <= size
        if not joined or checksum([plain], seed) != value:
            break
        entries.append(entry)
        end = entry.end
    return entries
