"""How long nothing is delivered when the leader ends: a process is killed while another one sends.

An election timeout is drawn between once and twice `election_timeout`, so that is how long it takes to notice; what is
claimed is twice the longest one. The gap is the longest time between two deliveries at any survivor.
"""

from functools import partial
from typing import Final

import msgspec

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.groups.cases import Case, Result, Source
from echoic.testing.bench.groups.replicas import measure_all
from echoic.testing.bench.groups.rounds import GroupReport, Run, shortened, take_turns
from echoic.testing.bench.results import Cell, Table, Unit

__all__ = ["GAP", "measure"]

ELECTION_SECONDS: Final = 0.15
LOADS: Final = {
    "500 messages/s": Source(burst=1, pause=0.002),
    "as many as it takes": Source(),
}
SECONDS, KILL_SECONDS, WARM_UP_SECONDS = 3.5, 1.5, 0.5
GAP: Final = "longest time without a delivery"
KILLED, UNHARMED = "leader killed", "nobody killed"


def measure(effort: Effort, report: GroupReport) -> None:
    """Measure the gap with and without a kill."""
    runs: dict[Cell, Run] = {}
    for column, source in LOADS.items():
        for name, kill_after in ((KILLED, KILL_SECONDS), (UNHARMED, 0.0)):
            case = Case(
                source=source,
                at="follower",
                seconds=SECONDS,
                warm_up=WARM_UP_SECONDS,
                election_timeout=ELECTION_SECONDS,
                kill_after=kill_after,
            )
            runs[name, column] = partial(worst, shortened(case, effort))
    found = take_turns(runs, effort)
    table = Table(GAP, Unit.MILLISECONDS, UNHARMED, found.samples(lambda result: result.gap))
    report.tables.append(table)
    for column in LOADS:
        limit = 4 * ELECTION_SECONDS * 1e3
        report.claims.append(Claim(f"fail-over, {column}, gap", table.value(KILLED, column), limit, "ms"))


def worst(case: Case) -> Result:
    """Return what the source saw, with the longest gap that any survivor had."""
    results = measure_all(case)
    source = next(result for result in results.values() if result.submitted)
    return msgspec.structs.replace(source, gap=max(result.gap for result in results.values()))
