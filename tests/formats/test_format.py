"""Formats as values: what they are equal to, how their fields are found, and how people see them."""

import enum
import itertools
import uuid
from dataclasses import replace

import pytest
from hypothesis import given, settings

from echoic.errors import FormatError
from echoic.formats import (
    ARCHITECTURES,
    NATIVE,
    Array,
    Enumeration,
    Field,
    Format,
    Kind,
    Slots,
    event,
    float32,
    float64,
    int8,
    int16,
    reads_types,
    uint8,
    uint16,
)
from echoic.formats.checks import extent
from tests.strategies import formats


class Side(enum.IntEnum):
    BUY = 1
    SELL = 2


@event
class Trade:
    symbol: str
    price: float
    volume: int
    venue: uint16 = 0


@event
class Station:
    code: int8
    height: float64


@event
class Layer:
    pressure: float32
    valid: bool


@event
class Sounding:
    id: uint8
    station: Station
    n: int16
    layers: Array[Layer, "n"]
    wind: Array[float64, 2, 3]
    name: str = "none"
    note: str | None = None
    side: Side = Side.SELL
    last: uint8 = 7


SOUNDING = """\
Sounding  big-endian, 112 bytes, aligned to 8, token bd2350675c1246d1
offset  size  field        type
     0     1  id           uint8
     1     7  (padding)
     8    16  station      Station
     8     1    code       int8
     9     7    (padding)
    16     8    height     float64
    24     2  n            int16
    26     2  (padding)
    28     8  layers       Layer[n]  -> variable part
     0     4    pressure   float32
     4     1    valid      bool
     5     3    (padding)
    36     4  (padding)
    40    48  wind         float64[2][3]
    88     8  name         string  = 'none'  -> variable part
    96     8  note         string?  = None  -> variable part
   104     4  side         enum Side  = 2
   108     1  last         uint8  = 7
   109     3  (padding)"""


def test_a_layout_is_described_with_padding_nesting_and_defaults() -> None:
    assert Format.of(Sounding).on(ARCHITECTURES["sparc32"]).describe() == SOUNDING


def test_a_type_without_padding_is_described_without() -> None:
    assert "padding" not in Format.of(Sounding).on(ARCHITECTURES["packed"]).describe()


def test_fields_are_described_where_they_lie_whatever_their_order() -> None:
    fields = (Field("late", Kind.INT, 1, 5), Field("early", Kind.INT, 2, 1))
    lines = Format("T", fields, byte_order="little", alignment=1, size=6).describe().splitlines()
    assert [line.split()[:3] for line in lines[2:]] == [
        ["0", "1", "(padding)"],
        ["1", "2", "early"],
        ["3", "2", "(padding)"],
        ["5", "1", "late"],
    ]


@settings(max_examples=40)
@given(formats())
def test_the_rows_of_a_description_account_for_every_byte(format: Format) -> None:
    _, _, *rows = format.describe().splitlines()
    widths = [(row, row.index(row.split()[2])) for row in rows]
    indent = min(at for _, at in widths)
    assert sum(int(row.split()[1]) for row, at in widths if at == indent) == format.size


def test_a_format_of_a_format_is_itself() -> None:
    format = Format.of(Trade)
    assert Format.of(format) is format


@pytest.mark.parametrize(
    "thing", [int, 7, "Trade", None, [], object(), type("Plain", (), {}), uuid.UUID, Trade("", 0.0, 1)]
)
def test_what_is_no_event_type_is_refused_and_shown(thing: object) -> None:
    with pytest.raises(FormatError, match="expected an event class") as caught:
        Format.of(thing)
    assert repr(thing) in str(caught.value)


class Decree:
    """A type of some other library: its fields are a list of names."""

    def __init__(self, *names: str) -> None:
        self.names = names


@reads_types
def read_decree(declared: object) -> Format | None:
    if not isinstance(declared, Decree):
        return None
    return Format.place("Decree", [Field(name, Kind.INT, 4) for name in declared.names], NATIVE)


def test_another_family_of_types_is_read_once_its_reader_is_registered() -> None:
    assert [field.offset for field in Format.of(Decree("a", "b")).fields] == [0, 4]


def test_placing_ignores_the_offsets_that_fields_bring() -> None:
    placed = Format.place("T", [Field("a", Kind.INT, 1, 100), Field("b", Kind.INT, 4, 3)], NATIVE)
    assert [field.offset for field in placed.fields] == [0, 4]


