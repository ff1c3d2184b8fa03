"""How many events a second arrive when nobody waits for each; see `echoic.testing.bench.one_way`.

python benchmarks/one_way.py [--quick] [--rounds N] [--json] [--plot DIR] [--only WORD] [--no-rivals]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, Line, conduct, draw_lines
from echoic.testing.bench import Effort, Report, one_way


def measure(effort: Effort, choice: Choice) -> Report:
    own = choice.beside(one_way.CONTENDERS)
    return one_way.measure(effort, own, choice.beside(one_way.BATCH_CONTENDERS))


def plot(report: Report, path: Path) -> None:
    events, batches, *objects = report.tables
    panels = [
        Line(events, "objects one at a time", "size of the event", [100, 1000], events.columns),
        Line(batches, f"arrays of {one_way.BATCH}", "size of the event", [100, 1000], batches.columns),
        *(Line(each, each.title, "", range(len(each.columns)), each.columns, "linear") for each in objects),
    ]
    draw_lines(path, "Events to a handler in another process", panels)


if __name__ == "__main__":
    conduct("How many events a second arrive when nobody waits for each.", measure, plot)
