"""What each further stage of a pipeline costs; see `echoic.testing.bench.pipeline`.

python benchmarks/pipeline.py [--quick] [--rounds N] [--json] [--plot DIR] [--only WORD] [--no-rivals]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from benchmarks.events import Choice, Line, conduct, draw_lines
from echoic.testing.bench import Effort, Report, pipeline


def measure(effort: Effort, choice: Choice) -> Report:
    return pipeline.measure(effort, choice.beside(pipeline.CONTENDERS))


def plot(report: Report, path: Path) -> None:
    columns = [str(length) for length in pipeline.LENGTHS]
    panels = [Line(table, table.title, "stages", pipeline.LENGTHS, columns, "linear") for table in report.tables]
    draw_lines(path, "Through a pipeline of processes (JECho, figure 5)", panels)


if __name__ == "__main__":
    conduct("What each further stage of a pipeline costs.", measure, plot)
