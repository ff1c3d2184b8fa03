"""Tables of this question: their cells are medians with quartiles."""

from echoic.testing.bench.results import Samples, Table, Unit
from echoic.testing.bench.spread import Spread

__all__ = ["table_of"]


def table_of(title: str, unit: Unit, samples: Samples, baseline: str = "") -> Table:
    """Return a table whose numbers have their quartiles beside them."""
    return Table(title, unit, baseline, samples, spread=Spread.quartiles_of)
