"""Messages whose size changes while it runs: figure 3.

As in section 4.1, 300,000 messages of 1000 bytes are followed by 300,000 of 3000, and again. The paper's rule measures
every 5 seconds there, for some 800 messages a second; here Ta is 0.1 s, as there are more than a hundred times as many.
Static degrees are measured with sizes that change ten times as often, so that short runs have both.

What is kept of each run is its course: throughput of the last moment and since the beginning, and the degree.
"""

from collections.abc import Sequence
from typing import Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.groups.cases import Case, Moment, Result, Source
from echoic.testing.bench.groups.rounds import GroupReport, Run, is_slight, run_of, take_turns
from echoic.testing.bench.results import Cell, Table, Unit

__all__ = ["COLUMN", "PAPER", "POLICIES", "TITLE", "course_of", "measure"]

TITLE: Final = "messages of changing size"
COLUMN: Final = "1000 and 3000 B in turn"
SIZES: Final = (1000, 3000)
EACH: Final = 300_000
PAPER: Final = "paper:ta=0.1"
POLICIES: Final = ("auto", PAPER)
DEGREES: Final = (1, 6, 16, 64, 128)
"""6 is what the paper found best."""
POLICY_SECONDS, STATIC_SECONDS = 20.0, 5.0
SHARE_MIN: Final = 0.9
WINDOW: Final = 10
"""Over how many moments the throughput of a moment is taken."""


def measure(effort: Effort, report: GroupReport) -> None:
    """Measure both policies beside static degrees."""
    runs: dict[Cell, Run] = {}
    for degree in DEGREES[:2] if is_slight(effort) else DEGREES:
        source = Source(SIZES, EACH // 10)
        case = Case(source=source, packing=f"static:{degree}", seconds=STATIC_SECONDS, warm_up=0.3)
        runs[case.packing, COLUMN] = run_of(case, effort)
    for policy in POLICIES:
        case = Case(source=Source(SIZES, EACH), packing=policy, seconds=POLICY_SECONDS)
        runs[policy, COLUMN] = run_of(case, effort)
    found = take_turns(runs, effort)
    report.tables.append(Table(TITLE, Unit.THOUSANDS_PER_SECOND, "static:1", found.rates()))
    best = found.best(COLUMN, lambda case: case.startswith("static"))
    for policy in POLICIES:
        share = found.ratio((policy, COLUMN), (best, COLUMN))
        if policy == "auto":
            report.claims.append(Claim("changing sizes, auto", share, SHARE_MIN, f"x {best}", at_least=True))
        else:
            report.remarks.append(f"changing sizes, {policy}: {share} x {best}; in the paper 0.90, Ta = 5 s")
        report.courses[f"changing, {policy}"] = course_of(_middle(found.results[policy, COLUMN]))


def course_of(result: Result) -> list[list[float]]:
    """Return points of seconds, messages a second now, messages a second since the beginning, and degree."""
    moments = [Moment(0.0, 0, 0.0, 0), *result.course]
    points = []
    for number in range(1, len(moments)):
        now, before = moments[number], moments[max(0, number - WINDOW)]
        elapsed = max(now.seconds - before.seconds, 1e-9)
        rate = (now.messages - before.messages) / elapsed
        points.append([now.seconds, rate, now.messages / max(now.seconds, 1e-9), now.degree])
    return points


def _middle(results: Sequence[Result]) -> Result:
    """Return the run with the median throughput."""
    return sorted(results, key=lambda result: result.throughput)[len(results) // 2]
