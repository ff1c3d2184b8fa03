"""Batches: made from anything, sent without a copy, received without a look."""

import dataclasses
import struct
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import EncodeError, FormatError, IncompatibleTypesError, MalformedBatchError, UnknownFormatError
from echoic.formats import ARCHITECTURES, Architecture, Field, Format, Kind, Registry, Slots
from echoic.wire import Batch, FrameKind, FrameReader, encode_frame, parse_batch
from echoic.wire.batch import HEADER_BYTES
from tests.strategies import architectures, batches, formats, spans
from tests.wire.samples import (
    BIG,
    Grid,
    Mesh,
    Point,
    Report,
    Trade,
    cells_of,
    format_of,
    joined,
    parsed,
    plain,
    received,
    reports,
    stripped,
    thorough,
)

POINTS = [Point(x=1.5, y=-2.5, n=3), Point(x=0.0, y=0.5, n=-4, m=9, up=False)]


def memory(buffer: Any) -> Any:
    return numpy.frombuffer(buffer, numpy.uint8)


@thorough(60)
@given(st.data())
def test_a_batch_of_any_type_arrives_as_it_was_sent(data: st.DataObject) -> None:
    format = data.draw(formats())
    events = data.draw(batches(format))
    batch = received(Batch.of(events, format))
    assert len(batch) == len(events)
    assert batch.format is not None
    assert plain(batch.events()) == plain(events)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_batch_comes_back_from_every_machine(name: str) -> None:
    round_trip(ARCHITECTURES[name], spans())


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_batch_comes_back_from_every_machine_with_c_pointers(name: str) -> None:
    round_trip(ARCHITECTURES[name].with_pointers(), architectures(pointers=True))


def round_trip(there: Architecture, here: Any) -> None:
    """Send batches of random types to a machine, and back from it, as its own bytes."""

    @thorough(12)
    @given(st.data())
    def check(data: st.DataObject) -> None:
        format = data.draw(formats(architectures=here))
        events = data.draw(batches(format))
        sent = received(Batch.of(events, format)).to(format.on(there))
        assert sent.format == format.on(there)
        assert plain(received(sent).events()) == plain(events)
        assert plain(received(received(sent).to(format)).events()) == plain(events)
        assert plain(received(Batch.of(events, format.on(there))).events()) == plain(events)

    check()


def test_a_fixed_batch_has_the_documented_bytes() -> None:
    format = format_of(Field("a", Kind.UINT, 2), Field("b", Kind.UINT, 1))
    payload = joined(Batch.of([{"a": 0x0102, "b": 3}, {"a": 4, "b": 5}], format).buffers())
    assert payload == struct.pack("<QII", format.token, 2, 0) + bytes.fromhex("02010300 04000500")


def test_a_variable_batch_has_the_documented_bytes() -> None:
    format = format_of(Field("s", Kind.STRING, 8), Field("n", Kind.UINT, 4), architecture=BIG)
    payload = joined(Batch.of([{"s": "abc", "n": 1}, {"s": "12345678", "n": 2}], format).buffers())
    first = struct.pack(">III", 16, 3, 1) + bytes(4) + b"abc\0\0\0\0\0"
    second = struct.pack(">III", 16, 8, 2) + bytes(4) + b"12345678\0".ljust(16, b"\0")
    offsets = struct.pack("<4I", 0, 24, 56, 0)
    assert payload == struct.pack("<QII", format.token, 2, 1) + offsets + first + second


def test_records_of_a_variable_batch_start_at_multiples_of_8() -> None:
    for count in range(5):
        payload = joined(Batch.of(reports(count), Report).buffers())
        batch = parsed(payload, Format.of(Report))
        assert (len(payload) - len(batch.records)) % 8 == 0
        assert all(bound % 8 == 0 for bound in batch.bounds)


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("declared", [Point, Report, Mesh])
def test_a_batch_of_few_or_none_has_every_face(declared: type, count: int) -> None:
    events = {Point: POINTS * 2, Report: reports(3), Mesh: cells_of(3)}[declared][:count]
    for batch in (Batch.of(events, declared), received(Batch.of(events, declared))):
        assert len(batch) == batch.count == len(list(batch)) == len(batch.array) == batch.arrow.num_rows == count
        assert len(batch.bounds) == count + 1
        assert plain(batch.events()) == plain(events)
        assert plain(batch.to(batch.format.on(BIG)).events()) == plain(events)
        assert repr(batch) == f"<Batch of {count} {declared.__name__}>"


