"""Derivations over frames: which way they go, what they make of nulls, faults and statics, and that they stream."""

import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    VariantType,
    YearMonthIntervalType,
)

import echoic
from echoic.ecode import Signature, check, parameter_format
from echoic.errors import ECodeError, PipelineError
from echoic.spark.derive import Derivation, derive, explain_derivation
from echoic.spark.frame_types import format_of_frame, format_of_type
from echoic.spark.kernel_frames import FrameCode, FrameRun, named_format
from echoic.spark.schema import METADATA, TYPE_KEY, struct_of
from echoic.wire import Batch
from tests.recorder.recordings import Scribe
from tests.spark.derive_programs import bits

TRADES = "symbol string, price double, volume bigint"
ROWS = [
    ("IBM", 70.0, 100),
    ("é", float("nan"), 5),
    (None, 1.0, 3),
    ("SUNW", None, 7),
    ("", 80.0, (1 << 63) - 1),
    ("IBM", -0.0, 0),
]
WAYS = ("columns", "kernel")
SHIFTED = "{ output.symbol = input.symbol; output.more = input.volume + 1; return input.price != 70; }"
SHIFT = "Shift{symbol: str, more: int}"


def trades(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, TRADES).coalesce(1)


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


@pytest.mark.parametrize("how", WAYS)
def test_a_filter_passes_rows_as_they_are(spark: SparkSession, how: Any) -> None:
    frame = derive(trades(spark), "input.price < param.low", params={"low": 71.5}, how=how)
    assert [row.volume for row in frame.collect()] == [100, 3, 0]
    assert frame.schema == trades(spark).schema


@pytest.mark.parametrize("how", WAYS)
def test_a_row_with_a_null_that_the_code_names_is_left_out(spark: SparkSession, how: Any) -> None:
    found = rows(derive(trades(spark), SHIFTED, SHIFT, how=how))
    assert found == [
        {"symbol": "é", "more": 6},
        {"symbol": "", "more": -(1 << 63)},
        {"symbol": "IBM", "more": 1},
    ]


def test_both_ways_give_columns_of_the_types_of_the_output(spark: SparkSession) -> None:
    kinds = "All{a: int8, b: uint8, c: uint16, d: uint32, e: uint64, f: float32, g: bool, h: bytes, i: float64[2]}"
    code = "{ output.d = input.volume; output.i[1] = -input.price; return input.volume > 50; }"
    by_columns, by_kernel = (derive(trades(spark), code, kinds, how=how) for how in WAYS)
    wanted = struct_of(format_of_type(kinds), metadata=False)
    for frame in (by_columns, by_kernel):
        assert [field.dataType for field in frame.schema] == [field.dataType for field in wanted]
    assert bits(rows(by_columns)) == bits(rows(by_kernel))
    assert rows(by_kernel)[0]["i"] == [0.0, -70.0]


def test_python_and_ecode_are_taken_as_a_channel_takes_them(spark: SparkSession) -> None:
    def cheap(input: Any, param: Any) -> bool:  # noqa: A002 - so E-Code calls it
        return input.price < param.low and input.symbol == "IBM"

    text = 'def cheap(input, param):\n    return input.price < param.low and input.symbol == "IBM"\n'
    for code in (cheap, text, '{ return input.price < param.low && input.symbol == "IBM"; }'):
        frame = derive(trades(spark), code, params={"low": 71.5})
        assert [row.volume for row in frame.collect()] == [100, 0]


def test_it_is_told_which_way_a_derivation_goes_and_why(spark: SparkSession) -> None:
    frame = trades(spark)
    said = explain_derivation(frame, "input.volume > 3")
    assert (said.way, said.sql is not None) == ("columns", True)
    counted = explain_derivation(frame, "{ static int n; return ++n % 2; }")
    assert (counted.way, counted.reason, counted.position) == ("kernel", "`n` is static", (1, 26))
    assert repr(counted) == "<derivation by kernel: `n` is static - at line 1, column 26>"
    assert explain_derivation(frame, "input.volume > 3", how="kernel").reason == "that was asked for"


def test_columns_that_cannot_be_are_an_error_if_they_were_asked_for(spark: SparkSession) -> None:
    with pytest.raises(
        PipelineError, match="columns: an integer is divided by what may be zero, which faults - at line 1, column 4"
    ):
        derive(trades(spark), "10 / input.volume > 1", how="columns")
    with pytest.raises(PipelineError, match="`how` is one of auto, columns, kernel, got 'sideways'"):
        derive(trades(spark), "input.volume > 1", how="sideways")  # type: ignore[arg-type]