@settings(max_examples=40)
@given(formats())
def test_formats_are_equal_when_their_descriptors_are(format: Format) -> None:
    twin = Format(
        format.name,
        format.fields,
        byte_order=format.byte_order,
        alignment=format.alignment,
        size=format.size,
        slots=format.slots,
    )
    assert twin == format
    assert hash(twin) == hash(format)
    assert twin.token == format.token
    assert len({twin, format}) == 1


def placed(*fields: Field, name: str = "T", alignment: int = 1, size: int = 16, slots: Slots = Slots.SPAN) -> Format:
    return Format(name, fields, byte_order="little", alignment=alignment, size=size, slots=slots)


A, B = Field("a", Kind.INT, 4), Field("b", Kind.INT, 4, 4)
SIGNED = Enumeration("E", signed=True, members=(("ONE", 1),))


@pytest.mark.parametrize(
    "other",
    [
        placed(A, B, name="U"),
        placed(A, B, alignment=4),
        placed(A, B, size=17),
        placed(A, B, slots=Slots.POINTER32),
        placed(B, A),
        placed(A, replace(B, name="c")),
        placed(A, replace(B, kind=Kind.UINT)),
        placed(A, replace(B, size=8)),
        placed(A, replace(B, offset=5)),
        placed(A, replace(B, dimensions=(1,))),
        placed(A, replace(B, default=0)),
        placed(A, replace(B, kind=Kind.ENUM, enumeration=SIGNED)),
        placed(A),
        Format("T", (A, B), byte_order="big", alignment=1, size=16),
    ],
    ids=lambda other: " ".join(field.spelling for field in other.fields),
)
def test_formats_that_differ_in_anything_are_different(other: Format) -> None:
    format = placed(A, B)
    assert format != other
    assert format.token != other.token


def test_a_format_is_equal_to_nothing_else() -> None:
    assert Format.of(Trade) != "Trade"
    assert Format.of(Trade) != Format.of(Trade).descriptor


def test_two_classes_of_the_same_name_and_fields_are_one_format() -> None:
    def declare() -> type:
        @event
        class Point:
            x: int
            y: int

        return Point

    assert declare() is not declare()
    assert Format.of(declare()) == Format.of(declare())


def test_layouts_ignore_what_the_bytes_do_not_depend_on() -> None:
    text = Field("a", Kind.STRING, 8)
    same = [
        (placed(A, B), placed(A, B, name="U")),
        (placed(A, B), placed(B, A)),
        (placed(A, B), placed(A, replace(B, default=3))),
        (placed(A, B), placed(A, B, slots=Slots.POINTER64)),
        (placed(text), placed(replace(text, optional=True))),
    ]
    assert all(one.layout == other.layout for one, other in same)


def test_layouts_tell_apart_what_the_bytes_depend_on() -> None:
    text, pointer = Field("a", Kind.STRING, 8), Field("a", Kind.STRING, 8)
    other = [
        (placed(A, B), placed(A, replace(B, kind=Kind.UINT))),
        (placed(A, B), placed(A, replace(B, name="c"))),
        (placed(A, B), placed(A, B, size=17)),
        (placed(A, B), Format("T", (A, B), byte_order="big", alignment=1, size=16)),
        (placed(text), placed(pointer, slots=Slots.POINTER64)),
    ]
    assert all(one.layout != another.layout for one, another in other)


def test_the_layout_of_a_nested_record_is_part_of_the_layout_and_its_name_is_not() -> None:
    def outer(record: Format, *dimensions: int | str) -> Format:
        return placed(Field("r", Kind.RECORD, record.size, dimensions=dimensions, record=record))

    one, renamed, other = placed(A, size=4), placed(A, size=4, name="U"), placed(replace(A, kind=Kind.UINT), size=4)
    aligned = placed(A, size=4, alignment=4)
    for dimensions in ((), (2,), ("",)):
        assert outer(one, *dimensions).layout == outer(renamed, *dimensions).layout
        assert outer(one, *dimensions).layout != outer(other, *dimensions).layout
    assert outer(one).layout == outer(aligned).layout
    assert outer(one, "").layout != outer(aligned, "").layout, "a block starts at a multiple of its record's alignment"


def test_the_members_of_an_enumeration_are_not_part_of_the_layout() -> None:
    more = replace(SIGNED, name="F", members=(("ONE", 1), ("TWO", 2)))
    one, other = (placed(Field("a", Kind.ENUM, 4, enumeration=each)) for each in (SIGNED, more))
    assert one.layout == other.layout


def test_a_signed_and_an_unsigned_enumeration_have_different_layouts() -> None:
    unsigned = replace(SIGNED, signed=False)
    one, other = (placed(Field("a", Kind.ENUM, 4, enumeration=each)) for each in (SIGNED, unsigned))
    assert one.layout != other.layout


