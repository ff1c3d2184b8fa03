"""The picture that `echoic demo` leaves behind: its tables, and what the derivations have saved."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy

from echoic.cli.demo_results import Tables

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Saving", "draw"]

INCHES: Final = (9.0, 9.0)
DOTS_AN_INCH: Final = 120


class Saving(msgspec.Struct, frozen=True):
    """What a derivation inside a source has done."""

    name: str
    events_in: int
    events_out: int
    bytes_in: int
    bytes_saved: int

    @property
    def percent(self) -> float:
        """How much of the bytes never left the source."""
        return 100 * self.bytes_saved / self.bytes_in if self.bytes_in else 0.0


def draw(tables: Tables, savings: Sequence[Saving], path: Path) -> None:
    """Write a picture of the tables.

    Raises:
        ImportError: There is no matplotlib.
        OSError: The file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=INCHES, layout="constrained")
    FigureCanvasAgg(figure)
    prices, wind, bars = figure.subplots(3, 1, height_ratios=(3, 3, 1))
    _draw_prices(prices, tables)
    _draw_wind(wind, tables)
    _draw_savings(bars, savings)
    figure.savefig(path, dpi=DOTS_AN_INCH)


def _draw_prices(axes: "Axes", tables: Tables) -> None:
    begun = min((series.at[0] for series in tables.series().values() if len(series.at)), default=0.0)
    for symbol, series in tables.series().items():
        axes.plot(series.at - begun, 100 * (series.mean / series.mean[0] - 1), marker=".", label=symbol)
    axes.set_title("per_second: mean price of each second, by Spark's windows over the recorded trades")
    axes.set_ylabel("change in %")
    axes.set_xlabel("seconds")
    if tables.series():
        axes.legend(ncols=4)


def _draw_wind(axes: "Axes", tables: Tables) -> None:
    at, means = tables.layer_means()
    axes.set_title("layer_means: the jet stream, from 37 x 253 wind fields reduced by a kernel in the reader")
    axes.set_ylabel("layer")
    axes.set_xlabel("seconds")
    if len(at) > 1:
        edges = numpy.arange(means.shape[1])
        field = axes.pcolormesh(at - at[0], edges, means.T, shading="nearest", cmap="viridis")
        axes.figure.colorbar(field, ax=axes, label="m/s")


def _draw_savings(axes: "Axes", savings: Sequence[Saving]) -> None:
    names = [saving.name for saving in savings]
    saved = [saving.percent for saving in savings]
    axes.barh(names, [100 - percent for percent in saved], color="tab:orange", label="sent")
    axes.barh(names, saved, left=[100 - percent for percent in saved], color="tab:green", label="never left the source")
    axes.set_title("bytes of the derived channels, in % of what they are derived from")
    axes.set_xlim(0, 100)
    axes.legend(ncols=2, loc="lower right")
