"""How the benchmarks here measure.

The machine is never calm, so a number alone says little. All cases of a question run in the same process, one sample
each per round, in an order that is shuffled anew for every round; what disturbs the machine disturbs them all.

A buffer can be slow as long as it lives: in one process memcpy took 22 us for one buffer of 640 KB and 14 for another,
round after round, and a fresh copy of a slow buffer was fast. Which one is slow depended on what had been allocated
before; offsets within a page do not explain it; physical pages and the cache may, but that was not examined. Repeated
with one set of buffers such a number is precise and wrong, the baseline's as well. So questions about copying are asked
of several sets of buffers, made anew in another order (`Options.measure_anew`), everything is repeated in several
processes, and all samples are taken together.

    round 0    memcpy  echoic  msgpack  ...      each sample: as many calls as take 5 ms, found beforehand
    round 1    msgpack  memcpy  echoic  ...
    ...                                          cost   median and quartiles over rounds, buffers, processes
    the same in further processes                ratio  sample / sample of the baseline in the same round, then median

Numbers include the call itself; `empty call` shows what a call that does nothing costs here and is never subtracted.
The garbage collector rests while a sample is taken. Targets are printed and never decide anything.
"""

import argparse
import datetime
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table as RichTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "EMPTY",
    "Options",
    "Report",
    "Results",
    "Spread",
    "Table",
    "Target",
    "conduct",
    "empty_call",
    "figure",
    "label_ends",
    "machine",
    "measure",
    "parse_options",
]

Case = Callable[[], object]

EMPTY = "empty call"
ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("echoic", "numpy", "msgspec", "pyarrow", "llvmlite")
SPACERS, SPACER_BYTES_MAX = 4, 65_536
BUFFER_SETS = 4
UNITS = {"ms": 1e3, "us": 1e6, "ns": 1e9, "MB": 1e-6}  # of seconds, or of bytes
SETTLING_BYTES = 31 * 1024 * 1024  # just below 32 MiB, the most that glibc learns from


