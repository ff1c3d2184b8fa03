"""What does packing do for an ordered group, beside the paper's numbers and beside others?

python benchmarks/packing.py [--quick] [--rounds N] [--json] [--plot DIR] [--only PART] [--no-rivals]

The parts are degrees, changing, bursts, keeping, failing and simulated, see `echoic.testing.bench.groups`; corosync and
rivals, see `benchmarks.packing_rivals`; and counter, see `benchmarks.packing_counter`. Runs take turns, each with
processes of its own. All of it takes about an hour; 5 rounds are enough.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks import packing_counter, packing_rivals
from benchmarks.events import Choice, conduct
from benchmarks.packing_plots import plot
from benchmarks.rivals import Field
from echoic.testing.bench import Effort
from echoic.testing.bench.groups import question
from echoic.testing.bench.groups.rounds import GroupReport

FIELD = Field({"pysyncobj": "pysyncobj"}, ("pysyncobj",), "LAUNCHES")
FURTHER: Mapping[str, Callable[[Effort, GroupReport, Choice], None]] = {
    "corosync": packing_rivals.measure_corosync,
    "rivals": packing_rivals.measure_rivals,
    "counter": packing_counter.measure,
}


def measure(effort: Effort, choice: Choice) -> GroupReport:
    """Measure the parts that the command line asks for."""
    wanted = [part for part in (*question.PARTS, *FURTHER) if not choice.only or any(w in part for w in choice.only)]
    report = question.measure(effort, [part for part in question.PARTS if part in wanted])
    for part, measure_part in FURTHER.items():
        if part in wanted:
            measure_part(effort, report, choice)
    return report


if __name__ == "__main__":
    conduct("What packing does for an ordered group.", measure, plot, FIELD)