def test_wrong_code_is_shown_with_its_place(spark: SparkSession) -> None:
    with pytest.raises(ECodeError, match="volum") as caught:
        derive(trades(spark), "input.volum > 1")
    assert caught.value.problems[0][:2] == (1, 7)


def faulty(frame: DataFrame, output: str | None = None) -> Derivation:
    return explain_derivation(frame, "{ return 10 / input.volume < 3; }", output)


def test_events_that_fault_are_left_out_and_counted(spark: SparkSession) -> None:
    frame = trades(spark)
    filtering, making = faulty(frame), faulty(frame, "Nothing{a: int}")
    assert filtering.way == making.way == "kernel"
    assert [row.volume for row in filtering.apply(frame).collect()] == [100, 5, 7, (1 << 63) - 1]
    assert len(making.apply(frame).collect()) == 4
    assert (filtering.faults, making.faults) == (1, 1)


def test_statics_belong_to_a_partition(spark: SparkSession) -> None:
    frame = spark.range(0, 40, numPartitions=2)
    passed = derive(frame, "{ static int n; return ++n > 15; }").collect()
    assert [row.id for row in passed] == [15, 16, 17, 18, 19, 35, 36, 37, 38, 39]
    numbered = derive(frame, "{ static int n; output.n = ++n; return input.id % 10 == 9; }", "N{n: int}").collect()
    assert [row.n for row in numbered] == [10, 20, 10, 20]


def test_code_that_names_no_column_runs_for_every_row(spark: SparkSession) -> None:
    frame = spark.range(0, 10, numPartitions=1)
    assert derive(frame, "{ static int n; return ++n % 5 == 0; }").count() == 2
    assert derive(frame, "{ static int n; output.n = ++n; return n > 7; }", "N{n: int}").count() == 3
    assert derive(frame, "1").count() == 10


def test_records_and_arrays_are_the_same_in_both_ways(spark: SparkSession) -> None:
    kinds = "inner struct<deep:double,low:smallint>, three array<double>, huge decimal(20,0), small bigint, code binary"
    frame = spark.createDataFrame(
        [
            ((1.5, 2), [1.0, 2.0, 3.0], Decimal(1 << 63), 4_000_000_000, b"ab"),
            (None, [1.0, 2.0, 3.0], Decimal(5), 5, b"ab"),
            ((1.5, None), [1.0, 2.0, 3.0], Decimal(5), 5, b"ab"),
            ((1.5, 2), [1.0, None, 3.0], Decimal(5), 5, b"ab"),
            ((1.5, 2), [1.0, 2.0], Decimal(5), 5, b"ab"),
            ((-1.5, 2), [1.0, 2.0, -3.0], Decimal(6), 3_000_000_000, b"ab"),
        ],
        kinds,
    ).coalesce(1)
    inner = "Inner{deep: float, low: int16}"
    declared = echoic.formats.Format.place(
        "Declared",
        [
            echoic.formats.Field("inner", echoic.formats.Kind.RECORD, 16, record=format_of_type(inner)),
            *format_of_type("Rest{three: float64[3], huge: uint64, small: uint32, code: char[2]}").fields,
        ],
        echoic.formats.NATIVE,
    )
    code = "{ output.sum = input.inner.low + input.small; return input.three[2] != input.inner.deep; }"
    found = [rows(derive(frame, code, "Sum{sum: uint32}", how=how, declared=declared)) for how in WAYS]
    assert found[0] == found[1] == [{"sum": 4_000_000_002}, {"sum": 3_000_000_002}]
    large = derive(frame, 'input.huge > 9223372036854775807ul && input.code == "ab"', declared=declared)
    assert [row.small for row in large.collect()] == [4_000_000_000]


def test_unsigned_fields_wrap_as_at_the_source_only_if_they_are_declared(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(4_294_967_295,)], "count bigint")
    for how in WAYS:
        assert derive(frame, "input.count + 1u > 5", how=how).count() == 1
        assert derive(frame, "input.count + 1u > 5", how=how, declared="C{count: uint32}").count() == 0


def test_the_type_that_a_column_tells_of_is_the_one_that_counts(spark: SparkSession) -> None:
    told = struct_of(format_of_type("C{count: uint32, three: float64[3]}"), metadata=False)
    frame = spark.createDataFrame([(4_294_967_295, [1.0, 2.0, 3.0])], told)
    assert derive(frame.where("count > 5"), "input.count + 1u > 5").count() == 0
    assert explain_derivation(frame, "input.three[2] > 2").way == "columns"
    assert derive(frame, "input.three[2] > 2").count() == 1
    odd = StructType([StructField("count", LongType(), metadata={TYPE_KEY: "of no type"})])
    assert format_of_frame(odd).field("count").spelling == "int64"


