"""Goodput of blocks of packs, measured where they come back.

    packs leave       | block 7: a a a a a a | block 8: b b b b b b b | block 9: ...
    packs come back   ......... a a  a a   a a b b  b b b   b b
                                           |               |
                                           +-- block 8 ----+     its bytes, through this time

A block is some packs in a row that are made by the same rule. It is ended when it has enough packs and has lasted long
enough: two round trips, and some times the pause between deliveries. It is measured from where the one before it ended,
so the engine may have any number of packs of both under way; it counts only if it follows the one before it directly.

Some engines deliver in bursts: a token goes round, and whatever it brought comes at one instant. A block that ends in
the middle of a burst would get all of the pause before the burst, or none. So what comes in one burst is taken to have
come evenly since the last one.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

import msgspec

from echoic.groups.policies.policy import Pack

__all__ = ["Block", "Blocks"]

BLOCK_NS_MIN: Final = 20_000_000
BLOCK_ROUND_TRIPS: Final = 2
BLOCK_PAUSES: Final = 3
PAUSE_FADES: Final = 0.98
BURST_SHARE: Final = 0.125  # of a round trip: what comes within this time of the first is one burst
BURST_PACKS_MAX: Final = 4096


class Block(msgspec.Struct, frozen=True, gc=False):
    """A block that has come back."""

    number: int
    goodput: float
    """Bytes in a nanosecond."""


class Blocks:
    """Puts packs into blocks and measures these. Not thread-safe."""

    def __init__(self, now_ns: int) -> None:
        self.number = 0
        """The block that packs leave in."""
        self.packs = 0
        """How many have left in it."""
        self._since_ns = now_ns
        self._under_way: deque[int] = deque()
        self._round_trip_ns = 0
        self._pause_ns = 0.0
        self._burst: list[tuple[int, int]] = []
        self._burst_first_ns = self._burst_ns = now_ns
        self._spread_ns = now_ns
        # The block that is coming back: number, bytes, begin (None: unknown), and when its last pack came.
        self._coming = -1
        self._bytes = 0
        self._begin_ns: float | None = None
        self._end_ns: float = now_ns

    def leave(self, pack: Pack, packs_min: int, ns_min: int = BLOCK_NS_MIN) -> bool:
        """Put a pack into the block; return whether that ended it, and the next one has begun."""
        if not self.packs:
            self._since_ns = pack.left_ns
        self._under_way.append(self.number)
        self.packs += 1
        enough_ns = max(ns_min, BLOCK_ROUND_TRIPS * self._round_trip_ns, BLOCK_PAUSES * self._pause_ns)
        if self.packs < packs_min or pack.left_ns - self._since_ns < enough_ns:
            return False
        self.number += 1
        self.packs = 0
        return True

    def skip(self) -> None:
        """Leave the block unfinished, and begin another one that does not follow it."""
        self.number += 2
        self.packs = 0

    def pass_by(self) -> None:
        """Let a pack leave that belongs to no block."""
        self._under_way.append(-1)

    def forget(self) -> None:
        """Give up what is under way."""
        self._under_way.clear()
        self._burst.clear()
        self._coming = -1
        self.skip()

    def come_back(self, pack: Pack, now_ns: int) -> Iterator[Block]:
        """Yield the blocks that are known to be complete once the oldest pack has come back."""
        if pack.alone:
            round_trip_ns = now_ns - pack.left_ns
            self._round_trip_ns = min(self._round_trip_ns or round_trip_ns, round_trip_ns)
        if self._burst and (
            now_ns - self._burst_first_ns > BURST_SHARE * self._round_trip_ns or len(self._burst) >= BURST_PACKS_MAX
        ):
            yield from self._end_burst()
        if self._under_way:
            if not self._burst:
                self._burst_first_ns = now_ns
            self._burst.append((self._under_way.popleft(), pack.bytes))
            self._burst_ns = now_ns

    def _end_burst(self) -> Iterator[Block]:
        burst, self._burst = self._burst, []
        begin_ns, self._spread_ns = self._spread_ns, self._burst_ns
        length_ns = self._burst_ns - begin_ns
        if burst[0][0] >= 0 and burst[0][0] == self._coming:
            self._pause_ns = max(length_ns, self._pause_ns * PAUSE_FADES)
        total = max(1, sum(size for _, size in burst))
        before = 0
        for number, size in burst:
            before += size
            yield from self._count(number, size, begin_ns + length_ns * before / total)

    def _count(self, number: int, size: int, at_ns: float) -> Iterator[Block]:
        if number == self._coming:
            self._bytes += size
            self._end_ns = at_ns
            return
        follows = self._coming >= 0 and number == self._coming + 1
        if follows and self._begin_ns is not None and self._end_ns > self._begin_ns:
            yield Block(self._coming, self._bytes / (self._end_ns - self._begin_ns))
        self._coming, self._bytes = number, size
        self._begin_ns = self._end_ns if follows else None
        self._end_ns = at_ns
