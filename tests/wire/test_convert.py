"""Conversion: two twins and a judge.

NumPy and native code must give the same bytes for every pair of types; plain Python (`oracle`) says which.
"""

import gc
import itertools
import math
import struct
from typing import Any

import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from echoic.errors import CodegenError, IncompatibleTypesError, LimitExceededError, MalformedBatchError
from echoic.formats import ARCHITECTURES, Enumeration, Field, Format, Kind, bind, match, mismatches
from echoic.formats.to_dtype import element_dtype
from echoic.wire import Batch, Conversion, Decoder, conversion_of
from echoic.wire.convert import CONVERTED_BYTES_MAX, HOT_RECORDS, HOT_VARIABLE_RECORDS
from echoic.wire.convert_native import NativeConversion, can_generate
from echoic.wire.convert_numpy import NumpyConversion
from tests.strategies import architectures, batches, formats, records_of, spans
from tests.wire.oracle import converted, number_as, relatives
from tests.wire.samples import (
    BIG,
    Mesh,
    Point,
    Report,
    Trade,
    cells_of,
    format_of,
    plain,
    received,
    reports,
    stripped,
    thorough,
)

SIZES = {Kind.INT: (1, 2, 4, 8), Kind.UINT: (1, 2, 4, 8), Kind.FLOAT: (4, 8), Kind.BOOL: (1,)}
NUMBERS = [Field(f"{kind.name.lower()}{8 * size}", kind, size) for kind, sizes in SIZES.items() for size in sizes]
LITTLE, BIG_ENDIAN = ARCHITECTURES["x86_64"], ARCHITECTURES["sparc64"]

INTEGERS = sorted(
    {
        sign * ((1 << bits) + near)
        for sign in (1, -1)
        for bits in (0, 7, 8, 15, 16, 23, 24, 25, 31, 32, 53, 54, 62, 63, 64)
        for near in (-1, 0, 1, 3)
    }
)
EDGES = [0.0, 0.49, 0.5, 0.999, 1.5, 127.5, 128.0, 255.9, 256.0, 32767.9, 65535.5, 2.0**24 + 1, 5e-324, 1e-45, 3.4e38]
EDGES += [2.0**bits + near for bits in (31, 32) for near in (-0.5, 0.0, 0.5)]
EDGES += [math.nextafter(2.0**bits, toward) for bits in (53, 63, 64) for toward in (0.0, math.inf)]
EDGES += [2.0**53, 2.0**63, 2.0**64, 2.0**127, 3.5e38, 1e300, math.inf]
FLOATS = [*EDGES, *(-value for value in EDGES), math.nan]


def values_of(field: Field) -> list[Any]:
    """Return the values of a number at which something could change."""
    if field.kind is Kind.BOOL:
        return [False, True]
    if field.kind is Kind.FLOAT:
        return [number_as(value, field) for value in FLOATS]
    return sorted({number_as(value, field) for value in INTEGERS})


def both(batch: Batch, target: Format) -> tuple[Batch, Batch]:
    """Return what NumPy and what native code make of a batch, having checked that it is the same."""
    matching = match(batch.format, target, narrow=True)
    by_numpy, by_native = NumpyConversion(matching), NativeConversion(matching, CONVERTED_BYTES_MAX)
    made: list[tuple[Any, Any]]
    if by_native.fixed is None:
        native = by_native.convert_variable(batch.records, batch.bounds, batch.count)
        assert native is not None
        made = [by_numpy.convert_variable(batch.records, batch.bounds, batch.count, CONVERTED_BYTES_MAX), native]
    else:
        made = [
            (by_numpy.convert_fixed(batch.records, batch.count), None),
            (by_native.fixed(batch.records, batch.count), None),
        ]
    (records, bounds), (native_records, native_bounds) = made
    assert bytes(records) == bytes(native_records)
    assert places_of(bounds) == places_of(native_bounds)
    one, other = (Batch(target, batch.count, [memoryview(data)], places) for data, places in made)
    return one, other