@pytest.mark.parametrize("how", WAYS)
def test_what_is_made_of_what_was_made_has_the_types_that_were_declared(spark: SparkSession, how: Any) -> None:
    given = trades(spark)
    lots = derive(given, "{ output.lots = input.volume; return 1; }", "Lots{lots: uint32}", how=how)
    kept = derive(lots, "{ output.more = 1; return 1; }", "More{more: int}", how=how, keep=["lots"])
    for frame in (lots, kept):
        assert format_of_frame(frame.schema).by_name["lots"].spelling == "uint32"


def test_rows_of_a_journal_have_the_types_that_were_recorded(
    spark: SparkSession, scribe: Scribe, tmp_path: Path
) -> None:
    kinds = format_of_type("Count{count: uint32, code: char[2], three: int16[3]}")
    scribe.write(Batch.of([{"count": 4_294_967_295, "code": b"ab", "three": [1, 2, 3]}], kinds))
    scribe.close()
    frame = spark.read.format("echoic").options(journal=str(tmp_path / "journals"), channel="trades").load()
    for how in WAYS:
        assert derive(frame, "input.count + 1u > 5", how=how).count() == 0
        assert derive(frame, "input.count * input.three[2] == 4294967293u", how=how).count() == 1
    assert derive(frame, 'input.code == "ab"').count() == 1


def test_a_declared_type_must_be_that_of_the_columns(spark: SparkSession) -> None:
    with pytest.raises(PipelineError, match="declares `int32`, which is int in Spark, but the column is bigint"):
        derive(trades(spark), "input.volume > 1", declared="Trade{volume: int32}")
    with pytest.raises(PipelineError, match="there is no column `lots`, the frame has symbol, price, volume"):
        derive(trades(spark), "input.lots > 1", declared="Trade{lots: int}")


@pytest.mark.parametrize("how", WAYS)
def test_a_transform_keeps_what_the_journal_knows(spark: SparkSession, how: Any) -> None:
    frame = spark.sql("select 7L as _sequence, timestamp_micros(5) as _time, 2.5D as price, map(1, 2) as odd")
    code = "{ output.twice = input.price * 2; return 1; }"
    found = derive(frame, code, "Twice{twice: float}", how=how)
    assert found.columns == ["twice", "_sequence", "_time"]
    assert (
        found.select("twice", "_sequence", "_time").collect()
        == frame.selectExpr("5.0D as twice", "_sequence", "_time").collect()
    )
    assert derive(frame, code, "Twice{twice: float}", how=how, keep=["odd"]).collect()[0].odd == {1: 2}
    assert derive(frame, code, "Twice{twice: float}", how=how, keep=[]).columns == ["twice"]
    with pytest.raises(PipelineError, match="cannot keep column `even`"):
        derive(frame, code, "Twice{twice: float}", keep=["even"])


def test_conditions_reach_the_files_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    trades(spark).write.parquet(str(tmp_path / "trades"))
    frame = derive(spark.read.parquet(str(tmp_path / "trades")), 'input.price < 71.5 && input.symbol == "IBM"')
    plan = frame._jdf.queryExecution().toString()  # noqa: SLF001 - Spark has no other way to be asked
    assert "LessThan(price,71.5)" in plan
    assert "EqualTo(symbol,IBM)" in plan


