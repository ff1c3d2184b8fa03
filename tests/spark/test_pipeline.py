"""Pipelines at work: real journals, real Spark, tables and channels that are read back."""

import logging
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from echoic import Hub, Journal, event
from echoic.errors import PipelineError
from echoic.spark.pipeline import Pipeline, Progress, StateFolder
from echoic.spark.registering import register
from echoic.spark.tables import table_dataset
from tests.recorder.recordings import BEGIN, SECOND, Scribe
from tests.spark.patience import PATIENCE_SECONDS, patiently


@event
class Deal:
    symbol: str
    price: float
    volume: int
    at: float = 0.0


def deals(scribe: Scribe, start: int, end: int) -> None:
    """One deal a second, DEC and IBM by turns."""
    for second in range(start, end):
        symbol = "IBM" if second % 2 else "DEC"
        scribe.write([Deal(symbol, 70.0 + second, second, second)], at=float(second), commit=second == end - 1)


def market(folder: Path, **options: object) -> Pipeline:
    made = Pipeline("market", state=folder / "state", tables=folder / "tables")
    made.source("trades", journal=folder / "journals", watermark="5 seconds", **options)
    return made


def windowed(folder: Path, window: str = "10 seconds") -> Pipeline:
    made = market(folder, max_rows_per_batch=25)
    made.sql("select * from trades", name="all").window(
        window, by=["symbol"], name="per_symbol", trades="count(*)", volume="sum(volume)"
    ).to_table("per_symbol")
    return made


def rows(folder: Path, table: str) -> list[dict[str, object]]:
    return table_dataset(folder / "tables" / table).to_table().to_pylist()


def seconds_of(row: dict[str, object]) -> tuple[int, int]:
    begin = BEGIN // SECOND
    return int(row["start"].timestamp()) - begin, int(row["end"].timestamp()) - begin


def test_windows_are_written_when_they_are_over_and_a_later_run_goes_on(
    spark: SparkSession, scribe: Scribe, tmp_path: Path
) -> None:
    deals(scribe, 0, 60)
    (first,) = windowed(tmp_path).run(once=True, spark=spark)
    assert (first.output, first.rows_in, first.rows_out, first.late, first.lag) == ("per_symbol", 60, 10, 0, 0)
    assert first.state_rows == 2, "the last window is not over"
    assert first.watermark == BEGIN / SECOND + 54
    scribe.write([Deal("DEC", 1.0, 1)], at=3.0)
    deals(scribe, 60, 80)
    (second,) = windowed(tmp_path).run(once=True, spark=spark)
    assert (second.rows_in, second.rows_out, second.late) == (21, 4, 1), "an event of a window that is over is counted"
    found = {(*seconds_of(row), row["symbol"]): (row["trades"], row["volume"]) for row in rows(tmp_path, "per_symbol")}
    assert found == {
        (start, start + 10, symbol): (5, sum(range(start + odd, start + 10, 2)))
        for start in range(0, 70, 10)
        for odd, symbol in enumerate(("DEC", "IBM"))
    }
    assert list(rows(tmp_path, "per_symbol")[0]) == ["start", "end", "symbol", "trades", "volume"]
    run = StateFolder(tmp_path / "state").run()
    assert run is not None
    assert (run.state, run.reason, list(run.outputs)) == ("finished", "", ["per_symbol"])
    assert StateFolder(tmp_path / "state").progress() == [second]
    with pytest.raises(PipelineError, match="window was `10 seconds` and is `20 seconds`"):
        windowed(tmp_path, "20 seconds").run(once=True, spark=spark)


def test_channels_become_channels_and_progress_is_an_event(spark: SparkSession, scribe: Scribe, tmp_path: Path) -> None:
    deals(scribe, 0, 10)
    made = market(tmp_path)
    cheap = made.sql("select symbol, price, volume from trades", name="known").derive(
        "{ return input.price < param.low; }", params={"low": 75.0}, name="cheap"
    )
    cheap.to_channel("cheap", intake=tmp_path / "results")
    cheap.to_table("cheap", name="kept")
    heard: list[Progress] = []
    told: list[object] = []
    enough = threading.Event()

    def hear(progress: Progress) -> None:
        heard.append(progress)
        if {each.output for each in heard if each.rows_out >= 5} == {"cheap", "kept"}:
            enough.set()

    with made.start(spark=spark) as running, Hub() as hub:
        watched = hub.open(running.run.channel, Progress).subscribe(hear)
        results = hub.open(running.run.outputs["cheap"]).subscribe(told.append)
        assert enough.wait(PATIENCE_SECONDS)
        scribe.write([Deal("SUN", 1.0, 7)], at=20.0)
        patiently(lambda: any(each.symbol == "SUN" for each in told), "what comes while it runs")
        patiently(lambda: [each.rows_out for each in running.tallies()] == [6, 6], "what is counted of both")
        assert StateFolder(tmp_path / "state").held()
        with pytest.raises(PipelineError, match="runs already, as process"):
            made.run(spark=spark)
        StateFolder(tmp_path / "state").ask_to_stop()
        assert running.wait(PATIENCE_SECONDS)
        watched.close()
        results.close()
    assert running.run.state == "stopped"
    assert {each.pipeline for each in heard} == {"market"}
    assert max(each.lag for each in heard[-2:]) == 0
    journal = Journal(tmp_path / "results", "cheap").arrow().read_all().to_pylist()
    assert sorted(row["volume"] for row in journal) == [0, 1, 2, 3, 4, 7]
    assert sorted(row["volume"] for row in rows(tmp_path, "cheap")) == [0, 1, 2, 3, 4, 7]
    assert [each.rows_out for each in running.tallies()] == [6, 6]
    again = made.run(once=True, spark=spark)
    assert [each.rows_out for each in again] == [0, 0], "nothing comes twice"