def test_an_array_is_sent_without_a_copy() -> None:
    array = numpy.zeros(1000, [("a", "<i4"), ("b", "<f8")])
    array["a"] = numpy.arange(1000)
    batch = Batch.of(array)
    assert batch.format.dtype == array.dtype
    assert numpy.shares_memory(batch.array, array)
    assert any(numpy.shares_memory(memory(piece), array) for piece in batch.buffers())
    framed = encode_frame(FrameKind.EVENTS, batch.buffers())
    assert any(numpy.shares_memory(memory(piece), array) for piece in framed)
    assert bytes(received(batch).records) == array.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        numpy.arange(24, dtype="<i4").view([("a", "<i4"), ("b", "<i4")]).reshape(3, 4),
        numpy.arange(24, dtype="<i4").view([("a", "<i4"), ("b", "<i4")])[::2],
        numpy.arange(24, dtype=">i4").view([("a", ">i4"), ("b", ">i4")]),
        numpy.zeros(0, [("a", "<i4"), ("b", "<i4")]),
        numpy.zeros((), [("a", "<i4"), ("b", "<i4")]),
        numpy.zeros(
            3, numpy.dtype({"names": ["a", "b"], "formats": ["<i4", "<i4"], "offsets": [7, 1], "itemsize": 13})
        ),
    ],
    ids=["two dimensions", "strided", "big-endian", "empty", "single", "odd layout"],
)
def test_any_structured_array_is_a_batch(array: Any) -> None:
    batch = received(Batch.of(array))
    assert batch.array.dtype == array.dtype
    assert (batch.array == array.reshape(-1)).all()
    assert [(event.a, event.b) for event in batch.events()] == [tuple(row) for row in array.reshape(-1).tolist()]


def test_a_declared_type_converts_an_array() -> None:
    array = numpy.zeros(2, [("y", ">f4"), ("x", ">f8"), ("n", ">i2"), ("more", ">i8")])
    array["n"] = [5, -6]
    batch = Batch.of(array, Point)
    assert [(event.n, event.m) for event in batch.events()] == [(5, 7), (-6, 7)]
    assert isinstance(batch.events()[0], Point)
    with pytest.raises(IncompatibleTypesError, match=r"symbol"):
        Batch.of(array, Trade)


def test_received_arrays_are_views_of_the_payload() -> None:
    payload = joined(Batch.of(POINTS).buffers())
    batch = parsed(payload, Format.of(Point))
    assert numpy.shares_memory(batch.array, memory(payload))
    assert numpy.shares_memory(memory(batch.records), memory(payload))
    assert batch.array["n"].tolist() == [3, -4]
    assert numpy.shares_memory(batch.array, memory(payload))  # also when the records were asked for before


def test_a_batch_in_a_frame_is_a_view_of_the_received_bytes() -> None:
    stream = joined(encode_frame(FrameKind.EVENTS, Batch.of(POINTS).buffers(), checked=True))
    (frame,) = FrameReader().receive(stream)
    array = parsed(frame.payload, Format.of(Point)).array
    assert numpy.shares_memory(array, memory(stream))
    assert (array.ctypes.data - memory(stream).ctypes.data) % 8 == 0


def test_equal_layouts_share_memory_whatever_else_differs() -> None:
    @dataclasses.dataclass
    class Renamed:
        symbol: str
        price: float
        volume: int
        venue: numpy.uint16

    batch = received(Batch.of([Trade("abc", 1.5, 2)]))
    other = batch.to(Renamed)
    assert numpy.shares_memory(memory(other.records), memory(batch.records))
    assert other.events() == [Renamed("abc", 1.5, 2, 0)]
    assert parsed(joined(other.buffers()), Format.of(Renamed)).format == Format.of(Renamed)


