"""What a question found: samples by case and column, read as costs, rates and ratios.

    rounds        0     1     2   ...
    echoic      14.1  15.0  14.4      cost    median (low..high) over the rounds
    raw tcp     12.0  13.1  12.1      ratio   sample / the baseline's sample of the same round, then the median

A ratio is taken round by round because what slowed one case down in a round slowed its neighbours down too. Samples are
always seconds per operation; a table only chooses the unit in which they are shown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from echoic.testing.bench.spread import Spread

__all__ = ["Cell", "Samples", "Table", "Unit"]

# Which contender, and under which heading of the table.
Cell = tuple[str, str]


class Unit(Enum):
    """How seconds per operation are shown."""

    NANOSECONDS = "ns"
    MICROSECONDS = "us"
    MILLISECONDS = "ms"
    THOUSANDS_PER_SECOND = "thousand/s"
    GIGABYTES_PER_SECOND = "GB/s"


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds per operation: for each case and column one sample per round.

    Attributes:
        seconds: What elapsed.
        processor_seconds: What it took of the processors, all processes together, as far as that is known.
    """

    seconds: Mapping[Cell, Sequence[float]]
    processor_seconds: Mapping[Cell, Sequence[float]] = field(default_factory=dict)

    def ratios(self, mine: Cell, other: Cell) -> list[float]:
        """Return how much longer `mine` takes than `other`, round by round."""
        return [a / b for a, b in zip(self.seconds[mine], self.seconds[other], strict=True)]

    def rounds(self, combine: Callable[..., float], *cells: Cell) -> Spread:
        """Return the spread of a number that is computed from several cells of each round."""
        return Spread.of([combine(*seconds) for seconds in zip(*(self.seconds[cell] for cell in cells), strict=True)])

    def joined(self, other: "Samples") -> "Samples":
        """Return the samples of both; a cell that both have is the other's."""
        return Samples({**self.seconds, **other.seconds}, {**self.processor_seconds, **other.processor_seconds})

    def divided(self, divisors: Mapping[str, int]) -> "Samples":
        """Return samples of a part of each operation: one event of many.

        Args:
            divisors: For each column, how many parts an operation has.
        """
        return Samples(_divided(self.seconds, divisors), _divided(self.processor_seconds, divisors))

    def worked(self, shares: Mapping[str, int] | None = None) -> "Samples":
        """Return samples of processor time in place of elapsed time.

        Args:
            shares: For each column, by how many to divide it.
        """
        return Samples(_divided(self.processor_seconds, shares or {}))


def _divided(seconds: Mapping[Cell, Sequence[float]], divisors: Mapping[str, int]) -> dict[Cell, list[float]]:
    return {
        (case, column): [each / divisors.get(column, 1) for each in taken] for (case, column), taken in seconds.items()
    }


@dataclass(frozen=True, slots=True)
class Table:
    """Cases down, one column per size or setting.

    Attributes:
        title: What was measured.
        unit: How it is shown.
        baseline: The case to which the others are held, column by column.
        samples: What was measured.
        size_bytes: Bytes of one operation, by column; for gigabytes per second.
        spread: What a number with its ends is made of: extremes, or quartiles.
    """

    title: str
    unit: Unit
    baseline: str
    samples: Samples
    size_bytes: Mapping[str, int] | None = None
    spread: Callable[[Sequence[float]], Spread] = Spread.of

    @property
    def cases(self) -> list[str]:
        """The contenders, in the order in which they were entered."""
        return _unique(case for case, _ in self.samples.seconds)

    @property
    def columns(self) -> list[str]:
        """The headings, in the order in which they were entered."""
        return _unique(column for _, column in self.samples.seconds)

    @property
    def faster_is_more(self) -> bool:
        """Whether a greater number is the better one."""
        return self.unit in (Unit.THOUSANDS_PER_SECOND, Unit.GIGABYTES_PER_SECOND)

    def has(self, case: str, column: str) -> bool:
        """Tell whether the case takes part in the column."""
        return (case, column) in self.samples.seconds

    def value(self, case: str, column: str) -> Spread:
        """Return what the case reached, in the unit of the table."""
        seconds = self.samples.seconds[case, column]
        return self.spread([self._shown(each, column) for each in seconds])

    def ratio(self, case: str, column: str, baseline: str | None = None) -> Spread:
        """Return the case's value relative to the baseline's, in the sense of the unit: twice the rate is 2."""
        ratios = self.samples.ratios((case, column), (baseline or self.baseline, column))
        return self.spread([1 / each if self.faster_is_more else each for each in ratios])

    def as_json(self) -> dict[str, object]:
        """Return every number of the table."""
        rows = []
        for (case, column), seconds in self.samples.seconds.items():
            row: dict[str, object] = {"case": case, "column": column, "value": self.value(case, column).as_json()}
            if self.has(self.baseline, column):
                row["ratio"] = self.ratio(case, column).as_json()
            rows.append({**row, "seconds": list(seconds)})
        return {"title": self.title, "unit": self.unit.value, "baseline": self.baseline, "rows": rows}

    def _shown(self, seconds: float, column: str) -> float:
        match self.unit:
            case Unit.NANOSECONDS:
                return seconds * 1e9
            case Unit.MICROSECONDS:
                return seconds * 1e6
            case Unit.MILLISECONDS:
                return seconds * 1e3
            case Unit.THOUSANDS_PER_SECOND:
                return 1e-3 / seconds
            case Unit.GIGABYTES_PER_SECOND:
                return (self.size_bytes or {})[column] / seconds / 1e9


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