def machine() -> dict[str, str]:
    """Return what a reader must know to judge the numbers."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": _commit(),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.machine()}, {platform.python_implementation()} "
        f"{platform.python_version()}",
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
    }


def _load() -> str:
    """Return how many processes wanted a processor in the last minute; one of them may be ours."""
    return f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown"


def _commit() -> str:
    commit = _git("rev-parse", "--short", "HEAD")
    if not commit:
        return "unknown"
    return f"{commit}, with changes" if _git("status", "--porcelain", "--", "src") else commit


def _git(*arguments: str) -> str:
    command = ["git", "--no-optional-locks", *arguments]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        if len(values) < 2:
            return cls(values[0], values[0], values[0])
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high)

    def times(self, factor: float) -> "Spread":
        return Spread(self.median * factor, self.low * factor, self.high * factor)

    def __str__(self) -> str:
        return f"{_digits(self.median)} ({_digits(self.low)}-{_digits(self.high)})"


@dataclass(frozen=True, slots=True)
class Results:
    """Seconds per call: for each case one sample per round."""

    samples: Mapping[str, Sequence[float]]

    def cost(self, case: str) -> Spread:
        return Spread.of(self.samples[case])

    def ratio(self, case: str, baseline: str) -> Spread:
        pairs = zip(self.samples[case], self.samples[baseline], strict=True)
        return Spread.of([mine / other for mine, other in pairs])


@dataclass(frozen=True, slots=True)
class Target:
    """A number somebody promised, and the one that was measured."""

    name: str
    value: Spread
    limit: float
    unit: str
    at_least: bool = False
    """Whether more is better."""

    @property
    def met(self) -> bool:
        return self.value.median >= self.limit if self.at_least else self.value.median <= self.limit

    def __str__(self) -> str:
        met = "met" if self.met else "not met"
        value = self.value
        return (
            f"target {self.name}: measured {_digits(value.median)} {self.unit} "
            f"(median, quartiles {_digits(value.low)}-{_digits(value.high)}), limit {'>= ' * self.at_least}"
            f"{self.limit:g} {self.unit}: {met}"
        )

    def as_json(self) -> dict[str, object]:
        spread = [self.value.low, self.value.high]
        return {
            "name": self.name,
            "value": self.value.median,
            "spread": spread,
            "unit": self.unit,
            "limit": self.limit,
            "met": self.met,
        }


@dataclass(slots=True)
class Table:
    """Cases down, one column per size or setting; `per` events share one call."""

    title: str
    unit: str
    baseline: str
    columns: dict[str, tuple[Results, int]] = field(default_factory=dict)

    def add(self, column: str, results: Results, per: int = 1) -> None:
        self.columns[column] = (results, per)

    def cost(self, case: str, column: str) -> Spread:
        """Return a cost in the unit of the table, for one event."""
        results, per = self.columns[column]
        return results.cost(case).times(UNITS[self.unit] / per)

    def ratio(self, case: str, column: str) -> Spread:
        return self.columns[column][0].ratio(case, self.baseline)

    def cases(self) -> list[str]:
        return list(dict.fromkeys(case for results, _ in self.columns.values() for case in results.samples))

    def absorb(self, other: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
        """Take over the samples of another process."""
        for column, samples in other.items():
            results, per = self.columns[column]
            joined = {case: [*mine, *samples[case]] for case, mine in results.samples.items()}
            self.columns[column] = (Results(joined), per)

    def show(self, console: Console) -> None:
        for heading, cell in (
            (f"{self.title}, {self.unit}", self.cost),
            (f"the same, in ratios to {self.baseline}", self.ratio),
        ):
            shown = RichTable(title=heading, title_justify="left", title_style="bold")
            shown.add_column("case")
            for column in self.columns:
                shown.add_column(column, justify="right")
            for case in self.cases():
                known = [case in results.samples for results, _ in self.columns.values()]
                row = zip(self.columns, known, strict=True)
                shown.add_row(case, *(str(cell(case, column)) if there else "" for column, there in row))
            console.print(shown)

    def as_json(self) -> dict[str, object]:
        rows = []
        for column, (results, _) in self.columns.items():
            for case in results.samples:
                cost, ratio = self.cost(case, column), self.ratio(case, column)
                rows.append({"case": case, "column": column, "cost": _listed(cost), "ratio": _listed(ratio)})
        return {"title": self.title, "unit": self.unit, "baseline": self.baseline, "rows": rows}


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asked for."""

    rounds: int
    sample_seconds: float
    processes: int
    buffer_sets: int
    json: bool
    plot: Path | None
    seed: int
    child: bool

    def measure(self, cases: Mapping[str, Case]) -> Results:
        return measure(cases, rounds=self.rounds, sample_seconds=self.sample_seconds, seed=self.seed)

    def measure_anew(self, build: Callable[[random.Random], Mapping[str, Case]]) -> Results:
        """Measure several sets of buffers; `build` makes one, in an order that it leaves to chance.

        All sets are kept until the end, so that none gets the memory of another.
        """
        kept: list[object] = []
        samples: dict[str, list[float]] = {}
        for number in range(self.buffer_sets):
            chance = random.Random(f"{self.seed}, {number}")
            kept.append(bytearray(chance.randrange(SPACER_BYTES_MAX)))
            cases = build(chance)
            kept.append(cases)
            for case, found in self.measure(cases).samples.items():
                samples.setdefault(case, []).extend(found)
        return Results(samples)


