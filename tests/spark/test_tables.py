"""Parquet tables: exactly once whatever is killed, columns that come and go, and mistakes that are told in time."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession, functions
from pyspark.sql.types import DataType, StructType

from echoic.errors import PipelineError
from echoic.spark.explaining import reason_of
from echoic.spark.sink_log import LOG_FOLDER, last_batch, listed_files
from echoic.spark.table_schema import extended, plain
from echoic.spark.tables import (
    TableSettings,
    check_table,
    committed_files,
    read_table,
    remove_uncommitted,
    table_dataset,
    write_stream,
)
from tests.spark.streams import fill, forget_last_commit, put, stream

HELD_DRIVER = """
import sys
from echoic.spark.session import session
from echoic.spark.tables import TableSettings, write_stream

rows, checkpoints, *tables = sys.argv[1:]
spark = session("held", "local[4]", {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"})
held = "if(id < 0, reflect('java.lang.Thread', 'sleep', 600000L), '') = ''"
frame = spark.readStream.schema("id bigint").json(rows).where(held)
for form, path in zip(("parquet", "delta"), tables):
    table = TableSettings(path, format=form)
    write_stream(frame, table, checkpoint=f"{checkpoints}/{form}", name=form).start()
spark.streams.awaitAnyTermination()
"""


def ids(rows: Iterator[Any]) -> list[int]:
    return sorted(row["id"] for row in rows)


def schema(text: str) -> StructType:
    parsed = DataType.fromDDL(text)
    assert isinstance(parsed, StructType)
    return parsed


def write_log(table: Path, files: dict[str, list[tuple[str, str]]]) -> None:
    log = table / LOG_FOLDER
    log.mkdir(parents=True)
    for name, entries in files.items():
        lines = [json.dumps({"path": f"file://{table}/{file}", "size": 1, "action": do}) for do, file in entries]
        (log / name).write_text("\n".join(["v1", *lines]))
        (log / f".{name}.crc").write_bytes(b"crc")


def test_a_log_lists_the_files_of_its_batches_in_order(tmp_path: Path) -> None:
    write_log(tmp_path, {"0": [("add", "a"), ("add", "b")], "1": [], "2": [("add", "c"), ("delete", "a")]})

    assert listed_files(tmp_path) == (f"{tmp_path}/b", f"{tmp_path}/c")
    assert last_batch(tmp_path / LOG_FOLDER) == 2


def test_a_compacted_log_stands_for_all_batches_before_it(tmp_path: Path) -> None:
    stale = {"0": [("add", "never")], "2.compact": [("add", "a")]}
    write_log(tmp_path, {**stale, "9.compact": [("add", "a"), ("add", "b")], "10": [("add", "c")]})

    assert listed_files(tmp_path) == (f"{tmp_path}/a", f"{tmp_path}/b", f"{tmp_path}/c")


def test_a_log_that_is_not_there_lists_nothing(tmp_path: Path) -> None:
    assert listed_files(tmp_path) == ()
    assert last_batch(tmp_path / LOG_FOLDER) == -1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("1", b"v1\n", "lacks batch 1, but has batch 2"),
        ("2", b"v2\n", "is of version `v2`, known is `v1`"),
        ("2", b"", "2 is empty"),
        ("2", b'v1\n{"path":"file:///a"}\n{"path":', "damaged: .* - at line 3"),
        ("2", b'v1\n{"path":"hdfs://host/a"}', "lists hdfs://host/a, which is no local file"),
    ],
)
def test_a_damaged_log_is_one_clear_error(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    write_log(tmp_path, {"0": [], "1": [], "2": []})
    if name == "1":
        (tmp_path / LOG_FOLDER / name).unlink()
    else:
        (tmp_path / LOG_FOLDER / name).write_bytes(content)

    with pytest.raises(PipelineError, match=message):
        listed_files(tmp_path)


def test_names_of_files_are_taken_out_of_their_addresses(tmp_path: Path) -> None:
    write_log(tmp_path, {"0": [("add", "city=a%20b%253Ac/part")]})

    assert listed_files(tmp_path) == (f"{tmp_path}/city=a b%3Ac/part",)


def test_a_schema_grows_at_every_depth(spark: SparkSession) -> None:
    table = schema("id bigint, at struct<x: double>, path array<struct<x: double>>, by map<string, struct<x: int>>")
    rows = schema(
        "more string, path array<struct<y: float, x: double>>, at struct<y: int>, by map<string, struct<y: int>>"
    )

    assert extended(table, rows, "t") == plain(
        schema(
            "id bigint, at struct<x: double, y: int>, path array<struct<x: double, y: float>>, "
            "by map<string, struct<x: int, y: int>>, more string"
        )
    )


@pytest.mark.parametrize(
    ("table", "rows", "message"),
    [
        ("price double", "price float", "column `price` is `double` in table t and would become `float`: cast it"),
        ("at struct<x: int>", "at struct<x: bigint>", "column `at.x` is `int` in table t and would become `bigint`"),
        ("path array<int>", "path array<string>", "column `path.element` is `int`"),
        ("by map<string, int>", "by map<string, date>", "column `by.value` is `int`"),
        ("at struct<x: int>", "at int", "column `at` is `struct<x:int>` in table t and would become `int`"),
        ("price double", "Price double", "column `Price` is called `price` in table t"),
        ("id int", "price int, Price int", "differ only by case: price, Price"),
    ],
)
def test_a_changed_type_names_column_types_table_and_what_to_do(
    spark: SparkSession, table: str, rows: str, message: str
) -> None:
    with pytest.raises(PipelineError, match=re.escape(message)):
        extended(schema(table), schema(rows), "t")


types = st.sampled_from(["int", "string", "array<double>", "struct<x: int, y: timestamp>"])
columns = st.dictionaries(st.sampled_from("abcdef"), types, min_size=1).map(
    lambda each: schema(", ".join(f"{name} {kind}" for name, kind in each.items()))
)


@given(table=columns, rows=columns)
def test_a_table_keeps_its_columns_and_takes_the_same_rows_again(
    spark: SparkSession, table: StructType, rows: StructType
) -> None:
    try:
        grown = extended(table, rows, "t")
    except PipelineError:
        assert any(name in rows.names and rows[name] != table[name] for name in table.names)
        return
    assert grown.names[: len(table)] == table.names
    assert set(grown.names) == {*table.names, *rows.names}
    assert extended(grown, rows, "t") == extended(grown, table, "t") == grown


def test_a_table_gains_and_loses_columns_over_restarts(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"))
    put(rows, [{"id": 1, "price": 1.5, "at": "2026-01-31T09:00:00Z"}])
    fill(stream(spark, rows, "id bigint, price double, at timestamp"), table, tmp_path / "state")
    put(rows, [{"id": 2, "price": 2.5, "symbol": "IBM"}])
    fill(stream(spark, rows, "id bigint, price double, symbol string"), table, tmp_path / "state")
    put(rows, [{"id": 3, "at": "2026-01-31T10:00:00Z"}])
    fill(stream(spark, rows, "id bigint, at timestamp"), table, tmp_path / "state")

    first, third = (datetime(2026, 1, 31, hour, tzinfo=UTC) for hour in (9, 10))
    expected = [
        {"id": 1, "price": 1.5, "at": first, "symbol": None},
        {"id": 2, "price": 2.5, "at": None, "symbol": "IBM"},
        {"id": 3, "price": None, "at": third, "symbol": None},
    ]
    assert table_dataset(table.path).to_table().sort_by("id").to_pylist() == expected
    found = read_table(spark, table.path).orderBy("id").selectExpr("id", "price", "unix_seconds(at) at", "symbol")
    assert [row.asDict() for row in found.collect()] == [
        {**row, "at": row["at"] and int(row["at"].timestamp())} for row in expected
    ]


def test_a_type_that_no_longer_matches_stops_before_anything_is_written(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"))
    put(rows, [{"id": 1}])
    fill(stream(spark, rows, "id bigint"), table, tmp_path / "state")
    put(rows, [{"id": 2}])

    with pytest.raises(PipelineError, match=r"column `id` is `bigint` in table .*/table and would become `string`"):
        fill(stream(spark, rows, "id string"), table, tmp_path / "state")
    assert read_table(spark, table.path).count() == 1
    fill(stream(spark, rows, "id bigint"), table, tmp_path / "state")
    assert ids(read_table(spark, table.path).collect()) == [1, 2]


def test_a_column_that_no_row_came_for_may_still_change_its_type(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"), partition_by=("day",))
    put(rows, [{"id": 1, "day": 3}])
    fill(stream(spark, rows, "id bigint, day int"), table, tmp_path / "state")
    never = stream(spark, rows, "id bigint, day int, price float")
    write_stream(never, table, checkpoint=str(tmp_path / "state"), name="never")

    changed = check_table(spark, table, schema("id bigint, day int, price double"))

    assert changed["price"].dataType.simpleString() == "double"
    with pytest.raises(PipelineError, match="column `day` is `int`"):
        check_table(spark, table, schema("id bigint, day string, price double"))


def test_a_table_without_rows_has_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    table = TableSettings(str(tmp_path / "table"))
    put(tmp_path / "rows")
    write_stream(stream(spark, tmp_path / "rows", "id bigint"), table, checkpoint=str(tmp_path / "state"), name="t")

    assert committed_files(table.path) == ()
    assert read_table(spark, table.path).schema == table_schema_of(table) == plain(schema("id bigint"))
    assert table_dataset(table.path).to_table().to_pydict() == {"id": []}


def table_schema_of(table: TableSettings) -> StructType:
    note = json.loads((Path(table.path) / "_table.json").read_bytes())
    return StructType.fromJson(json.loads(note["schema"]))


def test_partition_values_of_any_spelling_come_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"), partition_by=("city", "day"))
    cities = ["a b", "c:d/e", "50%", "007", "São Paulo", "x=y?[z]", None]
    put(rows, [{"city": city, "id": number, "day": number % 2} for number, city in enumerate(cities)])
    fill(stream(spark, rows, "city string, id bigint, day int"), table, tmp_path / "state")

    found = read_table(spark, table.path)
    assert found.columns == ["city", "id", "day"]
    expected = [{"city": city, "id": number, "day": number % 2} for number, city in enumerate(cities)]
    assert [row.asDict() for row in found.orderBy("id").collect()] == expected
    assert table_dataset(table.path).to_table().sort_by("id").to_pylist() == expected
    with pytest.raises(PipelineError, match=r"partitioned by \(city, day\), not by \(city\): write to another table"):
        check_table(spark, TableSettings(table.path, partition_by=("city",)), found.schema)


def test_a_log_that_spark_compacts_lists_each_file_once(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"))
    put(rows, *([{"id": number}] for number in range(5)))
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "3")
    try:
        fill(stream(spark, rows, "id bigint"), table, tmp_path / "state")
    finally:
        spark.conf.unset("spark.sql.streaming.fileSink.log.compactInterval")

    assert (Path(table.path) / LOG_FOLDER / "2.compact").is_file()
    assert len(committed_files(table.path)) == 5
    assert table_dataset(table.path).to_table().column("id").to_pylist() == [0, 1, 2, 3, 4]


def test_a_driver_killed_after_the_table_took_a_batch_adds_it_once(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"))
    put(rows, [{"id": 1}], [{"id": 2}])
    fill(stream(spark, rows, "id bigint"), table, tmp_path / "state")
    forget_last_commit(tmp_path / "state")
    put(rows, [{"id": 3}])
    fill(stream(spark, rows, "id bigint"), table, tmp_path / "state")

    assert ids(read_table(spark, table.path).collect()) == [1, 2, 3]
    assert ids(table_dataset(table.path).to_table().to_pylist()) == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.system
def test_what_a_driver_killed_in_mid_batch_left_is_in_no_table(spark: SparkSession, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    tables = [TableSettings(str(tmp_path / "parquet")), TableSettings(str(tmp_path / "delta"), format="delta")]
    put(rows, [{"id": 1}, {"id": 2}], [{"id": -1}])
    arguments = [str(rows), str(tmp_path / "state"), *(table.path for table in tables)]
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, "-c", HELD_DRIVER, *arguments], stdout=log, stderr=log, start_new_session=True
        )
        try:
            written = [finished_files(Path(table.path), driver, tmp_path / "driver.log") for table in tables]
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()

    for table, files in zip(tables, written, strict=True):
        assert committed_files(table.path) == ()
        assert read_table(spark, table.path).count() == 0
        put(rows, [{"id": 3}])
        fill(stream(spark, rows, "id bigint"), table, tmp_path / "state" / table.format)
        expected = [-1, 1, 2, *([3] if table.format == "parquet" else [3, 3])]
        assert ids(read_table(spark, table.path).collect()) == expected
        assert ids(table_dataset(table.path).to_table().to_pylist()) == expected
        assert not set(committed_files(table.path)) & files
    listed = pyarrow.parquet.ParquetDataset(tables[0].path).read().num_rows
    assert listed > 4, "who lists the folder counts rows of the killed batch"
    assert remove_uncommitted(tables[0].path) == ()
    assert set(remove_uncommitted(tables[0].path, older_seconds=0)) >= written[0]
    assert not any(Path(file).exists() for file in written[1]), "a Delta query removes its own when it starts again"
    assert pyarrow.parquet.ParquetDataset(tables[0].path).read().num_rows == 4


def finished_files(table: Path, driver: subprocess.Popen[bytes], log: Path) -> set[str]:
    """Wait until a task has written a whole file into a table."""
    for _ in range(1200):
        files = {str(file) for file in table.rglob("part-*.parquet") if is_whole(file)}
        if files:
            return files
        assert driver.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def is_whole(file: Path) -> bool:
    try:
        return pyarrow.parquet.read_metadata(file).num_rows > 0
    except (OSError, pyarrow.ArrowInvalid):
        return False


def test_another_querys_table_is_refused_because_batches_would_be_skipped(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"))
    put(rows, [{"id": 1}])
    frame = stream(spark, rows, "id bigint")
    fill(frame, table, tmp_path / "state")

    with pytest.raises(PipelineError, match=r"is filled by the query of checkpoint .*/state, not of .*/other: another"):
        fill(frame, table, tmp_path / "other")
    with pytest.raises(PipelineError, match=r"batches up to 0 are in table .*/moved, which has them up to -1"):
        fill(frame, TableSettings(str(tmp_path / "moved")), tmp_path / "state")
    with pytest.raises(PipelineError, match="is stored as parquet, not as delta"):
        fill(frame, TableSettings(table.path, format="delta"), tmp_path / "other")
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    with pytest.raises(PipelineError, match=r"has batches up to 0, but checkpoint .*/other only up to -1: another"):
        fill(frame, table, tmp_path / "other")
    put(rows, [{"id": 2}])
    fill(frame, table, tmp_path / "elsewhere")
    assert ids(read_table(spark, table.path).collect()) == [1, 2]


def test_two_queries_cannot_begin_a_table_together(spark: SparkSession, tmp_path: Path) -> None:
    table = TableSettings(str(tmp_path / "table"))
    put(tmp_path / "rows", [{"id": 1}])
    frame = stream(spark, tmp_path / "rows", "id bigint")
    write_stream(frame, table, checkpoint=str(tmp_path / "one"), name="one")

    write_stream(frame, table, checkpoint=str(tmp_path / "one"), name="one again")
    with pytest.raises(PipelineError, match=r"is filled by the query of checkpoint .*/one, not of .*/two"):
        write_stream(frame, table, checkpoint=str(tmp_path / "two"), name="two")


def test_batches_without_rows_count_as_batches(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"))
    for hour in range(3):
        put(rows, [{"id": 1, "at": f"2026-01-31T0{hour}:00:00Z"}], [])
        frame = stream(spark, rows, "id bigint, at timestamp").withWatermark("at", "1 minute")
        counted = frame.groupBy(functions.window("at", "10 minutes"), "id").count().select("window.start", "count")
        fill(counted, table, tmp_path / "state")

    found = table_dataset(table.path).to_table().sort_by("start")
    assert found.column("count").to_pylist() == [1, 1]
    assert last_batch(Path(table.path) / LOG_FOLDER) == last_batch(tmp_path / "state" / "commits") >= 3


def test_files_of_somebody_else_are_not_made_invisible(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    pyarrow.parquet.write_table(pyarrow.table({"id": [1]}), tmp_path / "table" / "mine.parquet")
    put(tmp_path / "rows", [{"id": 2}])

    with pytest.raises(PipelineError, match="has Parquet files that no stream has written"):
        fill(stream(spark, tmp_path / "rows", "id bigint"), TableSettings(str(tmp_path / "table")), tmp_path / "state")


@pytest.mark.parametrize("by", [("day",), ("id",)])
def test_partition_columns_must_be_some_of_the_columns(spark: SparkSession, tmp_path: Path, by: tuple[str]) -> None:
    with pytest.raises(PipelineError, match=r"`day`, which is none of its columns: id|by all of its columns"):
        check_table(spark, TableSettings(str(tmp_path), partition_by=by), schema("id bigint"))


def test_what_is_not_a_table_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    with pytest.raises(PipelineError, match=r"there is no table in .*/nowhere: it has neither"):
        read_table(spark, str(tmp_path / "nowhere"))
    with pytest.raises(PipelineError, match="there is no table in"):
        committed_files(str(tmp_path / "file"))
    with pytest.raises(PipelineError, match=r"/file is not a folder"):
        check_table(spark, TableSettings(str(tmp_path / "file")), schema("id bigint"))
    with pytest.raises(PipelineError, match="is not in a local folder: read it with Spark"):
        committed_files("hdfs://host/table")


def test_a_folder_that_cannot_be_written_is_told(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    put(tmp_path / "rows", [{"id": 1}])

    with pytest.raises(PipelineError, match=r"table .*/file/table: Not a directory"):
        fill(
            stream(spark, tmp_path / "rows", "id bigint"),
            TableSettings(str(tmp_path / "file" / "table")),
            tmp_path / "state",
        )


def test_a_listed_file_that_is_gone_is_told(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path / "table", {"0": [("add", "gone.parquet")]})

    with pytest.raises(PipelineError, match=r"lists .*gone.parquet, which is not there: was the table moved"):
        committed_files(str(tmp_path / "table"))


@pytest.mark.system
@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_a_full_disk_fails_the_batch_and_the_next_run_goes_on(spark: SparkSession, tmp_path: Path, form: Any) -> None:
    disk, rows = tmp_path / "disk", tmp_path / "rows"
    disk.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], capture_output=True, check=False
    ).returncode:
        pytest.skip("this user may not mount a small disk")
    try:
        table = TableSettings(str(disk / "table"), format=form)
        put(rows, [{"id": 100}], [{"id": 20_000}])
        frame = stream(spark, rows, "id bigint").selectExpr("id", "explode(sequence(1, id)) each", "uuid() text")
        with pytest.raises(StreamingQueryException) as failed:
            fill(frame, table, tmp_path / "state")
        assert "no space left on device" in reason_of(failed.value).lower()
        assert read_table(spark, table.path).count() == 100
        subprocess.run(["mount", "-o", "remount,size=16m", disk], check=True)
        fill(frame, table, tmp_path / "state")
        assert read_table(spark, table.path).groupBy("id").count().orderBy("id").collect() == [
            (100, 100),
            (20000, 20000),
        ]
        assert table_dataset(table.path).count_rows() == 20_100
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
