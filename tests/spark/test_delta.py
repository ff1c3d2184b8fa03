"""Delta tables: one commit for a batch, once, whatever is killed; readable by all readers of Delta."""

import json
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from echoic.errors import PipelineError
from echoic.spark import delta_log
from echoic.spark.delta import DeltaStreamWriter, EchoicDelta, Written, write_parts
from echoic.spark.tables import (
    TableSettings,
    committed_files,
    read_table,
    remove_uncommitted,
    table_dataset,
    write_stream,
)
from tests.hub.parties import eventually
from tests.spark.streams import fill, forget_last_commit, put, stream

ID = StructType([StructField("id", LongType())])
QUERY = "00000000-0000-0000-0000-000000000001"


def written(writer: DeltaStreamWriter, rows: dict[str, list[Any]], query: str = QUERY, batch: int = 0) -> Written:
    """Do what a task does in `write`, without a task."""
    label = f"part-00000-{query}-{batch}"
    parts = write_parts(iter([pyarrow.record_batch(rows)]), writer.path, writer.schema, writer.partition_by, label)
    return Written(query, parts)


def ids(rows: Iterable[Any]) -> list[int]:
    return sorted(row["id"] for row in rows)


def stored(path: str) -> list[int]:
    """Read the table as its own package does."""
    return ids(DeltaTable(path).to_pyarrow_table().to_pylist())


def part_files(path: str) -> set[str]:
    return {str(file) for file in Path(path).rglob("*.parquet")}


@pytest.fixture
def writer(tmp_path: Path) -> DeltaStreamWriter:
    return DeltaStreamWriter(str(tmp_path / "table"), ID, ())


def test_a_batch_is_one_commit_with_the_files_of_all_tasks(writer: DeltaStreamWriter) -> None:
    writer.commit([written(writer, {"id": [1, 2]}), written(writer, {"id": [3]}), None], 0)
    writer.commit([written(writer, {"id": [4]}, batch=1)], 1)

    table = DeltaTable(writer.path)
    assert stored(writer.path) == [1, 2, 3, 4]
    assert table.version() == 2, "the creation and two batches"
    assert table.transaction_version(QUERY) == 1
    assert committed_files(writer.path) == tuple(table.file_uris())


def test_a_batch_that_is_known_is_not_added_and_leaves_no_files(writer: DeltaStreamWriter) -> None:
    writer.commit([written(writer, {"id": [1]})], 0)
    writer.commit([written(writer, {"id": [2]}, batch=1)], 1)
    files = part_files(writer.path)

    writer.commit([written(writer, {"id": [2]}, batch=1)], 1)
    writer.commit([written(writer, {"id": [1]}, batch=0)], 0)

    assert stored(writer.path) == [1, 2]
    assert part_files(writer.path) == files


def test_two_queries_fill_one_table_each_with_batches_of_its_own(writer: DeltaStreamWriter) -> None:
    for query in ("a" * 8, "b" * 8):
        writer.commit([written(writer, {"id": [1]}, query)], 0)

    assert stored(writer.path) == [1, 1]


def test_a_commit_that_another_driver_of_the_query_made_first_is_a_repetition(writer: DeltaStreamWriter) -> None:
    writer.commit([written(writer, {"id": [1]})], 0)
    late, early = (written(writer, {"id": [2]}, batch=1) for _ in range(2))

    assert delta_log.commit(writer.path, QUERY, 1, early.parts)
    assert not delta_log.commit(writer.path, QUERY, 1, late.parts)
    assert stored(writer.path) == [1, 2]


def test_a_batch_without_rows_makes_no_commit(writer: DeltaStreamWriter) -> None:
    writer.commit([written(writer, {"id": [1]})], 0)
    writer.commit([written(writer, {"id": pyarrow.array([], pyarrow.int64())}, batch=1), None], 1)
    writer.commit([], 2)

    assert DeltaTable(writer.path).version() == 1


def test_an_aborted_batch_leaves_nothing(writer: DeltaStreamWriter) -> None:
    writer.commit([written(writer, {"id": [1]})], 0)
    files = part_files(writer.path)
    writer.abort([written(writer, {"id": [2]}, batch=1), None], 1)

    assert part_files(writer.path) == files


def test_a_task_that_fails_leaves_nothing(writer: DeltaStreamWriter) -> None:
    def batches() -> Iterable[pyarrow.RecordBatch]:
        yield pyarrow.record_batch({"id": [1]})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_parts(iter(batches()), writer.path, ID, (), "part")
    misfit = iter([pyarrow.record_batch({"id": ["one"]})])
    with pytest.raises(PipelineError, match=r"cannot write to table .*: Failed to parse string: 'one'"):
        write_parts(misfit, writer.path, ID, (), "part")
    assert part_files(writer.path) == set()


