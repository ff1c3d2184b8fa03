"""The plan of moves: what every byte of a target comes from.

Two checks go over every plan. `check_plan` accounts for bytes: each of the target's is written once and none is read
that the source does not have. `assert_carried` carries the moves out one by one with `struct`, as slowly and plainly as
possible, and compares values name by name.
"""

import struct
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy
import pytest
from hypothesis import given, settings
from hypothesis.strategies import DrawFn

from echoic.errors import IncompatibleTypesError
from echoic.formats import (
    ARCHITECTURES,
    MISSING,
    NATIVE,
    Architecture,
    Array,
    Field,
    Format,
    Kind,
    Slots,
    char,
    event,
    int8,
    int16,
    int32,
    int64,
    match,
    mismatches,
    uint8,
)
from echoic.formats.matching import number_letters
from echoic.formats.moves import Cast, Copy, Each, Fill, FillText, Move, Number, Sizing, Text, Vector
from tests.formats.declarations import Cell, Finer, Lacking, number, of
from tests.formats.numbers import WIDER
from tests.strategies import Event, architectures, formats, records_of, spans


def test_equal_layouts_are_one_copy() -> None:
    format = of(a=int8, b=int32, c=Array[float, 3])
    assert match(format, format).moves == (Copy(0, 0, format.size),)
    assert match(format, format).identical
    assert match(of(a=str), of(a=str)).identical
    assert not match(format, format.on(ARCHITECTURES["m68k"])).identical


def test_another_byte_order_casts_what_is_longer_than_a_byte() -> None:
    little, big = (of(a=int8, b=int32, c=Array[char, 3]).on(ARCHITECTURES[name]) for name in ("x86_64", "sparc64"))
    assert set(match(little, big).moves) == {
        Copy(0, 0, 1),
        Cast(4, 4, 1, Number(Kind.INT, 4, "little"), Number(Kind.INT, 4, "big")),
        Copy(8, 8, 3),
        Fill(1, bytes(3)),
        Fill(11, bytes(1)),
    }


@event
class Note:
    n: uint8
    text: str
    v: Array[int16, "n"]
    w: Array[int16, ...]


def test_text_and_dynamic_arrays_are_never_copied_with_their_slots() -> None:
    same = match(of(a=int32, note=Note), of(a=int32, note=Note))
    assert same.identical
    for matching in (same, match(of(a=int32, note=Note), of(a=int64, note=Note))):
        assert sum(isinstance(move, Text) for move in matching.moves) == 1
        assert sum(isinstance(move, Vector) for move in matching.moves) == 2
        check_plan(matching.moves, matching.source, matching.target)


def test_moves_inside_a_record_count_from_the_start_of_the_outer_one() -> None:
    source, target = of(a=int32, note=Note), of(a=int64, note=Note)
    inner, moves = Format.of(Note), match(source, target).moves
    here, there = source.field("note").offset, target.field("note").offset
    assert 0 < here < there
    vector, loose = (move for move in moves if isinstance(move, Vector))
    assert (loose.source_sizing, loose.target_sizing, loose.target) == (None, None, there + inner.field("w").offset)
    assert (vector.source, vector.target) == (here + inner.field("v").offset, there + inner.field("v").offset)
    assert vector.source_sizing == Sizing(here, number(Kind.UINT, 1))
    assert vector.target_sizing == Sizing(there, number(Kind.UINT, 1))
    (text,) = (move for move in moves if isinstance(move, Text))
    assert (text.source, text.target) == (here + inner.field("text").offset, there + inner.field("text").offset)
    assert vector.path == "T.note.v"


def test_a_gap_before_the_first_field_is_zeroed() -> None:
    target = Format("T", (Field("a", Kind.INT, 1, 3),), byte_order="little", alignment=1, size=6)
    assert set(match(of(a=int8), target).moves) == {Copy(0, 3, 1), Fill(0, bytes(3)), Fill(4, bytes(2))}


def test_neighbours_are_copied_together() -> None:
    source = of(a=int8, b=int8, c=int8, d=int16)
    assert Copy(0, 0, 3) in match(source, of(a=int8, b=int8, c=int8, d=int32)).moves


