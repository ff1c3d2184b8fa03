"""Packing that finds out by itself how many bytes a pack should have: Nagle's rule, and paired probing.

The gate is Nagle's (`nagle`): a pack that is not full leaves at once if nothing is under way, otherwise it collects. So
at low load no message waits, and nothing is learnt. What is learnt, while the source wants more than the engine takes,
is how many bytes make a pack full, the *aim*:

    start     begins with 16 kB and doubles, up to what the engine's adapter thinks best, as long as a pack keeps the
              engine busy for no more than 10 ms at the goodput seen; if it does, falls to that at once
    probe     blocks of packs (`Blocks`) with a little less, a little more, more, less, until it is settled which way
              is better (`Search`)

                  | less | more | more | less | less | more | more | less | ...

    stay      when it is settled nothing is tried for 1 to 16 seconds, twice as long each time. If the goodput or the
              size of messages changes meanwhile by a third, it looks again at once

Why not the paper's rule (`paper`)? Two measures of five seconds, one after the other, cannot tell a better degree from
a load that has just ended, and a step of one needs 100 seconds for a degree of 11. Pairs cancel what both have in
common, and bytes instead of messages make steps that are right for small and for large messages.

How good can it be? If a pack of n messages takes a + b n + d n^2, then with r times the best n the part of the time
that packing can save grows by (r + 1/r)/2 - 1: by 1.5 % for r = 2^(1/4), which is what probing costs, and by 6 % for a
whole step. What it reaches in virtual time, with the costs and loads of the paper, with noise, transient loads and long
pipelines, is told by `python -m echoic.testing.simulated_packing`.
"""

from typing import Final

from echoic.groups.policies.blocks import BLOCK_NS_MIN, Block, Blocks
from echoic.groups.policies.nagle import ANY_NUMBER, BYTES_DEFAULT
from echoic.groups.policies.policy import Pack
from echoic.groups.policies.search import Search

__all__ = ["Probe"]

BYTES_FIRST: Final = 16 * 1024
PACK_NS_MAX: Final = 10_000_000
START_PACKS: Final = 3
BLOCK_PACKS: Final = 6
STAY_NS_MIN: Final = 1_000_000_000
STAY_NS_MAX: Final = 16_000_000_000
CHANGED: Final = 0.7
CHANGED_BLOCKS: Final = 5
SIZE_BLOCKS: Final = 2