def test_other_layouts_do_not_share_memory() -> None:
    batch = received(Batch.of(POINTS))
    assert not numpy.shares_memory(memory(batch.to(batch.format.on(BIG)).records), memory(batch.records))


def test_a_received_batch_is_relayed_as_the_payload_itself() -> None:
    for events in (POINTS, reports(3), cells_of(2)):
        payload = joined(Batch.of(events).buffers())
        batch = parsed(payload, Format.of(type(events[0])))
        assert len(batch.buffers()) == 1
        assert batch.buffers()[0] is payload
        batch.events()
        assert batch.to(type(events[0])).buffers()[0] is payload


def test_a_batch_that_was_converted_is_sent_with_its_own_token() -> None:
    batch = received(Batch.of(reports(3))).to(Format.of(Report).on(BIG))
    payload = joined(batch.buffers())
    assert struct.unpack_from("<Q", payload)[0] == batch.format.token
    assert plain(parsed(payload, batch.format).events()) == plain(reports(3))


def test_large_arrays_of_events_are_sent_without_a_copy() -> None:
    wind = numpy.random.default_rng(7).random((4, 64))
    events = [Grid(0.5, wind, [1, 2, 3], b"name", b"x", 1, POINTS[0])] * 2
    pieces = Batch.of(events).buffers()
    assert sum(numpy.shares_memory(memory(piece), wind) for piece in pieces if len(piece)) == 2
    assert [(event.wind == wind).all() for event in received(Batch.of(events)).events()] == [True, True]


def test_a_subset_is_received_by_name() -> None:
    @dataclasses.dataclass
    class Quote:
        price: float
        trader: str = "nobody"

    batch = received(Batch.of([Trade("abc", 1.5, 2)]))
    assert batch.to(Quote).events() == [Quote(1.5, "nobody")]


def test_records_join_pieces_only_once() -> None:
    batch = Batch.of(cells_of(3))
    assert batch.records.obj is batch.records.obj


def test_the_bounds_of_a_fixed_batch_are_multiples_of_its_record() -> None:
    batch = Batch.of(POINTS)
    assert list(batch.bounds) == [0, 24, 48]
    assert list(Batch.of([], Point).bounds) == [0]


def test_variable_arrays_hold_objects() -> None:
    array = Batch.of(reports(4)).array
    assert array["at"].tolist() == [0.0, 0.5, 1.0, 1.5]
    assert array["at"].dtype == numpy.float64
    assert array["name"].tolist() == [event.name for event in reports(4)]
    assert array["note"].tolist() == ["note", None, "note", None]
    assert [row.tolist() for row in array["samples"]] == [[], [-1.0], [-1.0, 0.0], [-1.0, 0.0, 1.0]]


@thorough(60)
@given(st.data())
def test_the_array_of_any_batch_has_its_values(data: st.DataObject) -> None:
    format = data.draw(formats())
    events = data.draw(batches(format, special=True))
    array = received(Batch.of(events, format)).array
    names = [field.name for field in format.fields]
    if format.variable:
        made = [stripped({name: plain(row[name]) for name in names}, format) for row in array]
        assert made == [stripped(plain(event), format) for event in events]
    else:
        assert array.dtype == format.dtype
        assert len(array) == len(events)


@pytest.mark.parametrize("events", ["text", b"bytes", 7, None, {"a": 1}, iter([]), {1, 2}])
def test_what_is_no_sequence_of_events_is_refused(events: Any) -> None:
    with pytest.raises(EncodeError, match=f"got {type(events).__name__}"):
        Batch.of(events, Point)


def test_an_empty_sequence_needs_a_type() -> None:
    with pytest.raises(EncodeError, match="does not tell its event type"):
        Batch.of([])
    assert len(Batch.of([], Point)) == 0


def test_a_sequence_of_what_is_no_event_is_refused() -> None:
    with pytest.raises(FormatError, match="int"):
        Batch.of([1, 2])
    with pytest.raises(FormatError):
        Batch.of(numpy.zeros(3))


