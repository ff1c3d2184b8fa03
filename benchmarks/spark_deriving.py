"""What does a derivation cost, given to the source, or applied by Spark to what the source has read?

Events above a limit become a time and a value, and all of that is added up: so that a tenth of them pass, or all do.

    at the source            `derive` in the options: the compiled kernel runs over the journal's records in the reader
    Catalyst                 `where` and `select` over the source, as anybody would write it in SQL, all of it by Spark
    Catalyst, pushed down    the same, and Spark gives its filter to the reader, which it does for batches, not streams
    Catalyst, columns given  the same without that, with the names of the needed columns in the options
    derive, columns          `echoic.spark.derive` over the source, translated to columns of Spark
    derive, kernel           the same by the compiled kernel in Python workers, Arrow in both directions
    Python function          a `udf` of Spark over the source, row by row

All must find the same number of events, and the same sum.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.spark_data import READINGS, TRADES, Recorded, Series, record
from benchmarks.spark_queries import Query, interleave, source
from echoic.testing.bench import Effort, Report, Table
from echoic.testing.bench.claims import Claim
from echoic.testing.bench.results import Unit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["AT_SOURCE", "TITLE", "measure"]

TITLE: Final = "events derived"
AT_SOURCE: Final = "echoic, at the source"
CATALYST: Final = "Catalyst over the source"
PUSHED: Final = "Catalyst, filter pushed down"
NARROW: Final = "Catalyst, columns given"
COLUMNS: Final = "echoic.spark.derive, columns"
KERNEL: Final = "echoic.spark.derive, kernel"
FUNCTION: Final = "Python function over the source"
CATALYST_TIMES, FUNCTION_TIMES = 2.0, 5.0
EVENTS: Final = {True: 4_000_000, False: 200_000}
OUTPUT: Final = "Worth{at: float, value: float}"


@dataclass(frozen=True, slots=True)
class Task:
    """What is derived of what.

    Attributes:
        series: The events.
        judged: The field that decides.
        low: Above which value of it events pass.
        value: What is made of them, in the spelling of SQL.
        used: The fields in it.
        function: The same as a function of Python.
    """

    series: Callable[[], Series]
    judged: str
    low: float
    value: str
    used: tuple[str, ...]
    function: Callable[..., float | None]

    @property
    def code(self) -> str:
        value = " ".join(f"input.{word}" if word in self.used else word for word in self.value.split())
        return (
            f"{{ if (input.{self.judged} <= param.low) return 0; "
            f"output.at = input.at; output.value = {value}; return 1; }}"
        )


def _worth_of_reading(low: float, temperature: float, pressure: float, humidity: float) -> float | None:
    return None if temperature <= low else temperature * pressure + 0.5 * humidity


def _worth_of_trade(low: float, price: float, volume: int) -> float | None:
    return None if price <= low else price * volume


MIXED: Final = "temperature * pressure + 0.5 * humidity"
MIXED_FIELDS: Final = ("temperature", "pressure", "humidity")
TASKS: Final = {
    "12 numbers, a tenth passes": Task(READINGS, "temperature", 90.0, MIXED, MIXED_FIELDS, _worth_of_reading),
    "12 numbers, all pass": Task(READINGS, "temperature", -1.0, MIXED, MIXED_FIELDS, _worth_of_reading),
    "trades, a tenth passes": Task(TRADES, "price", 90.0, "price * volume", ("price", "volume"), _worth_of_trade),
}


def measure(spark: "SparkSession", effort: Effort, report: Report, folder: Path) -> None:
    """Measure the ways to derive, and add them to the report."""
    events = EVENTS[effort.sample_seconds >= Effort().sample_seconds]
    kept: dict[Callable[[], Series], Recorded] = {}
    queries: dict[tuple[str, str], Query] = {}
    for column, task in TASKS.items():
        effort.told(f"writing {column}")
        kept[task.series] = kept.get(task.series) or record(folder / "deriving", task.series(), events)
        frames = dict(_frames(spark, kept[task.series], task))
        expected = _sums(frames[CATALYST])()
        queries |= {(case, column): Query(_sums(frame), expected) for case, frame in frames.items()}
    samples = interleave(queries, effort).divided(dict.fromkeys(TASKS, events))
    table = Table(TITLE, Unit.THOUSANDS_PER_SECOND, CATALYST, samples)
    report.tables.append(table)
    for column in TASKS:
        for other, limit, unit in ((CATALYST, CATALYST_TIMES, "x Catalyst"), (FUNCTION, FUNCTION_TIMES, "x a udf")):
            found = table.ratio(AT_SOURCE, column, other)
            report.claims.append(Claim(f"deriving at the source, {column}", found, limit, unit, at_least=True))


def _frames(spark: "SparkSession", kept: Recorded, task: Task) -> "Iterator[tuple[str, DataFrame]]":
    from pyspark.sql import functions

    from echoic.spark.derive import derive

    params = {"low": task.low}
    pushed = source(spark, kept, metadata="false", pushdown="true")
    plain = source(spark, kept, metadata="false", pushdown="false")
    narrow = source(spark, kept, metadata="false", pushdown="false", columns=",".join(("at", *task.used)))
    given = {"derive": task.code, "output": OUTPUT, "params": json.dumps(params)}
    yield AT_SOURCE, source(spark, kept, metadata="false", **given)
    for name, frame in ((CATALYST, plain), (PUSHED, pushed), (NARROW, narrow)):
        passing = frame.where(f"{task.judged} > {task.low}D")
        yield name, passing.select("at", functions.expr(task.value).alias("value"))
    yield COLUMNS, derive(plain, task.code, OUTPUT, params, how="columns")
    yield KERNEL, derive(plain, task.code, OUTPUT, params, how="kernel")
    # Bound by a closure and not by a column: it would travel with each row.
    low, function = task.low, task.function
    worth = functions.udf(lambda *values: function(low, *values), "double")
    yield FUNCTION, plain.select("at", worth(*task.used).alias("value")).where("value is not null")


def _sums(frame: "DataFrame") -> Callable[[], object]:
    from pyspark.sql import functions

    used = [functions.sum(functions.round(name).cast("bigint")) for name in ("at", "value")]
    # Planned anew each time: a frame that is collected twice reuses what its first stage has left behind.
    return lambda: tuple(frame.agg(functions.count("*"), *used).collect()[0])
