"""What the benchmarks of event channels have in common: their command line, their header, their plots.

What is measured, and how, is in `echoic.testing.bench`; who else competes is in `benchmarks.rivals`.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from benchmarks.harness import label_ends, machine
from benchmarks.rivals import CHANNELS, Field, Rival, installed_rivals, missing_rivals
from echoic.testing.bench import Contender, Effort, Report, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Choice", "Line", "conduct", "draw_lines"]

# More panels than this stand in rows of two.
ACROSS_MAX = 3
COLOURS = {
    "raw": ("#444444", "#777777", "#aaaaaa"),
    "echoic": ("#c2410c", "#ea7317", "#d99a2b"),
    "zeromq": ("#1d4ed8", "#5b8def", "#93c5fd"),
    "zenoh": ("#15803d", "#5aa469"),
    "nats": ("#7e22ce", "#a855f7"),
    "grpc": ("#0f766e", "#2dd4bf"),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """Who takes part."""

    rivals: Sequence[Rival]
    only: Sequence[str]

    def beside(self, own: Sequence[Contender]) -> list[Contender]:
        """Return those of `own` and of the rivals that the command line asks for."""
        everybody = [*own, *self.rivals]
        return [each for each in everybody if not self.only or any(word in each.name for word in self.only)]


def conduct(
    description: str,
    measure: Callable[[Effort, Choice], Report],
    plot: Callable[[Report, Path], None],
    field: Field = CHANNELS,
) -> None:
    """Run a benchmark as the command line asks.

    Args:
        description: One sentence for `--help`.
        measure: Measures everything once.
        plot: Draws the report into a file.
        field: Who else competes.
    """
    given = _parse(description)
    header, load = machine(), _load()
    effort = Effort.slight() if given.quick else Effort()
    effort = replace(effort, rounds=given.rounds or effort.rounds, told=_teller())
    report = measure(effort, Choice([] if given.no_rivals else installed_rivals(field), given.only or ()))
    report.header = {
        **header,
        "rivals": _versions(field),
        "samples": f"{effort.rounds} rounds of {effort.sample_seconds:g} s",
        "load": f"{load} before the run, {_load()} after it",
    }
    if missing := missing_rivals(field):
        report.remarks.append(f"not installed, therefore not measured: {', '.join(missing)}")
    if given.json:
        print(json.dumps(report.as_json(), indent=1))
    else:
        report.show(Console(width=None if sys.stdout.isatty() else 150, highlight=False))
    if given.plot is not None:
        plot(report, given.plot / f"{report.name}.svg")


def _parse(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=None, help="samples per case (default 7, quick 3)")
    parser.add_argument("--quick", action="store_true", help="short samples: shows that it works, not how fast")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="also draw the figure, as SVG, into this folder")
    parser.add_argument(
        "--only",
        action="append",
        metavar="WORD",
        help="only what has this word in its name: contenders, or parts of derive, eager, journal",
    )
    parser.add_argument("--no-rivals", action="store_true", help="only what comes with echoic and with Python")
    given = parser.parse_args()
    if given.rounds is not None and given.rounds < 1:
        parser.error(f"--rounds is {given.rounds}, must be at least 1")
    return given


def _teller() -> Callable[[str], object]:
    """Return what says on a terminal's stderr what is going on."""
    if not sys.stderr.isatty():
        return bool
    return lambda line: print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def _load() -> str:
    return f"{os.getloadavg()[0]:.2f}"


def _versions(field: Field) -> str:
    found = []
    for name in field.packages:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found) or "none"


@dataclass(frozen=True, slots=True)
class Line:
    """One panel of a figure: which table, and how its columns lie on the x axis."""

    table: Table
    heading: str
    label: str
    places: Sequence[float]
    columns: Sequence[str]
    scale: str = "log"


def draw_lines(path: Path, title: str, panels: Sequence[Line]) -> None:
    """Draw each table as lines over its columns; values are on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # The same numbers give the same file, so that a diff shows changes of the numbers only.
    settings = {"svg.hashsalt": "echoic", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        across = 2 if len(panels) > ACROSS_MAX else len(panels)
        down = math.ceil(len(panels) / across)
        shown, axes = pyplot.subplots(down, across, figsize=(2.4 + 5.2 * across, 4.8 * down), squeeze=False)
        shown.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        for each, panel in zip(axes.flat, panels, strict=True):
            _draw_panel(each, panel)
        shown.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        shown.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(shown)


def _draw_panel(axes: "Axes", panel: Line) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    table = panel.table
    axes.set_title(panel.heading, loc="left", fontsize=9)
    axes.set_xlabel(panel.label)
    axes.set_ylabel(table.unit.value)
    axes.set_xscale(panel.scale)
    axes.set_yscale("log")
    axes.set_xticks(panel.places, panel.columns)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    ends, used = [], dict.fromkeys(COLOURS, 0)
    for case in table.cases:
        known = [
            (x, table.value(case, c)) for x, c in zip(panel.places, panel.columns, strict=True) if table.has(case, c)
        ]
        places, spreads = [place for place, _ in known], [spread for _, spread in known]
        kin = case.split()[0].rstrip(",")
        colour = COLOURS[kin][used[kin] % len(COLOURS[kin])]
        used[kin] += 1
        width = 2.2 if kin == "echoic" else 1.2
        style = "--" if kin == "raw" else "-"
        axes.plot(places, [s.median for s in spreads], style, color=colour, linewidth=width, marker=".")
        axes.fill_between(places, [s.low for s in spreads], [s.high for s in spreads], color=colour, alpha=0.12, lw=0)
        ends.append((case, spreads[-1].median, colour))
    label_ends(axes, panel.places[-1], ends)
