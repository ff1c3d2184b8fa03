"""The figures of the benchmark of Spark: rates as bars, costs over the size of the data as points with their line."""

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import spark_cost, spark_deriving, spark_reading
from echoic.testing.bench import Report, Table
from echoic.testing.bench.spread import show_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from matplotlib.axes import Axes

__all__ = ["draw"]

OURS, OTHERS, PLAIN = "#c2410c", "#5b8def", "#777777"
NAMES = {spark_reading.TITLE: "read", spark_deriving.TITLE: "derive"}


def draw(report: Report, folder: Path, *, scaled: bool) -> None:
    """Draw each table that has a figure into a file of its own: spark_read, spark_derive, spark_cost, spark_scale."""
    for table in report.tables:
        if table.title in NAMES:
            _draw_bars(table, folder / f"spark_{NAMES[table.title]}.svg")
        elif table.title.startswith(spark_cost.TITLE):
            _draw_cost(table, folder / f"spark_{'scale' if scaled else 'cost'}.svg")


def _draw_bars(table: Table, path: Path) -> None:
    with _figure(path, table.title[0].upper() + table.title[1:], len(table.columns)) as panels:
        for axes, column in zip(panels, table.columns, strict=True):
            cases = [case for case in table.cases if table.has(case, column)][::-1]
            for place, case in enumerate(cases):
                spread = table.value(case, column).times(1e-3)
                colour = OURS if case.startswith("echoic") else PLAIN if case == table.baseline else OTHERS
                axes.barh(place, spread.median, 0.7, color=colour)
                axes.plot((spread.low, spread.high), (place, place), color="#444444", linewidth=1.5)
                axes.annotate(
                    show_number(spread.median),
                    (spread.high, place),
                    (5, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=8,
                )
            axes.set_yticks(range(len(cases)), cases, fontsize=8)
            axes.set_title(column, loc="left", fontsize=9)
            axes.set_xlabel("million events a second")
            axes.grid(visible=True, axis="x", color="#dddddd", linewidth=0.6)
            axes.margins(x=0.18)


def _draw_cost(table: Table, path: Path) -> None:
    with _figure(path, "What aggregating costs, over the size of the data", len(table.cases)) as panels:
        for axes, case in zip(panels, table.cases, strict=True):
            columns = [column for column in table.columns if table.has(case, column)]
            events = [spark_cost.events_of(column) for column in columns]
            spreads = [table.value(case, column).times(1e-3) for column in columns]
            line = spark_cost.fit(events, [spread.median for spread in spreads])
            ends = (0, events[-1])
            axes.plot(ends, [line.fixed_seconds + line.event_seconds * end for end in ends], color=OTHERS, lw=1.2)
            for place, spread in zip(events, spreads, strict=True):
                axes.plot((place, place), (spread.low, spread.high), color="#444444", linewidth=1.5)
                axes.plot(place, spread.median, "o", color=OURS)
            axes.set_title(
                f"{case}: {line.fixed_seconds:.2f} s + {line.event_seconds * 1e9:,.0f} ns an event, "
                f"R² = {line.explained:.4f}",
                loc="left",
                fontsize=9,
            )
            axes.set_xticks(events, columns, fontsize=8)
            axes.set_xlabel("events")
            axes.set_ylabel("seconds")
            axes.set_ylim(bottom=0)
            axes.set_xlim(left=0)
            axes.grid(visible=True, color="#dddddd", linewidth=0.6)


@contextmanager
def _figure(path: Path, title: str, panels: int) -> "Iterator[Sequence[Axes]]":
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # The same numbers give the same file, so that a diff shows changes of the numbers only.
    settings = {"svg.hashsalt": "echoic", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        shown, axes = pyplot.subplots(1, panels, figsize=(1.6 + 4.6 * panels, 3.6), squeeze=False)
        shown.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        for each in axes[0]:
            each.set_axisbelow(True)
        yield axes[0]
        shown.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        shown.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
        pyplot.close(shown)