def test_a_field_is_found_by_its_path() -> None:
    format = Format.of(Sounding)
    assert format.field("n").spelling == "int16"
    assert format.field("station.height").spelling == "float64"
    assert format.field("layers.valid").spelling == "bool"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("prise", "`Trade` has no field `prise`; did you mean `price`? - at `prise`"),
        ("volum", "`Trade` has no field `volum`; did you mean `volume`? - at `volum`"),
        ("zzz", "`Trade` has no field `zzz` - at `zzz`"),
        ("", "`Trade` has no field `` - at ``"),
    ],
)
def test_a_missing_field_is_named_with_the_nearest_that_are_there(path: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        Format.of(Trade).field(path)
    assert message in str(caught.value)


def test_a_field_missing_in_a_nested_record_is_looked_for_there() -> None:
    with pytest.raises(
        FormatError, match=r"`Station` has no field `hight`; did you mean `height`\? - at `station.hight`"
    ):
        Format.of(Sounding).field("station.hight")


@pytest.mark.parametrize("path", ["price.volume", "price.price", "price.", ".price"])
def test_a_path_does_not_lead_through_a_number_back_into_the_record(path: str) -> None:
    with pytest.raises(FormatError, match="price"):
        Format.of(Trade).field(path)


def test_a_field_of_the_record_itself_is_found_by_its_name_alone() -> None:
    format = Format.of(Sounding)
    assert format.member("n") is format.field("n") is format.by_name["n"]
    assert list(format.by_name.values()) == list(format.fields)
    with pytest.raises(FormatError, match=r"`Sounding` has no field `station\.code` - at `station\.code`"):
        format.member("station.code")
    with pytest.raises(FormatError, match=r"has no field `m`.* - at `a\.m`"):
        format.member("m", "a.m")


def test_a_type_under_another_name_lies_as_before() -> None:
    format = Format.of(Sounding).on(ARCHITECTURES["sparc32"].with_pointers())
    other = format.renamed("Balloon")
    assert (other.name, other.fields, other.layout) == ("Balloon", format.fields, format.layout)
    assert (other.alignment, other.slots, other.byte_order) == (format.alignment, format.slots, format.byte_order)
    assert other != format
    assert other.renamed("Sounding") == format
    with pytest.raises(FormatError, match="record name '1st' is not an identifier"):
        format.renamed("1st")


def test_walking_yields_every_field_with_its_path() -> None:
    assert [path for path, _ in Format.of(Sounding).walk()] == [
        "id",
        "station",
        "station.code",
        "station.height",
        "n",
        "layers",
        "layers.pressure",
        "layers.valid",
        "wind",
        "name",
        "note",
        "side",
        "last",
    ]


@settings(max_examples=40)
@given(formats())
def test_walking_and_finding_agree(format: Format) -> None:
    walked = list(format.walk())
    assert len(walked) == format.fields_total
    assert all(format.field(path) is field for path, field in walked)


def test_fields_and_nesting_are_counted_once_for_each_place() -> None:
    leaf = Format.place("Leaf", [Field("x", Kind.INT, 1), Field("y", Kind.INT, 1)], NATIVE)
    pair = Format.place("Pair", [Field(name, Kind.RECORD, 2, record=leaf) for name in "ab"], NATIVE)
    outer = Format.place("Outer", [Field(name, Kind.RECORD, 4, record=pair) for name in "abc"], NATIVE)
    assert (leaf.fields_total, pair.fields_total, outer.fields_total) == (2, 6, 21)
    assert (leaf.nesting, pair.nesting, outer.nesting) == (1, 2, 3)


def test_a_format_is_variable_when_any_field_at_any_depth_is() -> None:
    note = Format.place("Note", [Field("text", Kind.STRING, 8)], NATIVE)
    outer = Format.place("Outer", [Field("x", Kind.INT, 1), Field("note", Kind.RECORD, 8, record=note)], NATIVE)
    assert outer.variable
    assert not Format.of(Station).variable


@settings(max_examples=40)
@given(formats())
def test_fields_lie_inside_the_record_and_beside_each_other(format: Format) -> None:
    taken = sorted((field.offset, field.offset + extent(field, format.slots)) for field in format.fields)
    assert taken[0][0] >= 0
    assert taken[-1][1] <= format.size
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(taken))


def test_a_format_shows_its_name_size_and_token() -> None:
    format = Format.of(Trade).on(ARCHITECTURES["x86_64"])
    assert repr(format) == "<Format Trade: 32 bytes, little-endian, token 00506f281489a620>"
