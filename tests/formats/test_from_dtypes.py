"""NumPy structured dtypes as event types: nothing is laid out anew."""

from typing import Any

import hypothesis.strategies as st
import numpy
import pytest
from hypothesis import given
from hypothesis.strategies import DrawFn

from echoic.errors import FormatError
from echoic.formats import NATIVE, Field, Format, Kind
from tests.strategies import names

FOREIGN = ">" if NATIVE.byte_order == "little" else "<"
NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "?"]


def layout(format: Format) -> tuple[list[int], int, int]:
    return [field.offset for field in format.fields], format.size, format.alignment


def test_every_number_has_its_kind_and_width() -> None:
    format = Format.of(numpy.dtype([(f"f{index}", kind) for index, kind in enumerate(NUMBERS)]))
    assert [field.spelling for field in format.fields] == [
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float32",
        "float64",
        "bool",
    ]
    assert format.name == "Record"


def test_a_packed_dtype_stays_packed_and_an_aligned_one_aligned() -> None:
    fields = [("a", "i1"), ("b", "f8"), ("c", "i2")]
    assert layout(Format.of(numpy.dtype(fields))) == ([0, 1, 9], 11, 1)
    assert layout(Format.of(numpy.dtype(fields, align=True))) == ([0, 8, 16], 24, 8)


def test_an_aligned_dtype_is_the_native_layout() -> None:
    aligned = Format.of(numpy.dtype([("a", "i1"), ("b", "f8"), ("c", "i2", (3,)), ("d", "u1")], align=True))
    assert aligned == aligned.on(NATIVE)


def test_offsets_gaps_and_order_are_kept() -> None:
    dtype = numpy.dtype({"names": ["a", "b"], "formats": ["i4", "u1"], "offsets": [8, 1], "itemsize": 20})
    assert layout(Format.of(dtype)) == ([8, 1], 20, 4)
    odd = numpy.dtype({"names": ["a"], "formats": ["i4"], "offsets": [2], "itemsize": 8})
    assert layout(Format.of(odd)) == ([2], 8, 1)
    ragged = numpy.dtype({"names": ["a"], "formats": ["i4"], "offsets": [0], "itemsize": 7})
    assert layout(Format.of(ragged)) == ([0], 7, 1)


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_byte_order_is_that_of_the_dtype(order: str) -> None:
    dtype = numpy.dtype([("a", f"{order}i4"), ("b", f"{order}f8", (2,)), ("c", "u1"), ("d", "S3"), ("e", "?")])
    format = Format.of(dtype)
    assert format.byte_order == ("little" if order == "<" else "big")
    assert format.dtype == dtype


def test_without_anything_to_swap_the_byte_order_is_this_machines() -> None:
    assert Format.of(numpy.dtype([("a", "u1"), ("b", "S4"), ("c", "?")])).byte_order == NATIVE.byte_order


@pytest.mark.parametrize(
    "fields",
    [
        [("a", "<i4"), ("b", ">i4")],
        [("a", "<i4"), ("b", [("c", ">f8")])],
        [("a", ">u2", (3,)), ("b", "<u2", (3,))],
        [("a", [("x", "<i2")]), ("b", [("y", ">i2")])],
    ],
    ids=str,
)
def test_two_byte_orders_in_one_record_are_refused(fields: list[Any]) -> None:
    with pytest.raises(FormatError, match=r"a record has one byte order, .* mixes two; use dtype.newbyteorder\(\)"):
        Format.of(numpy.dtype(fields))


def test_nested_records_and_subarrays_keep_their_shape() -> None:
    cell = numpy.dtype([("x", "f4"), ("y", "u1")], align=True)
    format = Format.of(numpy.dtype([("n", "i8"), ("cells", cell, (2, 3)), ("one", cell), ("wind", "f8", (37, 253))]))
    assert [field.spelling for field in format.fields] == ["int64", "cells[2][3]", "one", "float64[37][253]"]
    assert [path for path, _ in format.walk()] == ["n", "cells", "cells.x", "cells.y", "one", "one.x", "one.y", "wind"]
    record = format.field("cells").record
    assert record is not None
    assert (record.size, record.alignment) == (8, 4)


def test_byte_strings_are_char_arrays() -> None:
    format = Format.of(numpy.dtype([("a", "S1"), ("b", "S16"), ("c", "S4", (2,)), ("d", "S1", (3,))]))
    assert [field.spelling for field in format.fields] == ["char", "char[16]", "char[2][4]", "char[3]"]
    assert format.size == 1 + 16 + 8 + 3


