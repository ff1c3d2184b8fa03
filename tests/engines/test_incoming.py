"""What a member of a group hears of another: all that has arrived, also what a connection has read ahead."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.engines.embedded import Contact, EmbeddedEngine, Membership
from echoic.groups.messages import Introduction
from echoic.groups.options import Options
from echoic.links import Connection, Listener, dial
from echoic.wire import FrameKind, FrameReader, encode_frame
from tests.links.certificates import Authority

OTHER = Introduction("group", "n2", 5, "127.0.0.1:1")
LARGE = b"".join(encode_frame(FrameKind.ACKS, [bytes(300_000)]))  # nobody minds it here
BROKEN = b"".join(encode_frame(FrameKind.GROUP, [b"this is no message"]))  # whoever says this is hung up


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[Connection, Connection]]:
    """Two ends of one connection by TLS: what is said at the first is heard at the second."""
    identity = Authority(tmp_path).issue("hub")
    listening = Listener("127.0.0.1:0", identity)
    accepted: list[Connection] = []

    def accept() -> None:
        connection = listening.accept(10_000)
        assert connection is not None
        connection.handshake(10)
        accepted.append(connection)

    accepting = threading.Thread(target=accept)
    accepting.start()
    dialled = dial(listening.address, identity)
    accepting.join()
    yield dialled, accepted[0]
    for each in (dialled, *accepted, listening):
        each.close()


def engine() -> EmbeddedEngine:
    def refuse(*_: object) -> Connection:
        raise ConnectionRefusedError

    membership = Membership("group", "n1", {"n1": "127.0.0.1:2", "n2": "127.0.0.1:1"})
    contact = Contact(refuse, lambda _: None)
    return EmbeddedEngine(membership, options=Options(), store=None, contact=contact, wake=lambda: None, life=3)


def say(connection: Connection, data: bytes) -> None:
    """Send everything; it ends in one record, with which its last bytes arrive at once."""
    left = memoryview(data)
    while left and connection.writable(10_000):
        left = left[connection.send([left]) :]


def turn_until_hung_up(made: EmbeddedEngine, heard: Connection) -> None:
    """Let the engine turn as its loop would: for a connection only when there is something to read from its socket."""
    deadline = time.monotonic() + 20
    while heard.fileno() >= 0 and time.monotonic() < deadline:
        ready = [(heard.fileno(), 1)] if super(type(heard), heard).readable(0) else []  # type: ignore[misc]
        made.turn(ready, time.monotonic_ns())


def test_what_came_with_the_end_of_a_large_frame_is_heard(ends: tuple[Connection, Connection]) -> None:
    said, heard = ends
    made = engine()
    made.adopt(OTHER, heard, FrameReader(), [])
    made.turn([], time.monotonic_ns())
    say(said, LARGE + BROKEN)
    turn_until_hung_up(made, heard)
    assert heard.fileno() == -1
    made.close()


def test_what_came_with_an_introduction_is_heard(ends: tuple[Connection, Connection]) -> None:
    said, heard = ends
    say(said, LARGE + BROKEN)
    room, at = memoryview(bytearray(len(LARGE))), 0
    while at < len(room):
        at += heard.receive_into(room[at:]) or 0
    assert heard.holds
    made = engine()
    made.adopt(OTHER, heard, FrameReader(), [])
    turn_until_hung_up(made, heard)
    assert heard.fileno() == -1
    made.close()
