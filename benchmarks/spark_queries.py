"""What the benchmarks of Spark share: a session, queries that take turns, and the processor time of all that works.

A sample is one whole query: from the plan to the one row of its result in Python. Spark grows warm slowly, so each
query runs a few times before it counts; then all take turns in an order that is shuffled anew for each round.
"""

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.spark_data import Recorded
from echoic.testing.bench import Effort
from echoic.testing.bench.results import Cell, Samples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Query", "interleave", "processor_accounts", "processor_seconds", "source", "started"]

WARMING: Final = {True: 3, False: 1}
TICKS: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Query:
    """One way to find something out.

    Attributes:
        run: Returns what it found.
        expected: What that must be.
    """

    run: Callable[[], object]
    expected: object


@contextmanager
def started(folder: Path) -> "Iterator[SparkSession]":
    """Give a session on all cores of this machine whose files are in a folder."""
    from echoic.spark import session

    # Memory that suits a laptop; the files between stages go where the journals are.
    spark = session(
        "echoic benchmark",
        "local[*]",
        {
            "spark.driver.memory": "3g",
            "spark.local.dir": str(folder),
            "spark.sql.warehouse.dir": str(folder / "tables"),
        },
    )
    try:
        yield spark
    finally:
        spark.stop()


def source(spark: "SparkSession", kept: Recorded, **options: str) -> "DataFrame":
    """Return the frame of a journal, with options of the source."""
    reader = spark.read.format("echoic").option("journal", str(kept.folder)).option("channel", kept.channel)
    return reader.options(**options).load()


def interleave(queries: Mapping[Cell, Query], effort: Effort) -> Samples:
    """Let queries take turns, and return how long each took.

    Raises:
        RuntimeError: One found something else than it should.
    """
    for _ in range(WARMING[effort.sample_seconds >= Effort().sample_seconds]):
        for cell, query in queries.items():
            effort.told(f"warming {', '.join(cell)}")
            _check(cell, query)
    elapsed: dict[Cell, list[float]] = {cell: [] for cell in queries}
    processor: dict[Cell, list[float]] = {cell: [] for cell in queries}
    chance = random.Random(effort.seed)
    for number in range(effort.rounds):
        effort.told(f"round {number + 1} of {effort.rounds}")
        for cell in chance.sample(list(queries), len(queries)):
            spent, begun = processor_seconds(), time.perf_counter()
            queries[cell].run()
            elapsed[cell].append(time.perf_counter() - begun)
            processor[cell].append(processor_seconds() - spent)
    return Samples(elapsed, processor)


def _check(cell: Cell, query: Query) -> None:
    found = query.run()
    if found != query.expected:
        raise RuntimeError(f"{', '.join(cell)}: found {found}, expected {query.expected}")


def processor_seconds() -> float:
    """Return the processor time of this process and of all below it: Python, the JVM, and its Python workers.

    What a process that has ended took is in the account of whoever waited for it.
    """
    return sum(own + of_ended for own, of_ended in processor_accounts().values())


def processor_accounts(without: int = 0) -> dict[int, tuple[float, float]]:
    """Return for this process and each below it its seconds of a processor, and those of ended ones it waited for.

    Args:
        without: A process below this one that does not belong to Spark, 0 for none.
    """
    parents: dict[int, int] = {}
    spent: dict[int, tuple[float, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(entry.name) != without:
                parents[int(entry.name)] = int(fields[1])
                user, system, ended_user, ended_system = (int(field) / TICKS for field in fields[11:15])
                spent[int(entry.name)] = (user + system, ended_user + ended_system)
    return {one: spent[one] for one in _family(os.getpid(), parents)}


def _family(root: int, parents: Mapping[int, int]) -> set[int]:
    family, grown = {root}, True
    while grown:
        more = {one for one, parent in parents.items() if parent in family} - family
        family |= more
        grown = bool(more)
    return family