@pytest.mark.parametrize("kind", ["f2", "c8", "c16", "g", "O", "U5", "V8", "M8[s]", "m8[ns]", "S0", "M8", "U0"])
def test_a_type_without_counterpart_is_refused_with_its_place(kind: str) -> None:
    if kind == "g" and numpy.dtype("g").itemsize == 8:
        pytest.skip("long double is a double here")
    cases: list[tuple[list[Any], str]] = [([("x", kind)], "Record.x"), ([("in", [("x", kind)])], "in.x")]
    if numpy.dtype(kind).itemsize:
        cases.append(([("x", kind, (2,))], "Record.x"))
    for fields, place in cases:
        with pytest.raises(FormatError, match=rf"NumPy type `.*` cannot be a field - at `{place}`"):
            Format.of(numpy.dtype(fields))


@pytest.mark.parametrize("dtype", ["i4", "S8", "f8", "O", "V8", ("f4", (3,))], ids=str)
def test_a_dtype_without_named_fields_is_refused(dtype: Any) -> None:
    with pytest.raises(FormatError, match=r"expected a structured dtype, got `.*`; name its fields"):
        Format.of(numpy.dtype(dtype))


@pytest.mark.parametrize(
    ("dtype", "message"),
    [
        (numpy.dtype([]), "at least one field"),
        (numpy.dtype([("a b", "i4")]), "field name 'a b' is not an identifier"),
        (numpy.dtype([("größe", "i4")]), "is not an identifier"),
        (numpy.dtype([("__x", "i4")]), "is not an identifier"),
        (numpy.dtype([("a", "i4", (0,))]), r"bytes|dimension 0 is 0"),
        (numpy.dtype([("a", "i4", (2, 0)), ("b", "i4")]), "dimension 1 is 0"),
        (numpy.dtype({"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [0, 2]}), "inside `a`"),
        (numpy.dtype([("a", "i4", (1,) * 9)]), "9 dimensions, limit is 8"),
        (numpy.dtype([("a", "u1", (4097, 4096))]), "limit is 16777216"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_dtype_that_is_no_record_is_refused(dtype: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Format.of(dtype)


def test_titles_are_not_fields() -> None:
    format = Format.of(numpy.dtype([(("the title", "a"), "i4"), ("b", "i2")]))
    assert [field.name for field in format.fields] == ["a", "b"]


@pytest.mark.parametrize("levels", [64, 100, 900])
def test_records_nested_too_deep_are_refused(levels: int) -> None:
    dtype = numpy.dtype([("x", "i1")])
    for _ in range(levels):
        dtype = numpy.dtype([("x", dtype)])
    with pytest.raises(FormatError, match="nested 65 deep, limit is 64"):
        Format.of(dtype)


def test_equal_dtypes_are_one_format_whichever_was_seen_first() -> None:
    """NumPy calls an aligned and a packed dtype equal when their fields lie alike, and so does the cache of formats."""
    packed, aligned = (numpy.dtype([("x", "i4")], align=align) for align in (False, True))
    assert packed == aligned
    one, other = Format.of(numpy.dtype([("a", packed)])), Format.of(numpy.dtype([("b", aligned)]))
    assert one.alignment == other.alignment


@st.composite
def dtypes(draw: DrawFn, depth: int = 2, order: str = "<") -> "numpy.dtype[Any]":
    known = draw(st.lists(names(), min_size=1, max_size=4, unique=True))
    fields = []
    for name in known:
        scalar = st.sampled_from([*(order + kind for kind in NUMBERS if kind != "?"), "?", "S2", "S5"]).map(numpy.dtype)
        kind = draw(scalar if not depth else scalar | dtypes(depth=depth - 1, order=order))
        fields.append((name, kind, tuple(draw(st.lists(st.integers(1, 3), max_size=2)))))
    return numpy.dtype(fields, align=draw(st.booleans()))


@given(st.sampled_from("<>").flatmap(lambda order: dtypes(order=order)))
def test_a_dtype_comes_back_from_its_format(dtype: "numpy.dtype[Any]") -> None:
    format = Format.of(dtype)
    assert format.size == dtype.itemsize
    assert [field.offset for field in format.fields] == [dtype.fields[name][1] for name in dtype.names or ()]  # type: ignore[index]
    assert not format.variable
    again = Format.of(format.dtype)
    assert again.layout == format.layout


def test_a_field_of_a_dtype_is_placed_as_it_lies() -> None:
    assert Format.of(numpy.dtype([("a", f"{FOREIGN}u2"), ("b", "S3")])).fields == (
        Field("a", Kind.UINT, 2, 0),
        Field("b", Kind.CHAR, 1, 2, (3,)),
    )