def test_what_the_target_ignores_does_not_hide_in_its_padding() -> None:
    """Source and target have `a` and `b` at the same places, and between them a secret here, padding there."""
    source, target = of(a=int8, secret=int8, b=int16), of(a=int8, b=int16)
    moves = match(source, target).moves
    assert not [move for move in moves if isinstance(move, Copy) and move.source <= 1 < move.source + move.size]


def test_arrays_of_records_convert_element_by_element_or_are_copied_at_once() -> None:
    assert Copy(0, 0, 12) in match(of(c=Array[Cell, 3]), of(c=Array[Cell, 3], d=(int8, 0))).moves
    (each,) = (move for move in match(of(c=Array[Cell, 3]), of(c=Array[Finer, 3])).moves if isinstance(move, Each))
    assert (each.count, each.source_stride, each.target_stride) == (3, 4, 8)
    assert Cast(2, 4, 1, number(Kind.INT, 2), number(Kind.INT, 4)) in each.moves


@event
class Turned:
    y: int16
    x: int8


@event
class Pair:
    x: int16
    y: int16


@event
class First:
    x: int16


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("sent", "wanted"), [(Cell, Turned), (Pair, First), (Cell, Finer), (Finer, Lacking)])
def test_every_element_of_an_array_of_records_is_converted(sent: type, wanted: type, count: int) -> None:
    source, target = of(a=int8, c=Array[sent, count]), of(c=Array[wanted, count])
    event = {"a": 1, "c": [{"x": index + 1, "y": -index - 1} for index in range(count)]}
    assert_carried(source, target, event)
    for names in (("x86_64", "sparc64"), ("m68k", "i386")):
        here, there = (format.on(ARCHITECTURES[name]) for format, name in zip((source, target), names, strict=True))
        assert_carried(here, there, event)


def test_every_element_of_a_dynamic_array_is_converted_by_itself() -> None:
    for sent, wanted in ((Cell, Turned), (Pair, First), (int16, int32), (str, bytes)):
        source, target = of(v=Array[sent, ..., 2]), of(v=Array[wanted, ..., 2])
        (vector,) = match(source, target).moves
        assert isinstance(vector, Vector)
        assert vector.per == 2
        assert (vector.source_stride, vector.target_stride) == (source.field("v").size, target.field("v").size)
        check_plan((vector,), source, target)


@pytest.mark.parametrize(
    ("sent", "wanted", "terminated"),
    [(str, str, (True, True)), (str, bytes, (True, False)), (bytes, bytes, (False, False))],
)
def test_text_says_where_it_ends_with_nul(sent: Any, wanted: Any, terminated: tuple[bool, bool]) -> None:
    source, target = of(a=int8, x=sent, xs=Array[sent, 2]), of(x=wanted, xs=Array[wanted, 2])
    moves = [move for move in match(source, target).moves if isinstance(move, Text)]
    assert moves == [Text(4, 0, 1, *terminated, path="T.x"), Text(12, 8, 2, *terminated, path="T.xs")]


@settings(max_examples=40)
@given(formats(), formats())
def test_matching_any_two_types_gives_a_plan_or_reasons(source: Format, target: Format) -> None:
    for narrow in (False, True):
        reasons = mismatches(source, target, narrow=narrow)
        assert all(" - at `" in reason for reason in reasons)
        if reasons:
            with pytest.raises(IncompatibleTypesError):
                match(source, target, narrow=narrow)
        else:
            check_plan(match(source, target, narrow=narrow).moves, source, target)


@st.composite
def extended(
    draw: DrawFn, source: Format, architecture: Architecture, *, prefix: str = "new", fixed: bool = False
) -> Format:
    """Types that `source` can be received as: fields left out, added with a default, widened, laid out anew."""
    fields = [draw(widened(field, source, fixed)) for field in source.fields if draw(st.integers(0, 3))]
    wanted = {field.sizing for field in fields if field.sizing}
    fields = [field for field in fields if field.name not in wanted]
    fields += [source.field(name) for name in sorted(wanted)]
    added = draw(formats(max_depth=0, architectures=spans(), spread=False, fixed=fixed))
    for field in added.fields:
        if (
            field.default is not MISSING
            and not field.sizing
            and (architecture.slots is Slots.SPAN or not field.variable)
        ):
            fields.append(replace(field, name=f"{prefix}_{field.name[:100]}"))
    fields = fields or [Field(f"{prefix}_only", Kind.INT, 4, default=7)]
    return Format.place("Target", draw(st.permutations(fields)), architecture)


