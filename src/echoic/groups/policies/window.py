"""Flow control: how many bytes may be under way and waiting before the source is suspended (section 2.2).

    window = max(8 packs, goodput * max(25 ms, 2 round trips))        at most what the group allows

Too small a window starves the engine, too large a one only makes messages queue in the engine instead of at the source.
Eight packs are needed to tell larger packs from smaller ones. The goodput is counted over the time in which something
was under way, so an idle source does not spoil it; beginning with eight packs the window doubles with every round trip
until the engine is busy.

The round trip is that of a pack that left *alone*, with nothing else under way: one that queues behind others would
measure the window itself, which then would grow without end. As long as no such measure is there, one pack goes at a
time. A source that never pauses gives no such measure. So what is under way is let come back first when packs have
become much smaller than the one that was measured; and every 30 seconds if the window is bound by the eight packs,
since a longer round trip and a slower engine look the same otherwise.
"""

from typing import Final

from echoic.groups.policies.policy import Pack

__all__ = ["PACKS_MIN", "Window"]

PACKS_MIN: Final = 8
DELAY_NS: Final = 25_000_000
SAMPLE_NS: Final = 2_000_000
MEASURE_AGAIN_NS: Final = 30_000_000_000
SMALLER: Final = 2
GOODPUT_SHARE: Final = 0.25  # of a sample in the mean of all
ROUND_TRIP_SHARE: Final = 0.125


class Window:
    """How much may be under way, from what was seen of the engine. Not thread-safe."""

    def __init__(self, bytes_limit: int) -> None:
        self.bytes_max = 0
        """What may be under way; 0 says that one pack may."""
        self.goodput = 0.0
        """Bytes in a nanosecond that come back, while something is under way."""
        self.round_trip_ns: int | None = None
        self._bytes_limit = bytes_limit
        self._alone_ns = 0
        self._alone_bytes = 0
        self._busy_ns = 0
        self._busy_bytes = 0
        self._counted_ns = 0

    def leave(self, pack: Pack) -> None:
        """Learn that a pack leaves."""
        if pack.alone:
            self._counted_ns = pack.left_ns

    def come_back(self, pack: Pack, pack_bytes: float, now_ns: int) -> None:
        """Learn that a pack has come back, and how many bytes a full one has."""
        if pack.alone:
            self._measure(pack, now_ns)
        self._busy_ns += now_ns - self._counted_ns
        self._counted_ns = now_ns
        self._busy_bytes += pack.bytes
        if self._busy_ns >= max(SAMPLE_NS, 2 * (self.round_trip_ns or 0)):
            sample = self._busy_bytes / self._busy_ns
            self.goodput += (sample - self.goodput) * (GOODPUT_SHARE if self.goodput else 1.0)
            self._busy_ns = self._busy_bytes = 0
        self._open(pack_bytes, now_ns)

    def forget(self) -> None:
        """Measure the round trip anew: packs take another way."""
        self.round_trip_ns = None
        self.bytes_max = self._busy_ns = self._busy_bytes = 0

    def _measure(self, pack: Pack, now_ns: int) -> None:
        round_trip_ns, known_ns = now_ns - pack.left_ns, self.round_trip_ns
        if known_ns is None or round_trip_ns < known_ns:
            self.round_trip_ns = round_trip_ns
        else:
            self.round_trip_ns = known_ns + round((round_trip_ns - known_ns) * ROUND_TRIP_SHARE)
        self._alone_ns, self._alone_bytes = now_ns, pack.bytes

    def _open(self, pack_bytes: float, now_ns: int) -> None:
        if self.round_trip_ns is None:
            return
        packs_bytes = PACKS_MIN * pack_bytes
        queue_bytes = self.goodput * max(DELAY_NS, 2 * self.round_trip_ns)
        stale = packs_bytes > queue_bytes and now_ns - self._alone_ns > MEASURE_AGAIN_NS
        if stale or self._alone_bytes > SMALLER * pack_bytes:
            self.bytes_max = 0
        else:
            self.bytes_max = min(self._bytes_limit, int(max(packs_bytes, queue_bytes)))
