"""Layouts of other machines: by hand for those with a history, and against ctypes for all that this machine can do.

`ctypes` is the twin: it lays structs out by this machine's C rules, `_pack_` lowers the largest alignment as i386 and
m68k do, and `BigEndianStructure` has the same offsets with the bytes the other way round.
"""

import ctypes
import struct
from typing import Any

import hypothesis.strategies as st
import numpy
import pytest
from hypothesis import given, settings
from hypothesis.strategies import DrawFn

from echoic.errors import FormatError
from echoic.formats import (
    ARCHITECTURES,
    NATIVE,
    Architecture,
    Array,
    Field,
    Format,
    Kind,
    Slots,
    event,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from tests.strategies import architectures, formats


@event
class Numbers:
    flag: int8
    big: float64
    small: int16
    count: int32
    long: int64
    tail: uint8


@event
class Texts:
    id: int8
    name: str
    n: int16
    values: Array[float64, "n"]
    end: int8


@event
class Byte:
    x: int8


@event
class Around:
    a: int8
    inner: Byte
    b: int8


@event
class Cell:
    x: int8
    y: int16


@event
class Grid:
    tag: int8
    cells: Array[Cell, 2, 3]


def layout(declared: object, architecture: Architecture) -> tuple[list[int], int, int]:
    """Return offsets, size and alignment."""
    format = Format.of(declared).on(architecture)
    assert format.byte_order == architecture.byte_order
    return [field.offset for field in format.fields], format.size, format.alignment


EIGHT = ([0, 8, 16, 20, 24, 32], 40, 8)
FOUR = ([0, 4, 12, 16, 20, 28], 32, 4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x86_64", EIGHT),
        ("aarch64", EIGHT),
        ("sparc32", EIGHT),
        ("sparc64", EIGHT),
        ("ppc32", EIGHT),
        ("ppc64", EIGHT),
        ("s390x", EIGHT),
        ("arm", EIGHT),
        ("windows32", EIGHT),
        ("windows64", EIGHT),
        ("i386", FOUR),
        ("arm-oabi", FOUR),
        ("m68k", ([0, 2, 10, 12, 16, 24], 26, 2)),
        ("packed", ([0, 1, 9, 11, 15, 23], 24, 1)),
    ],
)
def test_numbers_lie_where_the_c_compiler_of_the_machine_puts_them(
    name: str, expected: tuple[list[int], int, int]
) -> None:
    assert layout(Numbers, ARCHITECTURES[name]) == expected


SPANS = ([0, 4, 12, 16, 24], 28, 4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sparc32", SPANS),
        ("sparc64", SPANS),
        ("ppc64", SPANS),
        ("arm", SPANS),
        ("windows32", SPANS),
        ("i386", SPANS),
        ("arm-oabi", SPANS),
        ("m68k", ([0, 2, 10, 12, 20], 22, 2)),
        ("packed", ([0, 1, 9, 11, 19], 20, 1)),
    ],
)
def test_spans_are_pairs_of_words_on_every_machine(name: str, expected: tuple[list[int], int, int]) -> None:
    assert layout(Texts, ARCHITECTURES[name]) == expected


POINTERS32 = ([0, 4, 8, 12, 16], 20, 4)
POINTERS64 = ([0, 8, 16, 24, 32], 40, 8)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sparc32", POINTERS32),
        ("ppc32", POINTERS32),
        ("arm", POINTERS32),
        ("arm-oabi", POINTERS32),
        ("windows32", POINTERS32),
        ("i386", POINTERS32),
        ("sparc64", POINTERS64),
        ("ppc64", POINTERS64),
        ("x86_64", POINTERS64),
        ("windows64", POINTERS64),
        ("m68k", ([0, 2, 6, 8, 12], 14, 2)),
        ("packed", ([0, 1, 9, 11, 19], 20, 1)),
    ],
)
def test_pointers_are_as_wide_as_the_machines(name: str, expected: tuple[list[int], int, int]) -> None:
    assert layout(Texts, ARCHITECTURES[name].with_pointers()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("arm-oabi", ([0, 4, 8], 12, 4)), ("arm", ([0, 1, 2], 3, 1)), ("m68k", ([0, 1, 2], 3, 1))],
)
def test_the_old_arm_abi_rounds_every_struct_up_to_words(name: str, expected: tuple[list[int], int, int]) -> None:
    assert layout(Around, ARCHITECTURES[name]) == expected
    assert layout(Byte, ARCHITECTURES[name])[1:] == ((4, 4) if name == "arm-oabi" else (1, 1))


