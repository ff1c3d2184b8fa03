"""What do derived channels cost, and what do they save? Section 3.2 of the paper that has them, and what it leaves out.

code       how long code takes to compile, and to run, beside other ways to run a stranger's code
load       what a source has to do: figure 8A
arrays     what it saves to average at the source: figure 8B
latency    how long it takes from deriving to the first event, and to change a parameter
hostile    whether somebody who means harm slows the source down
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from echoic.testing.bench.contest import Effort
from echoic.testing.bench.derive import arrays, code, hostile, latency, load
from echoic.testing.bench.derive.compilers import Compiler
from echoic.testing.bench.report import Report

__all__ = ["PARTS", "measure"]

PARTS = ("code", "load", "arrays", "latency", "hostile")


def measure(effort: Effort, rivals: Sequence[Compiler] = (), parts: Sequence[str] = PARTS) -> Report:
    """Measure all of it, or some parts, and return what was found."""
    report = Report("derive", cells="median (quartiles) of the rounds")
    known: Mapping[str, Callable[[Effort, Report], None]] = {
        "code": partial(code.measure, rivals=rivals),
        "load": load.measure,
        "arrays": arrays.measure,
        "latency": latency.measure,
        "hostile": hostile.measure,
    }
    for part in parts:
        known[part](effort, report)
    return report
