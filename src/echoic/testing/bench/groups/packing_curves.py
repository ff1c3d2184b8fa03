"""Whether multicasts come close enough to each other to be packed: figures 5 and 6 of the paper.

Given are the instants at which each replica has multicast, and nothing of how they were packed. From these one sees
what a packing buffer *would* have met:

    fill        figure 5 left     how long it takes until a pack has so many messages, on average
    mean        figure 5 right    how many multicasts fall into a packing interval, on average of those with any
    share       figure 6 left     how many of the intervals have any
    most        figure 6 right    how many multicasts fall into one interval at most

A buffer belongs to a replica, so packs and intervals are those of one replica each; what comes of all of them is added
up. Intervals follow one another from a replica's first multicast to its last.
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy
from numpy.typing import NDArray

from echoic.errors import LocalError

__all__ = ["FillPoint", "IntervalPoint", "PackingCurves", "fill_seconds", "interval_point", "packing_curves"]

Instants = Sequence[Sequence[int]]
"""Of each replica, in nanoseconds, in order."""


class FillPoint(msgspec.Struct, frozen=True):
    """A point of figure 5, left."""

    degree: int
    seconds: float | None
    """From the first message of a pack to its last; None if there were not so many messages."""


class IntervalPoint(msgspec.Struct, frozen=True):
    """A point of figure 5, right, and of both halves of figure 6."""

    interval: float
    """In seconds."""
    mean: float
    """Multicasts in an interval that has any."""
    share: float
    """Of the intervals that have any, from 0 to 1."""
    most: int


class PackingCurves(msgspec.Struct, frozen=True):
    """All four curves."""

    fill: list[FillPoint]
    intervals: list[IntervalPoint]


def packing_curves(instants: Instants, degrees: Iterable[int], intervals: Iterable[float]) -> PackingCurves:
    """Return the four curves.

    Args:
        instants: When each replica has multicast, in nanoseconds, in order.
        degrees: The packing degrees, hypothetical ones.
        intervals: The packing intervals, in seconds.

    Raises:
        LocalError: A degree is less than 1, or an interval is not a time.
    """
    return PackingCurves(
        [FillPoint(degree, fill_seconds(instants, degree)) for degree in degrees],
        [interval_point(instants, interval) for interval in intervals],
    )


def fill_seconds(instants: Instants, degree: int) -> float | None:
    """Return how long it takes to collect so many multicasts, on average; None if there are not so many.

    Raises:
        LocalError: The degree is less than 1.
    """
    if degree < 1:
        raise LocalError(f"a pack has at least 1 message, got {degree}")
    packs, total_ns = 0, 0
    for each in map(_array, instants):
        whole = len(each) // degree
        filled = each[: whole * degree].reshape(whole, degree)
        packs += whole
        total_ns += int((filled[:, -1] - filled[:, 0]).sum())
    return total_ns / packs / 1e9 if packs else None


def interval_point(instants: Instants, interval: float) -> IntervalPoint:
    """Return what packing intervals of a length would have met.

    Raises:
        LocalError: It is not a time.
    """
    if not 0 < interval < float("inf"):
        raise LocalError(f"a packing interval is a time above 0, got {interval} s")
    length_ns = max(1, round(interval * 1e9))
    multicasts = nonempty = intervals = most = 0
    for each in map(_array, instants):
        if not len(each):
            continue
        places = (each - each[0]) // length_ns
        # Only those with any are counted: there may be very many intervals, and nearly all empty.
        _, counts = numpy.unique(places, return_counts=True)
        multicasts += len(each)
        nonempty += len(counts)
        intervals += int(places[-1]) + 1
        most = max(most, int(counts.max()))
    if not intervals:
        return IntervalPoint(interval, 0.0, 0.0, 0)
    return IntervalPoint(interval, multicasts / nonempty, nonempty / intervals, most)


def _array(instants: Sequence[int]) -> NDArray[numpy.int64]:
    return numpy.asarray(instants, dtype=numpy.int64)
