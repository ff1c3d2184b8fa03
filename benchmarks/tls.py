"""What it costs that nobody can read along; see `echoic.testing.bench.tls`.

python benchmarks/tls.py [--quick] [--rounds N] [--json] [--plot DIR] [--only WORD]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, Line, conduct, draw_lines
from echoic.testing.bench import Effort, Report, tls


def measure(effort: Effort, choice: Choice) -> Report:
    own = [each for each in tls.CONTENDERS if not choice.only or any(word in each.name for word in choice.only)]
    return tls.measure(effort, own)  # who else speaks TLS here has another protocol under it


def plot(report: Report, path: Path) -> None:
    large = report.tables[0]
    draw_lines(
        path, "TLS and TCP", [Line(large, "from memory to a view", "size of the event", [1e5, 1e6, 1e7], large.columns)]
    )


if __name__ == "__main__":
    conduct("What it costs that nobody can read along.", measure, plot)
