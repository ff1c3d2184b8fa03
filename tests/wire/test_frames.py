"""Frames: however a stream is cut, and whatever a stranger puts into it."""

import struct
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import google_crc32c
import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.errors import EncodeError, LimitExceededError, MalformedFrameError
from echoic.wire import Frame, FrameKind, FrameReader, encode_frame
from echoic.wire.frames import (
    HEADER_BYTES,
    PAYLOAD_BYTES_MAX,
    PAYLOAD_BYTES_MAX_UNAUTHENTICATED,
    checksum,
)
from tests.wire.samples import joined, thorough

KIBIBYTE = 1024

sent_frames = st.tuples(st.sampled_from(FrameKind), st.integers(0, 2**32 - 1), st.binary(max_size=40), st.booleans())
streams = st.lists(sent_frames, max_size=8)
cuts = st.lists(st.integers(0, 30), min_size=1, max_size=40)


def stream_of(frames: list[tuple[FrameKind, int, bytes, bool]]) -> bytes:
    return joined(
        [
            buffer
            for kind, channel, payload, checked in frames
            for buffer in encode_frame(kind, [payload], channel=channel, checked=checked)
        ]
    )


def cut(stream: bytes, sizes: list[int]) -> Iterator[bytes]:
    """Yield pieces of the given sizes, then the rest."""
    at = 0
    for size in sizes:
        yield stream[at : at + size]
        at += size
    yield stream[at:]


def received_in(pieces: Iterable[bytes], frames: list[Frame]) -> None:
    """Gather the frames of a stream, up to an error."""
    reader = FrameReader()
    for piece in pieces:
        frames += reader.receive(piece)


def shown(frames: list[Frame]) -> list[tuple[FrameKind, int, bytes]]:
    return [(frame.kind, frame.channel, bytes(frame.payload)) for frame in frames]


def header(
    length: int = 0, kind: int = 4, flags: int = 0, reserved: int = 0, channel: int = 0, value: int = 0
) -> bytes:
    return struct.pack("<IBBHII", length, kind, flags, reserved, channel, value)


