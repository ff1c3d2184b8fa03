"""Shared memory: frames go through it unharmed, and neither side can harm the other."""

import fcntl
import mmap
import os
import random
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.errors import MalformedFrameError
from echoic.links import Connection, ring
from echoic.links.ring import DATA_START, MEMORY_BYTES, RING_BYTES, SEALS, SHARED_BYTES_MIN, RingReader, RingWriter
from echoic.links.unix import GREETING, UnixConnection
from echoic.wire import FrameKind, FrameReader
from tests.links.conftest import Connect

MEBIBYTE = 1024 * 1024
Ring = tuple[RingWriter, RingReader]


@pytest.fixture
def pair(connect: Connect) -> tuple[Connection, Connection]:
    dialled, accepted = connect("unix")
    dialled.receive()
    accepted.receive()
    return dialled, accepted


@pytest.fixture
def both_ends() -> Iterator[Ring]:
    writer = RingWriter()
    reader = RingReader(os.dup(writer.descriptor))
    yield writer, reader
    writer.close()
    reader.close()


def open_descriptors() -> list[Path]:
    return list(Path("/proc/self/fd").iterdir())


def payload_of(shared: object) -> bytes:
    assert isinstance(shared, bytes)
    (frame,) = FrameReader().receive(shared)
    assert frame.kind is FrameKind.SHARED
    return bytes(frame.payload)


def place(writer: RingWriter, frame: bytes) -> bytes:
    return payload_of(writer.place([frame], len(frame)))


def test_a_large_frame_goes_through_shared_memory_in_both_directions(pair: tuple[Connection, Connection]) -> None:
    frame = random.Random(1).randbytes(300_000)
    pieces = [frame[:16], memoryview(frame)[16:], b""]
    for sender, receiver in (pair, pair[::-1]):
        shared = sender.share(pieces, len(frame))
        assert receiver.unshare(payload_of(shared)) == frame


def test_frames_of_random_sizes_wrap_around_and_come_out_as_they_went_in(both_ends: Ring) -> None:
    writer, reader = both_ends
    chance = random.Random(2)
    source = chance.randbytes(20 * MEBIBYTE)
    waiting: list[tuple[bytes, memoryview]] = []
    placed, refused = 0, 0
    while placed < 60:
        size = int(2 ** chance.uniform(17, 24.2))
        start = chance.randrange(len(source) - size)
        frame = memoryview(source)[start : start + size]
        shared = writer.place([frame[:100], frame[100:]], size)
        if shared is not None:
            waiting.append((payload_of(shared), frame))
            placed += 1
        refused += shared is None
        while waiting and (shared is None or chance.random() < 0.45):
            payload, expected = waiting.pop(0)
            assert reader.take(payload) == expected
            if shared is None:
                break
    for payload, expected in waiting:
        assert reader.take(payload) == expected
    assert refused