def places_of(bounds: Any) -> list[int] | None:
    """Return bounds as a list, whatever sequence they are."""
    return None if bounds is None else list(bounds)


def walked(batch: Batch) -> list[Any]:
    """Return plain events by the careful reader."""
    return [stripped(plain(event), batch.format) for event in raw(batch)]


def raw(batch: Batch) -> list[Any]:
    return list(Decoder(bind(batch.format)).walk(batch.records, batch.bounds))


def shown(event: dict[str, Any], format: Format) -> Any:
    return stripped(plain(event), format)


def as_mapping(value: Any) -> Any:
    """Return a decoded event as dicts and lists, with its numbers as they are."""
    if hasattr(value, "__struct_fields__"):
        return {name: as_mapping(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, numpy.ndarray):
        return value.tolist()
    return [as_mapping(item) for item in value] if isinstance(value, list) else value


@thorough(120)
@given(st.data())
def test_the_twins_and_plain_python_agree_on_related_types(data: st.DataObject) -> None:
    source = data.draw(formats(architectures=spans()))
    target = data.draw(relatives(source))
    assume(not mismatches(source, target, narrow=True))
    batch = Batch.of(data.draw(st.lists(records_of(source, special=True), min_size=1, max_size=3)), source)
    made, _ = both(batch, target)
    expected = [converted(as_mapping(event), source, target) for event in raw(batch)]
    assert walked(made) == [shown(event, target) for event in expected]


@thorough(60)
@given(st.data())
def test_numpy_and_plain_python_agree_on_c_pointers_as_slots(data: st.DataObject) -> None:
    source = data.draw(formats(architectures=architectures(pointers=True)))
    source = data.draw(st.sampled_from([source, source.on(BIG), source.on(LITTLE)]))
    target = data.draw(relatives(source, architectures(pointers=True)))
    assume(not mismatches(source, target, narrow=True))
    batch = Batch.of(data.draw(batches(source)), source)
    expected = [converted(as_mapping(event), source, target) for event in raw(batch)]
    assume("\0" not in repr(expected).replace("\\x00", "\0"))  # a C string ends at its first NUL
    matching = match(source, target, narrow=True)
    if source.variable or target.variable:
        made = NumpyConversion(matching).convert_variable(batch.records, batch.bounds, batch.count, CONVERTED_BYTES_MAX)
    else:
        made = (NumpyConversion(matching).convert_fixed(batch.records, batch.count), None)
    assert walked(Batch(target, batch.count, [made[0]], made[1])) == [shown(event, target) for event in expected]


@pytest.mark.parametrize(
    ("source_order", "target_order"), [*itertools.product([LITTLE, BIG_ENDIAN], repeat=2)], ids=["ll", "lb", "bl", "bb"]
)
@pytest.mark.parametrize(
    "to", [field for field in NUMBERS if field.kind is not Kind.BOOL], ids=lambda field: field.name
)
def test_every_number_becomes_every_other_as_plain_python_says(to: Field, source_order: Any, target_order: Any) -> None:
    """One record for each interesting value, one field for each kind of number."""
    source = format_of(*NUMBERS, architecture=source_order)
    target = format_of(*(Field(field.name, to.kind, to.size) for field in NUMBERS), architecture=target_order)
    columns = {field.name: values_of(field) for field in NUMBERS}
    count = max(len(values) for values in columns.values())
    events = [{name: values[index % len(values)] for name, values in columns.items()} for index in range(count)]
    made, native = both(Batch.of(events, source), target)
    expected = [{name: plain(number_as(value, to)) for name, value in event.items()} for event in events]
    assert walked(made) == walked(native) == expected


@pytest.mark.parametrize(
    "to", [field for field in NUMBERS if field.kind is not Kind.BOOL], ids=lambda field: field.name
)
def test_arrays_of_numbers_are_converted_as_single_ones_are(to: Field) -> None:
    """Fixed and dynamic arrays, long enough for the loops of the native code."""
    sent, wanted, event = [], [], {}
    for field in NUMBERS:
        values = values_of(field)
        for name, dimension in ((f"{field.name}_fixed", len(values)), (f"{field.name}_dynamic", "")):
            sent.append(Field(name, field.kind, field.size, dimensions=(dimension,)))
            wanted.append(Field(name, to.kind, to.size, dimensions=(dimension,)))
            event[name] = numpy.asarray(values, element_dtype(field, format_of(field)))
    made, _ = both(Batch.of([event], format_of(*sent)), format_of(*wanted, architecture=BIG))
    assert walked(made) == [
        {name: plain([number_as(v, to) for v in values.tolist()]) for name, values in event.items()}
    ]


@thorough(30)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=50), st.sampled_from([LITTLE, BIG_ENDIAN]))
def test_any_bits_of_a_float_are_converted_alike_by_both_twins(bits: list[int], order: Any) -> None:
    """NaNs have signs, payloads and a quiet bit; both twins must leave the same ones."""
    array = numpy.zeros(
        len(bits), format_of(Field("d", Kind.FLOAT, 8), Field("f", Kind.FLOAT, 4), architecture=order).dtype
    )
    array["d"] = numpy.asarray(bits, numpy.uint64).view(numpy.float64)
    array["f"] = numpy.asarray(bits, numpy.uint64).astype(numpy.uint32).view(numpy.float32)
    for kinds in itertools.product([4, 8], repeat=2):
        target = format_of(*(Field(name, Kind.FLOAT, size) for name, size in zip("df", kinds, strict=True)))
        both(Batch.of(array), target)