def peak_bytes(work: Callable[[], object]) -> int:
    """Return how much memory `work` had at once."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@given(streams, cuts)
def test_frames_survive_any_cutting_of_the_stream(
    sent: list[tuple[FrameKind, int, bytes, bool]], sizes: list[int]
) -> None:
    reader, stream = FrameReader(), stream_of(sent)
    frames = [frame for piece in cut(stream, sizes) for frame in reader.receive(piece)]
    assert shown(frames) == [(kind, channel, payload) for kind, channel, payload, _ in sent]
    assert reader.statistics().frames == len(sent)
    assert reader.statistics().bytes == len(stream)
    assert reader.statistics().pending_bytes == 0


@given(streams)
def test_single_bytes_give_the_frames_of_the_whole(sent: list[tuple[FrameKind, int, bytes, bool]]) -> None:
    stream = stream_of(sent)
    by_bytes, at_once = FrameReader(), FrameReader()
    frames = [frame for index in range(len(stream)) for frame in by_bytes.receive(stream[index : index + 1])]
    assert shown(frames) == shown(at_once.receive(stream))


def test_a_frame_has_the_documented_bytes() -> None:
    made = joined(encode_frame(FrameKind.ACKS, [b"abc", b"de"], channel=0x01020304))
    assert made == bytes.fromhex("05000000 05 00 0000 04030201 00000000") + b"abcde\0\0\0"


def test_a_checked_frame_has_the_documented_checksum() -> None:
    made = joined(encode_frame(FrameKind.HELLO, [b"12345678"], checked=True))
    expected = google_crc32c.value(bytes.fromhex("08000000 01 01 0000 00000000") + b"12345678")
    assert made == bytes.fromhex("08000000 01 01 0000 00000000") + struct.pack("<I", expected) + b"12345678"


@given(st.lists(st.binary(max_size=20), max_size=5), st.integers(0, 2**32 - 1))
def test_the_checksum_of_pieces_is_that_of_the_whole(pieces: list[bytes], start: int) -> None:
    assert checksum(pieces, start) == google_crc32c.extend(start, joined(pieces))


def test_the_checksum_does_not_depend_on_how_a_large_buffer_is_read() -> None:
    data = bytes(range(256)) * 1000
    assert (
        checksum([memoryview(data)]) == checksum([data[:99_999], bytearray(data[99_999:])]) == google_crc32c.value(data)
    )


@pytest.mark.parametrize("length", range(18))
def test_frames_are_padded_with_zeros_to_multiples_of_8(length: int) -> None:
    made = joined(encode_frame(FrameKind.EVENTS, [b"\xff" * length]))
    assert len(made) == HEADER_BYTES + -(-length // 8) * 8
    assert not any(made[HEADER_BYTES + length :])


@given(st.binary(min_size=1, max_size=30), st.integers(1, 7))
def test_every_payload_of_a_stream_starts_at_a_multiple_of_8(payload: bytes, count: int) -> None:
    stream = stream_of([(FrameKind.EVENTS, 0, payload, False)] * count)
    whole = numpy.frombuffer(stream, numpy.uint8)
    for frame in FrameReader().receive(stream):
        at = numpy.frombuffer(frame.payload, numpy.uint8).ctypes.data - whole.ctypes.data
        assert at % 8 == 0


def test_a_frame_waits_for_its_padding() -> None:
    made, reader = joined(encode_frame(FrameKind.EVENTS, [b"abc"])), FrameReader()
    assert not reader.receive(made[:-1])
    assert shown(reader.receive(made[-1:])) == [(FrameKind.EVENTS, 0, b"abc")]


def test_the_payload_is_not_copied_on_its_way_out() -> None:
    payload = numpy.arange(100, dtype=numpy.uint8)
    pieces = encode_frame(FrameKind.EVENTS, [memoryview(payload)], checked=True)
    assert any(numpy.shares_memory(numpy.frombuffer(piece, numpy.uint8), payload) for piece in pieces)


def test_the_payload_of_received_bytes_is_a_view_of_them() -> None:
    stream = stream_of([(FrameKind.EVENTS, 0, b"abcdefgh", False), (FrameKind.ACKS, 0, b"12345678", True)])
    for frame in FrameReader().receive(stream):
        assert frame.payload.obj is stream
        assert frame.payload.readonly


def test_the_payload_of_a_reused_buffer_is_a_copy() -> None:
    buffer = bytearray(stream_of([(FrameKind.EVENTS, 0, b"abcdefgh", False)]))
    for data in (buffer, memoryview(buffer)):
        (frame,) = FrameReader().receive(data)
        buffer[HEADER_BYTES:] = b"xxxxxxxx"
        assert bytes(frame.payload) == b"abcdefgh"
        buffer[HEADER_BYTES:] = b"abcdefgh"


def test_the_length_of_a_frame_counts_bytes_and_not_elements() -> None:
    payload = memoryview(numpy.arange(4, dtype=numpy.float64))
    made = joined([memoryview(piece).cast("B") for piece in encode_frame(FrameKind.EVENTS, [payload])])
    (frame,) = FrameReader().receive(made)
    assert bytes(frame.payload) == payload.tobytes()


@pytest.mark.parametrize("kind", [max(FrameKind) + 1, 100, 255])
def test_a_frame_of_an_unknown_kind_is_skipped_and_counted(kind: int) -> None:
    unknown = header(5, kind) + b"what?\0\0\0"
    reader = FrameReader()
    frames = reader.receive(unknown + stream_of([(FrameKind.ACKS, 3, b"", False)]) + unknown)
    assert shown(frames) == [(FrameKind.ACKS, 3, b"")]
    assert (reader.statistics().frames, reader.statistics().skipped) == (3, 2)


def test_a_skipped_frame_must_have_its_checksum_too() -> None:
    with pytest.raises(MalformedFrameError, match="checksum"):
        FrameReader().receive(header(0, 99, flags=1, value=1))


def test_an_empty_piece_changes_nothing() -> None:
    reader = FrameReader()
    assert reader.receive(b"") == []
    assert shown(reader.receive(stream_of([(FrameKind.ACKS, 1, b"x", True)]))) == [(FrameKind.ACKS, 1, b"x")]
    assert reader.receive(b"") == []


@pytest.mark.parametrize(
    "bad", [header(kind=0), header(flags=2), header(flags=0x80), header(reserved=1), header(reserved=0x8000)]
)
def test_a_header_that_says_what_no_header_says_is_refused(bad: bytes) -> None:
    reader = FrameReader()
    reader.receive(stream_of([(FrameKind.ACKS, 1, b"x", True)]))
    with pytest.raises(MalformedFrameError, match=r"kind \d+, flags \d+ and \d+ .* frame 1"):
        reader.receive(bad)


@pytest.mark.parametrize(
    ("reader", "limit"),
    [
        (FrameReader(), PAYLOAD_BYTES_MAX),
        (FrameReader(payload_bytes_max=PAYLOAD_BYTES_MAX_UNAUTHENTICATED), 1024 * KIBIBYTE),
        (FrameReader(payload_bytes_max=10), 10),
    ],
)
def test_a_length_above_the_limit_is_refused_when_only_its_header_has_arrived(reader: FrameReader, limit: int) -> None:
    text = f"peer announced {limit + 1} payload bytes, limit is {limit} - at frame 0"

    def receive() -> None:
        with pytest.raises(LimitExceededError, match=text):
            reader.receive(header(limit + 1))

    receive()
    assert peak_bytes(receive) < 64 * KIBIBYTE


def test_the_default_limit_is_16_mebibytes() -> None:
    assert FrameReader().payload_bytes_max == 16 * 1024 * KIBIBYTE


def test_nothing_is_set_aside_for_an_announced_payload() -> None:
    reader = FrameReader()
    assert peak_bytes(lambda: reader.receive(header(PAYLOAD_BYTES_MAX) + b"x")) < 64 * KIBIBYTE
    assert reader.statistics().pending_bytes == HEADER_BYTES + 1


def test_the_limit_can_be_raised_between_frames() -> None:
    reader = FrameReader(payload_bytes_max=4)
    reader.receive(stream_of([(FrameKind.HELLO, 0, b"1234", False)]))
    reader.payload_bytes_max = 8
    assert shown(reader.receive(stream_of([(FrameKind.ACKS, 0, b"12345678", False)])))


def test_a_payload_longer_than_a_length_can_say_is_refused() -> None:
    endless = memoryview(numpy.broadcast_to(numpy.uint8(0), (2**32,)))  # one byte, shown 2**32 times
    with pytest.raises(EncodeError, match="a payload has 4294967296 bytes, limit is 16777216"):
        encode_frame(FrameKind.EVENTS, [endless])


@given(streams.filter(bool), st.data())
def test_a_truncated_stream_gives_the_frames_that_are_whole(
    sent: list[tuple[FrameKind, int, bytes, bool]], data: st.DataObject
) -> None:
    stream = stream_of(sent)
    kept = data.draw(st.integers(0, len(stream) - 1))
    reader = FrameReader()
    frames = shown(reader.receive(stream[:kept]))
    whole = [(kind, channel, payload) for kind, channel, payload, _ in sent]
    assert frames == whole[: len(frames)]
    assert len(frames) < len(whole)
    assert reader.statistics().pending_bytes == kept - len(stream_of(sent[: len(frames)]))


@given(st.binary(max_size=24), st.data())
def test_no_flipped_bit_of_a_checked_frame_goes_unnoticed(payload: bytes, data: st.DataObject) -> None:
    frame = joined(encode_frame(FrameKind.EVENTS, [payload], channel=9, checked=True))
    following = stream_of([(FrameKind.ACKS, 2, b"next", True)])
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    damaged = bytearray(frame)
    damaged[bit // 8] ^= 1 << bit % 8
    assert_only_true_frames(bytes(damaged) + following, payload)


def test_no_single_bit_of_a_checked_frame_can_be_flipped_unnoticed() -> None:
    payload = b"events go here"
    frame = joined(encode_frame(FrameKind.EVENTS, [payload], channel=9, checked=True))
    for bit in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        assert_only_true_frames(bytes(damaged), payload)


def assert_only_true_frames(stream: bytes, payload: bytes) -> None:
    """Check that a reader refuses the stream, waits for more of it, or gives exactly what was sent."""
    reader = FrameReader(checked=True)
    try:
        frames = reader.receive(stream)
    except (MalformedFrameError, LimitExceededError):
        return
    true = [(FrameKind.EVENTS, 9, payload), (FrameKind.ACKS, 2, b"next")]
    assert shown(frames) == true[: len(frames)]


@given(st.binary(min_size=8, max_size=24), st.binary(min_size=8, max_size=24), st.data())
def test_spliced_checked_frames_are_refused_or_wait(first: bytes, second: bytes, data: st.DataObject) -> None:
    left, right = (joined(encode_frame(FrameKind.EVENTS, [part], checked=True)) for part in (first, second))
    at = data.draw(st.integers(1, min(len(left), len(right)) - 1))
    spliced = left[:at] + right[at:]
    reader = FrameReader(checked=True)
    try:
        frames = reader.receive(spliced)
    except MalformedFrameError:
        return
    assert shown(frames) in ([], shown(FrameReader().receive(left)), shown(FrameReader().receive(right)))


def test_a_stream_that_needs_checksums_refuses_a_frame_without() -> None:
    reader = FrameReader(checked=True)
    assert reader.receive(joined(encode_frame(FrameKind.HELLO, [b"x"], checked=True)))
    with pytest.raises(MalformedFrameError, match="no checksum, this stream needs one - at frame 1"):
        reader.receive(joined(encode_frame(FrameKind.HELLO, [b"x"])))


def test_the_error_of_a_wrong_checksum_has_both_of_them() -> None:
    made = bytearray(joined(encode_frame(FrameKind.EVENTS, [b"x" * 20], checked=True)))
    told = struct.unpack_from("<I", made, 12)[0]
    made[20] ^= 1
    with pytest.raises(MalformedFrameError, match=rf"20 bytes has checksum [0-9a-f]{{8}}, .* {told:08x} - at frame 0"):
        FrameReader().receive(bytes(made))


@pytest.mark.parametrize(
    "greeting",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /a HTTP/1.1\r\n",
        b"HELO example.test\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
    ],
)
@pytest.mark.parametrize("piece_bytes", [1, 7, 100])
def test_another_protocol_is_called_so(greeting: bytes, piece_bytes: int) -> None:
    sizes = [piece_bytes] * (len(greeting) // piece_bytes)
    with pytest.raises(MalformedFrameError, match="another protocol") as caught:
        received_in(cut(greeting, sizes), [])
    assert repr(greeting[:16]) in str(caught.value)


@given(st.binary(max_size=200), cuts)
def test_garbage_gives_a_declared_error_or_nothing_wrong(garbage: bytes, sizes: list[int]) -> None:
    reader = FrameReader(checked=True, payload_bytes_max=64)
    try:
        for piece in cut(garbage, sizes):
            for frame in reader.receive(piece):
                assert len(frame.payload) <= 64
    except (MalformedFrameError, LimitExceededError):
        return
    assert reader.statistics().pending_bytes < HEADER_BYTES + 72


@pytest.mark.parametrize("sizes", [[], [16], [24], [25], [40]])
def test_frames_before_a_malformed_one_arrive_however_the_stream_is_cut(sizes: list[int]) -> None:
    stream = stream_of([(FrameKind.ACKS, 1, b"12345678", False)]) + header(kind=0) + header()
    frames: list[Frame] = []
    with pytest.raises(MalformedFrameError, match="frame 1"):
        received_in([*cut(stream, sizes), b""], frames)
    assert shown(frames) == [(FrameKind.ACKS, 1, b"12345678")]


def test_many_small_frames_in_one_piece_arrive_in_order() -> None:
    sent = [(FrameKind.EVENTS, number, number.to_bytes(4, "little"), False) for number in range(20_000)]
    reader = FrameReader()
    assert shown(reader.receive(stream_of(sent))) == [frame[:3] for frame in sent]
    assert reader.statistics().frames == 20_000


def work_inside(work: Callable[[], object]) -> int:
    """Return how often a piece led to more than being put aside: bytes joined, or the stream looked at."""
    count, frames_file = 0, FrameReader.receive.__code__.co_filename

    def note(frame: Any, what: str, function: Any) -> None:
        nonlocal count
        looked = what == "call" and frame.f_code.co_filename == frames_file and frame.f_code.co_name != "receive"
        count += looked or (what == "c_call" and function.__name__ == "join")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_a_large_frame_in_single_bytes_takes_a_few_calls_for_each() -> None:
    """Looking at what has arrived costs as many bytes as have arrived: once per piece would be quadratic.

    Pieces of a large frame are put where they belong one by one, which takes a few calls each.
    """
    payload = bytes(range(256)) * 400
    stream = joined(encode_frame(FrameKind.EVENTS, [payload], checked=True))
    pieces = [stream[index : index + 1] for index in range(len(stream))]
    reader = FrameReader()
    frames: list[Frame] = []

    def gather() -> None:
        for piece in pieces:
            frames.extend(reader.receive(piece))

    assert work_inside(gather) < 4 * len(pieces)
    assert [bytes(frame.payload) for frame in frames] == [payload]


def test_what_is_held_back_is_less_than_one_frame_and_one_piece() -> None:
    stream = stream_of([(FrameKind.EVENTS, 0, bytes(1000), False)] * 50)
    reader = FrameReader()
    for start in range(0, len(stream), 300):
        reader.receive(stream[start : start + 300])
        assert reader.statistics().pending_bytes < HEADER_BYTES + 1000 + 300


@thorough(50)
@given(st.integers(0, 3), st.integers(0, 600))
def test_a_pending_frame_is_not_touched_until_it_is_whole(full: int, part: int) -> None:
    stream = stream_of([(FrameKind.EVENTS, 0, bytes(600), True)] * 4)
    reader, frame_bytes = FrameReader(), HEADER_BYTES + 600
    frames = reader.receive(stream[: full * frame_bytes + part])
    assert len(frames) == full
    frames += reader.receive(stream[full * frame_bytes + part :])
    assert len(frames) == 4
