"""What do eager handlers cost, and what do they save? Section 5 of the JECho paper, and what it leaves out.

shared      how long it takes until a change of a shared object is where it is needed: 0.5 ms in the paper
swap        how long it takes to put another pair in the place of one: 1.23 ms in the paper
cost        what a modulator costs a source, in its process, in a sandbox, and as E-Code
traffic     what it spares: up to 85 % in the paper
steering    how much sooner a threshold inside the source steers than one that is told of it
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from echoic.testing.bench.contest import Effort
from echoic.testing.bench.eager import cost, shared, steering, swap, traffic
from echoic.testing.bench.report import Report

__all__ = ["PARTS", "measure"]

_measures: Final[Mapping[str, Callable[[Effort, Report], None]]] = {
    "shared": shared.measure,
    "swap": swap.measure,
    "cost": cost.measure,
    "traffic": traffic.measure,
    "steering": steering.measure,
}
PARTS: Final = tuple(_measures)


def measure(effort: Effort, parts: Sequence[str] = PARTS) -> Report:
    """Measure all of it, or some parts, and return what was found."""
    report = Report("eager", cells="median (quartiles) of the rounds")
    for part in parts:
        _measures[part](effort, report)
    return report
