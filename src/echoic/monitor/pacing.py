"""How many events stand for one, so that a picture gets as many as it can use. Pure: the caller has the clock.

A source sends one record for every `every` events, and only the viewer knows how many arrive. From both follows how
fast the channel is, and from that the `every` that is right. It is changed when it is off by more than a quarter, since
each change is told to every source. While nothing arrives, the channel may be silent or may have become slow: `every`
goes down in large steps, so that the next event is not waited for.
"""

from typing import Final

__all__ = ["Pace"]

EVERY_MAX: Final = 1_000_000
TOLERANCE: Final = 1.25
SILENT_STEP: Final = 8
FIRST_NS: Final = 250_000_000
INTERVAL_NS: Final = 1_000_000_000


class Pace:
    """Finds the `every` of one watch.

    Args:
        per_second: How many records are wanted.
        now_ns: When it begins.
    """

    def __init__(self, per_second: float, now_ns: int) -> None:
        self.every = 1
        self.automatic = True
        """Whether it is found here, and not said by a person."""
        self._per_second = per_second
        self._since_ns = now_ns
        self._interval_ns = FIRST_NS
        self._records = 0

    def note(self, records: int) -> None:
        """Count records that have arrived."""
        self._records += records

    def begin(self, every: int, now_ns: int) -> None:
        """Note that the sources have been told another number, from which on is counted."""
        self.every, self._records, self._since_ns = every, 0, now_ns

    def wanted(self, now_ns: int) -> int | None:
        """Return what the sources should be told; None if nothing, or not yet."""
        elapsed_ns = now_ns - self._since_ns
        if not self.automatic or elapsed_ns < self._interval_ns:
            return None
        records, self._records, self._since_ns, self._interval_ns = self._records, 0, now_ns, INTERVAL_NS
        events_per_second = records * self.every * 1e9 / elapsed_ns
        right = min(max(round(events_per_second / self._per_second), 1), EVERY_MAX)
        if not records:
            right = max(self.every // SILENT_STEP, 1)
        low, high = sorted((right, self.every))
        return right if high > low * TOLERANCE else None