@pytest.mark.parametrize(
    ("name", "expected", "cell"),
    [
        ("sparc64", ([0, 2], 26, 2), 4),
        ("m68k", ([0, 2], 26, 2), 4),
        ("arm-oabi", ([0, 4], 28, 4), 4),
        ("packed", ([0, 1], 19, 1), 3),
    ],
)
def test_an_array_of_records_is_aligned_as_the_record_is(
    name: str, expected: tuple[list[int], int, int], cell: int
) -> None:
    assert layout(Grid, ARCHITECTURES[name]) == expected
    assert Format.of(Grid).on(ARCHITECTURES[name]).field("cells").size == cell


def test_every_machine_is_found_by_its_name() -> None:
    assert all(name == architecture.name for name, architecture in ARCHITECTURES.items())
    big = {name for name, architecture in ARCHITECTURES.items() if architecture.byte_order == "big"}
    assert big == {"sparc32", "sparc64", "ppc32", "ppc64", "s390x", "m68k"}


def test_with_pointers_changes_the_slots_and_nothing_else() -> None:
    plain, pointers = ARCHITECTURES["sparc32"], ARCHITECTURES["sparc32"].with_pointers()
    assert (plain.slots, pointers.slots) == (Slots.SPAN, Slots.POINTER32)
    assert ARCHITECTURES["sparc64"].with_pointers().slots is Slots.POINTER64
    assert (pointers.byte_order, pointers.alignment_max) == (plain.byte_order, plain.alignment_max)


@pytest.mark.parametrize(
    ("hint", "message"),
    [(bytes, "so it cannot hold bytes - at `T.x`"), (Array[float64, ...], "needs a sizing field - at `T.x`")],
)
def test_a_length_that_only_the_slot_tells_cannot_be_laid_out_with_pointers(hint: Any, message: str) -> None:
    format = Format.of(event(type("T", (), {"__annotations__": {"x": hint}})))
    assert format.on(ARCHITECTURES["sparc32"]).variable
    with pytest.raises(FormatError, match=f"a pointer slot does not tell a length, .*{message}"):
        format.on(ARCHITECTURES["sparc32"].with_pointers())


def test_the_native_machine_is_this_one() -> None:
    assert struct.pack("=H", 1) == (1).to_bytes(2, NATIVE.byte_order)
    assert NATIVE.pointer_bytes == ctypes.sizeof(ctypes.c_void_p)
    assert Format.of(Numbers) == Format.of(Numbers).on(NATIVE)


@settings(max_examples=40)
@given(formats(spread=False), architectures(pointers=False), architectures(pointers=False))
def test_a_type_laid_out_for_a_machine_does_not_remember_the_machine_before(
    format: Format, first: Architecture, second: Architecture
) -> None:
    assert format.on(first).on(second) == format.on(second)
    assert [field.spelling for _, field in format.on(first).walk()] == [field.spelling for _, field in format.walk()]


C_TYPES: dict[tuple[Kind, int], Any] = {
    (Kind.INT, 1): ctypes.c_int8,
    (Kind.INT, 2): ctypes.c_int16,
    (Kind.INT, 4): ctypes.c_int32,
    (Kind.INT, 8): ctypes.c_int64,
    (Kind.UINT, 1): ctypes.c_uint8,
    (Kind.UINT, 2): ctypes.c_uint16,
    (Kind.UINT, 4): ctypes.c_uint32,
    (Kind.UINT, 8): ctypes.c_uint64,
    (Kind.FLOAT, 4): ctypes.c_float,
    (Kind.FLOAT, 8): ctypes.c_double,
    (Kind.BOOL, 1): ctypes.c_uint8,  # ctypes has no c_bool of the other byte order
    (Kind.CHAR, 1): ctypes.c_char,
}


