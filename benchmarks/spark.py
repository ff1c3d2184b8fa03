"""What it costs to take events through Spark, beside Spark's own readers and functions.

python benchmarks/spark.py [--quick] [--rounds N] [--json] [--plot DIR] [--only PART] [--scale EVENTS]

The parts are read, derive, live (latency, and what waiting costs) and cost (over the size of the data). `--scale` does
the last one only, with so many trades: 50000000 are 3.7 GB with the fields that go with them. Journals and tables are
written into the temporary directory, TMPDIR names another disk, and are removed in the end.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for those who run this file and not the module
from rich.console import Console

from benchmarks import spark_cost, spark_deriving, spark_live, spark_plots, spark_reading
from benchmarks.harness import machine
from benchmarks.spark_queries import started
from echoic.testing.bench import Effort, Report

PARTS: Final = {
    "read": spark_reading.measure,
    "derive": spark_deriving.measure,
    "live": spark_live.measure,
    "cost": spark_cost.measure,
}
ROUNDS: Final = 5


def main() -> None:
    given = _parse()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who is told to end removes what it has written
    effort = Effort.slight() if given.quick else Effort(rounds=ROUNDS)
    effort = replace(effort, rounds=given.rounds or effort.rounds, told=_teller())
    header, load = machine(), _load()
    report = measure(effort, given.only or list(PARTS), given.scale)
    report.header = {
        **header,
        "spark": f"pyspark {version('pyspark')}, local[*]",
        "samples": f"{effort.rounds} rounds, a query each",
        "load": f"{load} before the run, {_load()} after it",
    }
    if given.json:
        print(json.dumps(report.as_json(), indent=1))
    else:
        report.show(Console(width=None if sys.stdout.isatty() else 150, highlight=False))
    if given.plot is not None:
        spark_plots.draw(report, given.plot, scaled=bool(given.scale))


def measure(effort: Effort, parts: Sequence[str], scale: int = 0) -> Report:
    """Measure some parts in one session; with a scale, what aggregating so many events costs and nothing else."""
    report = Report("spark")
    with tempfile.TemporaryDirectory(prefix="echoic-bench-") as folder, started(Path(folder)) as spark:
        if scale:
            spark_cost.measure(spark, effort, report, Path(folder), scale)
        else:
            for part in parts:
                PARTS[part](spark, effort, report, Path(folder))
    return report


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What it costs to take events through Spark.")
    parser.add_argument("--rounds", type=int, default=None, help=f"samples per case (default {ROUNDS}, quick 3)")
    parser.add_argument("--quick", action="store_true", help="little data: shows that it works, not how fast")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("--plot", type=Path, metavar="DIR", help="also draw the figures, as SVG, into this folder")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="only this part; may be repeated")
    parser.add_argument("--scale", type=int, default=0, metavar="EVENTS", help="only cost, with so many trades")
    given = parser.parse_args()
    if given.rounds is not None and given.rounds < 1:
        parser.error(f"--rounds is {given.rounds}, must be at least 1")
    if given.scale < 0:
        parser.error(f"--scale is {given.scale}, must be at least 0")
    return given


def _teller() -> Callable[[str], object]:
    """Return what says on a terminal's stderr what is going on."""
    if not sys.stderr.isatty():
        return bool
    return lambda line: print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)


def _load() -> str:
    return f"{os.getloadavg()[0]:.2f}"


if __name__ == "__main__":
    main()