@pytest.mark.parametrize("how", WAYS)
def test_a_stream_is_derived_as_a_table_is(spark: SparkSession, how: Any, tmp_path: Path) -> None:
    trades(spark).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema(TRADES).parquet(str(tmp_path / "in"))
    query = (
        derive(stream, SHIFTED, SHIFT, how=how)
        .writeStream.format("memory")
        .queryName(f"derived_{how}")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert sorted(row.more for row in spark.table(f"derived_{how}").collect()) == [-(1 << 63), 1, 6]


def test_a_derived_channel_gives_what_a_derived_frame_gives(spark: SparkSession) -> None:
    @echoic.event
    class Trade:
        symbol: str
        price: float
        volume: int

    @echoic.event
    class Shift:
        symbol: str
        more: int

    whole = [row for row in ROWS if None not in row]
    received: list[tuple[str, int]] = []
    done = threading.Event()

    def handle(event: Shift) -> None:
        received.append((event.symbol, event.more))
        done.set()

    with echoic.Hub() as hub:
        channel = hub.create("trades", Trade)
        channel.derive(SHIFTED, Shift).subscribe(handle)
        with channel.source() as source:
            source.submit_batch([Trade(*row) for row in whole])
            source.drain()
        assert done.wait(60)
    for how in WAYS:
        found = derive(trades(spark), SHIFTED, SHIFT, how=how).collect()
        assert [(row.symbol, row.more) for row in found] == received


@pytest.mark.usefixtures("spark")  # which reads the types
def test_columns_that_can_be_no_fields_are_left_out_of_the_type() -> None:
    schema = StructType.fromDDL(
        "a bigint, b timestamp, c map<int,int>, d array<array<int>>, e decimal(20,0), f decimal(5,2), g array<float>, "
        "h string collate UTF8_LCASE"
    )
    spelled = {field.name: field.spelling for field in format_of_frame(schema).fields}
    assert spelled == {"a": "int64", "e": "uint64", "g": "float32[]"}


@pytest.mark.parametrize(
    "kind", [VariantType(), CalendarIntervalType(), YearMonthIntervalType(), ArrayType(StringType("UTF8_LCASE"))]
)
def test_a_column_that_arrow_has_not_or_has_otherwise_is_left_out(kind: DataType) -> None:
    schema = StructType([StructField("a", LongType()), StructField("odd", kind)])
    assert format_of_frame(schema).by_name.keys() == {"a"}


@pytest.mark.parametrize("told", [5, "zz", format_of_type("Two{a: int, b: int}").descriptor.hex()])
def test_what_somebody_else_tells_of_a_column_is_not_minded(told: object) -> None:
    schema = StructType([StructField("a", LongType(), metadata={TYPE_KEY: told})])
    assert format_of_frame(schema).by_name["a"].spelling == "int64"


def test_the_journals_own_columns_are_those_of_the_documents() -> None:
    assert set(METADATA) == {"_sequence", "_source", "_number", "_time", "_partition"}


def frame_run(code: str, given: str, output: str = "") -> FrameRun:
    made = format_of_type(output).descriptor if output else b""
    return FrameRun(FrameCode(code, "ecode", format_of_type(given).descriptor, made))


def test_slices_of_batches_are_read_where_they_lie() -> None:
    names = pyarrow.array(["x", "a", "bb", "", "a"])[1:]
    values = pyarrow.array([[9.0], [1.0, 2.0], [], [3.0], [4.0]])[1:]
    run = frame_run('{ return input.name == "a" && length(input.values) == 1; }', "T{name: str, values: float64[]}")
    assert run.passed({"name": names, "values": values}, 4).to_pylist() == [False, False, False, True]


def test_arrays_of_records_are_run_over_records() -> None:
    inner = format_of_type("Cell{speed: float}")
    field = echoic.formats.Field("cells", echoic.formats.Kind.RECORD, inner.size, dimensions=("",), record=inner)
    given = echoic.formats.Format.place("Grid", [field], echoic.formats.NATIVE)
    run = FrameRun(FrameCode("{ return input.cells[1].speed > 1; }", "ecode", given.descriptor))
    cells = pyarrow.array([[{"speed": 1.0}, {"speed": 2.0}], [{"speed": 5.0}], [{"speed": 1.0}, None], None])
    assert run.passed({"cells": cells}, 4).to_pylist() == [True, False, False, False]
    assert run.faults == 1


def test_an_array_whose_length_is_a_field_is_read_without_that_field() -> None:
    code, given = '{ return input.names[0] == "a"; }', format_of_type("T{count: int32, names: str[count]}")
    named = named_format(check(code, Signature(given, None, None)))
    run = FrameRun(FrameCode(code, "ecode", named.descriptor))
    names = pyarrow.array([["a"], ["b", "a"], None])
    assert run.passed({"names": names}, 3).to_pylist() == [True, False, False]


def test_parameters_travel_with_the_code() -> None:
    block = parameter_format({"low": 2.5})
    values = bytes(Batch.of([{"low": 2.5}], block).records)
    code = FrameCode(
        "{ return input.x < param.low; }",
        "ecode",
        format_of_type("X{x: float}").descriptor,
        b"",
        block.descriptor,
        values,
    )
    assert FrameRun(code).passed({"x": pyarrow.array([1.0, None, 3.0])}, 3).to_pylist() == [True, False, False]