def test_negative_zero_and_infinities_keep_their_sign() -> None:
    source, target = format_of(Field("x", Kind.FLOAT, 8)), format_of(Field("x", Kind.FLOAT, 4), architecture=BIG)
    made, _ = both(Batch.of([{"x": x} for x in (-0.0, -math.inf, math.inf, -1e300, 1e-300)], source), target)
    assert [plain(event.x) for event in raw(made)] == ["-0.0", "-inf", "inf", "-inf", "0.0"]


@pytest.mark.parametrize("size", [1, 2, 4, 8])
@pytest.mark.parametrize("signed", [(True, False), (False, True), (True, True)])
def test_enumerations_are_converted_as_the_integers_they_are(size: int, signed: tuple[bool, bool]) -> None:
    sent, wanted = (
        Field("e", Kind.ENUM, width, enumeration=Enumeration("E", sign, (("A", 1),)))
        for width, sign in zip((size, 2), signed, strict=True)
    )
    number = Field("e", Kind.INT if signed[0] else Kind.UINT, size)
    events = [{"e": value} for value in values_of(number)]
    made, _ = both(Batch.of(events, format_of(sent)), format_of(wanted, architecture=BIG))
    assert walked(made) == [{"e": number_as(event["e"], wanted)} for event in events]


def test_an_enumeration_with_another_sign_is_another_number_on_the_same_machine_too() -> None:
    signed, unsigned = (
        format_of(Field("e", Kind.ENUM, 4, enumeration=Enumeration("E", sign, (("A", 1),)))) for sign in (True, False)
    )
    with pytest.raises(IncompatibleTypesError, match=r"Sample\.e"):
        Batch.of([{"e": -1}], signed).to(unsigned)
    assert walked(Batch.of([{"e": -1}], signed).to(unsigned, narrow=True)) == [{"e": 0}]


def test_a_bool_is_1_whatever_byte_stands_for_it() -> None:
    source = format_of(Field("b", Kind.BOOL, 1))
    records = memoryview(bytes([0, 1, 2, 255]))
    for kind, size in ((Kind.INT, 4), (Kind.UINT, 1), (Kind.FLOAT, 8)):
        made, _ = both(Batch(source, 4, [records]), format_of(Field("b", kind, size), architecture=BIG))
        assert [event["b"] for event in walked(made)] == [
            plain(number_as(v, Field("b", kind, size))) for v in (0, 1, 1, 1)
        ]


