"""Does an event take longer because there are many channels? JECho's figure 6, as a trial.

The benchmark of channels is what measures: two hubs in two processes, events of 100 bytes to the channels by turns.
One channel and many are open at once and measured by turns, with equally many events in a sample.

    round trip    each event is waited for: the time that it takes
    streamed      nobody waits, and events of many channels share frames: the time from the first submit until the last
                  is handled, and the processor time of both processes, each divided by the number of events

Each may at most double. Processor time says what an event costs, whatever else goes on; the time that elapses says what
a user sees, who on a busy machine waits for a processor whenever a thread hands over to another.

All channels together are never in the processor's caches: a source or sink whose turn comes costs what it touches. Four
thousand took 3.3 times the processor time of one until sources of one type shared what encodes their events.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from statistics import median
from typing import Final, TypeAlias

from echoic.testing.bench.contest import Session, Setup
from echoic.testing.bench.hubs import ECHOIC
from echoic.testing.bench.processes import children, processor_seconds
from echoic.testing.trials.rates import tried_twice
from echoic.testing.trials.trial import BY_THE_CLOCK, Figure, Findings, Tell

__all__ = ["SLOWER_MAX", "judge", "run"]

ROUND_TRIP: Final = "round trip"
STREAMED: Final = "streamed event"
STREAMED_WORK: Final = "streamed event's processor time"
SLOWER_MAX: Final = {ROUND_TRIP: 2.0, STREAMED: 2.0, STREAMED_WORK: 2.0}
FIGURES: Final = {
    ROUND_TRIP: "round_trip_times_as_long",
    STREAMED: "streamed_times_as_long",
    STREAMED_WORK: "streamed_times_the_work",
}
ROUNDS: Final = 5
EVENTS_EACH: Final = {ROUND_TRIP: 3, STREAMED: 40}
PAYLOAD: Final = "100 B"

Sample: TypeAlias = Callable[[int], dict[str, float]]
"""Gives a number of events, and returns what each took, by each way of looking at it."""


def run(size: int, seed: int, tell: Tell) -> Findings:  # noqa: ARG001 - nothing is left to chance
    """Compare `size` channels with one."""
    problems: list[str] = []
    figures: dict[str, Figure] = {"channels": size, "rounds": ROUNDS}
    for number, way in enumerate(EVENTS_EACH, 1):
        for what, slower in measure(way, size).items():
            figures[FIGURES[what]] = round(slower, 2)
            problems += judge(what, size, slower)
        tell(size * number // len(EVENTS_EACH))
    return Findings(tuple(problems), figures)


def measure(way: str, channels: int) -> dict[str, float]:
    """Return how many times as long an event takes with many channels, by each way of looking at it."""
    waits, events = way == ROUND_TRIP, EVENTS_EACH[way] * channels
    with ExitStack() as stack:
        one, many = (stack.enter_context(opened(count, waits=waits)) for count in (1, channels))
        return tried_twice(
            lambda: compare(one, many, events),
            lambda found: not any(judge(what, channels, slower) for what, slower in found.items()),
        )


@contextmanager
def opened(channels: int, *, waits: bool) -> Iterator[Sample]:
    """Open so many channels to a process of their own."""
    before = children()
    with ECHOIC.open(Setup(PAYLOAD, channels=channels, synchronous=waits)) as session:
        processes = (children() or frozenset()) - (before or frozenset())
        yield partial(call_all, session, channels) if waits else partial(stream, session, processes)


def call_all(session: Session, channels: int, events: int) -> dict[str, float]:
    """Return how long an event takes in a session whose operation is an event to each channel."""
    return {ROUND_TRIP: session(events // channels) / channels}


def stream(session: Session, processes: frozenset[int], events: int) -> dict[str, float]:
    """Return how long an event takes, and the processor time of this process and its peer if the kernel tells that."""
    if not processes:
        return {STREAMED: session(events)}
    before = processor_seconds(processes)
    elapsed = session(events)
    return {STREAMED: elapsed, STREAMED_WORK: (processor_seconds(processes) - before) / events}


def compare(one: Sample, many: Sample, events: int) -> dict[str, float]:
    """Return how many times as long an event takes with many channels: the median of rounds, once both are warm."""
    rounds = [(many(events), one(events)) for _ in range(ROUNDS + 1)][1:]
    return {what: median(slow[what] / fast[what] for slow, fast in rounds) for what in rounds[0][0]}


def judge(what: str, channels: int, slower: float) -> list[str]:
    """Return what is wrong with that."""
    limit = SLOWER_MAX[what]
    if slower <= limit:
        return []
    compared = f"{slower:.2f} times as long as with one"
    return [f"with {channels} channels a {what} takes {compared}, limit is {limit:g}{BY_THE_CLOCK}"]
