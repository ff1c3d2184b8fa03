"""From records to objects: the fast functions and the walking reader are twins."""

import dataclasses
import enum
from typing import Any

import msgspec
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.formats import (
    ARCHITECTURES,
    Architecture,
    Array,
    Field,
    Format,
    Kind,
    Record,
    bind,
    char,
    event,
    float32,
    int16,
    uint8,
)
from echoic.wire import Batch, Decoder, decoder_of
from echoic.wire.decode import HOT_RECORDS
from tests.strategies import architectures, batches, formats, spans, to_object
from tests.wire.samples import (
    BIG,
    Color,
    Grid,
    Mesh,
    Point,
    Report,
    Trade,
    cells_of,
    format_of,
    plain,
    received,
    reports,
    thorough,
)

ALL = {**ARCHITECTURES, **{f"{name} pointers": each.with_pointers() for name, each in ARCHITECTURES.items()}}


def three_ways(format: Format, batch: Batch) -> list[Any]:
    """Return the events by the fast function, by the compiled one and by the reader."""
    decoder = Decoder(bind(format))
    fast = decoder.decode(batch.records, batch.bounds)
    decoder.compile()
    compiled = decoder.decode(batch.records, batch.bounds)
    return [plain(made) for made in (fast, compiled, list(decoder.walk(batch.records, batch.bounds)))]


@thorough(120)
@given(st.data())
def test_the_fast_functions_and_the_reader_give_the_same(data: st.DataObject) -> None:
    format = data.draw(formats(architectures=spans() | architectures()))
    batch = Batch.of(data.draw(batches(format, special=True)), format)
    fast, compiled, walked = three_ways(format, batch)
    assert fast == walked
    assert compiled == walked


@thorough(80)
@given(st.data())
def test_what_was_encoded_is_decoded(data: st.DataObject) -> None:
    format = data.draw(formats())
    events = data.draw(batches(format))
    assert plain(received(Batch.of(events, format)).events()) == plain(events)


@pytest.mark.parametrize("architecture", ALL.values(), ids=ALL)
def test_every_machine_is_understood(architecture: Architecture) -> None:
    events = cells_of(4)
    whole = Format.of(Mesh)
    kept = [field for field in whole.fields if field.name != "tags"]  # a pointer tells no length
    format = Format.place("Mesh", kept if architecture.slots else whole.fields, architecture)
    if architecture.slots:
        events = [{field.name: getattr(event, field.name) for field in kept} for event in events]
    fast, compiled, walked = three_ways(format, received(Batch.of(events, format)))
    assert fast == compiled == walked == plain(events)


def test_a_generated_class_stands_for_a_type_that_nobody_declared() -> None:
    (made,) = received(Batch.of([Trade("abc", 1.5, 2)])).events()
    assert isinstance(made, Record)
    assert type(made).__name__ == "Trade"
    assert dict(made) == {"symbol": "abc", "price": 1.5, "volume": 2, "venue": 0}
    assert made.format == Format.of(Trade)


def test_a_declared_class_is_built_with_its_own_constructor() -> None:
    @dataclasses.dataclass
    class Place:
        name: str
        x: float = dataclasses.field(kw_only=True)

    @dataclasses.dataclass
    class Trip:
        start: Place
        stops: Array[Place, ...]

    trip = Trip(Place("a", x=1.0), [Place("b", x=2.0), Place("c", x=3.0)])
    batch = received(Batch.of([trip]))
    assert batch.to(Trip).events() == [trip]


def test_a_foreign_struct_is_an_event_type() -> None:
    class Sample(msgspec.Struct, frozen=True):
        a: int
        b: str = ""

    assert received(Batch.of([Sample(1, "x")])).to(Sample).events() == [Sample(1, "x")]


def test_enumerations_become_members_and_unknown_values_stay_integers() -> None:
    class Flags(enum.IntFlag):
        A = 1
        B = 2

    @event
    class Painted:
        color: Color
        flags: Flags
        text: str

    batch = Batch.of([Painted(Color.GREEN, Flags.A | Flags.B, ""), Painted(77, 8, "")])
    for made in (batch.events(), list(decoder_of(Painted).walk(batch.records, batch.bounds))):
        known, unknown = made
        assert known.color is Color.GREEN
        assert known.flags == Flags.A | Flags.B
        assert isinstance(known.flags, Flags)
        assert (unknown.color, type(unknown.color)) == (77, int)


def test_arrays_of_fixed_records_are_views_of_the_received_bytes() -> None:
    batch = received(
        Batch.of([Grid(0.5, numpy.ones((4, 64)), [1, 2, 3], b"name", b"x", Color.RED, Point(1.0, 2.0, 3))] * 3)
    )
    memory = numpy.frombuffer(batch.payload, numpy.uint8)
    for made in batch.events():
        assert numpy.shares_memory(made.wind, memory)
        assert (made.wind.shape, made.marks.tolist(), made.name, made.letter) == ((4, 64), [1, 2, 3], b"name", b"x")


