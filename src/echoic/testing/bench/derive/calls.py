"""Calls within this process, side by side.

    round 0    echoic  numba  wasmtime  ...      each sample: as many calls as fill it, found beforehand
    round 1    numba  echoic  CPython   ...      in an order shuffled anew

A call is written out in the timed loop as `function(argument)`, without anything around it, because what is around it
may cost more than the call: one event takes 30 ns, a `functools.partial` 20. What an empty call costs is told beside it
and never subtracted. The garbage collector rests while a sample is taken.

What is told is processor time, of all threads: wasmtime compiles in several. The other calls never wait, so that for
them it is the time that elapses on a calm machine; on a busy one it is at least not the time of others.
"""

import random
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from echoic.testing.bench.contest import Effort
from echoic.testing.bench.results import Cell, Samples

__all__ = ["Call", "interleave_calls"]

SAMPLE_SHARE = 1 / 30


@dataclass(frozen=True, slots=True)
class Call:
    """What is called, with what, and how many events that handles."""

    function: Callable[[Any], object]
    argument: object = None
    events: int = 1


def interleave_calls(calls: Mapping[Cell, Call], effort: Effort) -> Samples:
    """Let the calls take turns; return the seconds that one event took, round by round."""
    sample_seconds = effort.sample_seconds * SAMPLE_SHARE
    timers = {
        cell: timeit.Timer(
            "function(argument)",
            timer=time.process_time,
            globals={"function": call.function, "argument": call.argument},
        )
        for cell, call in calls.items()
    }
    counts = {cell: _calibrate(timer, sample_seconds) for cell, timer in timers.items()}
    seconds: dict[Cell, list[float]] = {cell: [] for cell in calls}
    chance = random.Random(effort.seed)
    for number in range(effort.rounds):
        effort.told(f"round {number + 1} of {effort.rounds}")
        for cell in chance.sample(list(calls), len(calls)):
            taken = timers[cell].timeit(counts[cell])
            seconds[cell].append(taken / counts[cell] / calls[cell].events)
    return Samples(seconds)


def _calibrate(timer: timeit.Timer, sample_seconds: float) -> int:
    """Return how many calls fill one sample; on the way all grows warm."""
    count = 1
    timer.timeit(1)
    while True:
        elapsed = timer.timeit(count)
        if elapsed >= sample_seconds / 2:
            return max(1, int(count * sample_seconds / elapsed))
        count = max(2 * count, min(100 * count, int(count * sample_seconds / max(elapsed, 1e-9))))
