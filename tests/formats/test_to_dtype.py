"""The fixed part as a NumPy dtype: what NumPy reads there is what lies there."""

import math
import struct

import hypothesis.strategies as st
import numpy
import pytest
from hypothesis import given, settings

from echoic.formats import ARCHITECTURES, Array, Field, Format, Kind, char, event, int8, int16, uint8
from echoic.formats.checks import extent
from echoic.formats.matching import number_letters, number_of
from echoic.formats.to_dtype import element_dtype, slot_dtype
from tests.strategies import formats


@event
class Cell:
    x: int8
    y: int16


@event
class Mixed:
    n: uint8
    name: str
    cells: Array[Cell, 2]
    values: Array[float, "n", 3]
    code: Array[char, 4]
    codes: Array[char, 2, 4]
    letter: char


def test_slots_appear_as_what_they_are() -> None:
    dtype = Format.of(Mixed).on(ARCHITECTURES["sparc32"]).dtype
    assert dtype["name"] == dtype["values"] == numpy.dtype([("offset", ">u4"), ("length", ">u4")])
    assert Format.of(Mixed).on(ARCHITECTURES["sparc32"].with_pointers()).dtype["name"] == numpy.dtype(">u4")
    assert Format.of(Mixed).on(ARCHITECTURES["x86_64"].with_pointers()).dtype["values"] == numpy.dtype("<u8")


def test_the_last_dimension_of_a_char_array_becomes_a_byte_string() -> None:
    dtype = Format.of(Mixed).dtype
    assert dtype["letter"] == numpy.dtype("S1")
    assert dtype["code"] == numpy.dtype("S4")
    assert dtype["codes"] == numpy.dtype(("S4", (2,)))


def test_records_nest_with_their_own_padding() -> None:
    dtype = Format.of(Mixed).dtype["cells"]
    assert dtype.shape == (2,)
    assert dtype.base.itemsize == 4
    assert dtype.base.fields is not None
    assert dtype.base.fields["y"][1] == 2


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (Field("a", Kind.INT, 2), ">i2"),
        (Field("a", Kind.UINT, 8), ">u8"),
        (Field("a", Kind.FLOAT, 4), ">f4"),
        (Field("a", Kind.BOOL, 1), "?"),
        (Field("a", Kind.CHAR, 1), "S1"),
    ],
)
def test_elements_have_the_byte_order_of_the_format(field: Field, expected: str) -> None:
    format = Format.place("T", [field], ARCHITECTURES["ppc64"])
    assert element_dtype(field, format) == numpy.dtype(expected)


@settings(max_examples=40)
@given(formats())
def test_every_field_has_its_place_its_size_and_its_shape(format: Format) -> None:
    assert format.dtype.itemsize == format.size
    assert format.dtype.names == tuple(field.name for field in format.fields)
    for field in format.fields:
        assert format.dtype.fields is not None
        sub, offset = format.dtype.fields[field.name][:2]
        assert (offset, sub.itemsize) == (field.offset, extent(field, format.slots))
        if field.dynamic:
            assert sub == slot_dtype(format)
        elif field.kind is Kind.CHAR and field.dimensions:
            assert (sub.shape, sub.base.itemsize) == (field.fixed_dimensions[:-1], field.fixed_dimensions[-1])
        else:
            assert sub.shape == field.fixed_dimensions


@given(formats(max_depth=0), st.binary(min_size=1, max_size=40))
def test_numpy_and_struct_read_the_same_numbers(format: Format, pattern: bytes) -> None:
    memory = (pattern * (format.size // len(pattern) + 1))[: format.size]
    record = numpy.frombuffer(memory, format.dtype)[0]
    order = ">" if format.byte_order == "big" else "<"
    for field in format.fields:
        if field.dynamic or number_of(field, format.byte_order) is None or field.kind is Kind.BOOL:
            continue
        letters = f"{order}{field.count}{number_letters(field, format.byte_order)}"
        expected = struct.unpack_from(letters, memory, field.offset)
        found = numpy.ravel(record[field.name]).tolist()
        assert len(found) == math.prod(field.fixed_dimensions)
        assert all(one == other or (one != one and other != other) for one, other in zip(found, expected, strict=True))  # noqa: PLR0124 - NaN


def test_the_dtype_is_made_once() -> None:
    assert Format.of(Mixed).dtype is Format.of(Mixed).dtype
