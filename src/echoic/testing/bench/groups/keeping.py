"""Where messages are kept, who must hold them before they are delivered, and where the source is.

All with messages of 1000 bytes, unpacked and as `auto` packs them. The logs are in the temporary directory: TMPDIR
names another disk.
"""

from typing import Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.groups.cases import Case
from echoic.testing.bench.groups.rounds import GroupReport, Run, run_of, take_turns
from echoic.testing.bench.journal.keepers import sync_remark
from echoic.testing.bench.results import Cell, Table, Unit

__all__ = ["CASES", "THROUGHPUT", "measure"]

MEMORY, DISK = "memory, all, source leads", "disk, all, source leads"
CASES: Final = {
    MEMORY: Case(),
    "os, all, source leads": Case(durability="os"),
    DISK: Case(durability="disk"),
    "memory, majority, source leads": Case(stability="majority"),
    "memory, all, source follows": Case(at="follower"),
    "memory, majority, source follows": Case(at="follower", stability="majority"),
}
PACKINGS: Final = ("static:1", "static:64", "auto")
SECONDS, WARM_UP_SECONDS = 2.0, 0.4
DISK_MIN: Final = 0.25
THROUGHPUT: Final = "messages of 1000 B by where they are kept, who holds them, and where the source is"
LATENCY: Final = "mean latency of the same"


def measure(effort: Effort, report: GroupReport) -> None:
    """Measure all of them."""
    runs: dict[Cell, Run] = {}
    for name, wanted in CASES.items():
        for packing in PACKINGS:
            case = Case(
                packing=packing,
                seconds=SECONDS,
                warm_up=WARM_UP_SECONDS,
                stability=wanted.stability,
                durability=wanted.durability,
                at=wanted.at,
            )
            runs[name, packing] = run_of(case, effort)
    found = take_turns(runs, effort)
    report.tables += [
        Table(THROUGHPUT, Unit.THOUSANDS_PER_SECOND, MEMORY, found.rates()),
        Table(LATENCY, Unit.MILLISECONDS, MEMORY, found.latencies()),
    ]
    report.claims.append(
        Claim("on the disk, auto", found.ratio((DISK, "auto"), (MEMORY, "auto")), DISK_MIN, "x memory", at_least=True)
    )
    report.remarks.append(sync_remark())
