"""How many events a second does Spark read from a journal, beside its own reader of Parquet?

The same events in three places: the journal; what Spark itself wrote of them as Parquet; and what the journal's export
wrote. Every column is added up, or counted where it is text, so that nobody can leave one out. What is found must be
the same for all.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.spark_data import READINGS, TRADES, Recorded, record
from benchmarks.spark_queries import Query, interleave, source
from echoic.recorder import Journal, export
from echoic.testing.bench import Effort, Report, Table
from echoic.testing.bench.claims import Claim
from echoic.testing.bench.results import Unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["EVENTS", "TITLE", "measure"]

TITLE: Final = "events read by Spark"
PARQUET: Final = "Parquet, written by Spark"
EXPORTED: Final = "Parquet, exported by echoic"
OURS: Final = "echoic, journal"
NARROW: Final = "echoic, journal, 2 columns"
LEAST: Final = 0.55
EVENTS: Final = {True: 4_000_000, False: 200_000}
KINDS: Final = {
    "12 numbers": (READINGS, ("sequence", "temperature")),
    "trades with text": (TRADES, ("price", "volume")),
}


def measure(spark: "SparkSession", effort: Effort, report: Report, folder: Path) -> None:
    """Measure how fast journals are read, and add it to the report."""
    queries: dict[tuple[str, str], Query] = {}
    events = EVENTS[effort.sample_seconds >= Effort().sample_seconds]
    for column, (series, narrow) in KINDS.items():
        effort.told(f"writing {column}")
        kept = record(folder / "reading", series(), events)
        queries |= {(case, column): query for case, query in _queries(spark, kept, narrow)}
    samples = interleave(queries, effort).divided(dict.fromkeys(KINDS, events))
    table = Table(TITLE, Unit.THOUSANDS_PER_SECOND, PARQUET, samples)
    report.tables.append(table)
    for column in KINDS:
        found = table.ratio(OURS, column)
        report.claims.append(Claim(f"reading a journal, {column}", found, LEAST, "x Parquet", at_least=True))


def _queries(spark: "SparkSession", kept: Recorded, narrow: tuple[str, ...]) -> Iterator[tuple[str, Query]]:
    journal = source(spark, kept, metadata="false")
    by_spark, by_export = (str(kept.folder.parent / f"{kept.channel}-{writer}.parquet") for writer in ("spark", "own"))
    journal.write.parquet(by_spark)
    export(Journal(kept.folder, kept.channel), by_export)
    expected = _sums(journal)()
    for name, frame in (
        (PARQUET, spark.read.parquet(by_spark)),
        (EXPORTED, spark.read.parquet(by_export)),
        (OURS, journal),
    ):
        yield name, Query(_sums(frame), expected)
    few = source(spark, kept, metadata="false", columns=",".join(narrow))
    yield NARROW, Query(_sums(few), _sums(journal.select(*narrow))())


def _sums(frame: "DataFrame") -> Callable[[], object]:
    from pyspark.sql import functions

    used = [
        functions.sum(functions.length(name) if kind == "string" else functions.round(name).cast("bigint")).alias(name)
        for name, kind in frame.dtypes
    ]
    # Planned anew each time: a frame that is collected twice reuses what its first stage has left behind.
    return lambda: tuple(frame.agg(functions.count("*").alias("events"), *used).collect()[0])
