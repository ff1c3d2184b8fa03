"""Recorded times in fields of events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic import ARCHITECTURES, Array, Batch, Format, event, float32, float64, int64, uint64
from echoic.errors import FormatError
from echoic.recorder.stamping import check_stamp, stamped

TIME = 1_763_000_000_123_456_789


@event
class Fixed:
    flag: bool
    at: int64
    value: float32


@event
class Loose:
    text: str
    at: float64
    count: int64
    numbers: Array[float32, "count"]


@event
class Unsigned:
    at: uint64


architectures = st.sampled_from(sorted(ARCHITECTURES)).map(lambda name: ARCHITECTURES[name])


@given(architectures, st.integers(1, 20))
def test_the_time_is_written_and_nothing_else_whatever_the_layout(architecture: object, count: int) -> None:
    format = Format.of(Fixed).on(architecture)
    batch = Batch.of([Fixed(number % 2 == 0, number, number / 2) for number in range(count)], Fixed).to(format)
    written = stamped(batch, "at", TIME).to(Fixed).events()
    assert [(each.flag, each.at, each.value) for each in written] == [
        (number % 2 == 0, TIME, number / 2) for number in range(count)
    ]
    assert [each.at for each in batch.to(Fixed).events()] == list(range(count))


@given(architectures, st.lists(st.tuples(st.text(max_size=20), st.lists(st.integers(0, 9))), min_size=1, max_size=9))
def test_records_that_differ_in_length_are_stamped_each(
    architecture: object, rows: list[tuple[str, list[int]]]
) -> None:
    format = Format.of(Loose).on(architecture)
    batch = Batch.of([Loose(text, 0.0, len(numbers), numbers) for text, numbers in rows], Loose).to(format)
    written = stamped(batch, "at", TIME).to(Loose).events()
    assert [(each.text, each.at, list(each.numbers)) for each in written] == [
        (text, TIME / 1e9, numbers) for text, numbers in rows
    ]


def test_a_time_before_1970_is_0_where_there_are_no_negative_numbers() -> None:
    assert stamped(Batch.of([Unsigned(5)]), "at", -3).events()[0].at == 0
    assert stamped(Batch.of([Fixed(True, 5, 1.0)]), "at", -3).events()[0].at == -3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("value", "expected int64, uint64 or float64 for a time, got `float32` - at `Fixed.value`"),
        ("flag", "expected int64, uint64 or float64 for a time, got `bool` - at `Fixed.flag`"),
        ("att", "has no field `att`; did you mean `at`"),
    ],
)
def test_a_field_that_cannot_hold_a_time_is_refused(name: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        check_stamp(Format.of(Fixed), name)


def test_fields_that_can_hold_a_time_are_accepted() -> None:
    for declared in (Fixed, Loose, Unsigned):
        check_stamp(Format.of(declared), "at")
