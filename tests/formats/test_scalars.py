"""The names in which fields are declared, and what `Array[...]` accepts."""

from typing import Annotated, Any, get_args, get_type_hints

import numpy
import pytest
from numpy.typing import NDArray

import echoic
from echoic.errors import FormatError
from echoic.formats import (
    Array,
    Format,
    bool_,
    char,
    event,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)


def word(value: object) -> str:
    """Return the readable half of a parameter as its id."""
    return value if isinstance(value, str) else ""


def spelling(annotation: Any, **fields: Any) -> str:
    """Return the type of a field with this annotation, beside other fields if it needs them."""
    cls = type("T", (), {"__annotations__": {"value": annotation, **fields}})
    return Format.of(event(cls)).field("value").spelling


@pytest.mark.parametrize(
    ("annotation", "expected", "size"),
    [
        (int8, "int8", 1),
        (int16, "int16", 2),
        (int32, "int32", 4),
        (int64, "int64", 8),
        (uint8, "uint8", 1),
        (uint16, "uint16", 2),
        (uint32, "uint32", 4),
        (uint64, "uint64", 8),
        (float32, "float32", 4),
        (float64, "float64", 8),
        (bool_, "bool", 1),
        (char, "char", 1),
        (int, "int64", 8),
        (float, "float64", 8),
        (bool, "bool", 1),
        (str, "string", 8),
        (bytes, "bytes", 8),
        (numpy.int8, "int8", 1),
        (numpy.int16, "int16", 2),
        (numpy.int32, "int32", 4),
        (numpy.int64, "int64", 8),
        (numpy.uint8, "uint8", 1),
        (numpy.uint16, "uint16", 2),
        (numpy.uint32, "uint32", 4),
        (numpy.uint64, "uint64", 8),
        (numpy.float32, "float32", 4),
        (numpy.float64, "float64", 8),
        (numpy.bool_, "bool", 1),
    ],
    ids=str,
)
def test_every_name_has_its_kind_and_width(annotation: object, expected: str, size: int) -> None:
    assert spelling(annotation) == expected
    assert Format.of(event(type("T", (), {"__annotations__": {"value": annotation}}))).size == size


@pytest.mark.parametrize(
    ("annotation", "seen"),
    [(int8, int), (uint64, int), (float32, float), (float64, float), (bool_, bool), (char, bytes)],
)
def test_a_type_checker_sees_a_plain_python_type(annotation: Any, seen: type) -> None:
    assert get_args(annotation)[0] is seen


@pytest.mark.parametrize("name", ["Array", "bool_", "char", "float32", "int8", "uint64"])
def test_the_names_are_at_the_top_of_the_package(name: str) -> None:
    assert getattr(echoic, name) is globals()[name]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (Array[float64, 37, 253], "float64[37][253]"),
        (Array[float32, "n"], "float32[n]"),
        (Array[float64, "n", 3], "float64[n][3]"),
        (Array[str, ...], "string[]"),
        (Array[bytes, ..., 2], "bytes[][2]"),
        (Array[int, 3], "int64[3]"),
        (Array[char, 16], "char[16]"),
        (Array[bool, ...], "bool[]"),
        (Array[numpy.int16, 2], "int16[2]"),
        (Array[Array[float32, 3], "n"], "float32[n][3]"),
        (Array[Array[float32, 3, 4], 2], "float32[2][3][4]"),
        (Annotated[NDArray[numpy.float64], Array[float64, 37, 253]], "float64[37][253]"),
        (Annotated[list[str], Array[str, ...]], "string[]"),
        (Annotated[int, int16], "int16"),
        (Annotated[int16, "metres"], "int16"),
        (Annotated[int, "metres"], "int64"),
        (Annotated[str, "name"], "string"),
        (Annotated[Array[float32, 2], "metres"], "float32[2]"),
        (Annotated[str | None, "name"], "string?"),
    ],
    ids=word,
)
def test_arrays_and_annotations_are_read_as_they_are_written(annotation: object, expected: str) -> None:
    assert spelling(annotation, n=int) == expected


@pytest.mark.parametrize(
    "items",
    [float64, (float64,), (), (float64, 3.5), (float64, None), (float64, ""), (float64, True), (float64, 3, int)],
)
def test_an_array_without_proper_dimensions_is_refused_where_it_is_written(items: Any) -> None:
    with pytest.raises(FormatError, match="dimension"):
        Array[items]


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (Array[float64, 0], r"dimension 0 is 0, expected 1 to 16777216 - at `T.value`"),
        (Array[float64, 3, "n"], r"only the first dimension can be dynamic, dimension 1 is `n` - at `T.value`"),
        (Array[float64, 3, ...], r"only the first dimension can be dynamic"),
        (Array[Array[float64, "n"], 3], r"elements of an array cannot be `float64\[n\]` - at `T.value`"),
        (Array[Array[float64, ...], "n"], r"elements of an array cannot be `float64\[\]` - at `T.value`"),
        (Array[str | None, 3], r"elements of an array cannot be `string\?` - at `T.value`"),
        (Array[float64, "m"], r"`T` has no field `m`.*length"),
        (Array[float64, "value"], r"length must be a single integer field"),
        (Array[float64, *[2] * 9], r"9 dimensions, limit is 8"),
        (Array["Cell", 3], r"`Cell` cannot be the type of a field"),
        (Array[object, 3], r"`object` cannot be the type of a field"),
    ],
    ids=word,
)
def test_an_array_that_cannot_be_a_field_is_refused_with_its_place(annotation: object, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        spelling(annotation, n=int)


@pytest.mark.parametrize("dimension", [-3, 10**9])
def test_a_bad_dimension_is_blamed_on_its_field_and_not_on_the_record(dimension: int) -> None:
    with pytest.raises(FormatError, match=f"dimension 0 is {dimension}, expected 1 to 16777216 - at `T.value`"):
        spelling(Array[float64, dimension])


def test_an_array_annotation_survives_the_reading_of_type_hints() -> None:
    @event
    class Wind:
        n: int
        samples: Array[float32, "n"]

    assert get_type_hints(Wind, include_extras=True)["samples"] == Array[float32, "n"]
