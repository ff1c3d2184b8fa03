"""How long a trial waits for work that may never come back.

A clock on the wall is the wrong judge: whoever runs the trial may hold it up for minutes, a machine has other things to
do, and neither is the work's fault. So there are two limits, and a hold-up counts for neither:

    within     of the processor    the system ends the process that has had so much of it    for what turns for ever
    Waiting    by the clock        whoever waits looks now and then, and adds up the time     for what hangs
                                   from look to look, of a long one only the beginning

The first is the strict one. It is a timer of the process itself (`ITIMER_PROF`), since native code that turns for ever
lets no other thread of Python run that could look; what ends it is a signal that nobody handles.
"""

import signal
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

__all__ = ["EXHAUSTED", "Waiting", "within"]

EXHAUSTED: Final = signal.SIGPROF
"""What ends a process whose work is not done within its limit."""
LOOK_SECONDS_MAX: Final = 5.0

P = ParamSpec("P")
T = TypeVar("T")


def within(processor_seconds: float, work: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Return what some work returns; it ends this process if it takes so much of the processor.

    A process has one such timer, so the work sets no limit of its own.
    """
    signal.setitimer(signal.ITIMER_PROF, processor_seconds)
    try:
        return work(*arguments, **keywords)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


class Waiting:
    """How long somebody has waited, without the time in which nobody could look."""

    def __init__(self, now: float) -> None:
        self._looked = now
        self._seconds = 0.0

    def look(self, now: float) -> float:
        """Return the seconds so far; between two looks pass no more than some, or whoever looks was held up."""
        self._seconds += min(now - self._looked, LOOK_SECONDS_MAX)
        self._looked = now
        return self._seconds
