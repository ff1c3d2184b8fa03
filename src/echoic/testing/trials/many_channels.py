"""Does an event take longer because there are many channels? JECho's figure 6, as a trial.

The benchmark of channels is what measures: two hubs in two processes, events of 100 bytes to the channels by turns.
One channel and many are open at once and measured by turns, with equally many events in a sample.
"""

from contextlib import ExitStack
from statistics import median
from typing import Final

from echoic.testing.bench.contest import Session, Setup
from echoic.testing.bench.hubs import ECHOIC
from echoic.testing.trials.rates import tried_twice
from echoic.testing.trials.trial import Findings, Tell

__all__ = ["SLOWER_MAX", "judge", "run"]

SLOWER_MAX: Final = 2.0
ROUNDS: Final = 5
EVENTS_MIN: Final = 200_000
EVENTS_EACH_MIN: Final = 20
PAYLOAD: Final = "100 B"


def run(size: int, seed: int, tell: Tell) -> Findings:  # noqa: ARG001 - nothing is left to chance
    """Compare `size` channels with one."""
    events = max(EVENTS_MIN, EVENTS_EACH_MIN * size)
    with ExitStack() as stack:
        one, many = (stack.enter_context(ECHOIC.open(Setup(PAYLOAD, channels=count))) for count in (1, size))
        for session in (one, many):
            session(events)  # it grows warm
        slower = tried_twice(lambda: median(compare(one, many, events)), lambda found: found <= SLOWER_MAX)
    tell(size)
    return Findings(tuple(judge(size, slower)), {"channels": size, "times_as_long": round(slower, 3), "rounds": ROUNDS})


def compare(one: Session, many: Session, events: int) -> list[float]:
    """Return how much longer an event takes with many channels, round by round."""
    return [many(events) / one(events) for _ in range(ROUNDS)]


def judge(channels: int, slower: float) -> list[str]:
    """Return what is wrong with that."""
    if slower <= SLOWER_MAX:
        return []
    return [f"with {channels} channels an event takes {slower:.2f} times as long as with one, limit is {SLOWER_MAX:g}"]
