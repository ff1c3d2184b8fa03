"""What a member says over TLS is heard to the end, though descriptors do not tell of what is decrypted already."""

import select
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.engines.embedded.conversation import Incoming
from echoic.groups.messages import Bye, Forward, Message, encode_message
from echoic.links import Connection, Identity, Listener, dial
from echoic.trust.authority import Authority
from echoic.wire import FrameKind, FrameReader, encode_frame

LARGE = Forward(1, 1, 1, [bytes(400_000)])


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Connection, Connection]]:
    Authority.create(tmp_path / "authority").issue("member")
    identity = Identity.named("member", tmp_path)
    listening, accepted = Listener("127.0.0.1:0", identity), []

    def accept() -> None:
        connection = listening.accept(5000)
        assert connection is not None
        connection.handshake(5)
        accepted.append(connection)

    accepting = threading.Thread(target=accept)
    accepting.start()
    dialled = dial(listening.address, identity)
    accepting.join()
    yield dialled, accepted[0]
    for each in (dialled, accepted[0], listening):
        each.close()


def test_what_is_said_right_behind_a_large_message_is_heard(pair: tuple[Connection, Connection]) -> None:
    speaking, listening = pair
    said = b"".join(
        bytes(piece)
        for message in (LARGE, Bye(1))
        for piece in encode_frame(FrameKind.GROUP, [encode_message(message)])
    )
    member = Incoming("other", 1, listening, FrameReader())
    sending = threading.Thread(target=_send_all, args=(speaking, said))
    sending.start()
    heard: list[Message] = []
    polled = select.poll()
    polled.register(listening.fileno(), select.POLLIN)
    while polled.poll(1000):  # as the loop of a group does: only a descriptor says that something came
        messages = member.hear()
        assert messages is not None
        heard += messages
    sending.join()
    assert heard == [LARGE, Bye(1)]


def _send_all(connection: Connection, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        connection.writable(1000)
        rest = rest[connection.send([rest]) :]
