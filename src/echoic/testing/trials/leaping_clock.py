"""A wall clock that leaps: all of this process sees it, and the monotonic clock goes on as it does.

Whatever asks `time.time` or `time.time_ns` is told the time that the clock is set to. So the real code runs with it,
and whoever decides by the wall clock what must not depend on it is found out.
"""

import random
import time
from types import TracebackType
from typing import Final, Self

__all__ = ["HOUR_NS", "LeapingClock"]

HOUR_NS: Final = 3_600_000_000_000
STEPS_NS: Final = (1_000_000, 128_000_000, 1_000_000_000, 37_000_000_000)
"""By so much a time server may step a clock, either way."""


class LeapingClock:
    """The wall clock, from `with` on until its end."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._offset_ns = 0
        self._time_ns = time.time_ns
        self._time = time.time

    def leap(self) -> int:
        """Leap by up to an hour either way, or as a time server steps a clock; return by how much."""
        chance = self._chance
        by = chance.choice((-1, 1)) * chance.choice((HOUR_NS, HOUR_NS, chance.randrange(HOUR_NS), *STEPS_NS))
        if abs(self._offset_ns + by) > 24 * HOUR_NS:
            by = -self._offset_ns
        self._offset_ns += by
        return by

    def now_ns(self) -> int:
        """Return what it shows."""
        return self._time_ns() + self._offset_ns

    def __enter__(self) -> Self:
        time.time_ns = self.now_ns
        time.time = lambda: self.now_ns() / 1e9
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        time.time_ns, time.time = self._time_ns, self._time
