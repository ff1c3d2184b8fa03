"""The source in Spark itself: streams of what a journal has and gets, across restarts."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from tests.recorder.recordings import Scribe, rows


def run_once(spark: SparkSession, folder: Path, **options: str) -> StreamingQuery:
    """Take what there is into a table, and return the query that has done it."""
    stream = spark.readStream.format("echoic").options(journal=str(folder / "journals"), **options).load()
    writer = stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "table"))
    query.awaitTermination()
    return query


def table(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.read.parquet(str(folder / "table"))


def test_a_stream_goes_on_where_it_stopped(spark: SparkSession, tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 100))
    query = run_once(spark, tmp_path, maxRowsPerBatch="40")
    assert [progress.numInputRows for progress in query.recentProgress if progress.numInputRows] == [40, 40, 20]
    assert query.lastProgress.sources[0].endOffset == '{"0": 100}'
    scribe.write(rows(100, 7))
    run_once(spark, tmp_path)
    assert sorted(row.number for row in table(spark, tmp_path).collect()) == list(range(107))


def test_code_runs_in_a_stream(spark: SparkSession, tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 100))
    code = "{ output.n = input.number; return input.number % 10 == 0; }"
    run_once(spark, tmp_path, derive=code, output="N{n: int}", metadata="false")
    assert sorted(row.n for row in table(spark, tmp_path).collect()) == list(range(0, 100, 10))


def test_a_checkpoint_of_another_journal_stops_the_query(spark: SparkSession, tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 100))
    run_once(spark, tmp_path)
    scribe.close()
    (tmp_path / "journals").rename(tmp_path / "elsewhere")
    again = Scribe(scribe.storage)
    again.write(rows(0, 10))
    with pytest.raises(StreamingQueryException, match="go on at event 100 of partition 0, the journal of `trades`"):
        run_once(spark, tmp_path)
