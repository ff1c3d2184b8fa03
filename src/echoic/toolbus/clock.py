"""Clocks: the world's, and one that stands still until there is nothing else to do.

With a virtual clock a script that waits for an hour is run in a moment: time jumps to the next delay or timeout when no
process can go on, no tool is at work and nothing is unheard. Tools that act by themselves should not be used with it,
since nobody knows what time they think it is.
"""

import time
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from echoic.errors import LocalError

__all__ = ["Clock", "ClockName", "RealClock", "VirtualClock", "clock_of"]

ClockName = Literal["real", "virtual"]
ORIGIN_NS: Final = 0


class Clock(Protocol):
    """What time it is."""

    @property
    def epoch_ns(self) -> int:
        """What makes it the time since the first second of 1970, in the zone of this machine."""

    def now_ns(self) -> int:
        """Return the time, which never goes back."""

    def skip_to(self, due_ns: int) -> bool:
        """Make it that time at once, if this clock can; return whether it did."""


class RealClock:
    """The monotonic clock of the system."""

    def __init__(self) -> None:
        self.epoch_ns: Final = _local_ns() - time.monotonic_ns()

    def now_ns(self) -> int:
        """Return the time."""
        return time.monotonic_ns()

    def skip_to(self, due_ns: int) -> bool:  # noqa: ARG002 - it cannot
        """Return False: nobody can make time pass."""
        return False


class VirtualClock:
    """A clock that is set."""

    def __init__(self, now_ns: int = ORIGIN_NS, epoch_ns: int | None = None) -> None:
        """Set it; without `epoch_ns` it begins at the date of today."""
        self._now_ns = now_ns
        self.epoch_ns: Final = _local_ns() - now_ns if epoch_ns is None else epoch_ns

    def now_ns(self) -> int:
        """Return the time."""
        return self._now_ns

    def skip_to(self, due_ns: int) -> bool:
        """Make it that time."""
        self._now_ns = max(self._now_ns, due_ns)
        return True


def clock_of(name: ClockName | Clock) -> Clock:
    """Return the clock of a name.

    Raises:
        LocalError: There is none of that name.
    """
    if not isinstance(name, str):
        return name
    if name == "real":
        return RealClock()
    if name == "virtual":
        return VirtualClock()
    raise LocalError(f"expected the clock `real` or `virtual`, got `{name}`")


def _local_ns() -> int:
    """Return the time since the first second of 1970, in the zone of this machine."""
    offset = datetime.now().astimezone().utcoffset() or timedelta()
    return time.time_ns() + int(offset.total_seconds()) * 1_000_000_000