@dataclass(slots=True)
class Report:
    """Everything one script has to say."""

    name: str
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    header: dict[str, str] = field(default_factory=machine)

    def publish(self, options: Options) -> None:
        """Print tables, remarks and targets, or all of it as one JSON object."""
        if options.json:
            print(json.dumps(self.as_json(options), indent=1))
            return
        console = Console(width=None if sys.stdout.isatty() else 132, highlight=False)
        for name, value in self.header.items():
            console.print(f"{name}: {value}", soft_wrap=True)
        console.print(f"samples: {_samples(options)}; cells: median (quartiles)\n")
        for table in self.tables:
            table.show(console)
        for line in (*self.remarks, *map(str, self.targets)):
            console.print(line, soft_wrap=True)

    def as_json(self, options: Options) -> dict[str, object]:
        return {
            "benchmark": self.name,
            "header": self.header,
            "processes": options.processes,
            "rounds": options.rounds,
            "tables": [table.as_json() for table in self.tables],
            "remarks": self.remarks,
            "targets": [target.as_json() for target in self.targets],
        }


def conduct(
    name: str,
    description: str,
    run: Callable[[Options], list[Table]],
    judge: Callable[[Report], None],
    plot: Callable[[list[Table], Path], None],
) -> None:
    """Run a benchmark as the command line asks.

    Args:
        name: What it is called; also the name of its figure.
        description: One sentence for `--help`.
        run: Measures; called in each of the processes.
        judge: Adds remarks and targets to the report, whose tables are complete.
        plot: Draws the tables into a file.
    """
    options = parse_options(description)
    if options.child:
        print(json.dumps([_raw(table) for table in run(options)]))
        return
    report, load = Report(name), _load()
    report.tables = run(options)
    for seed in range(1, options.processes):
        for table, samples in zip(report.tables, _in_child(options, seed), strict=True):
            table.absorb(samples)
    report.header["load"] = f"{load} before the run, {_load()} after it"
    judge(report)
    report.publish(options)
    if options.plot is not None:
        plot(report.tables, options.plot / f"{name}.svg")


def parse_options(description: str) -> Options:
    """Read the command line of a benchmark."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=None, help="samples per case and process (default 7, quick 3)")
    parser.add_argument("--processes", type=int, default=None, help="how many processes measure (default 5, quick 1)")
    parser.add_argument("--quick", action="store_true", help="short samples: shows that it works, not how fast")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="also draw the figures, as SVG, into this folder")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    rounds = given.rounds if given.rounds is not None else (3 if given.quick else 7)
    processes = given.processes if given.processes is not None else (1 if given.quick else 5)
    for option, value in (("--rounds", rounds), ("--processes", processes)):
        if value < 1:
            parser.error(f"{option} is {value}, must be at least 1")
    sample_seconds, buffer_sets = (0.001, 1) if given.quick else (0.005, BUFFER_SETS)
    return Options(rounds, sample_seconds, processes, buffer_sets, given.json, given.plot, given.seed, given.child)


def _in_child(options: Options, seed: int) -> list[dict[str, dict[str, list[float]]]]:
    """Measure in a fresh process and return its samples, table by table."""
    command = [sys.executable, sys.argv[0], "--child", "--seed", str(seed), "--rounds", str(options.rounds)]
    if options.sample_seconds < 0.005:
        command.append("--quick")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def _raw(table: Table) -> dict[str, Mapping[str, Sequence[float]]]:
    return {column: results.samples for column, (results, _) in table.columns.items()}


def _samples(options: Options) -> str:
    return f"{options.rounds} rounds in each of {options.processes} processes"


def measure(cases: Mapping[str, Case], *, rounds: int = 7, sample_seconds: float = 0.005, seed: int = 0) -> Results:
    """Run the cases interleaved, `rounds` samples of each, and return the samples."""
    _settle_allocator()
    timers = {name: timeit.Timer(case) for name, case in cases.items()}
    repetitions = {name: _calibrate(timer, sample_seconds) for name, timer in timers.items()}
    samples: dict[str, list[float]] = {name: [] for name in cases}
    chance = random.Random(seed)
    spacers: list[bytearray] = []
    for _ in range(rounds):
        order = list(cases)
        chance.shuffle(order)
        for name in order:
            spacers[:] = [bytearray(chance.randrange(SPACER_BYTES_MAX)) for _ in range(SPACERS)]
            samples[name].append(timers[name].timeit(repetitions[name]) / repetitions[name])
    return Results(samples)


def empty_call() -> None:
    """Do nothing: what calling costs."""


@contextmanager
def figure(path: Path, *, panels: int, title: str) -> Iterator[list["Axes"]]:
    """Open a figure of neighbouring panels with logarithmic axes, and save it when they have been drawn."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import FuncFormatter, NullLocator

    # The same numbers give the same file, so that a diff shows changes of the numbers only.
    settings = {"svg.hashsalt": "echoic", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
    with matplotlib.rc_context(settings):
        shown, axes = pyplot.subplots(
            1, panels, figsize=(7.6 if panels == 1 else 10.4, 4.6), sharey=True, squeeze=False
        )
        shown.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
        for each in axes[0]:
            each.set_xscale("log")
            each.set_yscale("log")
            each.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _scaled(value, ("B", "KB", "MB"))))
            each.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _scaled(value, ("µs", "ms", "s"))))
            each.xaxis.set_minor_locator(NullLocator())
            each.yaxis.set_minor_locator(NullLocator())
            each.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
            each.set_axisbelow(True)
        yield list(axes[0])
        shown.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        shown.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=130)
        pyplot.close(shown)


