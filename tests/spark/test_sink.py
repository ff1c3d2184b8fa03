"""The sink of `format("echoic")` in a real Spark: batches and streams, restarts, refusals and slow sinks."""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from echoic import Hub, Journal
from echoic.hub import Intake
from echoic.spark.explaining import reason_of
from echoic.spark.registering import register
from tests.conftest import StartHub
from tests.hub.intake_parties import recorded
from tests.hub.parties import Tick, eventually

PATIENCE_SECONDS = 120
MANY = 300_000


@pytest.fixture(autouse=True)
def registered(spark: SparkSession) -> None:
    register(spark)


@pytest.fixture
def intake(start_hub: StartHub, tmp_path: Path) -> Intake:
    return start_hub().intake("ticks", tmp_path / "journals", Tick)


class Feed:
    """A stream of which every file is a batch."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.files = 0
        (folder / "input").mkdir()

    def add(self, *numbers: int) -> None:
        text = "".join(json.dumps({"producer": self.files, "number": number}) + "\n" for number in numbers)
        written = self.folder / f"{self.files}.json"
        written.write_text(text)
        os.utime(written, (self.files, self.files))  # batches are in the order of these times
        written.rename(self.folder / "input" / f"{self.files:04}.json")
        self.files += 1

    def frame(self) -> DataFrame:
        reading = self.spark.readStream.schema("producer bigint, number bigint").option("maxFilesPerTrigger", 1)
        return reading.json(str(self.folder / "input"))

    def start(self, channel: str, *, once: bool = True, **options: str) -> StreamingQuery:
        writing = self.frame().writeStream.format("echoic").option("channel", channel).options(**options)
        writing = writing.option("checkpointLocation", str(self.folder / "checkpoint"))
        return writing.trigger(availableNow=True).start() if once else writing.start()

    def run(self, channel: str, **options: str) -> None:
        query = self.start(channel, **options)
        try:
            assert query.awaitTermination(PATIENCE_SECONDS)
        finally:
            query.stop()


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Iterator[Feed]:
    yield Feed(spark, tmp_path)
    for query in spark.streams.active:
        query.stop()


def test_the_rows_of_a_batch_become_events_and_a_named_batch_does_so_once(
    spark: SparkSession, intake: Intake, tmp_path: Path
) -> None:
    frame = spark.range(0, 1000, 1, 4).selectExpr("id % 4 as producer", "id as number", "'left out' as note")
    for _ in range(2):
        frame.write.format("echoic").option("channel", intake.channel.id).option("query", "once").mode("append").save()
    assert recorded(tmp_path / "journals") == list(range(1000))
    frame.write.format("echoic").option("channel", intake.channel.id).mode("append").save()
    assert sorted(recorded(tmp_path / "journals")) == sorted([*range(1000), *range(1000)])


def test_large_partitions_are_staged_and_published_in_order(
    spark: SparkSession, start_hub: StartHub, tmp_path: Path
) -> None:
    intake = start_hub().intake("ticks", tmp_path, Tick, partitions=2)
    frame = spark.range(0, MANY, 1, 2).selectExpr("0L as producer", "id as number")
    frame.write.format("echoic").option("channel", intake.channel.id).mode("append").save()
    assert recorded(tmp_path, partition=0) == list(range(MANY // 2))
    assert recorded(tmp_path, partition=1) == list(range(MANY // 2, MANY))
    assert intake.statistics().staged_bytes == 0


def test_a_channel_without_a_type_is_found_by_name_and_gets_the_type_of_the_rows(
    spark: SparkSession, start_hub: StartHub, tmp_path: Path
) -> None:
    names = start_hub()
    start_hub(names=names.address).intake("per-symbol", tmp_path)
    frame = spark.sql(
        "select timestamp'2020-01-01 00:00:01.5Z' as start, 'IBM' as symbol, 7L as trades, array(1.5D, 2D) as quotes"
    )
    options = {"channel": "per-symbol", "names": names.address}
    frame.write.format("echoic").options(**options).mode("append").save()
    (one,) = Journal(tmp_path, "per-symbol").read()
    (told,) = one.batch.events()
    assert (told.start, told.symbol, told.trades) == (1577836801.5, "IBM", 7)
    assert list(told.quotes) == [1.5, 2.0]


def test_what_cannot_be_written_is_refused_with_one_clear_message(
    spark: SparkSession, intake: Intake, tmp_path: Path
) -> None:
    channel = intake.channel.id
    for frame, message in (
        (spark.sql("select 'a' as producer, 1L as number"), "expected `int64`, got a column of `string`"),
        (spark.sql("select 1L as producer, cast(null as bigint) as number"), "has 1 nulls"),
    ):
        with pytest.raises(PySparkException, match="PipelineError") as raised:
            frame.write.format("echoic").option("channel", channel).mode("append").save()
        assert message in str(raised.value)
    assert recorded(tmp_path / "journals") == []


def test_a_stream_goes_on_from_its_checkpoint_and_repeats_nothing(feed: Feed, intake: Intake, tmp_path: Path) -> None:
    feed.add(1, 2)
    feed.add(3)
    feed.run(intake.channel.id)
    assert recorded(tmp_path / "journals") == [1, 2, 3]
    (tmp_path / "checkpoint" / "commits" / "1").unlink()  # as if the driver had been killed before it noted its commit
    (tmp_path / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    feed.add(4, 5)
    feed.run(intake.channel.id)
    assert recorded(tmp_path / "journals") == [1, 2, 3, 4, 5]
    assert intake.statistics().repeated == 1


def test_a_named_query_that_has_lost_its_checkpoint_is_told_so(feed: Feed, intake: Intake, tmp_path: Path) -> None:
    feed.add(1)
    feed.add(2)
    feed.run(intake.channel.id, query="named")
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(PySparkException) as raised:
        feed.run(intake.channel.id, query="named")
    assert reason_of(raised.value).startswith("query `named` has committed epoch 1 and comes with epoch 0")
    assert recorded(tmp_path / "journals") == [1, 2]


def test_a_commit_that_fails_is_made_good_when_the_query_is_started_again(feed: Feed, tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    hub = Hub()
    channel = hub.intake("ticks", journals, Tick).channel.id
    feed.add(1)
    query = feed.start(channel, once=False, timeout="3")
    try:
        eventually(lambda: recorded(journals) == [1] or query.exception())
        hub.close()
        feed.add(2)
        with pytest.raises(PySparkException) as raised:
            query.awaitTermination(PATIENCE_SECONDS)
        assert reason_of(raised.value).startswith("the intake of channel")
    finally:
        query.stop()
    with Hub(hub.address) as again:
        again.intake("ticks", journals, Tick)
        feed.add(3)
        feed.run(channel)
    assert recorded(journals) == [1, 2, 3]


def test_a_stream_outlives_a_restart_of_the_intake(feed: Feed, tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    hub = Hub()
    channel = hub.intake("ticks", journals, Tick).channel.id
    feed.add(1)
    query = feed.start(channel, once=False)
    try:
        eventually(lambda: recorded(journals) == [1] or query.exception())
        hub.close()
        feed.add(2)
        with Hub(hub.address) as again:
            again.intake("ticks", journals, Tick)
            feed.add(3)
            eventually(lambda: recorded(journals) == [1, 2, 3])
            query.stop()
    finally:
        query.stop()


def test_a_slow_sink_of_the_channel_slows_the_query_and_nothing_is_lost(
    feed: Feed, intake: Intake, tmp_path: Path
) -> None:
    going_on, heard = threading.Event(), []

    def take(tick: Tick) -> None:
        going_on.wait(PATIENCE_SECONDS)
        heard.append(tick.number)

    intake.channel.subscribe(take)
    for number in range(4):
        feed.add(number)
    query = feed.start(intake.channel.id)
    try:
        eventually(lambda: intake.statistics().under_way == 1)
        assert not query.awaitTermination(3)
        assert intake.statistics().epochs == 1
        going_on.set()
        assert query.awaitTermination(PATIENCE_SECONDS)
    finally:
        going_on.set()
        query.stop()
    assert heard == recorded(tmp_path / "journals") == [0, 1, 2, 3]
