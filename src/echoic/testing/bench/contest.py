"""Who competes, and how they are measured side by side.

A *contender* is one way to move events. Opening it for a *setup* starts its peers and gives a *session*; a session does
a number of operations and says how many seconds one took; closing it stops the peers.

    open all     raw tcp | echoic | zeromq | ...      each with its own processes, which wait in the kernel
    calibrate    how many operations take one sample; on the way everything grows warm
    round 0      echoic  raw tcp  zeromq              one sample each, in an order shuffled anew
    round 1      zeromq  echoic  raw tcp
    ...

Everything that is to be compared is open at once and takes turns, because the machine is never calm: what disturbs it
disturbs all. Only one session works at a time. With every sample goes the processor time that it took in all processes
of its contender, see `processes`.
"""

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace

import msgspec

from echoic.testing.bench.placement import Placement, place
from echoic.testing.bench.processes import children, processor_seconds
from echoic.testing.bench.results import Cell, Samples

__all__ = ["Contender", "Effort", "Session", "Setup", "entered", "entered_throughout", "interleave", "time_call"]

OPERATIONS_MAX = 5_000_000

# Does so many operations and returns the seconds that one of them took.
Session = Callable[[int], float]


class Setup(msgspec.Struct, frozen=True):
    """What is asked of a contender. It crosses to the peers' processes as JSON.

    Attributes:
        payload: Name of the kind of event, a key of `PAYLOADS`.
        synchronous: Whether the source waits for every event until all handlers have returned.
        sinks: How many processes receive each event.
        stages: How many processes an event goes through, one after the other.
        channels: How many channels take turns.
        batch: Events handed over at once, or 0: one object at a time.
    """

    payload: str
    synchronous: bool = False
    sinks: int = 1
    stages: int = 1
    channels: int = 1
    batch: int = 0


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to move events.

    Attributes:
        name: How it is called in tables.
        open: Starts peers, gives a session, stops them.
        supports: Tells whether it can do what a setup asks.
    """

    name: str
    open: Callable[[Setup], AbstractContextManager[Session]]
    supports: Callable[[Setup], bool] = field(default=lambda _: True)


@dataclass(frozen=True, slots=True)
class Effort:
    """How thoroughly to measure.

    Attributes:
        rounds: Samples of each case.
        sample_seconds: How long one sample takes, about.
        turns_min: How many events each of several channels gets in one sample, at least.
        seed: Decides the order within each round.
        placement: On which processors.
        told: Called with what is about to happen.
    """

    rounds: int = 7
    sample_seconds: float = 0.3
    turns_min: int = 100
    seed: int = 0
    placement: Placement = Placement.FREE
    told: Callable[[str], object] = field(default=lambda _: None)

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.sample_seconds <= 0:
            raise ValueError(f"cannot measure {self.rounds} rounds of {self.sample_seconds} seconds")

    @classmethod
    def slight(cls) -> "Effort":
        """Return the effort that shows that it works, and not how fast it is."""
        return cls(rounds=3, sample_seconds=0.03, turns_min=20)

    def placed(self, placement: Placement) -> "Effort":
        """Return the same effort in another place."""
        return replace(self, placement=placement)


@dataclass(frozen=True, slots=True)
class _Entrant:
    """A session with the processes that work for it, or None where that is not known."""

    session: Session
    processes: frozenset[int] | None

    @classmethod
    def opened(cls, contender: Contender, setup: Setup, stack: ExitStack) -> "_Entrant":
        before = children()
        session = stack.enter_context(contender.open(setup))
        after = children()
        return cls(session, None if before is None or after is None else after - before)

    def sample(self, count: int) -> tuple[float, float | None]:
        """Return elapsed and processor seconds of one operation."""
        if self.processes is None:
            return self.session(count), None
        before = processor_seconds(self.processes)
        seconds = self.session(count)
        return seconds, (processor_seconds(self.processes) - before) / count


def interleave(entries: Mapping[Cell, tuple[Contender, Setup]], effort: Effort, *, operations_min: int = 1) -> Samples:
    """Open all entries, let them take turns, and return the samples, each of `operations_min` operations at least."""
    with place(effort.placement), ExitStack() as stack:
        entrants = {}
        for (case, column), (contender, setup) in entries.items():
            effort.told(f"starting {case}, {column}")
            entrants[case, column] = _Entrant.opened(contender, setup, stack)
        counts = {
            cell: _calibrate(each.session, effort.sample_seconds, operations_min) for cell, each in entrants.items()
        }
        gc.collect()
        # What all contenders together have built up must not be searched again and again in everybody's samples.
        gc.freeze()
        stack.callback(gc.unfreeze)
        return _take_turns(entrants, counts, effort)


def _take_turns(entrants: Mapping[Cell, _Entrant], counts: Mapping[Cell, int], effort: Effort) -> Samples:
    elapsed: dict[Cell, list[float]] = {cell: [] for cell in entrants}
    processor: dict[Cell, list[float]] = {cell: [] for cell, each in entrants.items() if each.processes is not None}
    chance = random.Random(effort.seed)
    for number in range(effort.rounds):
        effort.told(f"round {number + 1} of {effort.rounds}")
        for cell in chance.sample(list(entrants), len(entrants)):
            seconds, spent = entrants[cell].sample(counts[cell])
            elapsed[cell].append(seconds)
            if spent is not None:
                processor[cell].append(spent)
    return Samples(elapsed, processor)


def _calibrate(session: Session, sample_seconds: float, operations_min: int) -> int:
    """Return how many operations fill one sample, having done at least as many as one must have."""
    count = operations_min
    while True:
        begun = time.perf_counter()
        session(count)
        elapsed = time.perf_counter() - begun
        if elapsed >= sample_seconds / 2 or count >= OPERATIONS_MAX:
            return min(max(operations_min, int(count * sample_seconds / elapsed)), OPERATIONS_MAX)
        # Starting and stopping a sample costs something too, which a short trial mistakes for the operations.
        count = min(max(2 * count, int(0.7 * count * sample_seconds / elapsed)), 20 * count, OPERATIONS_MAX)


def time_call(call: Callable[[], object]) -> Session:
    """Return a session of round trips; its result is the median one, which a pause of the machine does not move."""

    def session(count: int) -> float:
        clock, times = time.perf_counter, []
        before = clock()
        for _ in range(count):
            call()
            after = clock()
            times.append(after - before)
            before = after
        return statistics.median(times)

    return session


def entered(contenders: Iterable[Contender], column: str, setup: Setup) -> dict[Cell, tuple[Contender, Setup]]:
    """Return the entries of one column: all contenders that can do what the setup asks."""
    return {(each.name, column): (each, setup) for each in contenders if each.supports(setup)}


def entered_throughout(
    contenders: Iterable[Contender], setups: Mapping[str, Setup]
) -> dict[Cell, tuple[Contender, Setup]]:
    """Return the entries of several columns: those contenders that can do what every one of the setups asks."""
    able = [each for each in contenders if all(each.supports(setup) for setup in setups.values())]
    return {cell: entry for column, setup in setups.items() for cell, entry in entered(able, column, setup).items()}
