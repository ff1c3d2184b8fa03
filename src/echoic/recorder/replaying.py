"""The pace of a replay: which events of a recording are due, and how long to wait for the next.

Pure: it is told what the time is, and has neither a clock nor a thread. Batches are put into its hand one after the
other (`load`); it says how many of their events may go (`allowed`), or how long that takes (`wait_ns`), and is told
what went (`take`).

    recorded time    |--a-----b--c----------------------------------d        as it stands in the journal
    schedule         |--a-----b--c-----------d                               leaps cut to `gap_ns_max`, steps back to 0
    the clock        ^ runs `rate` times as fast as the caller's; stands still while paused

A batch has a place in the schedule: that of the one before it, and as much as was between them in the recording. So a
wall clock that was set back while recording costs nothing, neither a stall nor a flood, and one that leapt forward
costs a limited wait. The alternative, to compare recorded times with a moment at which all began, has to be mended
wherever clocks step, and jumps when the rate changes. Here the clock has run up to some place when the rate changes,
and goes on from there at another speed. All is done in whole numbers, so that nothing is early by rounding.

At full speed there is no schedule: the clock is put to the place of whatever was taken. So it is with a step, which
takes events while the clock stands still. Both can be followed by any rate, and the next batch then comes after the
time it had in the recording.

When events cannot be handed over in time, the clock runs on, and what is late follows as fast as it can be taken:
`lag_ns` says how late the last one was.
"""

import math
from typing import Final

import msgspec

from echoic.errors import LocalError

__all__ = ["GAP_SECONDS_MAX", "Pacing", "PacingStatistics"]

GAP_SECONDS_MAX: Final = 60.0
SECOND_NS: Final = 1_000_000_000


class PacingStatistics(msgspec.Struct, frozen=True):
    """How a replay keeps its pace."""

    rate: float
    """How many times as fast as it was recorded, infinity for as fast as possible."""
    rate_achieved: float
    """The same, as it has been since it was last paused, sought or set to another rate."""
    lag_ns: int
    """How late the last batch was."""
    lag_ns_max: int
    """How late any was."""
    leaps: int
    """How often there was more time between two batches than the limit."""
    left_out_ns: int
    """How much recorded time has been left out thereby."""
    steps_back: int
    """How often a batch was recorded at an earlier time than the one before it."""


