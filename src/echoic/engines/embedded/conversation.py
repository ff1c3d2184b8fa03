"""Conversations with the other members: one connection to each, which this member has made, and one from each.

A member speaks on the connections that it has made and listens on those that others have made. So there is no question
which of two connections between two members counts, and each side dials again by itself when one breaks. Nothing that
is said here must arrive: what cannot be sent is dropped, and the ordering core says it again.
"""

import select
from typing import Final

import msgspec

from echoic.errors import EchoicError
from echoic.groups.messages import Message, decode_message
from echoic.links import Connection
from echoic.wire import Buffer, Frame, FrameKind, FrameReader
from echoic.wire.frames import with_checksum

__all__ = ["Incoming", "Outgoing"]

PENDING_BYTES_MAX: Final = 32 * 1024 * 1024
PIECES_MAX: Final = 256
REDIAL_NS: Final = (50_000_000, 1_000_000_000)


class Outgoing:
    """What is said to one member."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.connection: Connection | None = None
        self.dialling = False
        self.redial_ns = 0
        self.dropped = 0
        self._addresses: tuple[str, ...] = ()
        self._turn = 0
        self._pause_ns = REDIAL_NS[0]
        self._pending: list[Buffer] = []
        self._pending_bytes = 0

    @property
    def interest(self) -> int:
        """What to wait for: the end of the connection, and room for what waits."""
        return select.POLLIN | (select.POLLOUT if self._pending else 0)

    def meet(self, addresses: tuple[str, ...], now_ns: int) -> None:
        """Learn where the member may be reached; if the best guess has changed, it is tried at once."""
        if addresses != self._addresses:
            if addresses[:1] != self._addresses[:1]:
                self.close()
                self.redial_ns = now_ns
            self._addresses, self._turn = addresses, 0

    @property
    def address(self) -> str:
        """Where to dial next, "" if nothing is known."""
        return self._addresses[self._turn % len(self._addresses)] if self._addresses else ""

    def attach(self, connection: Connection, opening: bytes) -> None:
        """Speak on a fresh connection, which begins with a greeting."""
        self.close()
        self.connection = connection
        self._pause_ns = REDIAL_NS[0]
        self._pending, self._pending_bytes = [], 0
        self.say(opening)

    def say(self, frame: bytes) -> None:
        """Have a frame sent, or dropped if there is no connection, or too much waits already."""
        connection = self.connection
        if connection is None or self._pending_bytes > PENDING_BYTES_MAX:
            self.dropped += 1
            return
        piece = with_checksum(frame) if connection.checked else frame
        self._pending.append(piece)
        self._pending_bytes += len(piece)

    def flush(self) -> None:
        """Send what waits, as much as goes."""
        connection, pending = self.connection, self._pending
        while connection is not None and pending:
            pieces = pending[:PIECES_MAX]
            try:
                sent = connection.send(pieces)
            except OSError:
                self.close()
                return
            self._pending_bytes -= sent
            while pieces and sent >= len(pieces[0]):
                sent -= len(pieces.pop(0))
            gone = min(PIECES_MAX, len(pending)) - len(pieces)
            del pending[:gone]
            if pieces:
                if sent:
                    pending[0] = memoryview(pending[0])[sent:]
                return

    def hear(self) -> None:
        """Find out whether the connection has ended; nothing else is said on it."""
        if self.connection is not None:
            try:
                if self.connection.receive() == b"":
                    self.close()
            except OSError:
                self.close()

    def failed(self, now_ns: int) -> None:
        """Dial again later, ever less often, and elsewhere if that is known."""
        self._turn += 1
        self.redial_ns = now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, REDIAL_NS[1])

    def close(self) -> None:
        """Hang up."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        self._pending, self._pending_bytes = [], 0


class Incoming(msgspec.Struct, eq=False):
    """What is heard of one member."""

    name: str
    home: int
    connection: Connection
    reader: FrameReader

    def hear(self) -> list[Message] | None:
        """Return what was said; None if nothing more will be."""
        try:
            frames = self._receive()
            return None if frames is None else self.read(frames)
        except (OSError, EchoicError):
            return None

    def read(self, frames: list[Frame]) -> list[Message]:
        """Return the messages of frames.

        Raises:
            MalformedFrameError: One of them is none.
        """
        return [decode_message(frame.payload) for frame in frames if frame.kind is FrameKind.GROUP]

    def _receive(self) -> list[Frame] | None:
        connection, reader = self.connection, self.reader
        room = None if reader.idle or not connection.direct else reader.room
        if room is not None:
            count = connection.receive_into(room)
            return reader.filled(count) if count else ([] if count is None else None)
        data = connection.receive()
        return reader.receive(data) if data else ([] if data is None else None)
