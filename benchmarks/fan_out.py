"""What each further sink costs; see `echoic.testing.bench.fan_out`.

python benchmarks/fan_out.py [--quick] [--rounds N] [--json] [--plot DIR] [--only WORD] [--no-rivals]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, Line, conduct, draw_lines
from echoic.testing.bench import Effort, Report, fan_out


def measure(effort: Effort, choice: Choice) -> Report:
    return fan_out.measure(effort, choice.beside(fan_out.CONTENDERS))


def plot(report: Report, path: Path) -> None:
    synchronous, asynchronous = report.tables
    columns = [str(sinks) for sinks in fan_out.SINKS]
    panels = [
        Line(synchronous, "synchronous", "sinks", fan_out.SINKS, columns),
        Line(asynchronous, "asynchronous", "sinks", fan_out.SINKS, columns),
    ]
    draw_lines(path, "One event to several sinks (JECho, figure 4)", panels)


if __name__ == "__main__":
    conduct("What each further sink costs.", measure, plot)
