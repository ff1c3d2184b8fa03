"""How many gigabytes a second large events move; see `echoic.testing.bench.bandwidth`.

python benchmarks/bandwidth.py [--quick] [--rounds N] [--json] [--plot DIR] [--only WORD] [--no-rivals]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, Line, conduct, draw_lines
from echoic.testing.bench import Effort, Report, bandwidth


def measure(effort: Effort, choice: Choice) -> Report:
    return bandwidth.measure(effort, choice.beside(bandwidth.CONTENDERS))


def plot(report: Report, path: Path) -> None:
    (table,) = report.tables
    panels = [Line(table, "from memory to a view", "size of the event", [1e5, 1e6, 1e7], table.columns)]
    draw_lines(path, "Large events to another process", panels)


if __name__ == "__main__":
    conduct("How many gigabytes a second large events move.", measure, plot)