class Pacing:
    """Decides when the batches of a recording are due."""

    def __init__(self, rate: float = 1.0, *, gap_seconds_max: float = GAP_SECONDS_MAX, paused: bool = False) -> None:
        """Begin with nothing in hand; the first batch is due at once.

        Args:
            rate: How many times as fast as it was recorded; 0 or infinity for as fast as possible.
            gap_seconds_max: How much recorded time between two batches is waited for at most; infinity for any.
            paused: Whether to begin paused.

        Raises:
            LocalError: The rate or the limit is not one.
        """
        if not gap_seconds_max >= 0:
            raise LocalError(f"expected gap_seconds_max of at least 0, got {gap_seconds_max}")
        self._gap_ns_max = None if math.isinf(gap_seconds_max) else int(gap_seconds_max * SECOND_NS)
        self._ratio = _ratio_of(rate)
        self._paused = paused
        self._clock_ns = self._since_ns = 0  # the clock stood at this place of the schedule at that time of the caller
        self._begun = False
        self._time_ns: int | None = None  # recorded time of the last batch that was loaded
        self._place_ns = 0  # its place in the schedule
        self._left = 0  # how many of its events are in hand
        self._taken: tuple[int, int] | None = None  # place and recorded time of the last batch of which any were taken
        self._mark = (0, 0)  # from which place and time of the caller the achieved rate counts
        self._steps = 0
        self._stepping_batch = False
        self._lag_ns = self._lag_ns_max = 0
        self._leaps = self._left_out_ns = self._steps_back = 0

    @property
    def rate(self) -> float:
        """How many times as fast as it was recorded; infinity for as fast as possible."""
        return math.inf if self._ratio is None else self._ratio[0] / self._ratio[1]

    @property
    def paused(self) -> bool:
        """Whether events go only by steps."""
        return self._paused

    @property
    def left(self) -> int:
        """How many events are in hand."""
        return self._left

    def load(self, time_ns: int, count: int, now_ns: int) -> None:
        """Take the next batch into hand, of so many events, recorded at a time.

        Raises:
            LocalError: Events of the batch before it are still in hand.
        """
        if self._left:
            raise LocalError(f"{self._left} events are still in hand, take them first")
        if not self._begun:
            self._begun, self._since_ns, self._mark = True, now_ns, (self._clock_ns, now_ns)
        if self._time_ns is None:
            self._place_ns = self._clock_at(now_ns)
        else:
            self._place_ns += self._between(time_ns - self._time_ns)
        self._time_ns, self._left = time_ns, count

    def allowed(self, now_ns: int) -> int:
        """Return how many of the events in hand may go."""
        if self._stepping_batch:
            return self._left
        if self._paused:
            return min(self._left, self._steps)
        due = self._ratio is None or self._clock_at(now_ns) >= self._place_ns
        return self._left if due else 0

    def wait_ns(self, now_ns: int) -> int | None:
        """Return how long it takes until events in hand may go; None if that is not a matter of time."""
        if self.allowed(now_ns):
            return 0
        if not self._left or self._paused or self._ratio is None:
            return None
        rate, unit = self._ratio
        due_ns = self._since_ns - (-(self._place_ns - self._clock_ns) * unit // rate)  # rounded up: never early
        return max(1, due_ns - now_ns)

    def take(self, count: int, now_ns: int) -> None:
        """Know that so many of the events in hand go at this moment.

        Raises:
            LocalError: So many are not allowed.
        """
        allowed = self.allowed(now_ns)
        if not 0 < count <= allowed:
            raise LocalError(f"{count} events cannot be taken, {allowed} may go")
        self._left -= count
        self._taken = (self._place_ns, self._time_ns or 0)
        if self._paused:
            self._steps = max(0, self._steps - count)
            self._stepping_batch = self._stepping_batch and self._left > 0
            self._clock_ns = max(self._clock_ns, self._place_ns)
            self._lag_ns = 0
        elif self._ratio is None:
            self._clock_ns, self._since_ns = self._place_ns, now_ns
            self._lag_ns = 0
        else:
            rate, unit = self._ratio
            self._lag_ns = max(0, self._clock_at(now_ns) - self._place_ns) * unit // rate
            self._lag_ns_max = max(self._lag_ns_max, self._lag_ns)

    def pause(self, now_ns: int) -> None:
        """Stop the clock, and forget steps that were not taken."""
        self._settle(now_ns)
        self._paused = True
        self._steps, self._stepping_batch = 0, False

    def resume(self, now_ns: int) -> None:
        """Let the clock run on."""
        if self._paused:
            self._settle(now_ns)
            self._paused = False
            self._steps, self._stepping_batch = 0, False

    def step(self, events: int, now_ns: int) -> None:
        """Stop the clock, and let so many further events go; 0 for the batch in hand, or else the next.

        Raises:
            LocalError: The number is negative.
        """
        if events < 0:
            raise LocalError(f"expected a step of at least 1 event, or 0 for a batch, got {events}")
        if not self._paused:
            self.pause(now_ns)
        if events:
            self._steps += events
        else:
            self._stepping_batch = True

    def set_rate(self, rate: float, now_ns: int) -> None:
        """Go on from here at another rate.

        Raises:
            LocalError: It is not a rate.
        """
        ratio = _ratio_of(rate)
        self._settle(now_ns)
        self._ratio = ratio

    def restart(self, now_ns: int) -> None:
        """Put away what is in hand; what is loaded next follows at once, wherever in the recording it is from."""
        self._settle(now_ns)
        self._left, self._time_ns, self._taken = 0, None, None

    def recorded_ns(self, now_ns: int) -> int | None:
        """Return what time it is in the recording, None before anything went.

        Between two batches it runs on from the time of the first, at the rate, up to the time of the second.
        """
        if self._taken is None:
            return None
        place_ns, time_ns = self._taken
        if not self._left or self._time_ns is None:
            return time_ns
        passed_ns = self._clock_at(now_ns) - place_ns
        return self._time_ns if passed_ns >= self._place_ns - place_ns else time_ns + max(0, passed_ns)

    def statistics(self, now_ns: int) -> PacingStatistics:
        """Return how the pace is kept."""
        place_ns, since_ns = self._mark
        passed_ns = now_ns - since_ns
        idle = self._paused or passed_ns <= 0
        reached_ns = self._clock_ns if idle else min(self._clock_at(now_ns), self._place_ns)
        return PacingStatistics(
            rate=self.rate,
            rate_achieved=0.0 if idle else max(0, reached_ns - place_ns) / passed_ns,
            lag_ns=self._lag_ns,
            lag_ns_max=self._lag_ns_max,
            leaps=self._leaps,
            left_out_ns=self._left_out_ns,
            steps_back=self._steps_back,
        )

    def _clock_at(self, now_ns: int) -> int:
        """Return the place in the schedule up to which events are due."""
        if self._paused or self._ratio is None or not self._begun:
            return self._clock_ns
        rate, unit = self._ratio
        return self._clock_ns + max(0, now_ns - self._since_ns) * rate // unit

    def _settle(self, now_ns: int) -> None:
        """Count from here on, since the clock will go at another speed."""
        self._clock_ns, self._since_ns = self._clock_at(now_ns), now_ns
        self._mark = (self._clock_ns, now_ns)

    def _between(self, passed_ns: int) -> int:
        """Return how much of the time between two batches is waited for."""
        if passed_ns < 0:
            self._steps_back += 1
            return 0
        if self._gap_ns_max is None or passed_ns <= self._gap_ns_max:
            return passed_ns
        self._leaps += 1
        self._left_out_ns += passed_ns - self._gap_ns_max
        return self._gap_ns_max


def _ratio_of(rate: float) -> tuple[int, int] | None:
    """Return a rate as a fraction, None for full speed.

    Raises:
        LocalError: It is not a rate.
    """
    if not rate >= 0:
        raise LocalError(f"expected a rate of at least 0, got {rate}")
    return None if rate == 0 or math.isinf(rate) else rate.as_integer_ratio()