def test_a_file_that_vanished_fails_the_commit_and_not_the_table(writer: DeltaStreamWriter) -> None:
    writer.commit([written(writer, {"id": [1]})], 0)
    lost = written(writer, {"id": [2]}, batch=1)
    (Path(writer.path) / lost.parts[0].path).unlink()

    with pytest.raises(PipelineError, match="before it was committed: do two queries share a checkpoint"):
        writer.commit([lost], 1)
    assert stored(writer.path) == [1]


def test_uncommitted_files_are_removed_and_removed_rows_stay_readable(writer: DeltaStreamWriter) -> None:
    writer.commit([written(writer, {"id": [1]})], 0)
    writer.commit([written(writer, {"id": [2]}, batch=1)], 1)
    DeltaTable(writer.path).delete("id = 1")
    mine, other = (written(writer, {"id": [3]}, query, batch=2) for query in (QUERY, "other"))
    loose = {str(Path(writer.path) / each.parts[0].path) for each in (mine, other)}

    assert {str(file) for file in delta_log.uncommitted(writer.path)} == loose
    assert [file.name for file in delta_log.uncommitted(writer.path, QUERY)] == [mine.parts[0].path]
    assert remove_uncommitted(writer.path) == ()
    assert set(remove_uncommitted(writer.path, older_seconds=0)) == loose
    assert stored(writer.path) == [2]
    earlier = DeltaTable(writer.path, version=2)
    assert ids(earlier.to_pyarrow_table().to_pylist()) == [1, 2]


def test_a_table_gains_columns_and_keeps_types(writer: DeltaStreamWriter, tmp_path: Path) -> None:
    writer.commit([written(writer, {"id": [1]})], 0)
    inner = StructType([StructField("x", DoubleType())])
    wider = DeltaStreamWriter(writer.path, StructType([*ID.fields, StructField("at", inner)]), ())
    wider.commit([written(wider, {"id": [2], "at": [{"x": 1.0}]}, batch=1)], 1)
    deeper = DeltaStreamWriter(
        writer.path, StructType([StructField("at", StructType([*inner.fields, StructField("y", StringType())]))]), ()
    )
    deeper.commit([written(deeper, {"at": [{"x": 2.0, "y": "up"}]}, batch=2)], 2)

    rows = [
        {"id": 1, "at": None},
        {"id": 2, "at": {"x": 1.0, "y": None}},
        {"id": None, "at": {"x": 2.0, "y": "up"}},
    ]
    assert DeltaTable(writer.path).to_pyarrow_table().sort_by("id").to_pylist() == rows
    assert table_dataset(writer.path).to_table().sort_by("id").to_pylist() == rows
    text = DeltaStreamWriter(writer.path, StructType([StructField("id", StringType())]), ())
    with pytest.raises(PipelineError, match=r"column `id` is `bigint` in table .*/table and would become `string`"):
        text.commit([written(text, {"id": ["three"]}, batch=3)], 3)


def refused(options: dict[str, str], schema: StructType, *, overwrite: bool = False) -> None:
    EchoicDelta(options).streamWriter(schema, overwrite)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda path: refused({}, ID), "needs option `path`"),
        (lambda path: refused({"path": path}, ID, overwrite=True), "can only be appended to"),
        (
            lambda path: refused({"path": path, "partition_by": "day"}, ID),
            "names `day`, which is none of the columns id",
        ),
        (
            lambda path: refused({"path": path, "partition_by": "t"}, StructType([StructField("t", TimestampType())])),
            "column `t` is `timestamp`: partition by whole numbers, texts, booleans or dates",
        ),
        (lambda path: refused({"path": "s3://bucket/table"}, ID), "not in a local or mounted folder"),
    ],
)
def test_a_wrong_option_is_told(act: Callable[[str], None], message: str, tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=message):
        act(str(tmp_path / "table"))


def test_a_damaged_table_is_told(writer: DeltaStreamWriter) -> None:
    writer.commit([written(writer, {"id": [1]})], 0)
    next((Path(writer.path) / "_delta_log").glob("*.json")).write_text("{")

    with pytest.raises(PipelineError, match="cannot read table"):
        committed_files(writer.path)


def test_a_table_whose_files_do_not_tell_its_rows_is_left_to_readers_of_delta(tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pyarrow.table({"id": [1]}))
    log = tmp_path / "table" / "_delta_log" / "00000000000000000001.json"
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
    log.write_text(json.dumps({"protocol": {**features, "writerFeatures": ["deletionVectors"]}}))

    with pytest.raises(PipelineError, match="uses deletionVectors: read it with `deltalake`"):
        committed_files(path)


