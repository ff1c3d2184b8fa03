"""Conversations with the other members: one connection to each, which this member has made, and one from each.

A member speaks on the connections that it has made and listens on those that others have made. So there is no question
which of two connections between two members counts, and each side dials again by itself when one breaks. Nothing that
is said here must arrive: what cannot be sent is dropped, and the ordering core says it again.

The one word that is said the other way is `Turned`, by a hub that does not let a member in. When to dial again:

    nobody answers, or hangs up soon        after 50 ms, then ever later, up to 1 s
    not let in, by it or by this member     after 1 s, then ever later, up to 30 s; why is logged once
    it comes by itself, or rights change    at once
    let in, for two seconds                 the pauses begin anew
"""

import logging
import select
from typing import Final

import msgspec

from echoic.errors import EchoicError
from echoic.groups.messages import Message, Turned, decode_message
from echoic.links import Connection
from echoic.wire import Buffer, Frame, FrameKind, FrameReader
from echoic.wire.frames import with_checksum

__all__ = ["Incoming", "Outgoing"]

PENDING_BYTES_MAX: Final = 32 * 1024 * 1024
PIECES_MAX: Final = 256
REDIAL_NS: Final = (50_000_000, 1_000_000_000)
REFUSED_NS: Final = (1_000_000_000, 30_000_000_000)
LET_IN_NS: Final = 2_000_000_000
"""Who is not hung up on for so long was let in."""
REFUSAL_BYTES_MAX: Final = 4096
REASON_CHARACTERS_MAX: Final = 200
log: Final = logging.getLogger("echoic.groups")


class Outgoing:
    """What is said to one member."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.connection: Connection | None = None
        self.dialling = False
        self.redial_ns = 0
        self.dropped = 0
        self.refusal = ""
        """Why this member was not let in there when it last tried."""
        self._attached_ns = 0
        self._reader = FrameReader(payload_bytes_max=REFUSAL_BYTES_MAX)
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

    def attach(self, connection: Connection, opening: bytes, now_ns: int) -> None:
        """Speak on a fresh connection, which begins with a greeting."""
        self.close()
        self.connection = connection
        self._attached_ns = now_ns
        self._reader = FrameReader(payload_bytes_max=REFUSAL_BYTES_MAX)
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

    def flush(self, now_ns: int) -> None:
        """Send what waits, as much as goes."""
        connection, pending = self.connection, self._pending
        while connection is not None and pending:
            pieces = pending[:PIECES_MAX]
            try:
                sent = connection.send(pieces)
            except OSError:
                self._broken(now_ns)
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

    def hear(self, now_ns: int) -> None:
        """Find out whether the connection has ended; nothing is said on it but why this member is not let in."""
        connection = self.connection
        if connection is None:
            return
        reason = ""
        try:
            data = connection.receive()
            if data:
                reason = self._reason_in(data)
        except (OSError, EchoicError):
            data = b""
        if reason:
            self.refused(reason, now_ns)
        elif data == b"":
            self._broken(now_ns)

    def look(self, now_ns: int) -> None:
        """See whether this member is let in, by the time for which nobody has hung up."""
        if self.connection is not None and now_ns - self._attached_ns >= LET_IN_NS:
            if self.refusal:
                log.info("%s lets this member in", self.name)
            self.refusal, self._pause_ns = "", REDIAL_NS[0]

    def failed(self, now_ns: int) -> None:
        """Dial again later, ever less often, and elsewhere if that is known."""
        self._put_off(now_ns, REDIAL_NS)

    def refused(self, reason: str, now_ns: int) -> None:
        """Hang up, and dial again much later: this member is not let in, or does not let in the other."""
        self.close()
        self._put_off(now_ns, REFUSED_NS)
        if reason != self.refusal:
            self.refusal = reason
            log.warning("no connection to member %s: %s", self.name, reason)

    def hurry(self, now_ns: int) -> None:
        """Dial at once, if there is no connection: it is there, or rights have changed."""
        self.redial_ns = now_ns

    def renew(self, now_ns: int) -> None:
        """Have the connection made anew."""
        self.close()
        self._pause_ns = REDIAL_NS[0]
        self.redial_ns = now_ns

    def close(self) -> None:
        """Hang up."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        self._pending, self._pending_bytes = [], 0

    def _put_off(self, now_ns: int, pauses_ns: tuple[int, int]) -> None:
        """Dial again after a pause, which is longer the next time."""
        shortest_ns, longest_ns = pauses_ns
        pause_ns = min(max(self._pause_ns, shortest_ns), longest_ns)
        self._turn += 1
        self.redial_ns = now_ns + pause_ns
        self._pause_ns = min(2 * pause_ns, longest_ns)

    def _broken(self, now_ns: int) -> None:
        """Dial again at once if the connection stood for a while; whoever hangs up soon does not want it."""
        self.look(now_ns)
        stood = now_ns - self._attached_ns >= LET_IN_NS
        self.close()
        if not stood:
            self.failed(now_ns)

    def _reason_in(self, data: bytes) -> str:
        """Return why this member is not let in, if that is said.

        Raises:
            EchoicError: What is said are no messages.
        """
        for frame in self._reader.receive(data):
            said = decode_message(frame.payload) if frame.kind is FrameKind.GROUP else None
            if isinstance(said, Turned):
                shown = "".join(each if each.isprintable() else "?" for each in said.reason[:REASON_CHARACTERS_MAX])
                return shown or "it gives no reason"
        return ""


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
