"""Type extension: which types match, what the plan of moves says, and what every byte of a target comes from."""

import enum
import math
import struct
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy
import pytest
from hypothesis import given, settings
from hypothesis.strategies import DrawFn

from echoic.errors import FormatError, IncompatibleTypesError
from echoic.formats import (
    ARCHITECTURES,
    MISSING,
    NATIVE,
    Architecture,
    Array,
    Enumeration,
    Field,
    Format,
    Kind,
    Slots,
    char,
    event,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    match,
    mismatches,
    uint8,
    uint16,
)
from echoic.formats.checks import RANGES
from echoic.formats.matching import block_alignment, number_letters, sizing_of
from echoic.formats.moves import Cast, Copy, Each, Fill, FillText, Move, Number, Sizing, Text, Vector
from tests.strategies import Event, architectures, formats, records_of, spans


def of(**annotations: Any) -> Format:
    """Return a native format; a pair is an annotation with a default."""
    fields = {name: hint[0] if isinstance(hint, tuple) else hint for name, hint in annotations.items()}
    defaults = {name: hint[1] for name, hint in annotations.items() if isinstance(hint, tuple)}
    return Format.of(event(type("T", (), {"__annotations__": fields, **defaults})))


def problems(source: Format, target: Format, *, narrow: bool = False) -> list[str]:
    return list(mismatches(source, target, narrow=narrow))


def test_the_table_of_the_papers() -> None:
    source = of(price=float64, volume=int32, extra=str)
    matching = match(source, of(price=float64, volume=int64, venue=(uint16, 3)))
    assert (matching.ignored, matching.defaulted) == (("T.extra",), ("T.venue",))
    assert Copy(0, 0, 8) in matching.moves
    assert Cast(8, 8, 1, number(Kind.INT, 4), number(Kind.INT, 8)) in matching.moves
    assert Fill(16, struct.pack("=H", 3)) in matching.moves
    with pytest.raises(IncompatibleTypesError) as caught:
        match(source, of(price=float64, trader=str, desk=int8))
    assert str(caught.value) == (
        "`T` cannot be received as `T`: `string` is not sent and has no default - at `T.trader`; "
        "`int8` is not sent and has no default - at `T.desk`"
    )


def number(kind: Kind, size: int) -> Number:
    return Number(kind, size, NATIVE.byte_order)


NUMBERS = [
    *((kind, size) for kind in (Kind.INT, Kind.UINT) for size in (1, 2, 4, 8)),
    (Kind.FLOAT, 4),
    (Kind.FLOAT, 8),
    (Kind.BOOL, 1),
]


def values_of(kind: Kind, size: int) -> list[Any]:
    """Return the values of a number that are hardest to place: the ends, the odd ones near them, fractions."""
    if kind is Kind.BOOL:
        return [False, True]
    if kind is Kind.FLOAT:
        limits = numpy.finfo(f"f{size}")
        return [
            0.0,
            0.5,
            -1.0,
            float(limits.max),
            float(limits.min),
            float(limits.smallest_subnormal),
            math.inf,
            1 + float(limits.eps),
        ]
    low, high = RANGES[kind is Kind.INT, size]
    return [low, low + 1, 0, 1, 2, high - 1, high]


def has_place(value: Any, kind: Kind, size: int) -> bool:
    """Tell whether a number can hold exactly this value, asking Python's and NumPy's arithmetic."""
    if kind is Kind.BOOL:
        return isinstance(value, bool)
    if kind is Kind.FLOAT:
        try:
            with numpy.errstate(over="ignore"):
                made = numpy.dtype(f"f{size}").type(value)
        except OverflowError:
            return False
        return float(made) == value if isinstance(value, float) else math.isfinite(made) and int(made) == value
    low, high = RANGES[kind is Kind.INT, size]
    return not isinstance(value, float) and low <= value <= high


def single(kind: Kind, size: int, **more: Any) -> Format:
    return Format.place("T", [Field("a", kind, size, **more)], NATIVE)


