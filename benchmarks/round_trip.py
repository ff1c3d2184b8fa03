"""How long a synchronous event takes, beside raw sockets and others; see `echoic.testing.bench.round_trip`.

python benchmarks/round_trip.py [--quick] [--rounds N] [--json] [--plot DIR] [--only WORD] [--no-rivals]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, Line, conduct, draw_lines
from echoic.testing.bench import Effort, Report, round_trip

SIZES = (100, 1_000, 10_000, 100_000)


def measure(effort: Effort, choice: Choice) -> Report:
    return round_trip.measure(effort, choice.beside(round_trip.CONTENDERS))


def plot(report: Report, path: Path) -> None:
    together, apart, objects = report.tables
    places = range(len(objects.columns))
    panels = [
        Line(together, "source and sink on one processor", "size of the event", SIZES, together.columns),
        Line(apart, "on a processor each", "size of the event", SIZES, apart.columns),
        Line(objects, "the objects of JECho's table 1, on one processor", "", places, objects.columns, "linear"),
    ]
    draw_lines(path, "One synchronous event, there and back", panels)


if __name__ == "__main__":
    conduct("How long a synchronous event takes, beside raw sockets and others.", measure, plot)
