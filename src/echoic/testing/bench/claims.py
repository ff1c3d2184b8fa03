"""What was promised, beside what was measured.

A claim that is not met is printed as such and decides nothing: the exit code of a benchmark says whether it ran.
"""

from dataclasses import dataclass

from echoic.testing.bench.spread import Spread, show_number

__all__ = ["Claim"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A promised limit and the number that was found.

    Attributes:
        name: What is promised.
        found: What was measured.
        limit: What it is held against.
        unit: Of both numbers.
        at_least: Whether the limit is the least allowed, and not the most.
    """

    name: str
    found: Spread
    limit: float
    unit: str
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the median keeps the promise."""
        return self.found.median >= self.limit if self.at_least else self.found.median <= self.limit

    def __str__(self) -> str:
        sign, verdict = ">=" if self.at_least else "<=", "ok" if self.met else "NOT MET"
        return f"claim: {self.name} {sign} {show_number(self.limit)} {self.unit}: measured {self.found} {verdict}"

    def as_json(self) -> dict[str, object]:
        """Return the claim for a program to read."""
        return {
            "name": self.name,
            "measured": self.found.as_json(),
            "limit": self.limit,
            "unit": self.unit,
            "at_least": self.at_least,
            "met": self.met,
        }
