"""The figures of `by_reference.py`: what references gain over values, beside the thesis, and whose memory grows.

Milliseconds of 2006 and of today have nothing to say to each other, so times are shown as ratios.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.by_reference_fleet import AUTOMATIC, BY_REFERENCE, BY_VALUE, PLAIN, STREAMED
from benchmarks.harness import Spread, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_memory", "draw_times"]

COLOURS = {
    BY_VALUE: "#1d4ed8",
    BY_REFERENCE: "#c2410c",
    STREAMED: "#15803d",
    AUTOMATIC: "#d99a2b",
    PLAIN: "#777777",
}
THESIS = "#111111"
PANELS_ACROSS = 2


@contextmanager
def panels(path: Path, title: str, down: int) -> Iterator[Sequence["Axes"]]:
    """Give the panels of a figure, row by row, and write it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullLocator

    # The same numbers give the same file, so that a diff shows changes of the numbers only.
    settings = {"svg.hashsalt": "echoic", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        shown, axes = pyplot.subplots(down, PANELS_ACROSS, figsize=(10.4, 3.6 * down), squeeze=False)
        shown.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        for each in axes.flat:
            each.set_xscale("log")
            each.set_yscale("log")
            each.xaxis.set_minor_locator(NullLocator())
            each.yaxis.set_minor_locator(NullLocator())
            each.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            each.grid(visible=True, color="#dddddd", linewidth=0.6)
            each.set_axisbelow(True)
        yield list(axes.flat)
        shown.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        shown.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=130)
        pyplot.close(shown)


def draw_times(
    tables: Mapping[tuple[str, int], Table],
    sizes: Mapping[str, int],
    thesis: Mapping[str, tuple[float, float]],
    path: Path,
) -> None:
    """Draw how many times as fast as by value each manner is, over the size; one panel for each of the tables."""
    rows = -(-len(tables) // PANELS_ACROSS)
    with panels(path, "Times as fast as by value, through the bus", rows) as axes:
        for each, ((links, receivers), table) in zip(axes, tables.items(), strict=False):
            columns = list(table.columns)
            places = [sizes[column] for column in columns]
            for case in (PLAIN, STREAMED, AUTOMATIC, BY_REFERENCE):
                gains = [table.columns[column][0].ratio(BY_VALUE, case) for column in columns]
                _draw_line(each, places, gains, COLOURS[case], case)
            paper = [thesis[column][receivers - 1] for column in columns]
            each.plot(places, paper, "D--", color=THESIS, markersize=3, linewidth=0.8, label="the thesis")
            each.axhline(1, color=COLOURS[BY_VALUE], linewidth=1)
            each.set_title(f"{receivers} receiver{'s' * (receivers > 1)}, {links}", loc="left", fontsize=9)
            each.set_xticks(places, columns, fontsize=7)
            each.set_yticks([0.5, 1, 2, 4, 8, 16, 32])
        axes[0].legend(frameon=False, fontsize=8)


def draw_memory(
    tables: Mapping[str, Table],
    sizes: Mapping[str, int],
    thesis: Mapping[str, Mapping[str, tuple[float, float]]],
    path: Path,
) -> None:
    """Draw how far memory grows over the size of the value, one panel for each sort of process."""
    with panels(path, "Growth of memory beyond idle, MB", -(-len(tables) // PANELS_ACROSS)) as axes:
        for each, (part, table) in zip(axes, tables.items(), strict=True):
            columns = list(table.columns)
            places = [sizes[column] for column in columns]
            for case in table.cases():
                _draw_line(each, places, [table.cost(case, column) for column in columns], COLOURS[case], case)
            for at, case in enumerate((BY_REFERENCE, BY_VALUE)):
                paper = [thesis[column][part][at] for column in columns]
                each.plot(
                    places, paper, "D--", color=COLOURS[case], markersize=3, linewidth=0.8, label=f"the thesis, {case}"
                )
            each.set_title(table.title, loc="left", fontsize=9)
            each.set_xticks(places, columns, fontsize=7)
        axes[0].legend(frameon=False, fontsize=8)


def _draw_line(axes: "Axes", places: Sequence[int], spreads: Sequence[Spread], colour: str, name: str) -> None:
    axes.plot(places, [each.median for each in spreads], marker="o", markersize=4, color=colour, label=name)
    axes.fill_between(places, [each.low for each in spreads], [each.high for each in spreads], color=colour, alpha=0.12)
