"""Small plots for a terminal, made of block characters: a line of numbers, and a field of them."""

from typing import Any, Final, TypeAlias

import numpy
from numpy.typing import NDArray

__all__ = ["heat_map", "spark_line"]

Numbers: TypeAlias = NDArray[Any]

BARS: Final = "▁▂▃▄▅▆▇█"
SHADES: Final = " ░▒▓█"


def spark_line(values: Numbers, width: int) -> str:
    """Return numbers as a line of bars, the lowest the smallest; those that share a place are averaged."""
    return "".join(_scaled(_gathered(values, width, 0), BARS))


def heat_map(values: Numbers, width: int, height: int) -> list[str]:
    """Return a field, rows of numbers, as lines of shades: the first row at the bottom."""
    small = _gathered(_gathered(values, height, 0), width, 1)
    shades = _scaled(small.ravel(), SHADES)
    columns = small.shape[1] if small.ndim == 2 else 0
    return ["".join(shades[row * columns : (row + 1) * columns]) for row in reversed(range(len(small)))]


def _gathered(values: Numbers, places: int, axis: int) -> Numbers:
    """Return values as at most so many along an axis: neighbours are averaged."""
    count = min(places, values.shape[axis])
    if not count:
        return values
    parts = numpy.array_split(values, count, axis=axis)
    return numpy.stack([part.mean(axis=axis) for part in parts], axis=axis)


def _scaled(values: Numbers, characters: str) -> list[str]:
    """Return a character for each number, from the first for the least to the last for the greatest."""
    if not len(values):
        return []
    least, span = values.min(), numpy.ptp(values)
    if not numpy.isfinite(span) or span == 0:
        return [characters[0]] * len(values)
    places = ((values - least) / span * (len(characters) - 1)).round().astype(int)
    return [characters[place] for place in places]