def c_struct(format: Format, base: type, pack: int) -> Any:
    """Return the ctypes twin of a format: its fields in order, laid out by ctypes."""
    members = {"_pack_": pack, "_layout_": "ms"} if pack < 8 else {}
    fields = [(field.name, c_member(field, format, base, pack)) for field in format.fields]
    return type(format.name, (base,), {**members, "_fields_": fields})


def c_member(field: Field, format: Format, base: type, pack: int) -> Any:
    if field.dynamic or field.text:
        member = c_slot(format.slots, base, pack)
    elif field.record is not None:
        member = c_struct(field.record, base, pack)
    elif field.enumeration is not None:
        member = C_TYPES[Kind.INT if field.enumeration.signed else Kind.UINT, field.size]
    else:
        member = C_TYPES[field.kind, field.size]
    for dimension in reversed(() if field.dynamic else field.fixed_dimensions):
        member *= dimension
    return member


def c_slot(slots: Slots, base: type, pack: int) -> Any:
    if slots is Slots.SPAN:
        members = {"_pack_": pack, "_layout_": "ms"} if pack < 8 else {}
        words = [("offset", ctypes.c_uint32), ("length", ctypes.c_uint32)]
        return type("Span", (base,), {**members, "_fields_": words})
    return ctypes.c_uint32 if slots is Slots.POINTER32 else ctypes.c_uint64


@st.composite
def formats_ctypes_can_lay_out(draw: DrawFn) -> tuple[Format, type, int]:
    order = draw(st.sampled_from(["little", "big"]))
    pack = draw(st.sampled_from([1, 2, 4, 8]))
    machine = Architecture("twin", order, alignment_max=pack, pointer_bytes=draw(st.sampled_from([4, 8])))
    format = draw(formats(architectures=st.sampled_from([machine, machine.with_pointers()]), spread=False))
    return format, ctypes.LittleEndianStructure if order == "little" else ctypes.BigEndianStructure, pack


@given(formats_ctypes_can_lay_out())
def test_every_layout_agrees_with_ctypes(given: tuple[Format, type, int]) -> None:
    format, base, pack = given
    assert_same_layout(format, c_struct(format, base, pack))


def assert_same_layout(format: Format, twin: Any) -> None:
    assert format.size == ctypes.sizeof(twin)
    assert format.alignment == ctypes.alignment(twin)
    for field in format.fields:
        assert field.offset == getattr(twin, field.name).offset
        if field.record is not None and not field.dynamic:
            inner = dict(twin._fields_)[field.name]
            while hasattr(inner, "_length_"):
                inner = inner._type_
            assert_same_layout(field.record, inner)


@given(formats(architectures=st.sampled_from([NATIVE, NATIVE.with_pointers()]), spread=False))
def test_the_native_layout_agrees_with_the_c_compiler_behind_ctypes(format: Format) -> None:
    assert_same_layout(format, c_struct(format, ctypes.Structure, 8))


@given(formats_ctypes_can_lay_out(), st.binary(min_size=1, max_size=64))
def test_a_struct_in_memory_reads_the_same_through_the_dtype(given: tuple[Format, type, int], pattern: bytes) -> None:
    format, base, pack = given
    memory = (pattern * (format.size // len(pattern) + 1))[: format.size]
    record = numpy.frombuffer(memory, format.dtype)[0]
    assert_same_values(format, record, c_struct(format, base, pack).from_buffer_copy(memory))


def assert_same_values(format: Format, record: Any, twin: Any) -> None:
    for field in format.fields:
        if field.dimensions or field.text or field.kind is Kind.BOOL:
            continue
        if field.record is not None:
            assert_same_values(field.record, record[field.name], getattr(twin, field.name))
        elif field.kind is Kind.CHAR:
            assert bytes(record[field.name]).ljust(1, b"\0") == getattr(twin, field.name)
        else:
            assert numpy.array_equal(record[field.name], getattr(twin, field.name), equal_nan=field.kind is Kind.FLOAT)
