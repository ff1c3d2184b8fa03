"""A number that was measured several times: its median, and how far it went in either direction.

The ends are the extremes unless a question asks for quartiles: a run has few rounds, and a reader wants to know what
can happen. Quartiles suit what takes microseconds on a machine that does other things too, of which the extremes tell.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Spread", "show_number"]


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the least and the greatest value, or with the quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the spread of what the rounds gave.

        Raises:
            ValueError: If there are no values.
        """
        if not values:
            raise ValueError("cannot tell the spread of no values")
        return cls(statistics.median(values), min(values), max(values))

    @classmethod
    def quartiles_of(cls, values: Sequence[float]) -> "Spread":
        """Return median and quartiles of what the rounds gave.

        Raises:
            ValueError: If there are no values.
        """
        if len(values) < 2:
            return cls.of(values)
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    def times(self, factor: float) -> "Spread":
        """Return the same in another unit."""
        return Spread(self.median * factor, self.low * factor, self.high * factor)

    def as_json(self) -> dict[str, float]:
        """Return the three numbers by name."""
        return {"median": self.median, "low": self.low, "high": self.high}

    def __str__(self) -> str:
        return f"{show_number(self.median)} ({show_number(self.low)}..{show_number(self.high)})"


def show_number(value: float) -> str:
    """Return a number with the two or three digits that count."""
    size = abs(value)
    if size >= 100 or size == 0:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.01 else f"{value:.2g}"
