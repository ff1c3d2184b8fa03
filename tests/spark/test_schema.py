"""Types as Spark sees them, and batches with exactly the schema it asks for."""

import datetime
import decimal

import pyarrow
import pytest
from pyspark.sql.types import LongType, ShortType, StringType, StructType

from echoic.errors import PipelineError
from echoic.formats import Format, Kind, format_of_text
from echoic.spark.schema import METADATA, arrow_schema_of, columns_of, fitted, struct_of
from echoic.testing.samples import Everything, Trade, WindField, sample_events
from echoic.wire import Batch


def spelled(declared: object) -> str:
    return struct_of(Format.of(declared), metadata=False).simpleString()


def test_every_kind_of_field_has_a_column() -> None:
    assert spelled(Trade) == ("struct<symbol:string,price:double,volume:bigint,venue:int,side:int,note:string>")
    assert spelled(WindField) == (
        "struct<at:double,n:bigint,wind:array<array<double>>,samples:array<float>,"
        "station:struct<name:string,latitude:double,longitude:double>>"
    )
    station = "struct<name:string,latitude:double,longitude:double>"
    assert spelled(Everything) == (
        "struct<flag:boolean,letter:binary,code:binary,small:smallint,count:smallint,cells:array<array<double>>,"
        f"stations:array<{station}>,pair:array<{station}>,tags:array<string>,data:binary,at:double>"
    )


def test_unsigned_numbers_have_room() -> None:
    text = "Wide{a: uint8, b: uint16, c: uint32, d: uint64, e: int8, f: float32}"
    assert spelled(format_of_text(text)) == ("struct<a:smallint,b:int,c:bigint,d:decimal(20,0),e:tinyint,f:float>")


def test_the_journal_adds_its_own_columns() -> None:
    struct = struct_of(Format.of(Trade), metadata=True)
    assert struct.names[-5:] == list(METADATA) == ["_sequence", "_source", "_number", "_time", "_partition"]
    assert all(field.nullable for field in struct)


def test_columns_that_spark_takes_for_the_same_are_refused() -> None:
    with pytest.raises(PipelineError, match="`price` and `Price` are the same column to Spark"):
        struct_of(format_of_text("T{price: float, Price: float}"), metadata=False)
    with pytest.raises(PipelineError, match="`_time` and `_time` are the same column to Spark: set `metadata`"):
        struct_of(format_of_text("T{_time: float}"), metadata=True)


def test_the_schema_has_the_fields_of_all_types_as_the_newest_declares_them() -> None:
    formats = [
        format_of_text(f"T{{{fields}}}") for fields in ("a: int32, gone: int", "a: int, b: float", "c: str, a: int")
    ]
    union = columns_of(formats, "trades")
    assert list(union.by_name) == ["c", "a", "b", "gone"]
    assert union.by_name["a"].size == 8
    with pytest.raises(PipelineError, match=r"nothing was recorded yet.* give it by the option `declared`"):
        columns_of([], "trades")


@pytest.mark.parametrize("declared", [Trade, WindField, Everything])
def test_every_sample_fits(declared: type) -> None:
    events = next(events for events in sample_events() if isinstance(events[0], declared))
    batch = Batch.of(events, Format.of(declared)).arrow
    schema = arrow_schema_of(struct_of(Format.of(declared), metadata=False))
    made = fitted(batch, schema)
    made.validate(full=True)
    assert made.schema.equals(schema)
    assert made.num_rows == len(events) > 0
    for name in batch.schema.names:
        assert made.column(name).to_pylist() == batch.column(name).to_pylist()


def test_extremes_keep_their_values() -> None:
    schema = arrow_schema_of(struct_of(format_of_text("T{a: uint8, b: uint16, c: uint32, d: uint64}"), metadata=True))
    moment = pyarrow.array([1_760_000_000_123_456_789], pyarrow.timestamp("ns", "UTC"))
    largest = (1 << 64) - 1
    batch = pyarrow.record_batch(
        {
            "a": pyarrow.array([255], pyarrow.uint8()),
            "b": pyarrow.array([65535], pyarrow.uint16()),
            "c": pyarrow.array([(1 << 32) - 1], pyarrow.uint32()),
            "d": pyarrow.array([largest], pyarrow.uint64()),
            "_sequence": pyarrow.array([7], pyarrow.uint64()),
            "_source": pyarrow.array([largest], pyarrow.uint64()),
            "_number": pyarrow.array([8], pyarrow.uint64()),
            "_time": moment,
            "_partition": pyarrow.array([3], pyarrow.uint32()),
        }
    )
    row = fitted(batch, schema).to_pylist()[0]
    assert (row["a"], row["b"], row["c"], row["d"]) == (255, 65535, (1 << 32) - 1, decimal.Decimal(largest))
    assert (row["_sequence"], row["_source"], row["_number"], row["_partition"]) == (7, -1, 8, 3)
    assert row["_time"] == datetime.datetime(2025, 10, 9, 8, 53, 20, 123456, datetime.UTC)


def test_what_is_missing_is_null_and_what_is_more_is_dropped() -> None:
    schema = arrow_schema_of(StructType().add("a", LongType()).add("b", StringType()))
    made = fitted(pyarrow.record_batch({"c": [1.5], "a": [1]}), schema)
    assert made.to_pylist() == [{"a": 1, "b": None}]


def test_a_value_that_does_not_fit_is_told_with_its_column() -> None:
    schema = arrow_schema_of(StructType().add("a", ShortType()))
    with pytest.raises(PipelineError, match=r"the schema asks for `int16`: .* at column `a`"):
        fitted(pyarrow.record_batch({"a": [70_000]}), schema)
    with pytest.raises(PipelineError, match="at column `a`"):
        fitted(pyarrow.record_batch({"a": [[1]]}), schema)


def test_columns_of_all_kinds_are_known() -> None:
    assert {field.kind for _, field in Format.of(Everything).walk()} | {Kind.ENUM, Kind.INT} >= set(Kind) - {Kind.UINT}
