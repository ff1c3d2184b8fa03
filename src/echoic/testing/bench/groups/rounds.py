"""Runs of groups that take turns, and what a table makes of them.

    round 0     static:1    auto    static:64   ...     each one a group of its own, from its start to its end
    round 1     static:64   static:1    auto    ...     in an order shuffled anew

Other benchmarks have everybody open at once; replicas have heartbeats, and would disturb each other.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from echoic.testing.bench.contest import Effort
from echoic.testing.bench.groups.cases import Case, Result
from echoic.testing.bench.groups.replicas import Launch, launch_forked, measure
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Samples
from echoic.testing.bench.spread import Spread

__all__ = ["GroupReport", "Run", "Runs", "is_slight", "run_of", "shortened", "take_turns"]

ATTEMPTS = 3
SLIGHT_SECONDS = 0.1
SLIGHT_RUN_SECONDS = 0.3

Run = Callable[[], Result]


@dataclass(slots=True)
class GroupReport(Report):
    """A report with what cannot stand in a table: how a run went from moment to moment, and the like.

    Attributes:
        courses: By what is shown: points of several numbers each.
    """

    courses: dict[str, list[list[float]]] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return all of it for a program to read."""
        # Dataclasses with slots are made anew, so `super()` without arguments does not know this one.
        return {**Report.as_json(self), "courses": self.courses}


@dataclass(frozen=True, slots=True)
class Runs:
    """What came of each cell, one result for each round."""

    results: Mapping[Cell, Sequence[Result]]

    def samples(self, number: Callable[[Result], float]) -> Samples:
        """Return a number of each result as samples, which are seconds: of a message, of waiting, of work."""
        return Samples({cell: [number(each) for each in results] for cell, results in self.results.items()})

    def rates(self) -> Samples:
        """Return seconds per message."""
        return self.samples(lambda result: 1 / max(result.throughput, 1e-9))

    def latencies(self) -> Samples:
        """Return mean latencies."""
        return self.samples(lambda result: result.latency)

    def costs(self) -> Samples:
        """Return the seconds of the sending process for each message."""
        return self.samples(lambda result: result.cpu / max(result.throughput, 1e-9))

    def median(self, cell: Cell, number: Callable[[Result], float]) -> float:
        """Return the median of a number over the rounds."""
        return Spread.of([number(each) for each in self.results[cell]]).median

    def best(self, column: str, wanted: Callable[[str], bool]) -> str:
        """Return the case of a column with the most throughput, of those that are wanted."""
        cases = [case for case, heading in self.results if heading == column and wanted(case)]
        return max(cases, key=lambda case: self.median((case, column), lambda result: result.throughput))

    def ratio(
        self, mine: Cell, other: Cell, number: Callable[[Result], float] = lambda result: result.throughput
    ) -> Spread:
        """Return how much more `mine` has than `other`, round by round."""
        pairs = zip(self.results[mine], self.results[other], strict=True)
        return Spread.of([number(one) / max(number(two), 1e-12) for one, two in pairs])


def is_slight(effort: Effort) -> bool:
    """Tell whether it need only be shown that it works."""
    return effort.sample_seconds < SLIGHT_SECONDS


def run_of(case: Case, effort: Effort, launch: Launch = launch_forked) -> Run:
    """Return what runs a case, if need be only for a moment."""
    wanted = shortened(case, effort)
    return lambda: measure(wanted, launch)


def shortened(case: Case, effort: Effort) -> Case:
    """Return a case that takes no longer than the effort allows."""
    if not is_slight(effort):
        return case
    kill_after = min(case.kill_after, SLIGHT_RUN_SECONDS / 3)
    seconds = SLIGHT_RUN_SECONDS + (5 * case.election_timeout if kill_after else 0)
    return msgspec.structs.replace(case, seconds=seconds, warm_up=0.0, kill_after=kill_after)


def take_turns(runs: Mapping[Cell, Run], effort: Effort) -> Runs:
    """Do every run once in each round.

    Raises:
        RuntimeError: One did not come to its end, three times.
    """
    results: dict[Cell, list[Result]] = {cell: [] for cell in runs}
    chance = random.Random(effort.seed)
    for number in range(effort.rounds):
        for case, column in chance.sample(list(runs), len(runs)):
            effort.told(f"round {number + 1} of {effort.rounds}: {case}, {column}")
            results[case, column].append(_attempt(runs[case, column], effort))
    return Runs(results)


def _attempt(run: Run, effort: Effort) -> Result:
    for attempt in range(ATTEMPTS):
        try:
            return run()
        except RuntimeError as error:
            if attempt == ATTEMPTS - 1:
                raise
            effort.told(f"once more: {error}")
    raise AssertionError("unreachable")