def test_the_whole_ring_can_be_filled_and_no_more(both_ends: Ring) -> None:
    writer, reader = both_ends
    frame = bytes(RING_BYTES // 4)
    places = [place(writer, frame) for _ in range(4)]
    assert writer.place([bytes(SHARED_BYTES_MIN)], SHARED_BYTES_MIN) is None
    assert reader.take(places[0]) == frame
    assert place(writer, frame)
    assert writer.place([frame], len(frame)) is None


def test_a_frame_of_the_size_of_the_ring_fits_when_it_is_empty(both_ends: Ring) -> None:
    writer, reader = both_ends
    for _ in range(2):
        assert len(reader.take(place(writer, bytes(RING_BYTES)))) == RING_BYTES
    assert writer.place([bytes(RING_BYTES + 1)], RING_BYTES + 1) is None


def test_an_empty_ring_begins_again_at_the_front(both_ends: Ring) -> None:
    writer, reader = both_ends
    for _ in range(100):
        payload = place(writer, bytes(MEBIBYTE))
        assert struct.unpack("<QQ", payload)[0] % RING_BYTES == 0
        reader.take(payload)


def test_small_frames_stay_out_of_the_ring(both_ends: Ring) -> None:
    assert both_ends[0].place([bytes(SHARED_BYTES_MIN - 1)], SHARED_BYTES_MIN - 1) is None
    assert both_ends[0].place([bytes(SHARED_BYTES_MIN)], SHARED_BYTES_MIN) is not None


@pytest.mark.parametrize(
    ("position", "length"),
    [
        (0, 0),
        (0, RING_BYTES + 1),
        (0, 2**64 - 1),
        (64, 100),
        (1, 100),
        (RING_BYTES - 64, 64),
        (RING_BYTES, RING_BYTES + 1),
        (2 * RING_BYTES, 100),
        (2**64 - 64, 64),
        (2**64 - RING_BYTES, 1),
    ],
)
def test_a_place_where_the_next_frame_cannot_be_is_refused(both_ends: Ring, position: int, length: int) -> None:
    with pytest.raises(MalformedFrameError, match="a shared frame"):
        both_ends[1].take(struct.pack("<QQ", position, length))


@pytest.mark.parametrize("payload", [b"", bytes(15), bytes(17), bytes(1000)])
def test_a_place_of_the_wrong_size_is_refused(both_ends: Ring, payload: bytes) -> None:
    with pytest.raises(MalformedFrameError, match=f"has {len(payload)} bytes, expected 16"):
        both_ends[1].take(payload)


def test_frames_out_of_order_twice_or_overlapping_are_refused(both_ends: Ring) -> None:
    writer, reader = both_ends
    first, second = (place(writer, bytes(SHARED_BYTES_MIN)) for _ in range(2))
    with pytest.raises(MalformedFrameError):
        reader.take(second)
    reader.take(first)
    with pytest.raises(MalformedFrameError):
        reader.take(first)
    with pytest.raises(MalformedFrameError):
        reader.take(struct.pack("<QQ", SHARED_BYTES_MIN // 2, SHARED_BYTES_MIN))
    reader.take(second)


def test_random_places_are_refused_or_stay_inside_the_ring() -> None:
    chance = random.Random(3)
    writer = RingWriter()
    reader = RingReader(os.dup(writer.descriptor))
    interesting = [0, 1, 63, 64, 65, RING_BYTES - 1, RING_BYTES, RING_BYTES + 64, 2**63, 2**64 - 1]
    for _ in range(3000):
        position, length = (chance.choice([*interesting, chance.randrange(2**20)]) for _ in range(2))
        try:
            taken = reader.take(struct.pack("<QQ", position, length % (MEBIBYTE if chance.random() < 0.9 else 2**64)))
        except MalformedFrameError:
            continue
        assert len(taken) <= RING_BYTES
    writer.close()
    reader.close()


@pytest.mark.parametrize("tail", [0, 1, 63, RING_BYTES, 2**63, 2**64 - 1])
def test_a_reader_that_lies_about_the_room_does_not_harm_the_writer(tail: int) -> None:
    writer = RingWriter()
    memory = mmap.mmap(writer.descriptor, MEMORY_BYTES)
    for _ in range(12):
        memory[:8] = struct.pack("<Q", tail)
        shared = writer.place([bytes(10 * MEBIBYTE)], 10 * MEBIBYTE)
        if shared is not None:
            position, length = struct.unpack("<QQ", payload_of(shared))
            assert position % RING_BYTES + length <= RING_BYTES
    memory.close()
    writer.close()


def test_the_reader_keeps_a_copy_that_the_writer_cannot_change(both_ends: Ring) -> None:
    writer, reader = both_ends
    memory = mmap.mmap(writer.descriptor, MEMORY_BYTES)
    taken = reader.take(place(writer, b"a" * SHARED_BYTES_MIN))
    memory[DATA_START : DATA_START + 5] = b"wrong"
    assert taken == b"a" * SHARED_BYTES_MIN
    memory.close()


def make_memory(size: int = MEMORY_BYTES, seals: int = SEALS) -> int:
    descriptor = os.memfd_create("test", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


@pytest.mark.parametrize(
    ("size", "seals", "problem"),
    [
        (MEMORY_BYTES, 0, "not sealed"),
        (MEMORY_BYTES, fcntl.F_SEAL_GROW, "not sealed"),
        (0, SEALS, "it has 0 bytes"),
        (RING_BYTES, SEALS, f"it has {RING_BYTES} bytes"),
        (MEMORY_BYTES + 4096, SEALS, "expected"),
    ],
)
def test_memory_that_is_not_safe_to_touch_is_refused(size: int, seals: int, problem: str) -> None:
    with pytest.raises(ConnectionAbortedError, match=problem):
        RingReader(make_memory(size, seals))


def test_a_file_that_is_no_memory_is_refused() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(ConnectionAbortedError, match="not sealed"):
        RingReader(reading)


def test_the_memory_of_a_writer_cannot_be_truncated(both_ends: Ring) -> None:
    for size in (0, MEMORY_BYTES - 4096, MEMORY_BYTES + 4096):
        with pytest.raises(PermissionError):
            os.ftruncate(both_ends[0].descriptor, size)


def test_memory_that_cannot_be_written_to_is_an_error_and_no_crash() -> None:
    reader = RingReader(make_memory(seals=fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE))
    with pytest.raises(PermissionError):
        reader.take(struct.pack("<QQ", 0, 100))
    reader.close()


@pytest.mark.parametrize("sealed", [True, False])
def test_a_peer_whose_memory_is_refused_is_refused(sealed: bool) -> None:
    ours, theirs = socket.socketpair()
    descriptor = make_memory(seals=SEALS if sealed else 0)
    connection = UnixConnection(ours)
    socket.send_fds(theirs, [GREETING], [descriptor])
    theirs.send(b"next")
    if sealed:
        assert connection.receive() == b"next"
    else:
        with pytest.raises(ConnectionAbortedError, match="shared memory is refused"):
            connection.receive()
    connection.close()
    theirs.close()
    os.close(descriptor)


@pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\n\r\n", b"e", b"echoic\0\2", bytes(100)])
def test_a_peer_that_does_not_greet_is_refused(greeting: bytes) -> None:
    ours, theirs = socket.socketpair()
    connection = UnixConnection(ours)
    theirs.send(greeting)
    with pytest.raises(ConnectionAbortedError, match="peer began with"):
        connection.receive()
    connection.close()
    theirs.close()


def test_descriptors_that_are_attached_later_are_dropped() -> None:
    ours, theirs = socket.socketpair()
    connection = UnixConnection(ours)
    theirs.send(GREETING)
    assert connection.receive() is None
    before = len(open_descriptors())
    for _ in range(10):
        socket.send_fds(theirs, [b"x"], [0, 1, 2])
        assert connection.receive() == b"x"
    assert len(open_descriptors()) == before
    connection.close()
    theirs.close()


def test_without_shared_memory_everything_goes_through_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError("no memory files here")

    monkeypatch.setattr(ring.os, "memfd_create", refuse)
    one, two = (UnixConnection(end) for end in socket.socketpair())
    one.send([b"data"])
    assert two.receive() == b"data"
    assert one.share([bytes(MEBIBYTE)], MEBIBYTE) is None
    with pytest.raises(MalformedFrameError, match="there is none"):
        two.unshare(bytes(16))
    one.close()
    two.close()


def test_a_closed_connection_gives_its_descriptors_back() -> None:
    before = len(open_descriptors())
    for _ in range(5):
        one, two = (UnixConnection(end) for end in socket.socketpair())
        two.receive()
        shared = one.share([bytes(MEBIBYTE)], MEBIBYTE)
        two.unshare(payload_of(shared))
        one.close()
        with pytest.raises(OSError, match="closed"):
            one.receive()
        two.close()
        with pytest.raises(OSError, match="closed"):
            two.unshare(struct.pack("<QQ", 0, 100))
    assert len(open_descriptors()) == before
