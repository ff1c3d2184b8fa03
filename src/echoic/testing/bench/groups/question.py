"""What does packing do for an ordered group? The tables and figures of the paper, on this machine.

degrees       throughput and latency over the packing degree, by size: tables 1 and 2, figure 1
changing      sizes that change while it runs: figure 3
bursts        sources that rest: figure 4, table 3
keeping       where messages are kept, who must hold them, where the source is
failing       how long nothing is delivered when the leader ends
simulated     the policies on the paper's own engine, in virtual time
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from echoic.testing.bench.contest import Effort
from echoic.testing.bench.groups import bursts, changing, degrees, failing, keeping, simulated
from echoic.testing.bench.groups.rounds import GroupReport

__all__ = ["PARTS", "measure"]

_measures: Final[Mapping[str, Callable[[Effort, GroupReport], None]]] = {
    "degrees": degrees.measure,
    "changing": changing.measure,
    "bursts": bursts.measure,
    "keeping": keeping.measure,
    "failing": failing.measure,
    "simulated": simulated.measure,
}
PARTS: Final = tuple(_measures)


def measure(effort: Effort, parts: Sequence[str] = PARTS) -> GroupReport:
    """Measure all of it, or some parts, and return what was found."""
    report = GroupReport("packing")
    for part in parts:
        _measures[part](effort, report)
    return report