@st.composite
def widened(draw: DrawFn, field: Field, source: Format, fixed: bool) -> Field:
    if field.record is not None:
        machine = NATIVE if source.slots is Slots.SPAN else NATIVE.with_pointers()
        record = draw(extended(field.record, machine, prefix="in", fixed=fixed))
        return replace(field, record=record, size=record.size)
    kind = field.kind
    if field.enumeration is not None:
        kind = Kind.INT if field.enumeration.signed else Kind.UINT
    if (kind, field.size) not in WIDER:
        return replace(field, optional=False, default=MISSING)
    kind, size = draw(st.sampled_from(WIDER[kind, field.size]))
    return replace(field, kind=kind, size=size, enumeration=None, default=MISSING)


@st.composite
def pairs(draw: DrawFn, *, fixed: bool = False) -> tuple[Format, Format]:
    pointers = draw(st.booleans())
    source = draw(formats(architectures=architectures(pointers=pointers), fixed=fixed))
    machine = draw(architectures(pointers=pointers))
    target = draw(extended(source, machine, fixed=fixed))
    return source, target


def check_plan(moves: tuple[Move, ...], source: Format, target: Format) -> None:
    """Check that moves write every byte of the target's fixed part once, and read only bytes that the source has."""
    written = bytearray(target.size)
    lengths = {place for move in moves for place in lengths_written(move)}  # arrays may share one and write it twice
    for start, end in [*lengths, *(place for move in moves for place in writes(move, target.slots))]:
        assert 0 <= start < end <= target.size
        for at in range(start, end):
            written[at] += 1
    assert set(written) == {1}, "each byte is written once: one left out would be whatever memory held before"
    for start, end in (place for move in moves for place in reads(move, source.slots)):
        assert 0 <= start < end <= source.size
    for vector in (move for move in moves if isinstance(move, Vector)):
        check_element(vector, source, target)


def check_element(vector: Vector, source: Format, target: Format) -> None:
    """Check the moves of one element of a dynamic array in the same way."""
    element, sent = (
        Format(
            "Element",
            (Field("bytes", Kind.CHAR, 1, dimensions=(size,)),),
            byte_order="little",
            alignment=1,
            size=size,
            slots=format.slots,
        )
        for size, format in ((vector.target_stride, target), (vector.source_stride, source))
    )
    check_plan(vector.moves, sent, element)


def writes(move: Move, slots: Slots, base: int = 0) -> list[tuple[int, int]]:
    at = base + move.target
    match move:
        case Copy():
            return [(at, at + move.size)]
        case Cast():
            return [(at, at + move.count * move.write.size)]
        case Fill():
            return [(at, at + len(move.data))]
        case Text():
            return [(at, at + move.count * slots.size)]
        case FillText():
            return [(at, at + slots.size)]
        case Each():
            starts = [at + index * move.target_stride for index in range(move.count)]
            return [place for start in starts for inner in move.moves for place in writes(inner, slots, start)]
        case Vector():
            return [(at, at + slots.size)]


def lengths_written(move: Move, base: int = 0) -> list[tuple[int, int]]:
    match move:
        case Vector(target_sizing=Sizing() as sizing):
            return [(base + sizing.offset, base + sizing.offset + sizing.number.size)]
        case Each():
            starts = [base + move.target + index * move.target_stride for index in range(move.count)]
            return [place for start in starts for inner in move.moves for place in lengths_written(inner, start)]
        case _:
            return []


def reads(move: Move, slots: Slots, base: int = 0) -> list[tuple[int, int]]:
    if isinstance(move, Fill | FillText):
        return []
    at = base + move.source
    match move:
        case Copy():
            return [(at, at + move.size)]
        case Cast():
            return [(at, at + move.count * move.read.size)]
        case Text():
            return [(at, at + move.count * slots.size)]
        case Each():
            starts = [at + index * move.source_stride for index in range(move.count)]
            return [place for start in starts for inner in move.moves for place in reads(inner, slots, start)]
        case Vector():
            sizing = move.source_sizing
            length = [(base + sizing.offset, base + sizing.offset + sizing.number.size)] if sizing else []
            return [(at, at + slots.size), *length]