@pytest.mark.parametrize("size", range(HEADER_BYTES))
def test_a_payload_shorter_than_its_header_is_refused(size: int) -> None:
    with pytest.raises(MalformedBatchError, match=f"a batch has {size} bytes, its header needs 16"):
        parse_batch(bytes(size), Registry())


def test_an_unknown_token_is_refused_showing_it() -> None:
    payload = joined(Batch.of(POINTS).buffers())
    with pytest.raises(UnknownFormatError, match=f"{Format.of(Point).token:016x}"):
        parse_batch(payload, Registry())


@pytest.mark.parametrize("at", [0, 3, 7])
def test_a_damaged_token_is_unknown(at: int) -> None:
    payload = bytearray(joined(Batch.of(POINTS).buffers()))
    payload[at] ^= 0x10
    with pytest.raises(UnknownFormatError):
        parsed(payload, Format.of(Point))


def edited(declared: type, events: list[Any], *, count: int | None = None, flags: int | None = None) -> bytes:
    payload = joined(Batch.of(events).buffers())
    token, sent, said = struct.unpack_from("<QII", payload)
    head = struct.pack("<QII", token, sent if count is None else count, said if flags is None else flags)
    return head + payload[HEADER_BYTES:]


@pytest.mark.parametrize("count", [0, 1, 3, 2**31, 2**32 - 1])
def test_a_count_that_contradicts_the_length_of_a_fixed_batch_is_refused(count: int) -> None:
    with pytest.raises(MalformedBatchError, match=f"a batch of {count} `Point` has 48 bytes"):
        parsed(edited(Point, POINTS, count=count), Format.of(Point))


@pytest.mark.parametrize("flags", [1, 2, 0x8000_0000])
def test_flags_of_a_fixed_batch_are_refused(flags: int) -> None:
    with pytest.raises(MalformedBatchError, match=f"flags {flags}"):
        parsed(edited(Point, POINTS, flags=flags), Format.of(Point))


@pytest.mark.parametrize("flags", [0, 2, 3, 0xFFFF_FFFF])
def test_other_flags_of_a_variable_batch_are_refused(flags: int) -> None:
    with pytest.raises(MalformedBatchError, match=f"flags {flags}"):
        parsed(edited(Report, reports(3), flags=flags), Format.of(Report))


@pytest.mark.parametrize("count", [2**20, 2**31, 2**32 - 1])
def test_a_count_without_room_for_its_offsets_is_refused(count: int) -> None:
    with pytest.raises(MalformedBatchError, match=f"a batch of {count} `Report`"):
        parsed(edited(Report, reports(3), count=count), Format.of(Report))


def test_trailing_bytes_of_a_fixed_batch_are_refused() -> None:
    payload = joined(Batch.of(POINTS).buffers())
    for size in (1, 8, 24):
        with pytest.raises(MalformedBatchError, match=f"has {48 + size} bytes of records"):
            parsed(payload + bytes(size), Format.of(Point))
    with pytest.raises(MalformedBatchError, match="has 47 bytes"):
        parsed(payload[:-1], Format.of(Point))


def test_a_pointer_format_cannot_be_converted_to_by_way_of_bytes() -> None:
    format = Format.of(Report)
    assert format.slots is Slots.SPAN
    with pytest.raises(FormatError, match="pointer slot does not tell a length"):
        format.on(BIG.with_pointers())


def test_a_text_with_nul_is_not_cut_for_a_machine_with_c_pointers() -> None:
    """A C string ends at its NUL, so such a text must be refused rather than shortened without a word."""
    pointers = Format.of(Trade).on(BIG.with_pointers())
    events = [Trade("fine", 1.0, 2), Trade("a\0b", 1.0, 2)]
    with pytest.raises(EncodeError, match=r"Trade\.symbol"):
        Batch.of(events, pointers)
    with pytest.raises((EncodeError, MalformedBatchError), match=r"Trade\.symbol"):
        Batch.of(events).to(pointers)