@pytest.mark.parametrize("native", [False, True])
def test_padding_of_the_target_is_zero_whatever_the_source_had_there(native: bool) -> None:
    """Ignored fields and stale padding of the sender do not leave this program again."""
    source = format_of(
        Field("a", Kind.UINT, 1), Field("secret", Kind.UINT, 1), Field("c", Kind.UINT, 2), Field("d", Kind.UINT, 8)
    )
    target = format_of(Field("a", Kind.UINT, 1), Field("c", Kind.UINT, 2), Field("d", Kind.UINT, 8))
    conversion = Conversion(source, target)
    if native:
        conversion.compile()
    records = conversion.convert(memoryview(b"\x01\xee\x03\x00" + b"\xee" * 4 + b"\x05" * 8), range(0, 17, 16), 1)[0]
    assert bytes(records) == b"\x01\x00\x03\x00" + bytes(4) + b"\x05" * 8


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_conversion_converts_fixed_and_variable_batches(native: bool, count: int) -> None:
    for batch in (Batch.of([Point(x=1.0, y=2.0, n=3)] * count, Point), Batch.of(reports(count), Report)):
        conversion = Conversion(batch.format, batch.format.on(BIG))
        if native:
            conversion.compile()
        records, bounds = conversion.convert(batch.records, batch.bounds, batch.count)
        assert walked(Batch(batch.format.on(BIG), count, [records], bounds)) == walked(batch)
        assert conversion.statistics().native == native


def test_a_fixed_type_can_become_a_variable_one_and_back() -> None:
    fixed = format_of(Field("a", Kind.INT, 4))
    variable = format_of(Field("s", Kind.STRING, 8, default="né"), Field("a", Kind.INT, 4), architecture=BIG)
    made, _ = both(Batch.of([{"a": 1}, {"a": -2}], fixed), variable)
    assert walked(made) == [{"s": "né", "a": 1}, {"s": "né", "a": -2}]
    back, _ = both(made, fixed)
    assert walked(back) == [{"a": 1}, {"a": -2}]


@pytest.mark.parametrize(
    ("declared", "hot"), [(Point, HOT_RECORDS), (Report, HOT_VARIABLE_RECORDS)], ids=["fixed", "variable"]
)
def test_a_conversion_becomes_native_when_it_is_hot_and_gives_the_same(declared: Any, hot: int) -> None:
    events = reports(hot) if declared is Report else [Point(x=0.5, y=1.0, n=n) for n in range(hot)]
    batch = Batch.of(events)
    conversion = Conversion(batch.format, batch.format.on(BIG))
    cold = conversion.convert(batch.records, batch.bounds, batch.count)
    assert conversion.statistics().native is False
    assert conversion.statistics().records_by_numpy == hot
    conversion.convert(batch.records, batch.bounds, batch.count)
    assert conversion.statistics().native is True
    warm = conversion.convert(batch.records, batch.bounds, batch.count)
    assert (bytes(warm[0]), places_of(warm[1])) == (bytes(cold[0]), places_of(cold[1]))
    assert conversion.statistics().records_by_numpy == 2 * hot


def test_c_pointers_are_left_to_numpy() -> None:
    source = Format.of(Trade)
    target = source.on(BIG.with_pointers())
    assert not can_generate(match(source, target))
    with pytest.raises(CodegenError, match="no native routine for `Trade` to `Trade`"):
        Conversion(source, target).compile()
    batch = Batch.of([Trade("a", 1.0, 2)] * (HOT_VARIABLE_RECORDS + 1))
    for _ in range(3):
        assert len(batch.to(target)) == HOT_VARIABLE_RECORDS + 1


def test_very_many_fields_are_left_to_numpy() -> None:
    fields = [Field(f"f{number}", Kind.INT, 4) for number in range(600)]
    source, target = format_of(*fields), format_of(*fields, architecture=BIG)
    assert not can_generate(match(source, target))
    event = {field.name: number for number, field in enumerate(fields)}
    assert walked(Batch.of([event], source).to(target)) == [event]


