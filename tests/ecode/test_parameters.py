"""Parameter blocks: their types from plain values, and changes that keep the types."""

import dataclasses
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.ecode.parameters import parameter_format, updated
from echoic.errors import EncodeError, FormatError
from echoic.formats import NATIVE, Array, Format, event, float32, int16
from echoic.wire import encoder_of


@event
class Range:
    low: float
    high: float
    name: str | None = None


@event
class Watch:
    range: Range
    weights: Array[float32, 3]
    venue: int16 = 7


@dataclasses.dataclass
class Plain:
    limit: float
    count: int


def spellings(values: object) -> dict[str, str]:
    return {path: field.spelling for path, field in parameter_format(values).walk()}


def encoded(values: object) -> bytes:
    return encoder_of(parameter_format(values)).single(type(values))(values)


def test_plain_values_have_the_types_that_annotations_of_the_same_would_have() -> None:
    assert spellings({"on": True, "lot": 100, "low": 75.5, "symbol": "IBM", "key": b"\x00"}) == {
        "on": "bool",
        "lot": "int64",
        "low": "float64",
        "symbol": "string",
        "key": "bytes",
    }


def test_sequences_of_numbers_are_fixed_arrays() -> None:
    assert spellings({"a": [1, 2], "b": (0.5, 1), "c": [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], "d": [True, False]}) == {
        "a": "int64[2]",
        "b": "float64[2]",
        "c": "float64[2][3]",
        "d": "bool[2]",
    }


def test_sequences_of_texts_are_arrays_of_texts() -> None:
    assert spellings({"symbols": ["IBM", "HPQ"], "keys": (b"a",)}) == {"symbols": "string[2]", "keys": "bytes[1]"}


def test_numpy_values_keep_their_width_but_not_their_byte_order() -> None:
    values = {"a": numpy.float32(1), "b": numpy.zeros((2, 2), ">i2"), "c": numpy.uint8(3), "d": numpy.bool_(True)}
    assert spellings(values) == {"a": "float32", "b": "int16[2][2]", "c": "uint8", "d": "bool"}
    assert parameter_format(values).byte_order == NATIVE.byte_order


def test_mappings_inside_are_records() -> None:
    assert spellings({"range": {"low": 1, "high": 2.0}}) == {
        "range": "range",
        "range.low": "int64",
        "range.high": "float64",
    }


