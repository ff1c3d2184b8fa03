"""Rows as events, and the sink's options and writers as plain objects: no JVM is started here."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy
import pyarrow
import pytest
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from echoic import Array, char, event, float32, float64, int8, int64, uint8, uint64
from echoic.errors import EncodeError, PipelineError
from echoic.formats import Format, format_of_text
from echoic.hub import Intake
from echoic.recorder import Journal
from echoic.spark.rows import arrow_schema_of_rows, check_columns, events_of, format_of
from echoic.spark.schema import arrow_schema_of, fitted, struct_of
from echoic.spark.sink_options import SinkOptions
from echoic.spark.writing import CARRIED_BYTES_MAX, EchoicStreamWriter, EchoicWriter, Written
from echoic.testing.samples import Trade, sample_events
from echoic.wire import Batch
from tests.conftest import StartHub
from tests.hub.intake_parties import recorded
from tests.hub.parties import Tick

MOMENT = datetime(2020, 1, 1, 0, 0, 1, 500_000, UTC)
TEXT, LONG, DOUBLE = StringType(), LongType(), DoubleType()


def struct(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


TICKS = struct(producer=LONG, number=LONG)


@event
class Inner:
    depth: float32
    code: uint8


@event
class Many:
    """A field for each rule."""

    small: int8
    big: uint64
    seconds: float64
    nanoseconds: int64
    day: int64
    text: Array[char, 4]
    pair: Array[float64, 2]
    inner: Inner
    note: str | None = None


@pytest.fixture
def intake(start_hub: StartHub, tmp_path: Path) -> Intake:
    return start_hub().intake("ticks", tmp_path, Tick)


MANY = struct(
    small=LONG,
    big=DecimalType(20, 0),
    seconds=TimestampType(),
    nanoseconds=TimestampType(),
    day=DateType(),
    text=TEXT,
    pair=ArrayType(DOUBLE),
    inner=struct(code=IntegerType(), depth=DOUBLE, left_out=TEXT),
    _sequence=LONG,
)


def many(**columns: list[object]) -> pyarrow.RecordBatch:
    """Return a row as Spark gives it."""
    given: dict[str, list[object]] = {
        "small": [5],
        "big": [Decimal(2**64 - 1)],
        "seconds": [MOMENT],
        "nanoseconds": [MOMENT],
        "day": [date(1970, 1, 11)],
        "text": ["ab"],
        "pair": [[1.0, 2.0]],
        "inner": [{"code": 7, "depth": 0.5, "left_out": "x"}],
        "_sequence": [1],
    }
    schema = arrow_schema_of_rows(MANY)
    arrays = [pyarrow.array({**given, **columns}[field.name], field.type) for field in schema]
    return pyarrow.RecordBatch.from_arrays(arrays, schema=schema)


def test_every_rule_makes_a_value_of_its_field() -> None:
    batch = many()
    check_columns(batch.schema, Format.of(Many), "many")
    (made,) = events_of(batch, Format.of(Many)).to(Many).events()
    assert (made.small, made.big, made.seconds) == (5, 2**64 - 1, 1577836801.5)
    assert (made.nanoseconds, made.day) == (1577836801_500_000_000, 10)
    assert made.text.rstrip(b"\0") == b"ab"
    assert list(made.pair) == [1.0, 2.0]
    assert (made.inner.depth, made.inner.code, made.note) == (0.5, 7, None)


def test_an_empty_text_is_an_empty_char_array() -> None:
    (made,) = events_of(many(text=[""]), Format.of(Many)).to(Many).events()
    assert made.text == b""


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("small", 300, "a value does not fit `int8`.*Many.small"),
        ("small", None, "has 1 nulls.*Many.small"),
        ("text", "abcde", "a text has 5 bytes, limit is 4.*Many.text"),
        ("pair", [1.0], "expected 2 elements, got 1.*Many.pair"),
        ("pair", None, "has 1 nulls.*Many.pair"),
        ("inner", None, "has 1 nulls.*Many.inner"),
        ("inner", {"code": 256, "depth": 1.0, "left_out": ""}, "does not fit `uint8`.*Many.inner.code"),
    ],
)
def test_a_value_that_does_not_fit_is_told_with_its_place(column: str, value: object, message: str) -> None:
    with pytest.raises(EncodeError, match=message):
        events_of(many(**{column: [value]}), Format.of(Many))


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"volume": None}, "there is no column `volume`"),
        ({"volume": DOUBLE}, "expected `int64`, got a column of `double`"),
        ({"volume": BooleanType()}, "expected `int64`, got a column of `bool`"),
        ({"volume": DecimalType(10, 2)}, "expected `int64`, got a column of `decimal128(10, 2)`"),
        ({"price": TEXT}, "expected `float64`, got a column of `string`"),
        ({"price": ArrayType(DOUBLE)}, "expected `float64`, got a column of `list<"),
        ({"symbol": LONG}, "expected `string`, got a column of `int64`"),
    ],
)
def test_columns_that_a_type_cannot_take_are_refused_before_there_are_rows(
    columns: dict[str, DataType | None], problem: str
) -> None:
    given = {"symbol": TEXT, "price": DOUBLE, "volume": LONG, **columns}
    schema = arrow_schema_of_rows(struct(**{name: kind for name, kind in given.items() if kind is not None}))
    with pytest.raises(PipelineError, match="cannot be events of channel `trades`, which are `Trade`") as raised:
        check_columns(schema, Format.of(Trade), "trades")
    assert problem in str(raised.value)


def test_rows_without_a_type_have_one_by_themselves() -> None:
    columns = struct(
        start=TimestampType(),
        day=DateType(),
        symbol=TEXT,
        trades=DecimalType(18, 0),
        ids=DecimalType(20, 0),
        points=ArrayType(FloatType()),
        _time=TimestampType(),
    )
    made = format_of(arrow_schema_of_rows(columns), "market/per-symbol")
    assert made.name == "PerSymbol"
    assert [field.spelling for field in made.fields][:5] == ["float64", "int32", "string?", "int64", "uint64"]
    assert "_time" not in made.by_name
    for wrong in (DecimalType(10, 2), MapType(TEXT, LONG), ArrayType(ArrayType(TEXT))):
        with pytest.raises(PipelineError):
            format_of(arrow_schema_of_rows(struct(wrong=wrong)), "market")


def test_events_come_back_as_they_were_by_the_types_that_spark_gives_them() -> None:
    for events in sample_events():
        batch = Batch.of(events, type(events[0]))
        schema = arrow_schema_of(struct_of(batch.format, metadata=False))
        again = events_of(fitted(batch.arrow, schema), batch.format)
        assert bytes(again.records) == bytes(batch.records)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option `channel`"),
        ({"channel": " "}, "needs the option `channel`"),
        ({"chanel": "x"}, "there is no option `chanel`: did you mean `channel`"),
        ({"zzz": "x"}, "there are channel, names, query, timeout"),
        ({"channel": "ticks"}, "nobody is given who knows channel `ticks`"),
        ({"channel": "ticks", "names": "a:1", "timeout": "soon"}, "`timeout` is a number of seconds"),
        ({"channel": "ticks", "names": "a:1", "timeout": "nan"}, "`timeout` is a number of seconds"),
        ({"channel": "ticks", "names": "a:1", "query": "x" * 201}, "`query` is a name"),
    ],
)
def test_options_that_are_wrong_are_told(options: dict[str, str], message: str) -> None:
    with pytest.raises(PipelineError, match=message):
        SinkOptions.of(options)


def test_options_are_read_in_whatever_case_beside_those_of_spark() -> None:
    given = {"CHANNEL": "ticks", "names": "a:1, b:2", "checkpointlocation": "x", "Timeout": "2.5", "query": "q"}
    assert SinkOptions.of(given) == SinkOptions(channel="ticks", names=("a:1", "b:2"), query="q", timeout=2.5)


def ticks(numbers: range) -> Iterator[pyarrow.RecordBatch]:
    values = numpy.arange(numbers.start, numbers.stop)
    yield pyarrow.RecordBatch.from_arrays([values * 0, values], schema=arrow_schema_of_rows(TICKS))


def test_a_writer_carries_few_rows_in_its_message_and_stages_many(intake: Intake, tmp_path: Path) -> None:
    writer = EchoicWriter({"channel": intake.channel.id}, TICKS, False)
    few = writer.write(ticks(range(10)))
    assert isinstance(few, Written)
    assert (few.rows, few.portions, len(few.carried)) == (10, 1, 1)
    assert intake.statistics().staged_bytes == 0
    writer.abort([few, None])
    rows = CARRIED_BYTES_MAX // 16 + 1
    many = writer.write(ticks(range(rows)))
    assert isinstance(many, Written)
    assert (many.rows, many.carried) == (rows, ())
    assert intake.statistics().staged_bytes > CARRIED_BYTES_MAX
    writer.commit([many])
    writer.commit([many])
    writer.commit([writer.write(iter([]))])
    assert recorded(tmp_path) == list(range(rows))


def test_a_writer_knows_the_type_of_a_channel_that_was_made_anew(start_hub: StartHub, tmp_path: Path) -> None:
    hub = start_hub()
    options = {"channel": hub.intake("alerts", tmp_path / "first", format_of_text("Alert{a: int}")).channel.id}
    columns = struct(a=LONG, b=LONG)
    EchoicWriter(options, columns, False)
    hub.close()
    start_hub(hub.address).intake("alerts", tmp_path / "second", format_of_text("Alert{a: int, b: int}"))
    writer = EchoicWriter(options, columns, False)
    row = pyarrow.RecordBatch.from_arrays([[1], [2]], schema=arrow_schema_of_rows(columns))
    writer.commit([writer.write(iter([row]))])
    (one,) = Journal(tmp_path / "second", "alerts").read()
    assert one.array["b"].tolist() == [2]


def test_what_a_writer_cannot_write_is_told(intake: Intake) -> None:
    options = {"channel": intake.channel.id}
    with pytest.raises(PipelineError, match="cannot be overwritten"):
        EchoicWriter(options, TICKS, True)
    with pytest.raises(PipelineError, match="there is no column `number`"):
        EchoicStreamWriter(options, struct(producer=LONG), False)
    writer = EchoicStreamWriter(options, TICKS, False)
    with pytest.raises(PipelineError, match="not a task of a streaming query"):
        writer.write(ticks(range(1)))


def test_a_channel_without_an_intake_is_told_with_what_to_do(start_hub: StartHub) -> None:
    channel = start_hub().create("alerts", Tick)
    with pytest.raises(PipelineError, match=r"has no intake: open one with .*hub.intake.*echoic intake alerts"):
        EchoicWriter({"channel": channel.id, "timeout": "0.3"}, TICKS, False)


def test_an_intake_that_ends_is_told_when_patience_ends(intake: Intake) -> None:
    writer = EchoicWriter({"channel": intake.channel.id, "timeout": "0.5"}, TICKS, False)
    message = writer.write(ticks(range(3)))
    intake.close()
    with pytest.raises(PipelineError, match=r"the intake of channel .* has not got further in 0.5 s"):
        writer.commit([message])


def test_the_hub_of_a_worker_is_one_until_the_process_is_forked() -> None:
    code = """
import os
from echoic.spark.worker_hub import worker_hub
hub = worker_hub()
assert worker_hub() is hub
child = os.fork()
if child == 0:
    own = worker_hub()
    os._exit(0 if own is not hub and hub.closed and not own.closed and own.address != hub.address else 1)
assert os.waitpid(child, 0)[1] == 0
assert worker_hub() is hub and not hub.closed
hub.close()
assert worker_hub() is not hub
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
