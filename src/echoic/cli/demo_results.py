"""What `echoic demo` has to show for: the tables it made, read back without Spark, and whether they are right.

Nothing is taken on trust. The events were counted where they were published, where they were recorded, and where the
live derived channels delivered them; the rows of the tables must be just these, and the wind's means must be the same
numbers to the last bit, though one half was computed inside the model's process and the other on Spark.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy
from numpy.typing import NDArray

from echoic.cli.demo_events import LAYERS, LayerMeans, Tick, Trade
from echoic.cli.demo_exchange import BELL
from echoic.errors import PipelineError

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Check", "Live", "Series", "Tables", "checks"]

Numbers: TypeAlias = NDArray[Any]


class Live(msgspec.Struct):
    """What came by channel while the demo ran."""

    odd_lots: list[Trade] = []
    layer_means: list[LayerMeans] = []
    ticks: list[Tick] = []


class Series(msgspec.Struct, frozen=True):
    """What the seconds of one symbol were like."""

    at: Numbers
    mean: Numbers
    volume: Numbers


class Check(msgspec.Struct, frozen=True):
    """Two ways to the same figure."""

    what: str
    found: int
    expected: int

    @property
    def passed(self) -> bool:
        """Whether they agree."""
        return self.found == self.expected


class Tables:
    """The tables of the pipeline, as they are in this moment."""

    def __init__(self, folder: Path) -> None:
        self.odd_lots: pyarrow.Table | None = _read(folder / "odd_lots")
        self.per_second: pyarrow.Table | None = _read(folder / "per_second")
        self._layer_means = _read(folder / "layer_means")

    @property
    def rows(self) -> dict[str, int]:
        """How many rows each has."""
        tables = {"odd_lots": self.odd_lots, "per_second": self.per_second, "layer_means": self._layer_means}
        return {name: 0 if table is None else table.num_rows for name, table in tables.items()}

    def total(self, column: str) -> int:
        """Return the sum of a column over all seconds."""
        return 0 if self.per_second is None else int(_column(self.per_second, column).sum())

    def series(self) -> dict[str, Series]:
        """Return the seconds of each symbol, in order."""
        if self.per_second is None:
            return {}
        symbols = numpy.array(self.per_second.column("symbol").to_pylist())
        at, mean, volume = (_column(self.per_second, name) for name in ("at", "mean", "volume"))
        found = {}
        for symbol in sorted(set(symbols) - {BELL}):
            which = numpy.flatnonzero(symbols == symbol)
            which = which[numpy.argsort(at[which])]
            found[str(symbol)] = Series(at[which], mean[which], volume[which])
        return found

    def layer_means(self) -> tuple[Numbers, Numbers]:
        """Return the times of the wind fields, and the means of their layers, in order."""
        if self._layer_means is None:
            return numpy.zeros(0), numpy.zeros((0, LAYERS))
        order = numpy.argsort(_column(self._layer_means, "step"))
        means = numpy.array(self._layer_means.column("mean").to_pylist(), dtype=float).reshape(-1, LAYERS)
        return _column(self._layer_means, "at")[order], means[order]


def checks(live: Live, tables: Tables, recorded: dict[str, int], shares: int) -> list[Check]:
    """Return what must agree once everything has arrived.

    Args:
        live: What came by channel.
        tables: What is in the tables.
        recorded: How many events are in the journal of each channel; one of the trades is the closing bell.
        shares: How many shares the exchange has counted.
    """
    rows = tables.rows
    sent = sorted((means.step, means.mean.tobytes()) for means in live.layer_means)
    _, stored = tables.layer_means()
    alike = sum(mean == row.tobytes() for (_, mean), row in zip(sent, stored, strict=False))
    return [
        Check("trades in windows, and trades recorded", tables.total("trades"), recorded["trades"] - 1),
        Check("shares in windows, and shares sold", tables.total("volume"), shares),
        Check("odd lots by Spark, and at the source", rows["odd_lots"], len(live.odd_lots)),
        Check("wind fields in the table, and recorded", rows["layer_means"], recorded["wind"]),
        Check("means by Spark equal to those at the source", alike, len(live.layer_means)),
        Check("results in the table, and by channel", rows["per_second"], len(live.ticks)),
    ]


def _read(path: Path) -> "pyarrow.Table | None":
    """Return a table, None if there is none yet."""
    from echoic.spark.tables import table_dataset

    try:
        return table_dataset(path).to_table()
    except PipelineError:
        return None


def _column(table: "pyarrow.Table", name: str) -> Numbers:
    return table.column(name).to_numpy()
