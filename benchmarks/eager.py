"""What eager handlers cost, and what they save; see `echoic.testing.bench.eager`.

python benchmarks/eager.py [--quick] [--rounds N] [--json] [--plot DIR] [--only PART]

The parts are shared, swap, cost, traffic and steering. There are no rivals to install: raw sockets and synchronous
events are what the numbers stand beside.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, conduct
from benchmarks.rivals import Field
from echoic.testing.bench import Effort, Report, Table, eager
from echoic.testing.bench.eager import cost, shared, swap
from echoic.testing.bench.spread import show_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NOBODY = Field({}, (), "CONTENDERS")
OURS, OTHERS = "#c2410c", "#777777"
LATENCIES = {
    shared.TITLE: (shared.UPDATE_MS_MAX * 1e3, "the paper's 0.5 ms"),
    swap.TITLE: (swap.PAPER_MS * 1e3, "the paper's 1.23 ms"),
}
OTHER_CASES = (shared.SYNCHRONOUS, swap.SYNCHRONOUS, cost.PLAIN)


def measure(effort: Effort, choice: Choice) -> Report:
    """Measure the parts that the command line asks for."""
    parts = [part for part in eager.PARTS if not choice.only or any(word in part for word in choice.only)]
    return eager.measure(effort, parts)


def plot(report: Report, path: Path) -> None:
    """Draw how long changes and swaps take into one file, what a modulator costs into another beside it."""
    tables = {table.title: table for table in report.tables}
    latencies = [(tables[title], tables[title].columns[0], title) for title in LATENCIES if title in tables]
    _draw(path, "How long it takes to change what runs inside a source", latencies)
    if cost.TITLE in tables:
        table = tables[cost.TITLE]
        panels = [(table, column, f"{column}: us per event") for column in table.columns]
        _draw(path.with_name(f"{path.stem}_cost{path.suffix}"), "What a modulator costs for each event", panels)


def _draw(path: Path, title: str, panels: list[tuple[Table, str, str]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    if not panels:
        return
    # The same numbers give the same file, so that a diff shows changes of the numbers only.
    settings = {"svg.hashsalt": "echoic", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        shown, axes = pyplot.subplots(1, len(panels), figsize=(6.4 * len(panels), 3.8), squeeze=False)
        shown.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        for each, panel in zip(axes[0], panels, strict=True):
            _draw_panel(each, *panel)
        shown.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        shown.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
        pyplot.close(shown)


def _draw_panel(axes: "Axes", table: Table, column: str, heading: str) -> None:
    """Draw one column, the first case on top: latencies as points on a logarithmic axis, costs as bars."""
    cases = [case for case in table.cases if table.has(case, column)][::-1]
    colours = [OTHERS if case in OTHER_CASES or case.startswith("raw") else OURS for case in cases]
    for place, (case, colour) in enumerate(zip(cases, colours, strict=True)):
        spread = table.value(case, column)
        if table.title in LATENCIES:
            axes.plot(spread.median, place, "o", color=colour, markersize=7)
        else:
            axes.barh(place, spread.median, 0.7, color=colour)
        axes.plot((spread.low, spread.high), (place, place), color="#444444", linewidth=1.5)
        label = show_number(spread.median)
        axes.annotate(label, (spread.high, place), (7, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(cases)), cases, fontsize=8)
    axes.set_title(heading, loc="left", fontsize=9)
    axes.set_xlabel(table.unit.value)
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    if table.title in LATENCIES:
        limit, told = LATENCIES[table.title]
        axes.set_xscale("log")
        axes.axvline(limit, color="#1d4ed8", linewidth=1.0, linestyle="--")
        place = ("data", "axes fraction")
        axes.annotate(told, (limit, 0), (4, 4), xycoords=place, textcoords="offset points", color="#1d4ed8", fontsize=8)
    axes.margins(x=0.18)


if __name__ == "__main__":
    conduct("What eager handlers cost, and what they save.", measure, plot, NOBODY)
