"""Where every source goes on: what makes a source that sends again send nothing twice.

For each source the number of its next event. A journal remembers `SOURCES_MAX` of them in each partition and forgets
the one that was silent longest; a source that comes back after it was forgotten begins where it says it does. The order
of the POSITIONS block is that of the last words, so whoever reads a journal forgets the same sources as its writer did,
and can check every batch against it: a sound block that is in the wrong place (a sector of an earlier file that the
disk brought back) does not pass for one that was written there.
"""

import struct
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from echoic.recorder.blocks import BlockHead, BlockKind
from echoic.wire import Buffer

__all__ = ["SOURCES_MAX", "Standing", "Standings", "encode_gap", "gap_count"]

SOURCES_MAX: Final = 65_536
REASON_BYTES_MAX: Final = 1_024
COUNT: Final = struct.Struct("<Q")


class Standing:
    """The next number of each source, the longest silent first."""

    def __init__(self) -> None:
        self.positions: OrderedDict[int, int] = OrderedDict()

    def advance(self, source: int, position: int) -> None:
        """Let a source go on at a number."""
        positions = self.positions
        positions[source] = position
        positions.move_to_end(source)
        if len(positions) > SOURCES_MAX:
            positions.popitem(last=False)

    def apply(self, head: BlockHead, payload: Buffer) -> None:
        """Do what a sound block did."""
        match head.kind:
            case BlockKind.BATCH:
                self.advance(head.source, head.first + head.count)
            case BlockKind.GAP:
                self.advance(head.source, head.first + gap_count(payload))
            case BlockKind.POSITIONS:
                self.load(payload)
            case _:
                return

    def load(self, payload: Buffer) -> None:
        """Take over what a POSITIONS block says."""
        numbers = memoryview(payload).cast("B")
        pairs = struct.iter_unpack("<QQ", numbers[: min(len(numbers), SOURCES_MAX * 16) & ~15])
        self.positions.clear()
        for source, position in pairs:
            self.positions[source] = position

    def encode(self) -> bytes:
        """Return the payload of a POSITIONS block."""
        flat = [number for pair in self.positions.items() for number in pair]
        return struct.pack(f"<{len(flat)}Q", *flat)


class Standings(Mapping[int, int]):
    """The next number of each source, in all partitions together; other threads may ask while the journal is written.

    One look-up decides whether a source is known: one that is forgotten meanwhile is just not known.
    """

    def __init__(self, standings: Sequence[Standing]) -> None:
        self._standings = standings

    def __getitem__(self, source: int) -> int:
        return self._standings[source % len(self._standings)].positions[source]

    def __iter__(self) -> Iterator[int]:
        for standing in self._standings:
            yield from list(standing.positions)

    def __len__(self) -> int:
        return sum(len(standing.positions) for standing in self._standings)


def encode_gap(count: int, reason: str) -> bytes:
    """Return the payload of a GAP block; a long reason is cut."""
    text = reason.encode("utf-8", "replace")[:REASON_BYTES_MAX]
    return COUNT.pack(count) + text.decode("utf-8", "ignore").encode()


def gap_count(payload: Buffer) -> int:
    """Return how many events a GAP block says are missing."""
    count: int = COUNT.unpack_from(payload)[0]
    return count
