"""Two ways to one thing must agree: frames received in place, batches in parts, and records one by one."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from echoic.errors import EchoicError, MalformedFrameError
from echoic.formats import Registry, bind
from echoic.wire import Batch, FrameKind, FrameReader, encode_frame, parse_batch
from echoic.wire.decode import decoder_of
from echoic.wire.encode import encoder_of
from echoic.wire.frames import BELIEVED_BYTES, HEADER_BYTES, LARGE_BYTES
from tests.strategies import batches, formats, to_object
from tests.wire.samples import joined

lengths = st.one_of(
    st.integers(0, 64),
    st.sampled_from([LARGE_BYTES - HEADER_BYTES + more for more in (-9, -8, -1, 0, 1, 7, 8, 5000)]),
    st.integers(LARGE_BYTES, 3 * LARGE_BYTES),
)
sizes = st.one_of(st.integers(1, 40), st.integers(1, 3 * LARGE_BYTES), st.just(BELIEVED_BYTES), st.just(LARGE_BYTES))


def stream_of(payloads: Sequence[int], checked: bool) -> bytes:
    frames = [
        encode_frame(FrameKind.EVENTS, [bytes([index % 251]) * length], channel=index, checked=checked)
        for index, length in enumerate(payloads)
    ]
    return joined([buffer for frame in frames for buffer in frame])


def read(stream: bytes, cuts: Sequence[int], *, direct: bool) -> tuple[list[tuple[int, bytes]], str]:
    """Return the frames of a stream and how it ended, piece by piece, in place where the reader asks for it."""
    reader, frames, at, turn = FrameReader(), [], 0, 0
    try:
        while at < len(stream):
            size, turn = cuts[turn % len(cuts)], turn + 1
            room = reader.room if direct else None
            if room is not None:
                piece = stream[at : at + min(size, len(room))]
                room[: len(piece)] = piece
                found = reader.filled(len(piece))
            else:
                piece = stream[at : at + size]
                found = reader.receive(piece)
            at += len(piece)
            frames += [(frame.channel, bytes(frame.payload)) for frame in found]
        reader.receive(b"")
    except EchoicError as error:
        return frames, str(error)
    seen = reader.statistics()
    return frames, f"{seen.frames} frames, {seen.bytes} bytes, {seen.pending_bytes} pending, idle {reader.idle}"


@settings(max_examples=60)
@given(
    st.lists(lengths, max_size=5), st.lists(sizes, min_size=1, max_size=6), st.booleans(), st.integers(0, 3), st.data()
)
def test_frames_received_in_place_are_those_received_in_pieces(
    payloads: list[int], cuts: list[int], checked: bool, missing: int, data: DataObject
) -> None:
    stream = stream_of(payloads, checked)
    stream = stream[: max(len(stream) - missing, 0)]
    if stream and data.draw(st.booleans()):  # one byte is wrong
        at = data.draw(st.integers(0, len(stream) - 1))
        stream = stream[:at] + bytes([stream[at] ^ 1]) + stream[at + 1 :]
    whole, whole_end = read(stream, [max(len(stream), 1)], direct=False)
    for direct in (False, True):
        frames, end = read(stream, cuts, direct=direct)
        assert frames == whole
        assert end == whole_end


def test_a_large_frame_that_was_spoilt_is_the_last_of_its_stream() -> None:
    stream = bytearray(stream_of([LARGE_BYTES * 2], checked=True))
    stream[-1] ^= 1
    reader = FrameReader()
    reader.receive(bytes(stream[:LARGE_BYTES]))
    with pytest.raises(MalformedFrameError, match="checksum"):
        reader.receive(bytes(stream[LARGE_BYTES:]))
    with pytest.raises(MalformedFrameError, match="checksum"):
        reader.receive(stream_of([8], checked=True))
    assert not reader.idle


def test_a_large_frame_is_given_though_nonsense_follows_in_the_same_piece() -> None:
    stream = stream_of([LARGE_BYTES * 2], checked=False) + bytes(HEADER_BYTES)
    reader = FrameReader()
    reader.receive(stream[:LARGE_BYTES])
    (frame,) = reader.receive(stream[LARGE_BYTES:])
    assert len(frame.payload) == LARGE_BYTES * 2
    with pytest.raises(MalformedFrameError, match="kind 0"):
        reader.receive(b"")


def outcome(function: Any) -> Any:
    """Return what a function returns, in a form that can be compared, or which error it raises."""
    try:
        found = function()
    except EchoicError as error:
        return type(error)
    if isinstance(found, numpy.ndarray):
        return repr(found.tolist()), str(found.dtype)
    return repr(found) if not isinstance(found, list) else list(map(repr, found))


@settings(max_examples=80)
@given(st.data())
def test_the_parts_of_a_batch_are_its_slices(data: DataObject) -> None:
    format = data.draw(formats())
    events = data.draw(batches(format))
    made = Batch.of(events, format)
    registry = Registry()
    registry.add(format)
    received = parse_batch(joined(made.buffers()), registry)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=3)))
    places = [0, *cuts, len(events)]
    counts = [end - start for start, end in pairwise(places)]
    everything = [repr(item) for item in received.events()]
    kind = decoder_of(format)
    for whole in (made, received, received.to(kind)):
        order = data.draw(st.permutations(range(len(counts))))
        parts = list(whole.parts(counts))
        assert [part.count for part in parts] == counts
        for index in order:
            part, start, end = parts[index], places[index], places[index + 1]
            alone = Batch.of(events[start:end], format)
            ways = [lambda b: b.events(), lambda b: b.array, lambda b: b.arrow.to_pylist()]
            ways += [lambda b: list(b.bounds), lambda b: bytes(b.records), lambda b: joined(b.buffers())]
            ways += [lambda b: b.to(kind).events(), lambda b: b.to(kind, narrow=True).array]
            ways += [lambda b: b.events_as(kind), lambda b: b.events_as(kind, narrow=True)]
            for way in data.draw(st.permutations(ways)):
                assert outcome(lambda way=way, part=part: way(part)) == outcome(lambda way=way, alone=alone: way(alone))
            assert [repr(item) for item in part.events()] == everything[start:end]
            again = parse_batch(joined(part.buffers()), registry)
            assert [repr(item) for item in again.events()] == everything[start:end]
            halves = list(part.parts([part.count // 2, part.count - part.count // 2]))
            assert [repr(item) for half in halves for item in half.events()] == everything[start:end]
            assert b"".join(bytes(half.records) for half in halves) == bytes(part.records)


@settings(max_examples=150)
@given(st.data())
def test_one_record_is_encoded_and_decoded_as_in_a_batch(data: DataObject) -> None:
    format = data.draw(formats())
    events = data.draw(batches(format))
    binding = bind(format)
    encoder, decoder = encoder_of(format), decoder_of(format)
    for mapping in events:
        thing = data.draw(st.sampled_from([mapping, to_object(mapping, binding)]))
        pieces, _ = encoder.encode((thing,))
        record = joined(pieces)
        for kind in (type(thing), object, dict):
            assert encoder.single(kind)(thing) == record
        if decoder.single is not None:
            before = data.draw(st.integers(0, 9))
            (expected,) = decoder.decode(memoryview(record), [0, len(record)])
            assert repr(decoder.single(bytes(before) + record + b"tail", before)) == repr(expected)
