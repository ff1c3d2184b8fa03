"""Does the cost grow as the data does?

The paper's two applications, recorded in two partitions each: trades are counted, added up and averaged by symbol in
windows of ten seconds; fields of 37 x 253 winds become their mean where they are read, and the means an average by
window. Both results are written as tables of Parquet. The same journals are read up to an eighth, a quarter, a half of
what is in them, and to their end, in turn.

A line is fitted through the medians. Beside how well it fits stands what an event of the last half costs, by what one
of the first half does, without what a query costs that reads nothing: 1 is a line, more is a curve. Where the latter is
most of all, as with some thousand fields, that is not told.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy

from benchmarks.spark_data import FIELDS, TRADES, Recorded, record
from benchmarks.spark_queries import Query, interleave, source
from echoic.testing.bench import Effort, Report, Spread, Table
from echoic.testing.bench.claims import Claim
from echoic.testing.bench.results import Samples, Unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["TITLE", "Fit", "events_of", "fit", "measure"]

TITLE: Final = "cost of aggregating"
PARTS: Final = (1, 2, 4, 8)
EVENTS: Final = {True: 8_000_000, False: 400_000}
# A field is worth 2,500 trades: 75 KB, of which 20,000 are 1.5 GB.
TRADES_PER_FIELD: Final = 2_500
GROWTH_MAX: Final = 1.25
SHOWN: Final = 2.0  # times more for eight times the data, or differences are noise
MEAN: Final = """{
    double sum = 0.0;
    for (int i = 0; i < 37; i = i + 1)
        for (int j = 0; j < 253; j = j + 1)
            sum = sum + input.wind[i][j];
    output.at = input.at;
    output.average_velocity = sum / (37 * 253);
    return 1;
}"""
OUTPUT: Final = "Mean{at: float, average_velocity: float}"


@dataclass(frozen=True, slots=True)
class Fit:
    """A line through costs.

    Attributes:
        fixed_seconds: What a query costs that reads nothing.
        event_seconds: What each event adds.
        explained: How much of the variation the line explains, at most 1.
    """

    fixed_seconds: float
    event_seconds: float
    explained: float


def measure(spark: "SparkSession", effort: Effort, report: Report, folder: Path, events: int = 0) -> None:
    """Measure what aggregating costs, and add it to the report.

    Args:
        spark: Where.
        effort: How thoroughly.
        report: What to add to.
        folder: For journals and tables.
        events: How many trades there are; fields are fewer, see `TRADES_PER_FIELD`.
    """
    total = events or EVENTS[effort.sample_seconds >= Effort().sample_seconds]
    plans = (("trades", TRADES, total, _by_symbol), ("fields", FIELDS, max(total // TRADES_PER_FIELD, 256), _means))
    queries: dict[tuple[str, str], Query] = {}
    for case, series, count, aggregate in plans:
        effort.told(f"writing {count} {case}")
        kept = record(folder / "cost", series(), count)
        report.remarks.append(
            f"{case}: {kept.events:,} events, {kept.bytes / 1e9:.2f} GB, written in {kept.write_seconds:.1f} s"
        )
        for part in PARTS:
            read = kept.events // 2 * part // PARTS[-1]
            column = f"{2 * read:,}"
            queries[case, column] = _query(spark, kept, read, aggregate)
    samples = interleave(queries, effort)
    report.tables.append(Table(TITLE, Unit.MILLISECONDS, "trades", samples))
    for case, *_ in plans:
        _judge(report, case, samples)


def events_of(column: str) -> int:
    """Return how many events the column of a table stands for."""
    return int(column.replace(",", ""))


def fit(events: Sequence[float], seconds: Sequence[float]) -> Fit:
    """Return the line that fits best."""
    slope, fixed = numpy.polyfit(events, seconds, 1)
    spread = numpy.asarray(seconds) - numpy.mean(seconds)
    missed = numpy.asarray(seconds) - (fixed + slope * numpy.asarray(events))
    return Fit(float(fixed), float(slope), 1.0 - float(missed @ missed) / float(spread @ spread))


def _judge(report: Report, case: str, samples: Samples) -> None:
    cells = [cell for cell in samples.seconds if cell[0] == case]
    events = [events_of(column) for _, column in cells]
    for what, taken in (("elapsed", samples.seconds), ("processor", samples.processor_seconds)):
        line = fit(events, [Spread.of(taken[cell]).median for cell in cells])
        report.remarks.append(
            f"{case}, {what} time: {line.fixed_seconds:.2f} s and {line.event_seconds * 1e9:,.0f} ns an event, "
            f"{1e-6 / line.event_seconds:.3g} million events/s; R2 = {line.explained:.4f}"
        )
    least, most = (Spread.of(samples.seconds[cell]).median for cell in (cells[0], cells[-1]))
    if most < SHOWN * least:
        report.remarks.append(f"{case}: what a query costs that reads nothing hides what a later event does")
        return
    growth = samples.rounds(_growth, cells[0], *cells[2:])
    report.claims.append(Claim(f"an event of the last half, {case}", growth, GROWTH_MAX, "x one of the first half"))


def _growth(eighth: float, half: float, whole: float) -> float:
    """Return what an event of the second half costs by one between the first eighth and the half."""
    return ((whole - half) / 4) / ((half - eighth) / 3)


def _query(spark: "SparkSession", kept: Recorded, read: int, aggregate: "Callable[..., DataFrame]") -> Query:
    """Return the query that aggregates so many events of each partition into a table, and how many are in it."""
    end = json.dumps({"0": read, "1": read})
    table = str(kept.folder / f"{kept.channel}-{read}-table")

    def run() -> object:
        aggregate(spark, kept, end).write.mode("overwrite").parquet(table)
        return spark.read.parquet(table).selectExpr("sum(events)").collect()[0][0]

    return Query(run, 2 * read)


def _by_symbol(spark: "SparkSession", kept: Recorded, end: str) -> "DataFrame":
    from pyspark.sql import functions

    trades = source(spark, kept, end=end, columns="_time,symbol,price,volume")
    return trades.groupBy(functions.window("_time", "10 seconds").alias("time"), "symbol").agg(
        functions.count("*").alias("events"),
        functions.sum("volume").alias("volume"),
        functions.avg("price").alias("price"),
    )


def _means(spark: "SparkSession", kept: Recorded, end: str) -> "DataFrame":
    from pyspark.sql import functions

    means = source(spark, kept, end=end, derive=MEAN, output=OUTPUT)
    return means.groupBy(functions.window("_time", "10 seconds").alias("time")).agg(
        functions.count("*").alias("events"), functions.avg("average_velocity").alias("average_velocity")
    )
