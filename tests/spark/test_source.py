"""The source in Spark itself: tables of journals, and what Spark pushes into the reader."""

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from echoic.formats import Format
from echoic.recorder import Disk
from echoic.spark.registering import register
from echoic.testing.samples import Everything, Mean, Trade, sample_events
from echoic.wire import Batch
from tests.recorder.recordings import Scribe, rows

DERIVATION = {
    "derive": "{ output.n = input.number; output.v = input.price * 2; return input.price < param.low; }",
    "output": "V{n: int, v: float}",
    "params": '{"low": 10.0}',
    "metadata": "false",
}


def read(spark: SparkSession, folder: Path, **options: str) -> DataFrame:
    return spark.read.format("echoic").options(journal=str(folder / "journals"), **options).load()


@pytest.fixture
def thousand(tmp_path: Path, scribe: Scribe) -> Path:
    for number in range(10):
        scribe.write(rows(100 * number, 100), at=number)
    return tmp_path


def test_a_journal_is_a_table(spark: SparkSession, thousand: Path) -> None:
    frame = read(spark, thousand)
    assert frame.schema.simpleString() == (
        "struct<number:bigint,price:double,venue:int,lot:int,"
        "_sequence:bigint,_source:bigint,_number:bigint,_time:timestamp,_partition:int>"
    )
    row = frame.selectExpr("count(*)", "sum(number)", "max(_sequence)", "cast(max(_time) as string)").first()
    assert tuple(row) == (1000, 499_500, 999, "2025-10-09 08:53:29")


def test_a_derivation_in_the_reader_gives_what_sql_gives(spark: SparkSession, thousand: Path) -> None:
    made = read(spark, thousand, **DERIVATION)
    same = read(spark, thousand).where("price < 10").selectExpr("number as n", "price * 2 as v")
    assert made.count() == 20
    assertDataFrameEqual(made, same)


def test_spark_pushes_filters_into_the_reader(spark: SparkSession, thousand: Path) -> None:
    condition = (
        "price > 5 and number in (11, 12, 13) and lot = 100 and _sequence < 13 and number % 2 = 0 and lot is not null"
    )
    pushed = read(spark, thousand, pushdown="true").where(condition)
    assert [row.number for row in pushed.collect()] == [12]
    assertDataFrameEqual(pushed, read(spark, thousand).where(condition))


def test_every_kind_of_value_arrives(spark: SparkSession, tmp_path: Path) -> None:
    trades, *_, everything = sample_events()
    for channel, events in (("trades", trades), ("everything", everything)):
        scribe = Scribe(Disk(tmp_path / "journals"), channel)
        scribe.write(Batch.of(events))
        scribe.close()
    found = read(spark, tmp_path, channel="trades", metadata="false").collect()
    assert [Trade(**row.asDict()) for row in found] == trades
    row = read(spark, tmp_path, channel="everything", metadata="false").collect()[2]
    assert list(row.asDict()) == list(Format.of(Everything).by_name)
    assert (row.flag, row.letter, row.code, row.small) == (True, b"x", b"code\0\0", 2)
    assert row.cells == [[1.0] * 3] * 2
    assert (row.stations[1].name, row.pair[0].latitude, row.tags, row.data) == ("Zürich", 47.4, ["a", "a"], b"\0\0")


def test_types_that_have_changed_are_one_table(spark: SparkSession, tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 2))
    scribe.write([Mean(1.5, 2.5)])
    frame = read(spark, tmp_path, metadata="false")
    assert frame.columns == ["at", "average_velocity", "number", "price", "venue", "lot"]
    assert [(row.at, row.price, row.number) for row in frame.collect()] == [
        (None, 0.0, 0),
        (None, 0.5, 1),
        (1.5, None, None),
    ]


def test_an_empty_journal_is_an_empty_table(spark: SparkSession, tmp_path: Path, scribe: Scribe) -> None:
    scribe.commit()
    assert read(spark, tmp_path, declared="T{number: int}").collect() == []


def test_a_mistake_is_told_in_the_words_of_the_source(spark: SparkSession, thousand: Path) -> None:
    with pytest.raises(PySparkException, match="there is no option `colums`: did you mean `columns`"):
        read(spark, thousand, colums="price").collect()
    with pytest.raises(PySparkException, match="there is no journal of channel `quotes`, only of `trades`"):
        read(spark, thousand, channel="quotes").collect()


def test_registering_twice_does_no_harm(spark: SparkSession) -> None:
    register(spark)
    register(spark)
