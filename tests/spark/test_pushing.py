"""Filters of Spark's as code: what is taken means the same to the last bit, what is not is given back."""

import decimal
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
)
from pyspark.sql.types import FloatType, StructType

from echoic.formats import event, float32, format_of_text, uint32
from echoic.recorder import Filter as RecordedFilter
from echoic.recorder import Recorded
from echoic.spark.batch_reader import PushingBatchReader
from echoic.spark.offsets import Range
from echoic.spark.options import SourceOptions
from echoic.spark.pushing import narrowed, pushed
from echoic.spark.reading import reading_of
from echoic.wire import Batch
from tests.recorder.recordings import Scribe, rows


@event
class Quote:
    symbol: str
    price: float
    small: float32
    volume: int
    lots: uint32
    live: bool
    note: str | None = None


QUOTE = Batch.of([Quote("", 0.0, 0.0, 0, 0, False)]).format
COMPARISONS = [EqualTo, EqualNullSafe, LessThan, LessThanOrEqual, GreaterThan, GreaterThanOrEqual]

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=4)
numbers = st.integers(-(1 << 63) + 1, (1 << 63) - 1) | st.integers(-3, 3)
floats = st.floats() | st.sampled_from([0.0, -0.0, 1.5, math.inf, -math.inf, math.nan])
quotes = st.builds(
    Quote, texts, floats, st.floats(width=32), numbers, st.integers(0, (1 << 32) - 1) | st.integers(0, 3), st.booleans()
)
values = {
    "symbol": texts,
    "price": floats.filter(lambda value: not math.isnan(value)),
    "small": st.floats(width=32, allow_nan=False),
    "volume": numbers,
    "lots": numbers,
    "live": st.booleans(),
}


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    name = draw(st.sampled_from(sorted(values)))
    kind = draw(st.sampled_from([*COMPARISONS, In, IsNull, IsNotNull]))
    if kind in (IsNull, IsNotNull):
        made: Filter = kind((name,))
    elif kind is In:
        made = In((name,), tuple(draw(st.lists(values[name], min_size=1, max_size=4))))
    else:
        made = kind((name,), draw(values[name]))
    return Not(made) if draw(st.booleans()) else made


def order(value: object) -> object:
    """What Spark sorts by: NaN behind every number."""
    return (math.isnan(value), 0.0 if math.isnan(value) else value) if isinstance(value, float) else value


def passes(each: Filter, row: Quote) -> bool:
    """What Spark makes of a filter, for values that are never null."""
    if isinstance(each, Not):
        return not passes(each.child, row)
    have = getattr(row, each.attribute[0])
    if isinstance(each, IsNull | IsNotNull):
        return isinstance(each, IsNotNull)
    if isinstance(each, In):
        return any(order(have) == order(value) for value in each.value)
    have, value = order(have), order(each.value)
    return {
        EqualTo: have == value,
        EqualNullSafe: have == value,
        LessThan: have < value,
        LessThanOrEqual: have <= value,
        GreaterThan: have > value,
        GreaterThanOrEqual: have >= value,
    }[type(each)]


@given(st.lists(filters(), min_size=1, max_size=4), st.lists(quotes, min_size=1, max_size=8))
def test_what_is_taken_means_what_spark_means(asked: list[Filter], events: list[Quote]) -> None:
    taken, left = pushed(asked, QUOTE, ())
    kept = [each for each in asked if not any(each is other for other in left)]
    batch = Batch.of(events)
    if taken is not None:
        passed = RecordedFilter(taken.code, taken.params, QUOTE).apply(Recorded(batch, 0, 0, 0, 0, 0))
        found = [] if passed is None else [events[index] for index in passed.steps]
        expected = [each for each in events if all(passes(one, each) for one in kept)]
        assert list(map(repr, found)) == list(map(repr, expected))


@pytest.mark.parametrize(
    "each",
    [
        StringContains(("symbol",), "I"),
        LessThan(("symbol",), "I"),
        EqualTo(("symbol",), "I\0"),
        EqualTo(("price",), math.nan),
        EqualTo(("price",), decimal.Decimal(1)),
        EqualTo(("volume",), None),
        EqualTo(("volume",), True),
        EqualTo(("note",), "x"),
        IsNull(("note",)),
        In(("volume",), (1, None)),
        In(("volume",), tuple(range(1000))),
        LessThan(("live",), True),
        EqualTo(("nothing",), 1),
        EqualTo(("_sequence",), 1),
        EqualTo(("price", "inner"), 1.0),
        Not(StringContains(("symbol",), "I")),
    ],
)
def test_what_may_mean_something_else_is_given_back(each: Filter) -> None:
    assert pushed([each], QUOTE, ()) == (None, [each])


