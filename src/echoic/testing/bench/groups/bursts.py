"""Sources that rest between bursts: figure 4 and table 3.

The paper's bursts are run as they are, 15 messages every 20 ms, 5 every 20 ms, 2 every 5 ms, which is next to nothing
on a machine of today; and one that is to this machine what 15 every 20 ms were to theirs: 2000 every 20 ms. A static
pack that a burst does not fill waits for the next burst or for the packing interval, 50 ms, whichever comes first.
"""

from typing import Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.groups.cases import Case, Source
from echoic.testing.bench.groups.rounds import GroupReport, Run, Runs, is_slight, run_of, take_turns
from echoic.testing.bench.results import Cell, Table, Unit

__all__ = ["BURSTS", "LATENCY", "MEDIAN", "PAPER_BURSTS", "PAPER_RULE", "THROUGHPUT", "WORK", "measure"]

SCALED: Final = "2000 every 20 ms"
BURSTS: Final = {
    "15 every 20 ms": (Source(burst=15, pause=0.020), (1, 2, 4, 8, 16)),
    "5 every 20 ms": (Source(burst=5, pause=0.020), (1, 2, 4, 8)),
    "2 every 5 ms": (Source(burst=2, pause=0.005), (1, 2, 4, 8)),
    SCALED: (Source(burst=2000, pause=0.020), (1, 8, 28, 64, 256)),
}
"""The source, and the static degrees to try."""
PAPER_BURSTS: Final = {
    "15 every 20 ms": "no packing 260/s, cpu 85 %; static:8 660/s, 65 %; policy 430/s, below 60 %",
    "5 every 20 ms": "no packing 154/s, 10 ms, cpu 60 %; policy 236/s, 18 ms, 45 %",
    "2 every 5 ms": "no packing 285/s, 5.9 ms, cpu 65 %; policy 319/s, 11 ms, 45 %",
}
PAPER_RULE: Final = "paper:ta=0.1"
MEDIAN: Final = "bursts, median latency"
THROUGHPUT, LATENCY, WORK = (
    "bursts, messages",
    "bursts, mean latency",
    "bursts, processor time of the sender for a message",
)
SECONDS, WARM_UP_SECONDS = 2.0, 0.4
LATENCY_MAX, WORK_MAX = 1.1, 1.0


def measure(effort: Effort, report: GroupReport) -> None:
    """Measure no packing, static degrees, the paper's rule and `auto`."""
    runs: dict[Cell, Run] = {}
    for column, (source, degrees) in BURSTS.items():
        statics = [f"static:{degree}" for degree in (degrees[:2] if is_slight(effort) else degrees)]
        for packing in (*statics, PAPER_RULE, "auto"):
            case = Case(source=source, packing=packing, seconds=SECONDS, warm_up=WARM_UP_SECONDS)
            runs[packing, column] = run_of(case, effort)
    found = take_turns(runs, effort)
    report.tables += [
        Table(THROUGHPUT, Unit.THOUSANDS_PER_SECOND, "static:1", found.rates()),
        Table(LATENCY, Unit.MILLISECONDS, "static:1", found.latencies()),
        Table(MEDIAN, Unit.MILLISECONDS, "static:1", found.samples(lambda result: result.latency_p50)),
        Table(WORK, Unit.MICROSECONDS, "static:1", found.costs()),
    ]
    for column in BURSTS:
        _judge(report, found, column)


def _judge(report: GroupReport, runs: Runs, column: str) -> None:
    mine, other = ("auto", column), ("static:1", column)
    latency = runs.ratio(mine, other, lambda result: result.latency)
    work = runs.ratio(mine, other, lambda result: result.cpu / max(result.throughput, 1e-9))
    report.claims.append(Claim(f"{column}, auto, mean latency", latency, LATENCY_MAX, "x static:1"))
    report.claims.append(Claim(f"{column}, auto, sender's processor", work, WORK_MAX, "x static:1"))
    shares = [
        f"{case} {100 * runs.median((case, column), lambda result: result.cpu):.1f} %" for case in _cases(runs, column)
    ]
    report.remarks.append(f"{column}: sender's processor: {', '.join(shares)}")
    if column in PAPER_BURSTS:
        report.remarks.append(f"{column}, the paper: {PAPER_BURSTS[column]}")


def _cases(runs: Runs, column: str) -> list[str]:
    return [case for case, heading in runs.results if heading == column]