def test_the_same_pair_has_the_same_conversion() -> None:
    one, other = Format.of(Trade), Format.of(Trade).on(BIG)
    assert conversion_of(one, other) is conversion_of(one, other)
    assert conversion_of(one, other) is not conversion_of(other, one)
    assert conversion_of(one, one).identical


def test_types_that_do_not_match_are_refused_naming_the_field() -> None:
    with pytest.raises(IncompatibleTypesError, match=r"Trade\.y"):
        Conversion(Format.of(Trade), format_of(Field("y", Kind.INT, 4)))
    with pytest.raises(IncompatibleTypesError, match="narrow=True"):
        Conversion(Format.of(Trade), format_of(Field("volume", Kind.INT, 4)))
    assert Conversion(Format.of(Trade), format_of(Field("volume", Kind.INT, 4)), narrow=True)


def amplifying() -> tuple[Batch, Format]:
    """Return a batch of few bytes, and a type that makes very many of them."""
    small = format_of(Field("a", Kind.UINT, 1))
    source = format_of(Field("x", Kind.RECORD, 1, dimensions=("",), record=small))
    large = format_of(Field("a", Kind.UINT, 1), Field("b", Kind.FLOAT, 8, dimensions=(4096,), default=()))
    target = format_of(Field("x", Kind.RECORD, large.size, dimensions=("",), record=large))
    return Batch.of([{"x": [{"a": 1}] * 20_000}], source), target


@pytest.mark.parametrize("native", [False, True])
def test_a_conversion_that_would_unfold_a_small_batch_into_a_huge_one_is_refused(native: bool) -> None:
    batch, target = amplifying()
    conversion = Conversion(batch.format, target)
    if native:
        conversion.compile()
    assert batch.count * 20_000 * 8 * 4096 > CONVERTED_BYTES_MAX
    with pytest.raises(LimitExceededError, match=str(CONVERTED_BYTES_MAX)):
        conversion.convert(batch.records, batch.bounds, batch.count)


@pytest.mark.parametrize("bytes_max", [0, 7, 40, 100, 199, 1000])
def test_the_twins_have_the_same_limit(bytes_max: int) -> None:
    batch = Batch.of([Trade("abc", 1.0, 2), Trade("", 0.0, 0), Trade("x" * 50, 1.0, 2)])
    matching = match(batch.format, batch.format.on(BIG))

    def refused(convert: Any, *arguments: Any) -> bool:
        try:
            convert(batch.records, batch.bounds, batch.count, *arguments)
        except LimitExceededError:
            return True
        return False

    by_numpy = refused(NumpyConversion(matching).convert_variable, bytes_max)
    assert by_numpy == refused(NativeConversion(matching, bytes_max).convert_variable)


@pytest.mark.parametrize("native", [False, True])
def test_a_fixed_conversion_to_too_many_bytes_is_refused(native: bool) -> None:
    source = format_of(Field("a", Kind.UINT, 1))
    target = format_of(Field("a", Kind.UINT, 1), Field("b", Kind.FLOAT, 8, dimensions=(65536,), default=()))
    conversion = Conversion(source, target)
    if native:
        conversion.compile()
    count = CONVERTED_BYTES_MAX // target.size + 1
    with pytest.raises(LimitExceededError, match="Sample"):
        conversion.convert(memoryview(bytes(count)), range(count + 1), count)


@pytest.mark.parametrize("native", [False, True])
def test_a_length_that_the_targets_sizing_field_cannot_say_is_refused(native: bool) -> None:
    def sized(size: int, architecture: Any) -> Format:
        return format_of(
            Field("n", Kind.INT, size), Field("x", Kind.UINT, 1, dimensions=("n",)), architecture=architecture
        )

    conversion = Conversion(sized(4, LITTLE), sized(1, BIG), narrow=True)
    if native:
        conversion.compile()
    for length in (127, 128, 300):
        batch = Batch.of([{"n": 0, "x": []}, {"n": length, "x": [0] * length}], sized(4, LITTLE))
        if length < 128:
            assert conversion.convert(batch.records, batch.bounds, 2)[1]
            continue
        with pytest.raises(
            MalformedBatchError, match=rf"{length} elements, its sizing field can say 127 .*Sample\.x.*record 1 of 2"
        ):
            conversion.convert(batch.records, batch.bounds, 2)