@pytest.mark.parametrize("read", NUMBERS, ids=lambda number: f"{number[0].name}{number[1]}")
@pytest.mark.parametrize("write", NUMBERS, ids=lambda number: f"{number[0].name}{number[1]}")
def test_a_number_widens_when_every_value_has_an_exact_place(read: tuple[Kind, int], write: tuple[Kind, int]) -> None:
    source, target = single(*read), single(*write)
    widens = all(has_place(value, *write) for value in values_of(*read))
    assert (not problems(source, target)) is widens
    narrowed = problems(source, target, narrow=True)
    assert (not narrowed) is (widens or write[0] is not Kind.BOOL)
    if not widens:
        (problem,) = problems(source, target)
        spellings = f"`{source.fields[0].spelling}` does not fit `{target.fields[0].spelling}`"
        assert problem.startswith(spellings)
        assert problem.endswith(" - at `T.a`")
        assert "narrow=True" in problem or narrowed


def test_a_saturating_bool_is_not_offered() -> None:
    (problem,) = problems(single(Kind.INT, 8), single(Kind.BOOL, 1))
    assert "narrow=True" not in problem, "narrow=True is refused as well, so the message must not advise it"


def test_a_narrowing_reader_gets_a_cast() -> None:
    matching = match(single(Kind.INT, 8), single(Kind.UINT, 1), narrow=True)
    assert Cast(0, 0, 1, number(Kind.INT, 8), number(Kind.UINT, 1)) in matching.moves
    with pytest.raises(IncompatibleTypesError, match=r"`int64` does not fit `uint8` .* - at `T.a`"):
        match(single(Kind.INT, 8), single(Kind.UINT, 1))
    assert mismatches(single(Kind.INT, 8), single(Kind.UINT, 1))


def enumerated(size: int, *, signed: bool, **more: Any) -> Format:
    return single(Kind.ENUM, size, enumeration=Enumeration("E", signed, (("ONE", 1),)), **more)


@pytest.mark.parametrize("read_signed", [True, False])
@pytest.mark.parametrize("write_signed", [True, False])
@pytest.mark.parametrize(("read_size", "write_size"), [(1, 1), (1, 2), (4, 8), (8, 4), (8, 8)])
def test_an_enumeration_widens_as_its_integer_does(
    read_signed: bool, write_signed: bool, read_size: int, write_size: int
) -> None:
    kinds = {True: Kind.INT, False: Kind.UINT}
    read, write = (kinds[read_signed], read_size), (kinds[write_signed], write_size)
    widens = all(has_place(value, *write) for value in values_of(*read))
    enum_read, enum_write = enumerated(read_size, signed=read_signed), enumerated(write_size, signed=write_signed)
    assert (not problems(enum_read, single(*write))) is widens
    assert (not problems(single(*read), enum_write)) is widens
    assert (not problems(enum_read, enum_write)) is widens


def test_members_may_differ_because_unknown_values_stay_integers() -> None:
    class Old(enum.IntEnum):
        A = 1

    class New(enum.IntEnum):
        A = 1
        B = 2

    assert match(of(x=Old), of(x=New)).identical
    assert match(of(x=New), of(x=Old)).identical


@event
class Cell:
    x: int8
    y: int16


@event
class Finer:
    x: int8
    y: int32