class Probe:
    """Tunes itself. Called by one thread, that of the packing buffer."""

    name: Final = "probe"
    degree_max: Final = ANY_NUMBER
    eager_packs_max: Final = 1

    def __init__(self, *, bytes_hint: int = BYTES_DEFAULT) -> None:
        self._hint = bytes_hint
        self._search = Search(min(BYTES_FIRST, bytes_hint), BYTES_FIRST)
        self.bytes_max = int(self._search.aim)
        self._now_ns = 0
        self._blocks = Blocks(0)
        self._starting = True
        self._stay_until_ns: int | None = None
        self._stay_ns = STAY_NS_MIN
        self._first = 1  # the first block that counts: those before it were made otherwise
        self._goodputs: list[float] = []
        self._messages = self._bytes = 0  # of the block that is leaving
        self._size_changed = 0
        self._goodput = 0.0  # while it stays
        self._goodput_changed = 0

    @property
    def bytes_aim(self) -> int:
        """How many bytes make a pack full, apart from what is being tried."""
        return int(self._search.aim)

    def start(self, pack_bytes_max: int, now_ns: int) -> None:
        """Begin, with the largest pack that the engine takes."""
        self._now_ns = now_ns
        self._blocks = Blocks(now_ns)
        self._search = Search(min(BYTES_FIRST, self._hint), pack_bytes_max)
        self._choose()

    def leave(self, pack: Pack) -> str:
        """Put a pack into a block, if the engine is busy, and choose what the next one is like."""
        self._now_ns = pack.left_ns
        blocks = self._blocks
        if not pack.saturated:
            if blocks.packs or self._goodputs:
                self._skip()
            blocks.pass_by()
            return ""
        self._messages += pack.messages
        self._bytes += pack.bytes
        packs, least_ns = (START_PACKS, 0) if self._starting else (BLOCK_PACKS, BLOCK_NS_MIN)
        if not blocks.leave(pack, packs, least_ns):
            return ""
        return self._next_block()

    def come_back(self, pack: Pack, now_ns: int) -> str:
        """Learn from the blocks that have come back."""
        self._now_ns = now_ns
        reason = ""
        for block in self._blocks.come_back(pack, now_ns):
            if block.number >= self._first:
                reason = self._learn(block) or reason
        return reason

    def forget(self, now_ns: int) -> None:
        """Give up the blocks under way."""
        self._now_ns = now_ns
        self._blocks.forget()
        self._begin_pair(1)

    def wake_ns(self) -> int | None:
        """Return None: packs that come back are all that matters."""
        return None

    def wake(self, now_ns: int) -> str:
        """Do nothing."""
        self._now_ns = now_ns
        return ""

    def _skip(self) -> None:
        """Give up the block that is leaving, since the source has paused. The one after it has nothing to follow."""
        self._blocks.skip()
        self._messages = self._bytes = 0
        self._begin_pair(1)

    def _begin_pair(self, later: int) -> None:
        """Let a pair begin so many blocks later than the one that is leaving."""
        self._first = self._blocks.number + later
        self._goodputs.clear()
        self._choose()

    def _next_block(self) -> str:
        reason = self._weigh()
        if not reason and self._stay_until_ns is not None and self._now_ns >= self._stay_until_ns:
            self._stay_until_ns = None
            self._search.begin(self._search.aim)
            self._begin_pair(0)
        self._choose()
        return reason

    def _weigh(self) -> str:
        """See whether messages have another size than they had."""
        search, size = self._search, self._bytes / self._messages
        self._messages = self._bytes = 0
        before = search.size = search.size or size
        if CHANGED < size / before < 1 / CHANGED:
            self._size_changed = 0
            search.size += (size - before) / 4
            return ""
        self._size_changed += 1
        if self._size_changed < SIZE_BLOCKS:
            return ""
        search.size, self._size_changed = size, 0
        self._look_again()
        return f"messages have {size:.0f} bytes instead of {before:.0f}, looks again"

    def _look_again(self) -> None:
        self._stay_until_ns, self._stay_ns = None, STAY_NS_MIN
        self._search.begin(self._search.aim)
        self._begin_pair(1)

    def _choose(self) -> None:
        """Choose what packs of the block that leaves are like."""
        position = self._blocks.number - self._first
        if self._starting or self._stay_until_ns is not None or position < 0:
            self.bytes_max = int(self._search.aim)
        else:
            self.bytes_max = self._search.pair[position % 4 in {1, 2}]

    def _learn(self, block: Block) -> str:
        if self._starting:
            return self._grow(block.goodput)
        if self._stay_until_ns is not None:
            return self._watch(block.goodput)
        self._goodputs.append(block.goodput)
        if len(self._goodputs) < 4:
            return ""
        reason = self._search.compare(self._goodputs, self._now_ns)
        self._goodputs.clear()
        if not reason:
            return ""
        if self._search.settled:
            reason = f"{reason}, {self._stay()}"
        self._begin_pair(1)
        return reason

    def _grow(self, goodput: float) -> str:
        before = self._search.aim
        best = min(2 * before, self._hint, goodput * PACK_NS_MAX)
        self._starting = best >= 1.4 * before
        self._search.begin(best)
        self._begin_pair(1)
        took_ms = self._search.aim / goodput / 1e6
        return f"begins with what keeps the engine busy for {took_ms:.1f} ms, at {goodput * 1e3:.2f} MB/s"

    def _watch(self, goodput: float) -> str:
        known = self._goodput = self._goodput or goodput
        if CHANGED < goodput / known < 1 / CHANGED:
            self._goodput_changed = 0
            self._goodput += (goodput - known) / 10
            return ""
        self._goodput_changed += 1
        if self._goodput_changed < CHANGED_BLOCKS:
            return ""
        self._look_again()
        return f"goodput has changed from {known * 1e3:.2f} to {goodput * 1e3:.2f} MB/s, looks again"

    def _stay(self) -> str:
        """Try nothing for a while, and return for how long in words."""
        stay_ns, self._stay_ns = self._stay_ns, min(STAY_NS_MAX, 2 * self._stay_ns)
        self._stay_until_ns = self._now_ns + stay_ns
        self._goodput, self._goodput_changed = 0.0, 0
        return f"stays for {stay_ns // 1_000_000_000} s"
