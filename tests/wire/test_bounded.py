"""What a stranger can make this program spend: memory and time stay bounded, whatever a batch or descriptor says."""

import struct
import tracemalloc

import numpy
import pytest

from echoic.errors import LimitExceededError, MalformedBatchError, MalformedFrameError
from echoic.formats import NATIVE, Field, Format, Kind, Registry, Slots, bind, event, int8, int32, match
from echoic.formats.limits import FIELDS_MAX, REGISTRY_FIELDS_MAX
from echoic.wire import Batch, Conversion, Decoder, FrameKind, FrameReader, encode_frame, parse_batch
from echoic.wire.convert_native import can_generate, can_locate


@event
class Plain:
    n: int32
    name: str


def test_a_batch_of_many_empty_records_allocates_nothing_for_them() -> None:
    decoder = Decoder(bind(Plain))
    decoder.compile()
    format = Format.of(Plain)
    registry = Registry()
    registry.add(format)
    count = 1_000_000
    payload = struct.pack("<QII", format.token, count, 1) + bytes(4 * (count + 1) + 4)
    batch = parse_batch(payload, registry)
    tracemalloc.start()
    with pytest.raises(MalformedBatchError):
        decoder.decode(batch.records, batch.known_offsets)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 128 * 1024 * 1024  # the offsets themselves as Python numbers, and nothing per fixed part


def test_a_type_with_very_many_slots_is_not_compiled() -> None:
    texts = [Field(f"t{index}", Kind.STRING, 8) for index in range(200)]
    format = Format.place("T", texts, NATIVE)
    assert not can_locate(format)
    assert not can_generate(match(format, format))
    assert can_locate(Format.of(Plain))


def test_the_fields_of_all_formats_in_a_registry_are_limited_together() -> None:
    registry = Registry()
    fields = [Field(f"f{index}", Kind.UINT, 1) for index in range(FIELDS_MAX)]
    for number in range(REGISTRY_FIELDS_MAX // FIELDS_MAX):
        registry.add(Format.place(f"T{number}", fields, NATIVE))
    with pytest.raises(LimitExceededError, match=f"limit is {REGISTRY_FIELDS_MAX}"):
        registry.add(Format.place("More", fields[:1], NATIVE))


def test_many_c_pointers_at_one_empty_text_do_not_each_cost_the_record() -> None:
    fields = (Field("n", Kind.UINT, 4, 0), Field("s", Kind.STRING, 4, 4, ("n",)))
    format = Format("T", fields, byte_order="little", alignment=4, size=8, slots=Slots.POINTER32)
    count = 20_000
    block = struct.pack("<II", count, 8) + struct.pack("<I", 8 + 4 * count) * count + b"\0" + b"x" * 400_007
    batch = Batch(format, 1, [block], [0, len(block)])
    assert batch.events()[0].s == [""] * count
    rich = struct.pack("<II", count, 8) + struct.pack("<I", 8 + 4 * count) * count + b"y" * 99 + b"\0" * 5
    with pytest.raises(MalformedBatchError, match="overlap"):
        Batch(format, 1, [rich], [0, len(rich)]).events()


@pytest.mark.parametrize("size", [1, 7, 24, 40])
def test_frames_before_a_bad_one_arrive_however_the_stream_was_cut(size: int) -> None:
    stream = b"".join(encode_frame(FrameKind.EVENTS, [b"whole"], channel=3)) + bytes(16)
    reader = FrameReader()
    arrived, refused = [], 0
    for at in range(0, len(stream) + size, size):
        try:
            arrived += reader.receive(stream[at : at + size])
        except MalformedFrameError:
            refused += 1
    assert [bytes(frame.payload) for frame in arrived] == [b"whole"]
    assert refused


def test_pieces_of_two_bytes_take_no_more_memory_than_the_frame() -> None:
    stream = b"".join(encode_frame(FrameKind.EVENTS, [bytes(1_000_000)]))
    reader = FrameReader()
    tracemalloc.start()
    frames = [frame for at in range(0, len(stream), 2) for frame in reader.receive(stream[at : at + 2])]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(frames) == 1
    assert peak < 8_000_000


@pytest.mark.parametrize("native", [False, True])
def test_the_padding_inside_an_absent_record_is_zero(native: bool) -> None:
    @event
    class Inner:
        p: int8 = 1
        q: float = 2.0

    @event
    class Outer:
        a: int
        inner: Inner

    conversion = Conversion(Format.of(numpy.dtype([("a", "i8")])), Format.of(Outer))
    if native:
        conversion.compile()
    expected = struct.pack("<qb7xd", 5, 1, 2.0)
    for _ in range(50):
        assert bytes(conversion.convert_fixed(struct.pack("<q", 5), 1)) == expected