@event
class Lacking:
    x: int8


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (int, str),
        (str, int),
        (bytes, str),
        (str, Array[char, 8]),
        (Array[char, 8], str),
        (char, int8),
        (uint8, char),
        (Cell, int),
        (int, Cell),
        (Cell, str),
        (str, Cell),
        (char, bool),
        (Array[int, 3], Array[int, 4]),
        (Array[int, 3], int),
        (int, Array[int, 1]),
        (Array[int, 3], Array[int, 3, 1]),
        (Array[int, 2, 3], Array[int, 3, 2]),
        (Array[int, 3], Array[int, ...]),
        (Array[int, ...], Array[int, 3]),
        (int, Array[int, ...]),
        (Array[int, ...], int),
        (Array[int, 3], Array[int, ..., 3]),
        (Array[int, ..., 3], Array[int, 3]),
        (Array[int, ..., 2], Array[int, ..., 3]),
        (Array[int, ..., 2], Array[int, ...]),
        (Array[char, 8], Array[char, 16]),
        (Array[Cell, 2], Array[Cell, 3]),
        (Array[str, 2], str),
        (Array[int, 2], Array[str, 2]),
    ],
    ids=lambda hint: of(x=hint).fields[0].spelling,
)
def test_types_that_have_nothing_to_do_with_each_other_are_refused(sent: Any, wanted: Any) -> None:
    source, target = of(x=sent), of(x=wanted)
    expected = f"expected `{target.fields[0].spelling}`, got `{source.fields[0].spelling}` - at `T.x`"
    assert problems(source, target) == problems(source, target, narrow=True) == [expected]


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (str, bytes),
        (str, str | None),
        (str | None, str),
        (bytes | None, bytes),
        (Array[str, 3], Array[bytes, 3]),
        (Array[float32, 3], Array[float64, 3]),
        (Array[int16, ...], Array[float32, ...]),
        (Array[Cell, 2], Array[Finer, 2]),
        (Array[Cell, ...], Array[Lacking, ...]),
        (Cell, Lacking),
        (bool, int8),
        (bool, float32),
    ],
)
def test_types_that_hold_the_same_match(sent: Any, wanted: Any) -> None:
    assert problems(of(x=sent), of(x=wanted)) == []


def test_nested_records_match_by_the_same_rules_with_their_path() -> None:
    @event
    class More:
        x: int8
        y: int64
        z: int8 = 5

    matching = match(of(c=Cell, d=Cell), of(c=More))
    assert matching.ignored == ("T.d",)
    assert matching.defaulted == ("T.c.z",)
    assert match(of(c=More), of(c=Lacking)).ignored == ("T.c.y", "T.c.z")
    assert problems(of(c=More), of(c=Cell)) == [
        "`int64` does not fit `int16` (narrow=True accepts saturation) - at `T.c.y`"
    ]
    assert problems(of(c=Lacking), of(c=Cell)) == ["`int16` is not sent and has no default - at `T.c.y`"]
    assert problems(of(c=Array[Lacking, ...]), of(c=Array[Cell, ...])) == [
        "`int16` is not sent and has no default - at `T.c.y`"
    ]


def test_an_absent_record_is_made_of_the_defaults_of_its_fields() -> None:
    @event
    class Sure:
        x: int8 = 1
        y: int16 = 2

    @event
    class Half:
        x: int8
        y: int16 = 2

    assert match(of(a=int8), of(a=int8, c=Sure)).defaulted == ("T.c.x", "T.c.y")
    assert problems(of(a=int8), of(a=int8, c=Half)) == ["`int8` is not sent and has no default - at `T.c.x`"]


def test_every_reason_is_given_at_once() -> None:
    source = of(a=int64, b=str, c=Array[int, 3], d=Cell)
    target = of(a=int8, b=int, c=Array[int, 4], d=Finer, e=float, f=str)
    assert [problem.rpartition("- at ")[2] for problem in problems(source, target)] == [
        "`T.a`",
        "`T.b`",
        "`T.c`",
        "`T.e`",
        "`T.f`",
    ]
    with pytest.raises(IncompatibleTypesError) as caught:
        match(source, target)
    assert all(problem in str(caught.value) for problem in problems(source, target))


DEFAULTS: list[tuple[Any, Any, bytes]] = [
    (int16, -2, struct.pack("=h", -2)),
    (uint16, 65535, b"\xff\xff"),
    (float32, 0.5, struct.pack("=f", 0.5)),
    (float64, math.inf, struct.pack("=d", math.inf)),
    (bool, True, b"\1"),
    (char, b"x", b"x"),
    (Array[int16, 3], (), bytes(6)),
    (Array[Cell, 2], (), bytes(8)),
    (Array[str, 2], (), bytes(16)),
    (Array[float, ...], (), bytes(8)),
    (enum.IntEnum("E", [("ONE", 1), ("TWO", 2)]), 2, struct.pack("=i", 2)),
]