def test_a_stream_fills_a_table_once_although_its_driver_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"), format="delta")
    put(rows, [{"id": 1}], [{"id": 2}])
    fill(stream(spark, rows, "id bigint"), table, tmp_path / "state")
    files = part_files(table.path)
    forget_last_commit(tmp_path / "state")
    fill(stream(spark, rows, "id bigint"), table, tmp_path / "state")

    assert part_files(table.path) == files
    put(rows, [{"id": 3, "price": 1.5}])
    fill(stream(spark, rows, "id bigint, price double"), table, tmp_path / "state")
    assert stored(table.path) == [1, 2, 3]
    assert read_table(spark, table.path).orderBy("id").collect() == [(1, None), (2, None), (3, 1.5)]
    with pytest.raises(PipelineError, match="column `price` is `double` in table"):
        fill(stream(spark, rows, "id bigint, price string"), table, tmp_path / "state")


def test_partition_values_of_any_spelling_come_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    table = TableSettings(str(tmp_path / "table"), "delta", partition_by=("city", "day", "open"))
    cities = ["a b", "c:d/e", "50%", "007", "São Paulo", "x=y?[z]{}", None]
    given = [
        {"city": city, "id": number, "day": "2026-01-31", "open": number > 1} for number, city in enumerate(cities)
    ]
    put(rows, given)
    fill(stream(spark, rows, "city string, id bigint, day date, open boolean"), table, tmp_path / "state")

    expected = [{**row, "day": date(2026, 1, 31)} for row in given]
    found = read_table(spark, table.path)
    assert found.columns == ["city", "id", "day", "open"]
    assert [row.asDict() for row in found.orderBy("id").collect()] == expected
    assert table_dataset(table.path).to_table().sort_by("id").to_pylist() == expected
    names = ["city", "id", "day", "open"]
    assert DeltaTable(table.path).to_pyarrow_table().select(names).sort_by("id").to_pylist() == expected


def test_every_type_of_a_column_comes_back(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    spark.dataSource.register(EchoicDelta)
    frame = spark.range(3).selectExpr(
        "id",
        "cast(id as tinyint) a",
        "cast(id as smallint) b",
        "cast(id as decimal(20,0)) c",
        "cast(cast(id as string) as binary) d",
        "timestamp_seconds(id) e",
        "cast(timestamp_seconds(id) as timestamp_ntz) f",
        "array(struct(id, cast(id as float) x)) g",
        "map('k', id) h",
        "date_add(date'2026-01-31', cast(id as int)) i",
        "if(id = 1, null, cast(id as string)) j",
    )
    frame.write.format("echoic-delta").mode("append").option("path", table).save()
    frame.write.format("echoic-delta").mode("append").option("path", table).save()

    found = read_table(spark, table)
    assert isinstance(found.schema["f"].dataType, TimestampNTZType)
    assert found.orderBy("id").collect() == frame.unionAll(frame).orderBy("id").collect()
    assert DeltaTable(table).to_pyarrow_table().num_rows == table_dataset(table).count_rows() == 6
    with pytest.raises(PySparkException, match="can only be appended to"):
        frame.write.format("echoic-delta").mode("overwrite").option("path", table).save()


def test_a_batch_that_fails_in_spark_leaves_no_files(spark: SparkSession, tmp_path: Path) -> None:
    rows, table = tmp_path / "rows", TableSettings(str(tmp_path / "table"), format="delta")
    put(rows, [{"id": 1}], [{"id": 0}])
    # One task: a second one may end after the query failed; its files then stay until the query starts again.
    frame = stream(spark, rows, "id bigint", files_per_batch=2).coalesce(1).selectExpr("1 div id id")

    with pytest.raises(StreamingQueryException, match="DIVIDE_BY_ZERO"):
        fill(frame, table, tmp_path / "state")
    eventually(lambda: not part_files(table.path), "the task that failed has removed its files")
    assert read_table(spark, table.path).count() == 0


def test_a_table_that_was_removed_while_its_checkpoint_stayed_is_told(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path / "rows", [{"id": 1}])
    frame = stream(spark, tmp_path / "rows", "id bigint")
    fill(frame, TableSettings(str(tmp_path / "table"), "delta"), tmp_path / "state")

    with pytest.raises(PipelineError, match=r"says that rows are in table .*/moved, but there is no such table"):
        fill(frame, TableSettings(str(tmp_path / "moved"), "delta"), tmp_path / "state")
    with pytest.raises(PipelineError, match="is stored as delta, not as parquet"):
        write_stream(frame, TableSettings(str(tmp_path / "table")), checkpoint=str(tmp_path / "other"), name="t")