def test_an_object_of_an_event_class_has_the_type_of_its_class() -> None:
    assert parameter_format(Range(1.0, 2.0)) == Format.of(Range)
    assert parameter_format(Plain(1.0, 2)) == Format.of(Plain)
    assert parameter_format({"range": Range(1.0, 2.0)}).field("range").record == Format.of(Range)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "at least one value"),
        ({"a": {}}, "at least one value - at `Parameters.a`"),
        ({"a": None}, "NoneType None cannot be a parameter - at `Parameters.a`"),
        ({"a": []}, "an empty sequence does not tell"),
        ({"a": [[]]}, "not numbers"),
        ({"a": numpy.zeros(0)}, "an empty array"),
        ({"a": [1, "x"]}, "not numbers"),
        ({"a": [[1], [1, 2]]}, "do not form an array"),
        ({"a": 1 << 63}, "does not fit int64 - at `Parameters.a`"),
        ({"a": 1j}, "complex 1j cannot be a parameter"),
        ({"a": numpy.complex128(1)}, "cannot be a parameter"),
        ({"not a name": 1}, "is not an identifier"),
        ({1: 1}, "must be a str, got int 1"),
        (5, "expected a mapping of parameters or an object of an event class, got int 5"),
        (Range, "expected a mapping"),
    ],
)
def test_values_without_a_type_are_refused_by_name(values: object, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parameter_format(values)


def test_a_change_leaves_the_other_values_and_the_given_mapping_as_they_are() -> None:
    before = {"low": 75.5, "high": 78.5}
    assert updated(before, {"low": 70.0}) == {"low": 70.0, "high": 78.5}
    assert before == {"low": 75.5, "high": 78.5}


def test_an_integer_for_a_float_becomes_a_float() -> None:
    changed: Any = updated({"low": 75.5, "weights": [0.5, 0.5]}, {"low": 70, "weights": [1, 2]})
    assert type(changed["low"]) is float
    assert changed["weights"].dtype == numpy.float64


def test_changes_reach_into_nested_records() -> None:
    values = {"range": {"low": 1.0, "high": 2.0}, "lot": 5}
    assert updated(values, {"range": {"high": 3}}) == {"range": {"low": 1.0, "high": 3.0}, "lot": 5}


def test_an_object_is_changed_into_another_of_its_class() -> None:
    before = Watch(Range(1.0, 2.0), numpy.zeros(3, numpy.float32))
    changed = updated(before, {"venue": 9, "range": {"name": "wide"}, "weights": [1, 2, 3]})
    assert changed == Watch(Range(1.0, 2.0, "wide"), numpy.array([1, 2, 3], numpy.float32), 9)
    assert before.range.name is None
    assert updated(Plain(1.0, 2), {"limit": 4}) == Plain(4.0, 2)
    assert updated({"range": Range(1.0, 2.0)}, {"range": Range(3.0, 4.0)}) == {"range": Range(3.0, 4.0)}


def test_an_unknown_name_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(FormatError, match="no parameter `hgih`; did you mean `high`"):
        updated({"low": 1.0, "high": 2.0}, {"hgih": 3.0})
    with pytest.raises(FormatError, match=r"no parameter `zzz`; there are `low`, `high` - at `Parameters\.range`"):
        updated({"range": {"low": 1.0, "high": 2.0}}, {"range": {"zzz": 3.0}})


@pytest.mark.parametrize(
    ("value", "change", "expected"),
    [
        (1.0, "high", "expected `float64`, got str high - at `Parameters.value`"),
        (1.0, True, "expected `float64`, got bool True"),
        (1.0, None, "expected `float64`, got NoneType None"),
        (1.0, 10**400, "expected `float64`"),
        (numpy.float32(1), 1e300, "expected `float32`"),
        (1, 1.5, "expected `int64`, got float 1.5"),
        (1, 1 << 63, "expected `int64`, got int 9223372036854775808"),
        (1, False, "expected `int64`, got bool False"),
        (numpy.uint8(1), 256, "expected `uint8`, got int 256"),
        (numpy.uint8(1), -1, "expected `uint8`, got int -1"),
        (True, 1, "expected `bool`, got int 1"),
        ("a", b"a", "expected `string`, got bytes"),
        (b"a", "a", "expected `bytes`, got str"),
        ([1, 2], [1, 2, 3], r"expected `int64\[2\]`, got list"),
        ([1, 2], [1.5, 2], r"expected `int64\[2\]`"),
        ([1, 2], 5, r"expected `int64\[2\]`, got int 5"),
        ([1.0, 2.0], [True, False], r"expected `float64\[2\]`"),
        ([1.0, 2.0], [[1.0], [1.0, 2.0]], r"expected `float64\[2\]`"),
        (numpy.zeros(1, numpy.float32), [1e300], r"expected `float32\[1\]`"),
        (numpy.zeros(1, numpy.int8), [200], r"expected `int8\[1\]`"),
        (["a", "b"], ["a"], r"expected `string\[2\]`"),
        (["a"], [b"a"], r"expected `string\[1\]`"),
        ({"low": 1}, 5, "expected `value`, got int 5"),
        ({"low": 1}, {"low": "x"}, "expected `int64`, got str x - at `Parameters.value.low`"),
    ],
)
def test_a_value_of_another_type_is_refused(value: object, change: object, expected: str) -> None:
    with pytest.raises(EncodeError, match=expected):
        updated({"value": value}, {"value": change})


def test_values_and_changed_values_can_be_encoded() -> None:
    values = {"low": 75.5, "symbols": ["IBM", "HPQ"], "range": {"n": 3}, "weights": [0.5, 0.25], "on": True}
    changed = updated(values, {"low": 1, "weights": [1, 2], "range": {"n": 4}, "symbols": ("A", "B")})
    assert encoded(changed) == encoded(
        {"low": 1.0, "symbols": ["A", "B"], "range": {"n": 4}, "weights": [1.0, 2.0], "on": True}
    )
    assert encoded(changed) != encoded(values)


integers = st.integers(-(1 << 63), (1 << 63) - 1)
floats = st.floats(allow_nan=False)
narrow = st.floats(width=32, allow_nan=False)
pairs = st.one_of(
    st.tuples(st.booleans(), st.booleans()),
    st.tuples(integers, integers),
    st.tuples(floats, floats | st.integers(-(10**6), 10**6)),
    st.tuples(narrow.map(numpy.float32), narrow | st.integers(-1000, 1000)),
    st.tuples(st.integers(0, 255).map(numpy.uint8), st.integers(0, 255)),
    st.tuples(st.integers(0, 2**64 - 1).map(numpy.uint64), st.integers(0, 2**64 - 1)),
    st.tuples(st.text(), st.text()),
    st.tuples(st.binary(), st.binary()),
    st.tuples(st.lists(floats, min_size=2, max_size=2), st.lists(floats, min_size=2, max_size=2)),
    st.tuples(st.lists(integers, min_size=1, max_size=1), st.lists(integers, min_size=1, max_size=1)),
)


@given(pairs, pairs)
def test_changes_never_change_the_type(first: tuple[object, object], second: tuple[object, object]) -> None:
    values = {"first": first[0], "inside": {"second": second[0]}}
    changed = updated(values, {"first": first[1], "inside": {"second": second[1]}})
    assert parameter_format(changed) == parameter_format(values)
    encoder_of(parameter_format(values)).encode([changed])