@pytest.mark.parametrize(("hint", "default", "data"), DEFAULTS, ids=lambda value: repr(value)[:20])
def test_an_absent_field_is_filled_with_its_default(hint: Any, default: Any, data: bytes) -> None:
    matching = match(of(a=int8), of(a=int8, x=(hint, default)))
    offset = matching.target.field("x").offset
    assert [move for move in matching.moves if isinstance(move, Fill) and move.target == offset] == [Fill(offset, data)]
    assert matching.defaulted == ("T.x",)


def test_a_default_is_written_in_the_byte_order_of_the_target() -> None:
    target = of(a=int8, x=(int16, 1)).on(ARCHITECTURES["sparc64"])
    assert Fill(2, b"\0\1") in match(of(a=int8), target).moves


@pytest.mark.parametrize(
    ("hint", "default", "expected"),
    [
        (str, "é", FillText(4, "é".encode(), terminated=True)),
        (str, "", FillText(4, b"", terminated=True)),
        (str | None, None, FillText(4, None, terminated=True)),
        (bytes, b"\0x", FillText(4, b"\0x", terminated=False)),
    ],
)
def test_an_absent_text_is_filled_with_its_default(hint: Any, default: Any, expected: FillText) -> None:
    assert expected in match(of(a=int8), of(a=int8, x=(hint, default))).moves


def test_arrays_match_whatever_their_sizing_fields_are_called() -> None:
    source = of(n=uint8, v=Array[int8, "n"])
    target = of(count=int64, v=Array[int8, "count"])
    (vector,) = (move for move in match(source, target).moves if isinstance(move, Vector))
    assert vector.source_sizing == Sizing(0, number(Kind.UINT, 1))
    assert vector.target_sizing == Sizing(0, number(Kind.INT, 8))
    assert (vector.source, vector.target) == (source.field("v").offset, target.field("v").offset)
    assert match(source, target).ignored == ("T.n",)
    for sent, wanted in ((source, of(v=Array[int8, ...])), (of(v=Array[int8, ...]), target)):
        assert not problems(sent, wanted)


@pytest.mark.parametrize(
    ("sent", "wanted", "fits"),
    [
        (int64, int64, True),
        (uint8, int16, True),
        (int8, uint8, True),
        (int64, int8, False),
        (uint8, int8, False),
        (uint16, uint8, False),
    ],
)
def test_a_length_needs_a_sizing_field_that_can_say_it(sent: Any, wanted: Any, fits: bool) -> None:
    source, target = of(n=sent, v=Array[int8, "n"]), of(m=wanted, v=Array[int8, "m"])
    reasons = problems(source, target)
    assert (not reasons) is fits
    assert all("a length of" in reason and reason.endswith("- at `T.m`") for reason in reasons)
    assert not problems(source, target, narrow=True)
    long = of(m=wanted, v=Array[int64, "m"])
    assert not problems(of(v=Array[int64, ...]), long), "a slot tells its length in no field, so none is too narrow"


def test_one_sizing_field_for_two_arrays_needs_one_length() -> None:
    both = of(n=int, a=Array[int8, "n"], b=Array[int8, "n"])
    apart = of(n=int, m=int, a=Array[int8, "n"], b=Array[int8, "m"])
    alone = of(n=int, a=Array[int8, "n"])
    loose = of(a=Array[int8, ...], b=Array[int8, ...])
    assert problems(both, both) == problems(both, apart) == problems(both, loose) == problems(both, alone) == []
    reason = ["`n` is the length of `a` and `b`, which are not all sent with one length - at `T.n`"]
    assert problems(apart, both) == problems(loose, both) == reason
    assert reason[0] in problems(alone, both)
    half = of(n=int, a=Array[int8, "n"], b=(Array[int8, "n"], ()))
    assert problems(alone, half) == reason


