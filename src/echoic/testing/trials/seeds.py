"""Many seeds, by several processes: what the trials of simulations have in common.

A trial names its kinds of simulation and which share of the seeds each of them gets. Seed after seed is given to them
in turn by that share, so a small run has all of them and the same seed gives the same simulation. Processes take
seeds in portions (`seed_runners`); when a few have failed no more are taken.
"""

import os
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final

from echoic.errors import LocalError
from echoic.testing.trials.seed_runners import Kind, Portion, Verdict, judge, run_portions
from echoic.testing.trials.trial import Findings, Tell

__all__ = ["Kind", "run_seeds"]

PORTION: Final = 20
FAILURES_MAX: Final = 5
WORKERS: Final = "ECHOIC_SOAK_WORKERS"
"""Names how many processes there are; by default none of their own in tests, and all cores where a run is large."""
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
    with closing(_verdicts({name: kind for name, (kind, _) in kinds.items()}, plan)) as verdicts:
        for name, problem in verdicts:
            counts[name] += 1
            problems += [problem] if problem else []
            done += 1
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


def _verdicts(kinds: Mapping[str, Kind], plan: Sequence[tuple[str, int]]) -> Generator[Verdict]:
    """Yield for every seed what is wrong with it, if anything is."""
    count = _count_processes(len(plan))
    if count:
        yield from run_portions(kinds, _portions(plan), count)
    else:
        for name, seed in plan:
            yield name, judge(kinds[name], name, seed)


def _count_processes(size: int) -> int:
    """Return how many processes are to run so many seeds, 0 for this one.

    Raises:
        LocalError: The environment says something else than a number.
    """
    wish = os.environ.get(WORKERS, "")
    if not wish:
        return os.cpu_count() or 1 if size > LARGE else 0
    if not wish.isdecimal() or int(wish) < 1:
        raise LocalError(f"{WORKERS} names how many processes there are to be, got `{wish}`")
    return int(wish)


def _portions(plan: Sequence[tuple[str, int]]) -> Iterator[Portion]:
    """Yield seeds of one kind together, some at a time."""
    waiting: dict[str, list[int]] = {}
    for name, seed in plan:
        seeds = waiting.setdefault(name, [])
        seeds.append(seed)
        if len(seeds) == PORTION:
            yield Portion(name, tuple(waiting.pop(name)))
    for name, seeds in waiting.items():
        yield Portion(name, tuple(seeds))
