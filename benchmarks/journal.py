"""What it costs to keep events, to read them and to replay them; see `echoic.testing.bench.journal`.

python benchmarks/journal.py [--quick] [--rounds N] [--json] [--plot DIR] [--only PART] [--no-rivals]

The parts are record, read and replay. The files are in the temporary directory: TMPDIR names another disk.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, conduct
from benchmarks.rivals import FILES
from echoic.testing.bench import Effort, Report, Table, journal
from echoic.testing.bench.journal import Keeper, reading, recording, replaying
from echoic.testing.bench.spread import show_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, OTHERS, PLAIN = "#c2410c", "#5b8def", "#777777"


def measure(effort: Effort, choice: Choice) -> Report:
    """Measure the parts that the command line asks for."""
    parts = [part for part in journal.PARTS if not choice.only or any(word in part for word in choice.only)]
    rivals = [each for each in choice.rivals if isinstance(each, Keeper)]
    return journal.measure(effort, rivals, parts)


def plot(report: Report, path: Path) -> None:
    """Draw each table into a file of its own beside `path`: journal_record, journal_read, journal_replay."""
    names = {recording.TITLE: "record", reading.TITLE: "read", replaying.TITLE: "replay"}
    for table in report.tables:
        _draw(path.with_name(f"{path.stem}_{names[table.title]}{path.suffix}"), table)


def _draw(path: Path, table: Table) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # The same numbers give the same file, so that a diff shows changes of the numbers only.
    settings = {"svg.hashsalt": "echoic", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        columns = table.columns
        shown, axes = pyplot.subplots(1, len(columns), figsize=(1.6 + 4.6 * len(columns), 3.4), squeeze=False)
        shown.suptitle(table.title[0].upper() + table.title[1:], x=0.01, ha="left", fontsize=11, fontweight="bold")
        for each, column in zip(axes[0], columns, strict=True):
            _draw_panel(each, table, column)
        shown.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        shown.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
        pyplot.close(shown)


def _draw_panel(axes: "Axes", table: Table, column: str) -> None:
    """Draw the rates of one column as bars, the first case on top."""
    cases = [case for case in table.cases if table.has(case, column)][::-1]
    for place, case in enumerate(cases):
        spread = table.value(case, column).times(1e-3)
        colour = OURS if case.startswith("echoic") else PLAIN if case == table.baseline else OTHERS
        axes.barh(place, spread.median, 0.7, color=colour)
        axes.plot((spread.low, spread.high), (place, place), color="#444444", linewidth=1.5)
        label = show_number(spread.median)
        axes.annotate(label, (spread.high, place), (5, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(cases)), cases, fontsize=8)
    axes.set_title(column, loc="left", fontsize=9)
    axes.set_xlabel("million events a second")
    axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.margins(x=0.18)


if __name__ == "__main__":
    conduct("What it costs to keep events, to read them and to replay them.", measure, plot, FILES)
