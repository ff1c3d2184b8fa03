"""What derived channels cost, and what they save; see `echoic.testing.bench.derive`.

python benchmarks/derive.py [--quick] [--rounds N] [--json] [--plot DIR] [--only PART] [--no-rivals]

The parts are code, load, arrays, latency and hostile.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, conduct
from benchmarks.rivals import CODE
from echoic.testing.bench import Effort, Report, Spread, Table, derive
from echoic.testing.bench.derive import arrays, load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLAIN, WASHED, GREY = "#1d4ed8", "#ea7317", "#999999"
COLOURS = {
    load.NOBODY: GREY,
    load.PLAIN: PLAIN,
    load.NONE: "#d99a2b",
    load.HALF: WASHED,
    load.ALL: "#c2410c",
    arrays.WHOLE: PLAIN,
    arrays.AVERAGED: "#c2410c",
}
LINKS = {"": "on one host", ", tcp": "TCP"}


def measure(effort: Effort, choice: Choice) -> Report:
    """Measure the parts that the command line asks for."""
    parts = [part for part in derive.PARTS if not choice.only or any(word in part for word in choice.only)]
    return derive.measure(effort, choice.rivals, parts)


def plot(report: Report, path: Path) -> None:
    """Draw the paper's figures 8A and 8B, each into a file of its own beside `path`."""
    for table in report.tables:
        if table.title == load.TITLE:
            _draw_load(table, path.with_name(f"{path.stem}_load{path.suffix}"))
        elif table.title == arrays.TITLE:
            _draw_arrays(table, path.with_name(f"{path.stem}_arrays{path.suffix}"))


def _draw_load(table: Table, path: Path) -> None:
    with _figure(path, "What filtering costs a source, and saves", len(load.RATES)) as panels:
        for axes, (column, rate) in zip(panels, load.RATES.items(), strict=True):
            axes.set_title(f"{rate:,} trades of 96 bytes a second, {column}", loc="left", fontsize=9)
            shares = [table.value(case, column).times(100 * rate / 1e6) for case in table.cases]
            _draw_bars(axes, table.cases, shares, [COLOURS[case] for case in table.cases])
            axes.set_ylabel("% of one processor")


def _draw_arrays(table: Table, path: Path) -> None:
    columns = (arrays.USER, arrays.SYSTEM, arrays.ELAPSED)
    ways = [(mode, links) for links in arrays.LINKS for mode in arrays.MODES]
    with _figure(path, "Sending arrays of 37 x 253 numbers, or their averages", len(ways), 3.4) as panels:
        for axes, (mode, links) in zip(panels, ways, strict=True):
            axes.set_title(f"{LINKS[links]}{mode or ', one by one'}", loc="left", fontsize=9)
            cells = [(case, column) for case in (arrays.WHOLE, arrays.AVERAGED) for column in columns]
            spreads = [table.value(case + mode + links, column) for case, column in cells]
            _draw_bars(axes, [column for _, column in cells], spreads, [COLOURS[case] for case, _ in cells])
            for place, case in ((1, arrays.WHOLE), (4, arrays.AVERAGED)):
                axes.annotate(case, (place, 0), (0, -28), textcoords="offset points", ha="center", fontsize=8)
        panels[0].set_ylabel("us per array")


def _draw_bars(axes: "Axes", names: Sequence[str], spreads: Sequence[Spread], colours: Sequence[str]) -> None:
    places = range(len(names))
    medians = [spread.median for spread in spreads]
    below = [max(0.0, spread.median - spread.low) for spread in spreads]
    above = [max(0.0, spread.high - spread.median) for spread in spreads]
    drawn = axes.bar(places, medians, 0.7, yerr=(below, above), color=colours, ecolor="#444444", capsize=3)
    axes.bar_label(drawn, [f"{median:.3g}" for median in medians], padding=3, fontsize=8)
    axes.set_xticks(places, [name.replace(", ", ",\n") for name in names], fontsize=7.5)
    axes.grid(visible=True, axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(y=0.12)


@contextmanager
def _figure(path: Path, title: str, panels: int, width: float = 5.6) -> "Iterator[Sequence[Axes]]":
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # The same numbers give the same file, so that a diff shows changes of the numbers only.
    settings = {"svg.hashsalt": "echoic", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        shown, axes = pyplot.subplots(1, panels, figsize=(width * panels, 4.4), squeeze=False)
        shown.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        yield axes[0]
        shown.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        shown.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
        pyplot.close(shown)


if __name__ == "__main__":
    conduct("What derived channels cost, and what they save.", measure, plot, CODE)
