"""When a member dials another again: soon if nobody answers, ever later if it is not let in; what it says of that."""

import logging
import socket
from collections.abc import Iterator

import pytest

from echoic.engines.embedded.conversation import Outgoing
from echoic.groups.messages import Forward, Turned, encode_message
from echoic.links.sockets import SocketConnection
from echoic.wire import FrameKind, encode_frame

SECOND = 1_000_000_000


class Line:
    """What one member says to another, whose end of the connection is in the hands of the test."""

    def __init__(self) -> None:
        self.outgoing = Outgoing("n2")
        self.outgoing.meet(("127.0.0.1:1",), 0)
        self.other: socket.socket | None = None

    def connect(self, now_ns: int) -> socket.socket:
        near, far = socket.socketpair()
        self.outgoing.attach(SocketConnection(near, "n2", checked=False), b"hello", now_ns)
        self.outgoing.flush(now_ns)
        self.hang_up()
        self.other = far
        return far

    def hang_up(self) -> None:
        if self.other is not None:
            self.other.close()
            self.other = None

    def is_turned_away(self, reason: str, now_ns: int) -> None:
        far = self.connect(now_ns)
        word = encode_message(Turned(reason, final=False, home=1, term=0))
        far.sendall(b"".join(encode_frame(FrameKind.GROUP, [word])))
        self.outgoing.hear(now_ns)


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.outgoing.close()
    made.hang_up()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_who_is_not_let_in_asks_ever_less_often_and_says_why_once(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    now_ns, pauses = 7 * SECOND, []
    for _ in range(8):
        line.is_turned_away("`n1` may not publish group `ledger`", now_ns)
        assert line.outgoing.connection is None
        pauses.append((line.outgoing.redial_ns - now_ns) // SECOND)
        now_ns = line.outgoing.redial_ns
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert warnings(caplog) == ["no connection to member n2: `n1` may not publish group `ledger`"]
    line.is_turned_away("another reason", now_ns)
    assert len(warnings(caplog)) == 2


def test_who_was_let_in_begins_anew(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(4):
        line.is_turned_away("no", 0)
    line.connect(0)
    line.outgoing.look(SECOND)
    assert line.outgoing.refusal == "no", "it may yet be refused"
    line.outgoing.look(2 * SECOND)
    assert not line.outgoing.refusal
    line.is_turned_away("no", 9 * SECOND)
    assert line.outgoing.redial_ns == 10 * SECOND
    assert len(warnings(caplog)) == 2


def test_a_connection_that_stood_is_made_again_at_once_and_one_that_did_not_is_not(line: Line) -> None:
    line.connect(0)
    line.hang_up()
    line.outgoing.hear(3 * SECOND)
    assert line.outgoing.redial_ns <= 3 * SECOND
    pauses, now_ns = [], 4 * SECOND
    for _ in range(7):
        line.connect(now_ns)
        line.hang_up()
        line.outgoing.hear(now_ns)
        pauses.append((line.outgoing.redial_ns - now_ns) // 1_000_000)
        now_ns = line.outgoing.redial_ns
    assert pauses == [50, 100, 200, 400, 800, 1000, 1000]


def test_whoever_comes_by_himself_is_dialled_at_once(line: Line) -> None:
    line.outgoing.refused("no", 0)
    line.outgoing.hurry(5)
    assert line.outgoing.redial_ns == 5
    line.outgoing.refused("no", 5)
    assert line.outgoing.redial_ns == 2 * SECOND + 5, "it is there, and does not let this one in"


@pytest.mark.parametrize(
    "said",
    [
        b"\xff" * 64,
        b"".join(encode_frame(FrameKind.GROUP, [b"\xc1"])),
        b"".join(encode_frame(FrameKind.GROUP, [bytes(5000)])),
    ],
    ids=["no frame", "no message", "too much"],
)
def test_nonsense_that_is_said_the_wrong_way_ends_the_connection(line: Line, said: bytes) -> None:
    line.connect(0).sendall(said)
    line.outgoing.hear(0)
    assert line.outgoing.connection is None
    assert not line.outgoing.refusal


def test_other_messages_that_come_the_wrong_way_are_ignored(line: Line) -> None:
    word = encode_message(Forward(1, 1, 1, [b"pack"]))
    line.connect(0).sendall(b"".join(encode_frame(FrameKind.GROUP, [word])))
    line.outgoing.hear(0)
    assert line.outgoing.connection is not None


def test_a_reason_is_shown_as_one_short_line(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    line.is_turned_away("no\n\x1b[2Jroot: all is well" + "x" * 3000, 0)
    assert line.outgoing.refusal.startswith("no??[2Jroot: all is well")
    assert len(line.outgoing.refusal) == 200