@given(pairs())
def test_an_extended_type_matches_and_every_byte_of_it_has_one_origin(pair: tuple[Format, Format]) -> None:
    source, target = pair
    assert not mismatches(source, target)
    plan = match(source, target)
    check_plan(plan.moves, source, target)
    sent, wanted = ({field.name for field in format.fields} for format in pair)
    assert {path.rpartition(".")[2] for path in plan.ignored if path.count(".") == 1} == sent - wanted


def test_the_padding_of_an_absent_record_is_zeroed() -> None:
    @event
    class Padded:
        x: int8 = 1
        y: int32 = 2

    source, target = of(a=int32), of(a=int32, inner=Padded)
    check_plan(match(source, target).moves, source, target)


def stored(format: Format, event: Event) -> bytes:
    """Write an event of a fixed format with NumPy."""
    return numpy.array([row(format, event)], format.dtype).tobytes()


def row(format: Format, event: Event) -> tuple[Any, ...]:
    return tuple(
        event[field.name] if field.record is None else rows(field.record, event[field.name], len(field.dimensions))
        for field in format.fields
    )


def rows(record: Format, value: Any, depth: int) -> Any:
    return [rows(record, item, depth - 1) for item in value] if depth else row(record, value)


def carried_out(moves: tuple[Move, ...], record: bytes, target_bytes: int) -> bytes:
    """Carry moves out one by one with `struct`, as slowly and plainly as possible."""
    made = bytearray(target_bytes)
    for move in moves:
        match move:
            case Copy():
                made[move.target : move.target + move.size] = record[move.source : move.source + move.size]
            case Cast():
                values = struct.unpack_from(letters(move.read, move.count), record, move.source)
                whole = move.write.kind in (Kind.INT, Kind.UINT)
                struct.pack_into(
                    letters(move.write, move.count), made, move.target, *(int(v) if whole else v for v in values)
                )
            case Fill():
                made[move.target : move.target + len(move.data)] = move.data
            case Each():
                for index in range(move.count):
                    start, at = move.source + index * move.source_stride, move.target + index * move.target_stride
                    made[at : at + move.target_stride] = carried_out(move.moves, record[start:], move.target_stride)
            case _:
                raise AssertionError(move)
    return bytes(made)


def letters(number: Number, count: int) -> str:
    letter = number_letters(Field("a", number.kind, number.size), number.byte_order)
    return f"{'>' if number.byte_order == 'big' else '<'}{count}{letter}"


@given(st.data())
def test_the_moves_take_every_value_to_its_name(data: st.DataObject) -> None:
    source, target = data.draw(pairs(fixed=True))
    assert_carried(source, target, data.draw(records_of(source)))


def assert_carried(source: Format, target: Format, event: Event) -> None:
    """Check that the moves bring an event from one fixed format to another, value by value and name by name."""
    moves = match(source, target).moves
    check_plan(moves, source, target)
    record = carried_out(moves, stored(source, event), target.size)
    assert_holds(numpy.frombuffer(record, target.dtype)[0], target, event)


def assert_holds(record: Any, target: Format, event: Event) -> None:
    for field in target.fields:
        found = record[field.name]
        if field.name not in event:
            assert_default(found, field)
        elif field.record is not None:
            for index in numpy.ndindex(field.fixed_dimensions):
                sent = event[field.name]
                for step in index:
                    sent = sent[step]
                assert_holds(found[index] if index else found, field.record, sent)
        else:
            assert numpy.array_equal(found, numpy.array(event[field.name]))


def assert_default(found: Any, field: Field) -> None:
    if field.dimensions:
        assert not numpy.any(numpy.frombuffer(numpy.ascontiguousarray(found).tobytes(), numpy.uint8))
    elif field.kind is Kind.FLOAT:
        assert found == numpy.dtype(f"f{field.size}").type(field.default)
    else:
        assert found == field.default
