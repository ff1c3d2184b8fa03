"""One side of a conversation between a bus and a tool over a simulated connection: frames, and a real session.

What is said while the connection is broken is kept by the session, and said again when the tool is back.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from echoic.testing.network import End
from echoic.toolbus.protocol import Message, MessageKind, encode_message, message_of
from echoic.toolbus.references.words import decode_seen
from echoic.toolbus.sessions import Session
from echoic.wire import FrameReader

__all__ = ["ToolLine"]


class ToolLine:
    """Says and hears messages, each once, however often the connection breaks."""

    def __init__(self) -> None:
        self.session: Final = Session()
        self.end: End | None = None
        """The connection, None while there is none that is greeted."""
        self.returning: End | None = None
        """A connection on which the other side has yet to tell how much it has heard."""

    def say(self, *messages: Message) -> None:
        """Say something, at once or when there is a connection again."""
        for message in messages:
            pieces = encode_message(message)
            self.session.say(message, sum(map(len, pieces)))
            if self.end is not None:
                self.end.send(b"".join(pieces))

    def hear(self, message: Message) -> Message | None:
        """Return what was heard, None if it was only about what the other side has heard."""
        if message.kind is MessageKind.SEEN and self.returning is not None:
            send(self.returning, self.session.again(decode_seen(message)))
            self.end, self.returning = self.returning, None
            return None
        if message.kind is MessageKind.SEEN:
            self.session.seen(decode_seen(message))
            return None
        seen = self.session.hear(message)
        if seen is not None:
            self.say(seen)
        return message


def send(end: End, messages: Iterable[Message]) -> None:
    """Send messages on a connection, which nobody says again."""
    end.send(b"".join(piece for message in messages for piece in encode_message(message)))


def messages_in(reader: FrameReader, data: bytes) -> Iterator[Message]:
    """Yield the messages that bytes complete."""
    for frame in reader.receive(data):
        message = message_of(frame)
        if message is not None:
            yield message
