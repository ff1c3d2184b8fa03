"""Whether it matters how many channels there are; see `echoic.testing.bench.channels`.

python benchmarks/channels.py [--quick] [--rounds N] [--json] [--plot DIR] [--only WORD] [--no-rivals]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, Line, conduct, draw_lines
from echoic.testing.bench import Effort, Report, channels


def measure(effort: Effort, choice: Choice) -> Report:
    return channels.measure(effort, choice.beside(channels.CONTENDERS))


def plot(report: Report, path: Path) -> None:
    columns = [str(number) for number in channels.CHANNELS]
    panels = [Line(table, table.title, "channels", channels.CHANNELS, columns) for table in report.tables]
    draw_lines(path, "Channels by turns (JECho, figure 6)", panels)


if __name__ == "__main__":
    conduct("Whether it matters how many channels there are.", measure, plot)
