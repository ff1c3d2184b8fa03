"""Does an event take longer because there are many channels? JECho's figure 6, as a trial.

The benchmark of channels is what measures: two hubs in two processes, events of 100 bytes to the channels by turns.
One channel and many are open at once and measured by turns, with equally many events in a sample.

    round trip    each event is waited for: the time that it takes, which may double
    streamed      nobody waits, and events of many channels share frames: what each costs

A streamed event among 4,096 channels costs 2.2 to 3 times what it costs in one (`docs/benchmarks.md`): each channel's
source and sink are out of the processor's caches when their turn comes, and a microsecond becomes two or three. That is
recorded with a limit of its own, so that it does not become worse.
"""

from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Final

from echoic.testing.bench.contest import Session, Setup
from echoic.testing.bench.hubs import ECHOIC
from echoic.testing.trials.rates import tried_twice
from echoic.testing.trials.trial import BY_THE_CLOCK, Figure, Findings, Tell

__all__ = ["SLOWER_MAX", "judge", "run"]

SLOWER_MAX: Final = {"round trip": 2.0, "streamed": 5.0}
ROUNDS: Final = 5
EVENTS_EACH: Final = {"round trip": 3, "streamed": 50}
PAYLOAD: Final = "100 B"


def run(size: int, seed: int, tell: Tell) -> Findings:  # noqa: ARG001 - nothing is left to chance
    """Compare `size` channels with one."""
    problems: list[str] = []
    figures: dict[str, Figure] = {"channels": size, "rounds": ROUNDS}
    for number, (way, limit) in enumerate(SLOWER_MAX.items(), 1):
        slower = measure(way, size, limit)
        figures[f"{way.replace(' ', '_')}_times_as_long"] = round(slower, 2)
        problems += judge(way, size, slower)
        tell(size * number // len(SLOWER_MAX))
    return Findings(tuple(problems), figures)


def measure(way: str, channels: int, limit: float) -> float:
    """Return how many times as long an event takes with many channels."""
    waits, events = way == "round trip", EVENTS_EACH[way] * channels
    with ExitStack() as stack:
        one, many = (
            stack.enter_context(ECHOIC.open(Setup(PAYLOAD, channels=count, synchronous=waits)))
            for count in (1, channels)
        )
        turn = partial(call_all, many, channels) if waits else many  # of which one operation is a call to each channel
        return tried_twice(lambda: median(compare(one, turn, events)), lambda found: found <= limit)


def call_all(session: Session, channels: int, events: int) -> float:
    """Return how long an event takes in a session whose operation is an event to each channel."""
    return session(events // channels) / channels


def compare(one: Session, many: Session, events: int) -> list[float]:
    """Return how many times as long an event takes with many channels, round by round, once both have grown warm."""
    return [many(events) / one(events) for _ in range(ROUNDS + 1)][1:]


def judge(way: str, channels: int, slower: float) -> list[str]:
    """Return what is wrong with that."""
    limit = SLOWER_MAX[way]
    if slower <= limit:
        return []
    compared = f"{slower:.2f} times as long as with one"
    return [f"with {channels} channels a {way} takes {compared}, limit is {limit:g}{BY_THE_CLOCK}"]
