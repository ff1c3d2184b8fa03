"""How late is an answer that comes through Spark, and what does a query cost that has nothing to do?

    channel `ticks` -> recorder -> journal -> Spark -> intake -> channel `answers`

A thousand events a second, each with the time it was sent. Everything between is exactly once: the journal is on the
disk before Spark sees an event, Spark's offsets are before its results are taken in, and what is taken in is before it
is published. Beside it stands the first channel alone, heard in the hub that publishes.

Then nothing is published, and the processor time of the driver, the JVM and their workers is taken while the query
waits; and again without the query, since a JVM alone is not idle either. Both cannot take turns: a query that begins
again is busy for a while.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.spark_queries import processor_accounts
from echoic.testing.bench import Effort, Report, Spread, Table
from echoic.testing.bench.claims import Claim
from echoic.testing.bench.results import Samples, Unit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

__all__ = ["TITLE", "measure"]

TITLE: Final = "from channel to channel at 1,000 events/s"
THROUGH, PLAIN = "echoic, through Spark, exactly once", "echoic, first channel alone"
RATE: Final = 1000
SECONDS: Final = {True: 6.0, False: 2.0}
WARMING_SECONDS: Final = {True: 60.0, False: 4.0}  # Java compiles what it has run some hundred times
IDLE_SECONDS: Final = {True: 6.0, False: 1.0}
LATENCY_MS_MAX, IDLE_PERCENT_MAX = 100.0, 5.0


def measure(spark: "SparkSession", effort: Effort, report: Report, folder: Path) -> None:
    """Measure latency and idle cost, and add them to the report."""
    thorough = effort.sample_seconds >= Effort().sample_seconds
    with _exchange(folder / "live") as ask, _query(spark, ask, folder / "live") as query:
        effort.told("warming the query")
        ask.publish(WARMING_SECONDS[thorough])
        _latency(ask, effort, report, SECONDS[thorough])
        time.sleep(IDLE_SECONDS[thorough])
        waiting = _idle(effort.rounds, IDLE_SECONDS[thorough], ask.id)
        if query.exception() is not None:
            raise RuntimeError(f"the query ended: {query.exception()}")
    time.sleep(IDLE_SECONDS[thorough])
    resting = _idle(effort.rounds, IDLE_SECONDS[thorough])
    report.remarks.append(f"processors without a query: {resting} % of a core, driver and JVM")
    report.claims.append(Claim("a query that waits, driver and JVM", waiting, IDLE_PERCENT_MAX, "% of a core"))


class Exchange:
    """The process beside Spark."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.id = process.pid
        self.told = self._hear()

    def publish(self, seconds: float) -> dict[str, list[float]]:
        """Publish for so long, and return how late everything was, in milliseconds.

        Raises:
            RuntimeError: Not every answer came.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"rate": RATE, "seconds": seconds}) + "\n")
        self._process.stdin.flush()
        heard = self._hear()
        if len(heard["answered"]) != len(heard["plain"]):
            raise RuntimeError(f"{len(heard['plain'])} events were sent, {len(heard['answered'])} were answered")
        return heard

    def _hear(self) -> dict[str, list[float]]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that publishes has ended")
        return json.loads(line)


@contextmanager
def _exchange(folder: Path) -> Iterator[Exchange]:
    folder.mkdir()
    command = [sys.executable, str(Path(__file__).with_name("spark_exchange.py")), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Exchange(process)
        finally:
            process.kill()


@contextmanager
def _query(spark: "SparkSession", ask: Exchange, folder: Path) -> "Iterator[StreamingQuery]":
    ticks = spark.readStream.format("echoic").option("journal", ask.told["journal"]).option("channel", "ticks")
    answers = ticks.option("metadata", "false").load().writeStream.format("echoic")
    query = (
        answers.option("channel", ask.told["channel"]).option("checkpointLocation", str(folder / "checkpoint")).start()
    )
    try:
        yield query
    except RuntimeError as error:
        raise RuntimeError(f"{error}; the query: {query.exception() or query.status}") from error
    finally:
        query.stop()


def _latency(ask: Exchange, effort: Effort, report: Report, seconds: float) -> None:
    taken: dict[tuple[str, str], list[float]] = {}
    for number in range(effort.rounds):
        effort.told(f"latency, round {number + 1} of {effort.rounds}")
        heard = ask.publish(seconds)
        for case, name in ((THROUGH, "answered"), (PLAIN, "plain")):
            tenths = statistics.quantiles(heard[name], n=10)
            for column, late in (("p50", tenths[4]), ("p90", tenths[8]), ("most", max(heard[name]))):
                taken.setdefault((case, column), []).append(late / 1e3)
    table = Table(TITLE, Unit.MILLISECONDS, "", Samples(taken))
    report.tables.append(table)
    report.claims.append(Claim(f"{TITLE}, p50", table.value(THROUGH, "p50"), LATENCY_MS_MAX, "ms"))


def _idle(rounds: int, seconds: float, without: int = 0) -> Spread:
    """Return how much of a core this process and all below it but one took while nothing happened, in percent."""
    shares = []
    for _ in range(rounds):
        before, begun = processor_accounts(without), time.perf_counter()
        time.sleep(seconds)
        spent = sum(own - before.get(one, (0, 0))[0] for one, (own, _) in processor_accounts(without).items())
        shares.append(100 * spent / (time.perf_counter() - begun))
    return Spread.of(shares)
