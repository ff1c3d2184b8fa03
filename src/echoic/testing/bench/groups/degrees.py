"""Throughput and latency over the packing degree: tables 1 and 2, figure 1.

A source that never rests sends messages of 100, 1000 and 10000 bytes, with every packing degree and with the one that
`auto` finds. Static runs are measured behind a warm-up; those of `auto` are 4 seconds from the first message on, so
what it takes to find the degree is part of them.
"""

from collections.abc import Callable
from typing import Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.groups.cases import Case
from echoic.testing.bench.groups.replicas import Launch, launch_forked
from echoic.testing.bench.groups.rounds import GroupReport, Run, Runs, is_slight, run_of, take_turns
from echoic.testing.bench.results import Cell, Samples, Table, Unit

__all__ = [
    "AUTO",
    "DEGREES",
    "LATENCY",
    "PAPER_ALONE",
    "PAPER_BEST",
    "SIZES",
    "THROUGHPUT",
    "WORK",
    "add_tables",
    "column_of",
    "entries",
    "measure",
]

AUTO: Final = "auto"
SIZES: Final = {100: 5.0, 1000: 2.5, 10000: 1.1}
"""In bytes, and how much packing must gain."""
DEGREES: Final = {
    100: (1, 4, 11, 28, 64, 128, 256, 512),
    1000: (1, 2, 4, 8, 11, 16, 28, 64, 128, 256),
    10000: (1, 2, 3, 8, 16, 28, 64, 128),
}
SHARE_MIN: Final = 0.9
STATIC_SECONDS, WARM_UP_SECONDS, AUTO_SECONDS = 1.5, 0.3, 4.0
PAPER_ALONE: Final = {100: (596, 11.07), 1000: (453, 7.08), 10000: (114, 47.28)}
"""Table 1: messages a second, and milliseconds, without packing."""
PAPER_BEST: Final = {100: (28, 5666, 55.24), 1000: (11, 1577, 28.16), 10000: (3, 201, 29.37)}
"""Table 2: the best degree, and the same with it."""
THROUGHPUT: Final = "messages over packing degree"
LATENCY: Final = "mean latency over packing degree"
WORK: Final = "processor time of the sender for a message"


def column_of(size: int) -> str:
    """Return the heading of a size."""
    return f"{size} B"


def entries(effort: Effort, size: int, launch: Launch = launch_forked, engine: str = "embedded") -> dict[Cell, Run]:
    """Return what is to be run for a size: all degrees, and `auto`."""
    degrees = (1, 11) if is_slight(effort) else DEGREES[size]
    found: dict[Cell, Run] = {}
    for degree in degrees:
        case = Case(
            size=size, packing=f"static:{degree}", seconds=STATIC_SECONDS, warm_up=WARM_UP_SECONDS, engine=engine
        )
        found[case.packing, column_of(size)] = run_of(case, effort, launch)
    case = Case(size=size, packing=AUTO, seconds=AUTO_SECONDS, engine=engine)
    found[AUTO, column_of(size)] = run_of(case, effort, launch)
    return found


def measure(effort: Effort, report: GroupReport) -> None:
    """Measure all sizes on the embedded engine, messages in memory, held by all members before they are delivered."""
    runs = take_turns({cell: run for size in SIZES for cell, run in entries(effort, size).items()}, effort)
    add_tables(report, runs, "")
    report.tables.append(_paper())
    for size, gain_min in SIZES.items():
        add_claims(report, runs, column_of(size), gain_min, SHARE_MIN)
        encoding = 1e6 * runs.median((AUTO, column_of(size)), lambda result: result.encoding)
        report.remarks.append(f"{size} B: to encode a message takes {encoding:.2f} us of the source's time")


def add_tables(report: GroupReport, runs: Runs, where: str) -> None:
    """Put throughput, latency and work into the report."""
    report.tables += [
        Table(THROUGHPUT + where, Unit.THOUSANDS_PER_SECOND, "static:1", runs.rates()),
        Table(LATENCY + where, Unit.MILLISECONDS, "static:1", runs.latencies()),
        Table(WORK + where, Unit.MICROSECONDS, "static:1", runs.costs()),
    ]


def add_claims(
    report: GroupReport, runs: Runs, column: str, gain_min: float | None, share_min: float, where: str = ""
) -> None:
    """Hold the best static degree against none, and `auto` against the best."""
    best = runs.best(column, _is_static)
    if gain_min is not None:
        gain = runs.ratio((best, column), ("static:1", column))
        report.claims.append(Claim(f"{column}{where}, {best}", gain, gain_min, "x static:1", at_least=True))
    share = runs.ratio((AUTO, column), (best, column))
    report.claims.append(
        Claim(f"{column}{where}, auto, 4 s from its start", share, share_min, f"x {best}", at_least=True)
    )
    degree = runs.median((AUTO, column), lambda result: result.course[-1].degree if result.course else 0.0)
    report.remarks.append(f"{column}{where}: auto ends with {degree:.0f} messages in a pack")


_is_static: Callable[[str], bool] = lambda case: case.startswith("static")  # noqa: E731


def _paper() -> Table:
    seconds: dict[Cell, list[float]] = {}
    for size in SIZES:
        seconds["static:1 (paper)", column_of(size)] = [1 / PAPER_ALONE[size][0]]
        seconds["best (paper)", column_of(size)] = [1 / PAPER_BEST[size][1]]
    return Table("the paper's tables 1 and 2", Unit.THOUSANDS_PER_SECOND, "static:1 (paper)", Samples(seconds))