def label_ends(axes: "Axes", x: float, ends: Sequence[tuple[str, float, str]], *, apart: float = 1.0) -> None:
    """Write the name of each line, in its colour, beside its last point; names that would overlap move apart.

    Args:
        axes: Where to write; the limits of its y axis must be final.
        x: Where the lines end.
        ends: Name, last value and colour of each line.
        apart: How far apart two names must stand, in lines of text.
    """
    low, high = (math.log(limit) for limit in axes.get_ylim())
    step = apart * 0.036 * (high - low)
    order = sorted(ends, key=lambda end: end[1])
    places = [math.log(value) for _, value, _ in order]
    for _ in range(200):  # push neighbours apart from both sides until all have room
        for index in range(1, len(places)):
            lacking = step - (places[index] - places[index - 1])
            if lacking > 0:
                places[index - 1] -= lacking / 2
                places[index] += lacking / 2
    for (name, _, colour), place in zip(order, places, strict=True):
        axes.annotate(
            name, (x, math.exp(place)), (7, 0), textcoords="offset points", color=colour, va="center", fontsize=8
        )


def _settle_allocator() -> None:
    """Let the C library learn that large blocks come and go.

    Until a program has freed one, glibc maps every block of more than 128 KiB afresh and the kernel hands it out page
    by page, which costs several times the copy into it; afterwards it is kept. Which of the cases would be the one to
    teach it is chance, so it is taught beforehand.
    """
    block = bytearray(SETTLING_BYTES)
    del block


def _calibrate(timer: timeit.Timer, sample_seconds: float) -> int:
    """Return how many calls one sample takes; on the way the case grows warm."""
    calls = 1
    while True:
        elapsed = timer.timeit(calls)
        if elapsed >= sample_seconds:
            return calls
        wanted = int(1.1 * calls * sample_seconds / max(elapsed, 1e-9)) + 1
        calls = max(calls + 1, min(wanted, 100 * calls))


def _digits(value: float) -> str:
    """Return a number with three digits that count."""
    if value == 0:
        return "0"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}" if abs(value) < 0.01 else f"{value:.{1 if abs(value) >= 10 else 2}f}"


def _scaled(value: float, units: Sequence[str]) -> str:
    """Return a number with the unit that suits it; each unit is a thousand of the one before."""
    power = min(max(int(math.log10(value) // 3), 0), len(units) - 1) if value > 0 else 0
    return f"{value / 1000**power:g} {units[power]}"


def _listed(spread: Spread) -> dict[str, float]:
    return {"median": spread.median, "low": spread.low, "high": spread.high}