def test_columns_that_may_be_null_are_left_to_spark() -> None:
    asked = [GreaterThan(("price",), 1.0), IsNotNull(("price",))]
    assert pushed(asked, QUOTE, {"price"}) == (None, asked)
    assert pushed([EqualTo(("big",), 1)], format_of_text("T{big: uint64}"), ())[0] is None


def test_the_number_of_values_is_limited() -> None:
    asked: list[Filter] = [EqualTo(("volume",), number) for number in range(1000)]
    taken, left = pushed(asked, QUOTE, ())
    assert taken is not None
    assert len(taken.params) + len(left) == 1001
    assert len(taken.params) == 256


def test_what_is_asked_of_the_sequence_says_where_to_look() -> None:
    whole = [Range(0, 10, 100), Range(1, 0, 50)]
    assert narrowed(whole, [GreaterThan(("_sequence",), 60)]) == [Range(0, 61, 100)]
    assert narrowed(whole, [LessThanOrEqual(("_sequence",), 20)]) == [Range(0, 10, 21), Range(1, 0, 21)]
    assert narrowed(whole, [EqualTo(("_sequence",), 12)]) == [Range(0, 12, 13), Range(1, 12, 13)]
    assert narrowed(whole, [EqualTo(("_partition",), 1)]) == [Range(1, 0, 50)]
    assert narrowed(whole, [LessThan(("_sequence",), -5)]) == []
    assert narrowed(whole, [GreaterThan(("_sequence",), 1 << 62)]) == []
    assert narrowed(whole, [EqualTo(("price",), 1.0), Not(EqualTo(("_sequence",), 1))]) == whole


@given(st.lists(st.sampled_from(COMPARISONS), max_size=3), st.lists(st.integers(-5, 40), min_size=3, max_size=3))
def test_no_event_that_passes_is_left_out_by_looking_elsewhere(kinds: list[type], bounds: list[int]) -> None:
    asked: list[Filter] = [kind(("_sequence",), bound) for kind, bound in zip(kinds, bounds, strict=False)]
    found = {number for part in narrowed([Range(0, 3, 30)], asked) for number in range(part.start, part.end)}
    tests = {EqualTo: int.__eq__, EqualNullSafe: int.__eq__, LessThan: int.__lt__, LessThanOrEqual: int.__le__,
             GreaterThan: int.__gt__, GreaterThanOrEqual: int.__ge__}  # fmt: skip
    assert found == {n for n in range(3, 30) if all(tests[type(each)](n, each.value) for each in asked)}


def pushing(folder: Path, schema: StructType | None = None, **more: str) -> PushingBatchReader:
    options = SourceOptions.of({"journal": str(folder / "journals"), "pushdown": "true", **more})
    return PushingBatchReader(options, schema or reading_of(options).struct)


def read(reader: PushingBatchReader) -> list[int]:
    return [row["number"] for part in reader.partitions() for b in reader.read(part) for row in b.to_pylist()]


def test_a_reader_runs_what_it_takes(tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 100))
    reader = pushing(tmp_path)
    asked = [GreaterThanOrEqual(("price",), 10.0), LessThan(("_sequence",), 25), StringContains(("number",), "x")]
    assert reader.pushFilters(asked) == asked[1:]
    assert read(reader) == [20, 21, 22, 23, 24]


def test_a_column_that_earlier_types_do_not_have_is_left_to_spark(tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 3))
    scribe.write([Quote("IBM", 1.0, 1.0, 1, 1, True)])
    asked = [EqualTo(("price",), 1.0), EqualTo(("symbol",), "IBM")]
    assert pushing(tmp_path).pushFilters(asked) == asked[1:]


def test_a_column_that_is_wanted_as_another_type_is_left_to_spark(tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 3))
    asked = [EqualTo(("price",), 1.0)]
    assert pushing(tmp_path, StructType().add("price", FloatType())).pushFilters(asked) == asked


def test_nothing_is_read_where_nothing_can_be(tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 3))
    reader = pushing(tmp_path)
    reader.pushFilters([EqualTo(("_partition",), 7)])
    assert read(reader) == []


def test_code_that_remembers_sees_all_events_before_those_that_are_asked_for(tmp_path: Path, scribe: Scribe) -> None:
    scribe.write(rows(0, 100))
    reader = pushing(tmp_path, where="{ static int seen = 0; seen += 1; return seen > 95; }")
    reader.pushFilters([GreaterThan(("_sequence",), 80)])
    assert read(reader) == [95, 96, 97, 98, 99]


def test_a_field_that_is_called_as_a_column_of_the_journal_is_not_taken_for_it(tmp_path: Path, scribe: Scribe) -> None:
    own = format_of_text("Own{_sequence: int, number: int}")
    scribe.write(Batch.of([{"_sequence": 100 - number, "number": number} for number in range(5)], own))
    reader = pushing(tmp_path, metadata="false")
    assert reader.pushFilters([GreaterThan(("_sequence",), 98)]) == []
    assert read(reader) == [0, 1]
