"""Which numbers can hold which values, as Python's and NumPy's own arithmetic see it."""

import math
from typing import Any

import numpy

from echoic.formats import Kind
from echoic.formats.checks import RANGES

NUMBERS = [
    *((kind, size) for kind in (Kind.INT, Kind.UINT) for size in (1, 2, 4, 8)),
    (Kind.FLOAT, 4),
    (Kind.FLOAT, 8),
    (Kind.BOOL, 1),
]


def values_of(kind: Kind, size: int) -> list[Any]:
    """Return the values of a number that are hardest to place: the ends, the odd ones near them, fractions."""
    if kind is Kind.BOOL:
        return [False, True]
    if kind is Kind.FLOAT:
        limits = numpy.finfo(f"f{size}")
        return [
            0.0,
            0.5,
            -1.0,
            float(limits.max),
            float(limits.min),
            float(limits.smallest_subnormal),
            math.inf,
            1 + float(limits.eps),
        ]
    low, high = RANGES[kind is Kind.INT, size]
    return [low, low + 1, 0, 1, 2, high - 1, high]


def has_place(value: Any, kind: Kind, size: int) -> bool:
    """Tell whether a number can hold exactly this value, asking Python's and NumPy's arithmetic."""
    if kind is Kind.BOOL:
        return isinstance(value, bool)
    if kind is Kind.FLOAT:
        try:
            with numpy.errstate(over="ignore"):
                made = numpy.dtype(f"f{size}").type(value)
        except OverflowError:
            return False
        return float(made) == value if isinstance(value, float) else math.isfinite(made) and int(made) == value
    low, high = RANGES[kind is Kind.INT, size]
    return not isinstance(value, float) and low <= value <= high


WIDER = {
    read: [write for write in NUMBERS if all(has_place(value, *write) for value in values_of(*read))]
    for read in NUMBERS
}