def test_native_conversion_gives_up_on_a_malformed_record_without_a_word() -> None:
    batch = Batch.of(reports(3))
    native = NativeConversion(match(batch.format, batch.format.on(BIG)), CONVERTED_BYTES_MAX)
    records = bytearray(batch.records)
    struct.pack_into("<I", records, batch.format.field("name").offset, 3)
    assert native.convert_variable(memoryview(records), batch.bounds, 3) is None
    assert native.convert_variable(batch.records, batch.bounds, 3) is not None


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        ([0], 1),
        ([0, 8], 2),
        ([8, 48], 1),
        ([0, 40, 32], 2),
        ([0, 1 << 31], 1),
        ([0, 2**32 - 8], 1),
        ([0, 8], -1),
    ],
)
def test_native_conversion_believes_no_bounds(bounds: list[int], count: int) -> None:
    batch = Batch.of([Trade("abc", 1.0, 2)])
    native = NativeConversion(match(batch.format, batch.format.on(BIG)), CONVERTED_BYTES_MAX)
    places = numpy.asarray(bounds, numpy.uint32)
    assert native.convert_variable(batch.records, places, count) is None


def test_a_native_routine_outlives_the_conversion_it_came_from() -> None:
    source = Format.of(Point)
    conversion = Conversion(source, source.on(BIG))
    conversion.compile()
    convert, batch = conversion.convert_fixed, Batch.of([Point(x=1.0, y=2.0, n=3)] * 100)
    expected = bytes(convert(batch.records, 100))
    del conversion
    for _ in range(5):
        Conversion(source, source.on(ARCHITECTURES["m68k"])).compile()
        gc.collect()
    assert bytes(convert(batch.records, 100)) == expected


def test_equal_layouts_need_no_conversion_and_share_their_memory() -> None:
    batch = received(Batch.of(reports(3)))
    again = batch.to(Report)
    assert numpy.shares_memory(
        numpy.frombuffer(batch.records, numpy.uint8), numpy.frombuffer(again.records, numpy.uint8)
    )
    assert plain(again.events()) == plain(reports(3))


def test_arrays_of_records_with_slots_are_converted_element_by_element() -> None:
    batch = Batch.of(cells_of(4))
    made, _ = both(batch, Format.of(Mesh).on(ARCHITECTURES["arm-oabi"]))
    assert walked(made) == walked(batch)


@pytest.mark.parametrize("text", [False, True], ids=["numbers", "with text"])
def test_fixed_arrays_of_records_in_fixed_arrays_of_records_are_converted(text: bool) -> None:
    def outer(size: int, names: str, architecture: Any) -> Format:
        slots = [Field("t", Kind.STRING, 8)] if text else []
        inner = format_of(*(Field(name, Kind.INT, size) for name in names), *slots, architecture=architecture)
        middle = format_of(
            Field("m", Kind.UINT, 1),
            Field("inner", Kind.RECORD, inner.size, dimensions=(3,), record=inner),
            architecture=architecture,
        )
        return format_of(
            Field("grid", Kind.RECORD, middle.size, dimensions=(2, 2), record=middle),
            Field("row", Kind.RECORD, middle.size, dimensions=("", 2), record=middle),
            architecture=architecture,
        )

    source, target = outer(4, "abc", LITTLE), outer(2, "ca", ARCHITECTURES["m68k"])
    counter = itertools.count(-20_000, 3000)

    def middle() -> dict[str, Any]:
        inner = [{name: next(counter) for name in "abc"} | ({"t": "x" * k} if text else {}) for k in range(3)]
        return {"m": 255, "inner": inner}

    event = {"grid": [[middle() for _ in range(2)] for _ in range(2)], "row": [[middle(), middle()]]}
    made, _ = both(Batch.of([event, event], source), target)
    assert walked(made) == [shown(converted(event, source, target), target)] * 2