@pytest.mark.parametrize("compiled", [False, True])
def test_dynamic_arrays_are_views_of_the_received_bytes(compiled: bool) -> None:
    batch = received(Batch.of(reports(4)))
    decoder = Decoder(bind(batch.format))
    if compiled:
        decoder.compile()
    made = decoder.decode(batch.records, batch.offsets)
    assert numpy.shares_memory(made[3].samples, numpy.frombuffer(batch.payload, numpy.uint8))
    assert not made[3].samples.flags.writeable


def test_a_dynamic_array_keeps_its_shape_and_byte_order() -> None:
    format = format_of(Field("x", Kind.INT, 4, dimensions=("", 2, 3)), architecture=BIG)
    values = numpy.arange(12, dtype=numpy.int32).reshape(2, 2, 3)
    for events in ([{"x": values}], [{"x": []}]):
        fast, compiled, walked = three_ways(format, Batch.of(events, format))
        assert fast == compiled == walked
    (made,) = Batch.of([{"x": values}], format).events()
    assert (made.x.shape, made.x.dtype) == ((2, 2, 3), numpy.dtype(">i4"))
    (empty,) = Batch.of([{"x": []}], format).events()
    assert empty.x.shape == (0, 2, 3)


def test_char_arrays_end_at_their_padding() -> None:
    @event
    class Names:
        one: Array[char, 4]
        many: Array[char, 2, 4]
        text: str

    batch = Batch.of([Names(b"ab", [b"c", b"\0\0d"], ""), Names(b"", [b"abcd", b""], "")])
    for made in (batch.events(), list(decoder_of(Names).walk(batch.records, batch.bounds))):
        assert [event.one for event in made] == [b"ab", b""]
        assert [event.many.tolist() for event in made] == [[b"c", b"\0\0d"], [b"abcd", b""]]


def test_a_null_slot_is_none_only_where_none_is_declared() -> None:
    optional = format_of(Field("s", Kind.STRING, 8, optional=True), Field("b", Kind.BYTES, 8, optional=True))
    required = format_of(Field("s", Kind.STRING, 8), Field("b", Kind.BYTES, 8))
    batch = Batch.of([{"s": None, "b": None}, {"s": "", "b": b""}], optional)
    assert three_ways(optional, batch) == [[{"s": None, "b": None}, {"s": "", "b": b""}]] * 3
    assert three_ways(required, batch) == [[{"s": "", "b": b""}] * 2] * 3


def test_text_may_contain_nul() -> None:
    format = Format.of(Trade)
    batch = Batch.of([Trade("a\0b\0", 1.0, 2)])
    assert [events[0]["symbol"] for events in three_ways(format, batch)] == ["a\0b\0"] * 3


def test_fields_may_lie_in_another_order_than_they_are_declared() -> None:
    format = Format(
        "Odd",
        (
            Field("a", Kind.STRING, 8, 19),
            Field("b", Kind.INT, 4, 2),
            Field("c", Kind.CHAR, 1, 9, (3,)),
            Field("d", Kind.BOOL, 1, 0),
        ),
        byte_order="big",
        alignment=1,
        size=30,
    )
    events = [{"a": "text", "b": -5, "c": b"xyz", "d": True}]
    assert three_ways(format, received(Batch.of(events, format))) == [plain(events)] * 3


@pytest.mark.parametrize(
    "name", ["class", "None", "self", "format", "keys", "items", "def", "_0", "v8", "data", "records"]
)
def test_no_field_name_disturbs_the_generated_functions(name: str) -> None:
    format = format_of(Field(name, Kind.STRING, 8), Field("x", Kind.INT, 8), name=name)
    batch = Batch.of([to_object({name: "text", "x": 1}, format)], format)
    assert three_ways(format, batch) == [[{name: "text", "x": 1}]] * 3


def test_a_decoder_compiles_itself_when_it_is_hot_and_gives_the_same() -> None:
    batch = Batch.of(reports(HOT_RECORDS))
    decoder = Decoder(bind(Report))
    expected = plain(reports(HOT_RECORDS))
    for _ in range(4):
        assert plain(decoder.decode(batch.records, batch.bounds)) == expected


def test_compiling_a_decoder_that_needs_no_native_code_does_nothing() -> None:
    for declared, events in ((Point, [Point(1.0, 2.0, 3)]), (Mesh, cells_of(2))):
        decoder, batch = Decoder(bind(declared)), Batch.of(events)
        decoder.compile()
        assert plain(decoder.decode(batch.records, batch.bounds)) == plain(events)


def test_the_same_type_has_the_same_decoder() -> None:
    assert decoder_of(Trade) is decoder_of(Trade)
    assert decoder_of(Trade) is not decoder_of(Format.of(Trade))


def test_deeply_nested_records_are_decoded() -> None:
    @event
    class Inner:
        text: str
        n: uint8
        x: Array[int16, "n"]

    nested: Any = Inner
    value: Any = Inner("deep", 2, [1, 2])
    for depth in range(40):
        nested = event(type(f"Level{depth}", (), {"__annotations__": {"inner": nested, "y": float32}}))
        value = nested(value, 0.5)
    batch = Batch.of([value])
    fast, compiled, walked = three_ways(batch.format, received(batch))
    assert fast == compiled == walked == plain([value])
