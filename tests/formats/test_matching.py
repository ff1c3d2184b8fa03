"""Type extension: which types match, and why others do not."""

import enum
import math
import struct
from typing import Any

import pytest

from echoic.errors import FormatError, IncompatibleTypesError
from echoic.formats import (
    ARCHITECTURES,
    NATIVE,
    Array,
    Enumeration,
    Field,
    Format,
    Kind,
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
from echoic.formats.matching import block_alignment, number_letters, sizing_of
from echoic.formats.moves import Cast, Copy, Fill, FillText, Sizing, Vector
from tests.formats.declarations import Cell, Finer, Lacking, number, of
from tests.formats.numbers import NUMBERS, has_place, values_of


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


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (int, str),
        (str, int),
        (bytes, str),
        (int, bytes),
        (char, bytes),
        (Cell, bytes),
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


def test_blocks_are_aligned_as_their_elements_are() -> None:
    format = of(a=Array[float, ...], b=Array[int16, ...], c=Array[str, ...], d=Array[Cell, ...])
    assert [block_alignment(field, format) for field in format.fields] == [8, 2, 4, 2]
    coarse = Format("Coarse", (Field("x", Kind.INT, 8),), byte_order="little", alignment=16, size=16)
    assert block_alignment(Field("v", Kind.RECORD, 16, dimensions=("",), record=coarse), format) == 8
    assert sizing_of(format.fields[0], format) is None


def test_only_numbers_have_letters() -> None:
    assert number_letters(Field("a", Kind.UINT, 4), "big") == "I"
    assert number_letters(enumerated(8, signed=False).fields[0], "big") == "Q"
    with pytest.raises(FormatError, match="`string` is not a number - at `a`"):
        number_letters(Field("a", Kind.STRING, 8), "big")


def test_matching_is_planned_once() -> None:
    source, target = of(a=int8), of(a=int16)
    assert match(source, target).moves is match(of(a=int8), target).moves