def doubled(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("start", "2 * price as price")


def test_event_time_may_be_a_number_and_functions_may_do_the_rest(
    spark: SparkSession, scribe: Scribe, tmp_path: Path
) -> None:
    deals(scribe, 0, 30)
    made = market(tmp_path, time="at")
    prices = made.sql("select * from trades", name="every").derive(
        "{ output.at = input.at; output.price = input.price; return input.volume < 29; }",
        "Price{at: float, price: float}",
        name="prices",
    )
    direct = Pipeline("direct", state=tmp_path / "direct", tables=tmp_path / "tables")
    source = direct.source("trades", journal=tmp_path / "journals", watermark="5 seconds", time="at")
    derived = source.derive(
        "{ output.at = input.at; output.price = input.price; return input.volume < 29; }",
        "Price{at: float, price: float}",
    )
    derived.window("10 seconds", price="max(price)").apply(doubled).to_table("doubled")
    (tally,) = direct.run(once=True, spark=spark)
    assert (tally.rows_in, tally.rows_out) == (30, 2)
    found = {row["start"].timestamp(): row["price"] for row in rows(tmp_path, "doubled")}
    assert found == {0.0: 158.0, 10.0: 178.0}
    prices.window("10 seconds", price="max(price)").to_table("never")
    with pytest.raises(PipelineError, match=r"steps\.prices_windows\.window: `prices` has no column with the time"):
        made.run(once=True, spark=spark)


@pytest.fixture
def slow_python(spark: SparkSession, tmp_path: Path) -> Iterator[None]:
    """Have the first Python that reads a stream take longer than Spark waits for it."""
    program, marker = tmp_path / "python", tmp_path / "slept"
    program.write_text(
        f"""#!/bin/sh
case "$*" in *python_streaming_source_runner*) [ -e '{marker}' ] || {{ touch '{marker}'; sleep 13; }} ;; esac
exec '{sys.executable}' "$@"
"""
    )
    program.chmod(0o755)
    before, spark.sparkContext.pythonExec = spark.sparkContext.pythonExec, str(program)
    register(spark)
    yield
    spark.sparkContext.pythonExec = before
    register(spark)


@pytest.mark.slow
@pytest.mark.usefixtures("slow_python")
def test_a_query_that_spark_did_not_wait_for_is_started_again(
    spark: SparkSession, scribe: Scribe, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    deals(scribe, 0, 10)
    made = market(tmp_path, max_rows_per_batch=1)
    every = made.sql("select symbol, volume from trades", name="all")
    every.to_table("all")
    every.to_table("copy")
    with caplog.at_level(logging.WARNING, "echoic.spark"):
        tallies = made.run(once=True, spark=spark)
    assert "output all is started again" in caplog.text
    assert [(each.batches, each.rows_in, each.rows_out) for each in tallies] == [(10, 10, 10), (10, 10, 10)]
    assert len(rows(tmp_path, "all")) == len(rows(tmp_path, "copy")) == 10


def refused(pipeline: Pipeline, spark: SparkSession) -> str:
    with pytest.raises(PipelineError) as told:
        pipeline.run(once=True, spark=spark)
    message = str(told.value)
    assert "\n" not in message
    assert "Traceback" not in message
    run = StateFolder(pipeline.folder / pipeline.spec.state).run()
    assert run is not None
    assert (run.state, run.reason) == ("failed", message)
    return message


def test_what_is_not_in_order_is_told_in_one_line(spark: SparkSession, scribe: Scribe, tmp_path: Path) -> None:
    deals(scribe, 0, 10)
    nowhere = market(tmp_path / "nowhere")
    nowhere.sql("select * from trades", name="all").to_table("all")
    told = refused(nowhere, spark)
    assert told.startswith("sources.trades: ")
    assert "nowhere" in told
    wrong = market(tmp_path)
    wrong.sql("select * from trades", name="all").derive("input.prise < 1").to_table("x")
    assert refused(wrong, spark).startswith("steps.all_derived.derive: ")
    unknown = market(tmp_path)
    unknown.sql("select prise from trades", name="all").to_table("x")
    assert refused(unknown, spark).startswith("steps.all: a column, variable, or function parameter with name `prise`")
    aggregate = market(tmp_path)
    aggregate.sql("select * from trades", name="all").window("5 seconds", n="count(prise)").to_table("x")
    assert "prise" in refused(aggregate, spark)
    first = market(tmp_path)
    first.sql("select symbol, volume from trades", name="all").to_table("typed")
    first.run(once=True, spark=spark)
    shutil.rmtree(tmp_path / "state")
    changed = market(tmp_path)
    changed.sql("select symbol, cast(volume as string) volume from trades", name="all").to_table("typed")
    assert "volume" in refused(changed, spark)


def test_a_source_that_vanishes_ends_the_pipeline_with_one_line(
    spark: SparkSession, scribe: Scribe, tmp_path: Path
) -> None:
    deals(scribe, 0, 10)
    made = market(tmp_path)
    made.sql("select symbol, volume from trades", name="all").to_table("all")
    with made.start(spark=spark) as running:
        patiently(lambda: running.tallies()[0].rows_out == 10, "the first rows")
        shutil.rmtree(tmp_path / "journals")
        with pytest.raises(PipelineError) as told:
            running.wait(PATIENCE_SECONDS)
    assert "\n" not in str(told.value)
    assert "at trades/0" in str(told.value)
    assert "SQLSTATE" not in str(told.value)
    assert running.run.state == "failed"
    assert len(rows(tmp_path, "all")) == 10
