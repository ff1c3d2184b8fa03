"""The figures of `packing.py`: each shows what the paper says beside what was measured.

Absolute numbers of 2003 and of today have nothing to say to each other, so most axes are ratios: to no packing, or to
the best static degree.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import packing_counter, packing_rivals
from echoic.testing.bench import Report, Table
from echoic.testing.bench.groups import bursts, changing, degrees, keeping, simulated
from echoic.testing.bench.groups.rounds import GroupReport
from echoic.testing.bench.spread import Spread, show_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot"]

OURS, AUTO, PAPER, OTHER, PLAIN = "#c2410c", "#d99a2b", "#1d4ed8", "#15803d", "#777777"


def plot(report: Report, path: Path) -> None:
    """Draw whatever was measured into files beside `path`: packing_degrees, packing_changing, ..."""
    tables = {table.title: table for table in report.tables}
    courses = report.courses if isinstance(report, GroupReport) else {}
    drawings: dict[str, tuple[bool, Callable[[Path], None]]] = {
        "degrees": (degrees.THROUGHPUT in tables, lambda to: draw_degrees(to, tables, "")),
        "corosync": (
            degrees.THROUGHPUT + packing_rivals.WHERE in tables,
            lambda to: draw_degrees(to, tables, packing_rivals.WHERE),
        ),
        "changing": (changing.TITLE in tables, lambda to: draw_changing(to, tables[changing.TITLE], courses)),
        "bursts": (bursts.LATENCY in tables, lambda to: draw_bursts(to, tables)),
        "keeping": (keeping.THROUGHPUT in tables, lambda to: draw_bars(to, tables[keeping.THROUGHPUT])),
        "rivals": (packing_rivals.TITLE in tables, lambda to: draw_rivals(to, tables[packing_rivals.TITLE])),
        "simulated": (simulated.THROUGHPUT in tables, lambda to: draw_simulated(to, tables)),
        "counter": (packing_counter.RATE in tables, lambda to: draw_counter(to, courses)),
    }
    for name, (there, draw) in drawings.items():
        if there:
            draw(path.with_name(f"{path.stem}_{name}{path.suffix}"))


@contextmanager
def figure(path: Path, title: str, down: int, across: int, height: float = 3.4) -> Iterator[Sequence["Axes"]]:
    """Give the panels of a figure, row by row, and write it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # The same numbers give the same file, so that a diff shows changes of the numbers only.
    settings = {"svg.hashsalt": "echoic", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        shown, axes = pyplot.subplots(down, across, figsize=(4.3 * across, height * down), squeeze=False)
        shown.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        for each in axes.flat:
            each.grid(visible=True, color="#dddddd", linewidth=0.6)
            each.set_axisbelow(True)
        yield list(axes.flat)
        shown.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        shown.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        pyplot.close(shown)


def draw_degrees(path: Path, tables: dict[str, Table], where: str) -> None:
    """Draw figure 1 for every size: throughput relative to no packing, and latency, over the degree."""
    rates, latencies = tables[degrees.THROUGHPUT + where], tables[degrees.LATENCY + where]
    title = f"Throughput and latency over the packing degree{where}"
    with figure(path, title, 2, len(rates.columns)) as panels:
        for place, column in enumerate(rates.columns):
            size = int(column.split()[0])
            above, below = panels[place], panels[place + len(rates.columns)]
            _draw_degrees(above, rates, column, rates.ratio)
            _draw_degrees(below, latencies, column, latencies.value)
            best, best_rate, best_latency = degrees.PAPER_BEST[size]
            rate, latency = degrees.PAPER_ALONE[size]
            above.plot((1, best), (1, best_rate / rate), "D--", color=PAPER, label="the paper: none, best")
            below.plot((1, best), (latency, best_latency), "D--", color=PAPER)
            above.set_title(f"messages of {column}", loc="left", fontsize=9)
            above.set_ylabel("throughput / that of static:1")
            below.set_ylabel("mean latency, ms")
            below.set_xlabel("messages in a pack")
        panels[0].legend(frameon=False, fontsize=8)


def _draw_degrees(axes: "Axes", table: Table, column: str, read: Callable[[str, str], Spread]) -> None:
    found = [case for case in table.cases if case.startswith("static") and table.has(case, column)]
    cases = sorted(found, key=lambda case: int(case.partition(":")[2]))
    places = [int(case.partition(":")[2]) for case in cases]
    spreads = [read(case, column) for case in cases]
    axes.plot(places, [each.median for each in spreads], color=OURS, marker=".", label="echoic, static")
    axes.fill_between(places, [each.low for each in spreads], [each.high for each in spreads], color=OURS, alpha=0.12)
    if table.has("auto", column):
        auto = read("auto", column)
        axes.axhline(auto.median, color=AUTO, linewidth=2, label="echoic, auto")
        axes.axhspan(auto.low, auto.high, color=AUTO, alpha=0.12)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks(places, [str(place) for place in places], fontsize=7)
    _plain_ticks(axes)


def _plain_ticks(axes: "Axes") -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def draw_changing(path: Path, table: Table, courses: dict[str, list[list[float]]]) -> None:
    """Draw figure 3: throughput and degree over time."""
    statics = [case for case in table.cases if case.startswith("static")]
    best = 1e3 * max(table.value(case, changing.COLUMN).median for case in statics)
    with figure(path, "300,000 messages of 1000 bytes, 300,000 of 3000, and again", 1, 2) as (left, right):
        for policy, colour in zip(changing.POLICIES, (OURS, OTHER), strict=True):
            points = courses[f"changing, {policy}"]
            seconds = [point[0] for point in points]
            left.plot(seconds, [point[1] / best for point in points], color=colour, linewidth=0.8, alpha=0.7)
            left.plot(seconds, [point[2] / best for point in points], color=colour, linewidth=2, label=policy)
            right.plot(seconds, [point[3] for point in points], color=colour, linewidth=0.9)
        left.axhline(810 / 901, color=PAPER, linestyle="--", label="the paper's rule in the paper, average")
        left.axhline(269 / 901, color=PAPER, linestyle=":", label="the paper, no packing")
        left.set(xlabel="seconds", ylabel="throughput / that of the best static degree", ylim=(0, None))
        left.set_title("thin: of half a second, thick: since the beginning", loc="left", fontsize=9)
        right.set(xlabel="seconds", ylabel="messages in a pack", yscale="log")
        right.set_title("packing degree", loc="left", fontsize=9)
        _plain_ticks(right)
        left.legend(frameon=False, fontsize=8)


PACKS_SHOWN, INTERVALS_SHOWN = (2, 4, 8, 16), (1, 2, 5, 10, 20, 50, 100)
PAPER_RATIOS = {
    bursts.LATENCY: {"5 every 20 ms": 18 / 10, "2 every 5 ms": 11 / 5.9},
    bursts.WORK: {"15 every 20 ms": 0.60 / 430 / (0.85 / 260), "5 every 20 ms": 0.45 / 236 / (0.60 / 154)}
    | {"2 every 5 ms": 0.45 / 319 / (0.65 / 285)},
}


def draw_bursts(path: Path, tables: dict[str, Table]) -> None:
    """Draw figure 4 and table 3 as ratios to no packing."""
    with figure(path, "Bursts: relative to no packing, less is better", 1, 2) as panels:
        for axes, title in zip(panels, (bursts.LATENCY, bursts.WORK), strict=True):
            table = tables[title]
            for place, column in enumerate(table.columns):
                cases = sorted((case for case in table.cases[1:] if table.has(case, column)), key=_rank)
                for number, case in enumerate(cases):
                    ratio = table.ratio(case, column)
                    colour = OURS if case == "auto" else OTHER if case.startswith("paper") else PLAIN
                    at = place + (number - len(cases) / 2 + 0.5) * 0.8 / len(cases)
                    axes.bar(at, ratio.median, 0.8 / len(cases), color=colour, edgecolor="white")
                    label = case.removeprefix("static:").partition(":")[0]
                    axes.annotate(
                        label, (at, ratio.median), (0, 2), textcoords="offset points", ha="center", fontsize=6
                    )
                if column in PAPER_RATIOS[title]:
                    axes.plot(place, PAPER_RATIOS[title][column], "D", color=PAPER)
            axes.axhline(1.0, color="#444444", linewidth=0.8)
            axes.set_xticks(range(len(table.columns)), table.columns, fontsize=7)
            axes.set_title(f"{title} / that of static:1", loc="left", fontsize=8)
            axes.set_yscale("log")
            _plain_ticks(axes)
        panels[0].plot([], [], "D", color=PAPER, label="the paper's rule in the paper")
        panels[0].legend(frameon=False, fontsize=8)


def _rank(case: str) -> tuple[int, int]:
    """Return where a case stands: static ones by their degree, the paper's rule, auto."""
    name, _, degree = case.partition(":")
    return ("static", "paper", "auto").index(name), int(degree) if name == "static" else 0


def draw_bars(path: Path, table: Table) -> None:
    """Draw the rates of each column as bars, the first case on top."""
    with figure(path, table.title[0].upper() + table.title[1:], 1, len(table.columns)) as panels:
        for axes, column in zip(panels, table.columns, strict=True):
            _draw_bars(axes, [(case, table.value(case, column)) for case in table.cases], column)


def draw_rivals(path: Path, table: Table) -> None:
    """Draw everybody's rates over the packing degree, and everybody's best."""
    colours = dict(zip(table.cases, (OURS, AUTO, PAPER, OTHER), strict=False))
    with figure(path, "Messages of 1000 bytes, three replicas on one machine", 1, 2) as (left, right):
        best = []
        for case in table.cases:
            columns = [column for column in table.columns if table.has(case, column)]
            statics = [column for column in columns if column.startswith("static")]
            spreads = [table.value(case, column) for column in statics]
            places = [int(column.partition(":")[2]) for column in statics]
            left.plot(places, [each.median for each in spreads], color=colours[case], marker=".", label=case)
            best.append((case, max((table.value(case, column) for column in columns), key=lambda each: each.median)))
        left.set(xscale="log", yscale="log", xlabel="messages in a pack", ylabel="thousand messages a second")
        left.set_xticks(places, [str(place) for place in places])
        _plain_ticks(left)
        left.legend(frameon=False, fontsize=8)
        _draw_bars(right, best, "each with its best packing")


def _draw_bars(axes: "Axes", bars: Sequence[tuple[str, Spread]], title: str) -> None:
    for place, (_, spread) in enumerate(reversed(bars)):
        axes.barh(place, spread.median, 0.7, color=OURS)
        axes.plot((spread.low, spread.high), (place, place), color="#444444", linewidth=1.5)
        label = show_number(spread.median)
        axes.annotate(label, (spread.high, place), (5, 0), textcoords="offset points", va="center", fontsize=8)
    axes.set_yticks(range(len(bars)), [case for case, _ in reversed(bars)], fontsize=8)
    axes.set_xlabel("thousand messages a second")
    axes.set_title(title, loc="left", fontsize=9)
    axes.margins(x=0.2)


def draw_simulated(path: Path, tables: dict[str, Table]) -> None:
    """Draw the share of the best static degree: simulated, measured where that was done, and what the paper says."""
    table = tables[simulated.THROUGHPUT]
    loads = [load for load in table.columns if not load.startswith("burst") or load in simulated.PAPER_SHARES]
    measured = _measured_shares(tables)
    with figure(path, "Share of the best static degree", 1, 1, 4.0) as (axes,):
        axes.figure.set_size_inches(8.4, 3.8)
        for number, (policy, colour) in enumerate((("paper", OTHER), ("paper:ta=0.5", AUTO), ("auto", OURS))):
            for place, load in enumerate(loads):
                spread = table.ratio(policy, load)
                at = place + (number - 1) * 0.25
                axes.bar(at, spread.median, 0.24, color=colour, label=f"simulated, {policy}" if not place else None)
                axes.plot((at, at), (spread.low, spread.high), color="#444444", linewidth=1.5)
        for place, load in enumerate(loads):
            if load in simulated.PAPER_SHARES:
                axes.plot(place - 0.25, simulated.PAPER_SHARES[load], "D", color=PAPER)
            if load in measured:
                axes.plot(place + 0.25, measured[load], "o", color="black")
        axes.plot([], [], "D", color=PAPER, label="the paper's rule in the paper")
        if measured:
            axes.plot([], [], "o", color="black", label="measured, auto, embedded engine")
        axes.axhline(1.0, color="#444444", linewidth=0.8)
        axes.set_xticks(range(len(loads)), loads, fontsize=8)
        axes.set_ylabel("throughput / that of the best static degree")
        axes.set_ylim(0, 1.35)
        axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper left")


def _measured_shares(tables: dict[str, Table]) -> dict[str, float]:
    """Return what `auto` has reached on the embedded engine, by the name of the simulated load."""
    shares = {}
    for title, names in (
        (degrees.THROUGHPUT, {degrees.column_of(size): f"continuous {size}" for size in degrees.SIZES}),
        (changing.TITLE, {changing.COLUMN: "variable 1000/3000"}),
    ):
        table = tables.get(title)
        for column, load in names.items() if table is not None else ():
            statics = [case for case in table.cases if case.startswith("static") and table.has(case, column)]
            best = max(statics, key=lambda case: table.value(case, column).median)
            shares[load] = table.ratio("auto", column, best).median
    return shares


def draw_counter(path: Path, courses: dict[str, list[list[float]]]) -> None:
    """Draw figures 5 and 6."""
    # The first of a pack fills it to one at once.
    courses = {name: points[1:] if name.startswith("fill") else points for name, points in courses.items()}
    clients = [name.removeprefix("fill, ") for name in courses if name.startswith("fill")]
    titles = ("time to fill a pack", "multicasts in an interval, mean", "intervals with any", "multicasts, most")
    labels = ("ms", "multicasts", "%", "multicasts")
    with figure(path, "Figures 5 and 6: when the counter service multicasts", 2, 2) as panels:
        for name, colour in zip(clients, (OURS, AUTO, OTHER), strict=False):
            fill, intervals = courses[f"fill, {name}"], courses[f"intervals, {name}"]
            panels[0].plot(*zip(*fill, strict=True), color=colour, marker=".", label=name)
            for number in (1, 2, 3):
                times = [point[0] for point in intervals]
                panels[number].plot(times, [point[number] for point in intervals], color=colour, marker=".")
        panels[0].plot(*packing_counter.PAPER_FILL, "D", color=PAPER, label="the paper, 100 clients")
        panels[1].plot(*packing_counter.PAPER_INTERVAL, "D", color=PAPER)
        for axes, title, label in zip(panels, titles, labels, strict=True):
            axes.set_title(title, loc="left", fontsize=9)
            axes.set_ylabel(label)
            axes.set_xlabel("packing degree" if axes is panels[0] else "packing interval, ms")
            axes.set_xscale("log")
            if label != "%":
                axes.set_yscale("log")
                _plain_ticks(axes)
            places = PACKS_SHOWN if axes is panels[0] else INTERVALS_SHOWN
            axes.set_xticks(places, [str(place) for place in places])
            axes.minorticks_off()
        panels[0].legend(frameon=False, fontsize=8)
