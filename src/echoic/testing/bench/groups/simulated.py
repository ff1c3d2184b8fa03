"""The policies beside the best static degree, on the paper's own engine in virtual time, with every load of the paper.

See `echoic.testing.simulated_packing`. A round is another seed. What is shown is the share of the best static degree:
of its throughput while the source never rests, and of its latency, the less the better, where a source does.
"""

from typing import Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.groups.rounds import GroupReport, is_slight
from echoic.testing.bench.results import Cell, Samples, Table, Unit
from echoic.testing.bench.spread import Spread
from echoic.testing.simulated_packing import LOADS, best_static, simulate

__all__ = ["BEST", "PAPER_SHARES", "POLICIES", "THROUGHPUT", "measure"]

BEST: Final = "best static"
POLICIES: Final = ("static:1", "paper", "paper:ta=0.5", "auto")
PAPER_SHARES: Final = {"continuous 1000": 0.85, "variable 1000/3000": 0.90, "burst 15/20ms": 430 / 660}
"""What the paper says that its rule reached."""
THROUGHPUT: Final = "simulated, messages of the paper's engine"
LATENCY: Final = "simulated, mean latency"
SECONDS, SLIGHT_SECONDS = 200.0, 4.0
SHARE_MIN: Final = 0.95


def measure(effort: Effort, report: GroupReport) -> None:
    """Simulate every load with every policy."""
    rates: dict[Cell, list[float]] = {}
    latencies: dict[Cell, list[float]] = {}
    for load in LOADS.values():
        for seed in range(1, effort.rounds + 1):
            effort.told(f"simulating {load.name}, seed {seed}")
            seconds = SLIGHT_SECONDS if is_slight(effort) else SECONDS
            runs = {BEST: best_static(load, min(60.0, seconds) if len(load.sizes) == 1 else seconds, seed=seed)}
            runs |= {policy: simulate(policy, load, seconds, seed=seed) for policy in POLICIES}
            for policy, run in runs.items():
                rates.setdefault((policy, load.name), []).append(1 / run.throughput)
                latencies.setdefault((policy, load.name), []).append(run.latency_ns / 1e9)
    table = Table(THROUGHPUT, Unit.THOUSANDS_PER_SECOND, BEST, Samples(rates))
    report.tables += [table, Table(LATENCY, Unit.MILLISECONDS, BEST, Samples(latencies))]
    shares = [table.ratio("auto", load).median for load in LOADS]
    report.claims.append(
        Claim(
            "simulated, auto, the least of all loads",
            Spread.of([min(shares)]),
            SHARE_MIN,
            "x best static",
            at_least=True,
        )
    )
    report.remarks += [
        f"{load}: the paper says that its rule reached {share:.2f}" for load, share in PAPER_SHARES.items()
    ]
