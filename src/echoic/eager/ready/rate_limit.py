"""At most so many events a second.

Both modulators here are the same rule, by two clocks. `RateLimitByTime` goes by a field of the events that holds their
time, in E-Code: the rule then holds in the time of the data, also when that is replayed. `RateLimit` goes by the clock
of the source's machine, which E-Code does not see, in Python.

The rule is the generic cell rate algorithm, which is a token bucket without a bucket: one number, the time at which the
next event is due if they came evenly. An event may come early by as much as a burst is worth.

    ------|----------------|----->       an event passes if now >= due - tolerance
    due - tolerance        due          then due = max(due, now) + interval

All in whole nanoseconds, so nothing is lost to rounding: in any stretch of T nanoseconds no more than
`burst + T / interval` events pass. What does not pass is dropped; `Latest` keeps the newest instead. Where the time of
events runs backwards, it waits until the time has caught up.
"""

import math
import time
from fractions import Fraction
from typing import Final

from echoic.eager.modulator import EcodeModulator, Modulator
from echoic.eager.ready.arguments import check_real, check_whole
from echoic.eager.ready.fields import check_number
from echoic.errors import LocalError

__all__ = ["RateLimit", "RateLimitByTime"]

SECOND_NS: Final = 1_000_000_000
SPAN_NS_MAX: Final = 1 << 61

CODE: Final = """{{
    static long due = 0;
    static char known = 0;
    long now = input.{field} * param.unit_ns;
    if (known && now < due - param.tolerance_ns) return 0;
    due = (known && due > now ? due : now) + param.interval_ns;
    known = 1;
    return 1;
}}"""


class RateLimit(Modulator):
    """Pass at most so many events a second of each source, by the clock; the others are dropped.

    Args:
        rate: Events a second.
        burst: How many may pass at once after a pause.

    Raises:
        LocalError: The rate is not positive, or the burst less than 1.
    """

    interval_ns: int
    tolerance_ns: int

    def __init__(self, rate: float, burst: int = 1) -> None:
        super().__init__(*_spans(rate, burst))

    def start(self) -> None:
        """Begin with a whole burst."""
        self._due_ns = self.clock()

    def clock(self) -> int:
        """Return the time in nanoseconds; it never runs backwards."""
        return time.monotonic_ns()

    def enqueue(self, event: object) -> None:
        """Pass the event unless it comes too early."""
        now_ns = self.clock()
        if now_ns < self._due_ns - self.tolerance_ns:
            return
        self._due_ns = max(self._due_ns, now_ns) + self.interval_ns
        super().enqueue(event)


class RateLimitByTime(EcodeModulator):
    """Pass at most so many events a second of each source, by the time that they hold; the others are dropped.

    Args:
        field: The field that holds the time.
        rate: Events a second.
        burst: How many may pass at once after a pause.
        unit_ns: What 1 in the field means: 1 for nanoseconds, 1_000_000_000 for seconds.
        declared: The event type, if the field is to be checked here and not only where the events are.

    Raises:
        LocalError: There is no such field, the rate or unit is not positive, or the burst is less than 1.
    """

    def __init__(
        self, field: str, rate: float, burst: int = 1, *, unit_ns: int = SECOND_NS, declared: object | None = None
    ) -> None:
        check_number(declared, field)
        check_whole("unit_ns", unit_ns, 1, SPAN_NS_MAX)
        interval_ns, tolerance_ns = _spans(rate, burst)
        self.field: Final = field
        self.rate: Final = rate
        params = {"unit_ns": unit_ns, "interval_ns": interval_ns, "tolerance_ns": tolerance_ns}
        super().__init__(CODE.format(field=field), params=params)

    def __repr__(self) -> str:
        return f"RateLimitByTime({self.field!r}, {self.rate!r})"


def _spans(rate: float, burst: int) -> tuple[int, int]:
    """Return how far apart events are in the mean, and how early one may come."""
    check_real("rate", rate, low=0, exclusive=True)
    check_whole("burst", burst, 1, SPAN_NS_MAX)
    interval_ns = max(1, math.ceil(SECOND_NS / Fraction(min(rate, float(SECOND_NS)))))
    if interval_ns * burst > SPAN_NS_MAX:
        raise LocalError(f"{burst} events at {rate!r} a second take {interval_ns * burst} ns, limit is {SPAN_NS_MAX}")
    return interval_ns, interval_ns * (burst - 1)
