"""Many seeds, by several processes: what the trials of simulations have in common.

A trial names its kinds of simulation and which share of the seeds each of them gets. Seed after seed is given to them
in turn by that share, so a small run has all of them and the same seed gives the same simulation. Processes take
seeds in portions; when a few have failed no more are taken.
"""

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from echoic.testing.trials.trial import Findings, Tell

__all__ = ["Kind", "run_seeds"]

Kind: TypeAlias = Callable[[int], object]
"""Runs a seed; raises AssertionError with whatever is needed to see it again."""

PORTION: Final = 20
FAILURES_MAX: Final = 5
PROBLEM_CHARACTERS: Final = 4000
WORKERS: Final = "ECHOIC_SOAK_WORKERS"
"""Names how many processes there are; by default one in tests, and all cores where a run is large."""
LARGE: Final = 2000


def run_seeds(kinds: Mapping[str, tuple[Kind, int]], size: int, seed: int, tell: Tell) -> Findings:
    """Run so many seeds.

    Args:
        kinds: By name, what runs a seed, and how many of a hundred it gets.
        size: How many seeds.
        seed: The first.
        tell: Learns how many are done.
    """
    began, done, problems = time.monotonic(), 0, list[str]()
    counts: Counter[str] = Counter()
    names = _turns({name: share for name, (_, share) in kinds.items()})
    plan = [(names[at % len(names)], seed + at) for at in range(size)]
    for name, failures, count in _results(kinds, plan):
        counts[name] += count
        problems += failures
        done += count
        tell(done)
        if len(problems) >= FAILURES_MAX:
            break
    seconds = time.monotonic() - began
    figures = {f"{name}_seeds": counts[name] for name in kinds}
    return Findings(tuple(problems), {**figures, "seconds": round(seconds, 1), "per_second": round(done / seconds, 1)})


def _turns(shares: Mapping[str, int]) -> list[str]:
    """Return the names in an order in which each comes as often as its share, evenly spread."""
    total = sum(shares.values())
    places = [(at / share, name) for name, share in shares.items() for at in range(share)]
    return [name for _, name in sorted(places)][:total]


def _results(
    kinds: Mapping[str, tuple[Kind, int]], plan: Sequence[tuple[str, int]]
) -> Iterator[tuple[str, list[str], int]]:
    """Yield for portions of seeds of one kind what has failed, and how many there were."""
    portions = list(_portions(plan))
    workers = int(os.environ.get(WORKERS, "0")) or (os.cpu_count() or 1 if len(plan) > LARGE else 1)
    if workers == 1:
        for name, seeds in portions:
            yield _run(kinds[name][0], name, seeds)
        return
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        pending = [pool.apply_async(_run, (kinds[name][0], name, seeds)) for name, seeds in portions]
        for each in pending:
            yield each.get()


def _portions(plan: Sequence[tuple[str, int]]) -> Iterator[tuple[str, list[int]]]:
    """Yield seeds of one kind together, some at a time."""
    waiting: dict[str, list[int]] = {}
    for name, seed in plan:
        seeds = waiting.setdefault(name, [])
        seeds.append(seed)
        if len(seeds) == PORTION:
            yield name, waiting.pop(name)
    yield from waiting.items()


def _run(kind: Kind, name: str, seeds: Sequence[int]) -> tuple[str, list[str], int]:
    failures: list[str] = []
    for seed in seeds:
        try:
            kind(seed)
        except AssertionError as error:
            failures.append(f"{name}, seed {seed}: {error}"[:PROBLEM_CHARACTERS])
    return name, failures, len(seeds)
