"""Cases that take turns: each gives one sample in every round, in an order shuffled anew.

    round 0    swap  submit_sync  raw tcp  ...      a sample: the median of so many operations
    round 1    raw tcp  swap  submit_sync  ...

All that is compared is open at the same time, as in `contest`, because the machine is never calm. A case may give
several numbers at once: one exchange between two processes tells how long both ways took.
"""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from echoic.testing.bench.contest import Contender, Effort, Session, Setup, time_call
from echoic.testing.bench.results import Cell, Samples

__all__ = ["Case", "calls", "opened", "take_turns", "taking"]

# Returns seconds, one number for each cell that it stands for.
Case = Callable[[], Mapping[Cell, float]]


def take_turns(cases: Sequence[Case], effort: Effort, order: Sequence[Cell]) -> Samples:
    """Let cases take turns, once each before anything counts; return their samples, cells in the order given."""
    seconds: dict[Cell, list[float]] = {cell: [] for cell in order}
    for case in cases:
        case()
    chance = random.Random(effort.seed)
    for number in range(effort.rounds):
        effort.told(f"round {number + 1} of {effort.rounds}")
        for case in chance.sample(cases, len(cases)):
            for cell, taken in case().items():
                seconds[cell].append(taken)
    return Samples({cell: taken for cell, taken in seconds.items() if taken})


def opened(contender: Contender, setup: Setup, cell: Cell, count: int, stack: ExitStack) -> Case:
    """Return a contender of the other benchmarks as a case."""
    return partial(_sampled, cell, stack.enter_context(contender.open(setup)), count)


def calls(cell: Cell, call: Callable[[], object], count: int) -> Case:
    """Return a case of calls, of which the median one counts."""
    return partial(_sampled, cell, time_call(call), count)


def taking(cell: Cell, take: Callable[[], float], count: int) -> Case:
    """Return a case of calls that tell themselves how many seconds they took."""
    return partial(_sampled, cell, lambda times: statistics.median(take() for _ in range(times)), count)


def _sampled(cell: Cell, session: Session, count: int) -> Mapping[Cell, float]:
    return {cell: session(count)}