def test_an_absent_array_leaves_its_sizing_field_zero_whatever_its_default() -> None:
    target = of(a=int8, n=(int32, 7), v=(Array[int8, "n"], ()))
    matching = match(of(a=int8, n=int32), target)
    at = target.field("n").offset
    assert [move for move in matching.moves if isinstance(move, Fill) and move.target == at] == [Fill(at, bytes(4))]
    assert not problems(of(a=int8), of(a=int8, v=(Array[int8, "n"], ()), n=(int32, 0)))


@event
class Samples:
    n: int32 = 3
    v: Array[float32, "n"] = ()


@event
class Bare:
    n: int32
    v: Array[float32, "n"] = ()


def test_the_same_holds_for_the_arrays_of_an_absent_record() -> None:
    target = of(a=int32, inner=Samples)
    at = target.field("inner").offset + Format.of(Samples).field("n").offset
    assert [move for move in match(of(a=int32), target).moves if isinstance(move, Fill) and move.target == at] == [
        Fill(at, bytes(4))
    ]


def test_a_sizing_field_of_an_absent_record_needs_no_default() -> None:
    assert not problems(of(a=int32), of(a=int32, n=int32, v=(Array[float32, "n"], ())))
    assert not problems(of(a=int32), of(a=int32, inner=Bare))


def test_problems_come_in_the_order_of_the_fields() -> None:
    names = [f"size_{index}" for index in range(8)]
    lone = {f"{name}_a": Array[int8, name] for name in names} | dict.fromkeys(names, int)
    shared = lone | {f"{name}_b": Array[int8, name] for name in names}
    found = [problem for problem in problems(of(**lone), of(**shared)) if "one length" in problem]
    assert [problem.split("`")[1] for problem in found] == names


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


def test_text_and_dynamic_arrays_are_never_copied_with_their_slots() -> None:
    same = match(of(a=int32, note=Note), of(a=int32, note=Note))
    assert same.identical
    for matching in (same, match(of(a=int32, note=Note), of(a=int64, note=Note))):
        assert sum(isinstance(move, Text) for move in matching.moves) == 1
        assert sum(isinstance(move, Vector) for move in matching.moves) == 1
        check_plan(matching.moves, matching.source, matching.target)


def test_moves_inside_a_record_count_from_the_start_of_the_outer_one() -> None:
    source, target = of(a=int32, note=Note), of(a=int64, note=Note)
    inner, moves = Format.of(Note), match(source, target).moves
    here, there = source.field("note").offset, target.field("note").offset
    assert 0 < here < there
    (vector,) = (move for move in moves if isinstance(move, Vector))
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


def test_blocks_are_aligned_as_their_elements_are() -> None:
    format = of(a=Array[float, ...], b=Array[int16, ...], c=Array[str, ...], d=Array[Cell, ...])
    assert [block_alignment(field, format) for field in format.fields] == [8, 2, 4, 2]
    assert sizing_of(format.fields[0], format) is None


def test_only_numbers_have_letters() -> None:
    assert number_letters(Field("a", Kind.UINT, 4), "big") == "I"
    assert number_letters(enumerated(8, signed=False).fields[0], "big") == "Q"
    with pytest.raises(FormatError, match="`string` is not a number - at `a`"):
        number_letters(Field("a", Kind.STRING, 8), "big")


def test_matching_is_planned_once() -> None:
    source, target = of(a=int8), of(a=int16)
    assert match(source, target).moves is match(of(a=int8), target).moves


@settings(max_examples=40)
@given(formats(), formats())
def test_matching_any_two_types_gives_a_plan_or_reasons(source: Format, target: Format) -> None:
    for narrow in (False, True):
        reasons = problems(source, target, narrow=narrow)
        assert all(" - at `" in reason for reason in reasons)
        if reasons:
            with pytest.raises(IncompatibleTypesError):
                match(source, target, narrow=narrow)
        else:
            check_plan(match(source, target, narrow=narrow).moves, source, target)


WIDER = {
    read: [write for write in NUMBERS if all(has_place(value, *write) for value in values_of(*read))]
    for read in NUMBERS
}


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
    assert problems(source, target) == []
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
    event = data.draw(records_of(source))
    record = carried_out(match(source, target).moves, stored(source, event), target.size)
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
