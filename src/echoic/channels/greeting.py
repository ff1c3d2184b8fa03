"""How two hubs meet on a fresh connection, as a machine that is fed frames.

    dialler   HELLO -----------------------------------> acceptor
              <----------------------------------- HELLO
              <------------ COUNT (session it knows, frames got)
              COUNT (session, frames got) -------------->

The dialler decides: if the acceptor knows the session that the dialler knows, both go on with it and send again what
the other has not got; otherwise the dialler draws the id of a new session and both begin afresh. An acceptor that has
given the session up since it told its count refuses, or it would begin where the dialler goes on. What was told holds
only while nothing more arrives by the connection before (`holds`). A stranger has a few seconds and small frames to do
this; nothing is told to anybody who does not say hello.
"""

import struct
from collections.abc import Callable
from typing import Final

from echoic.channels.session import Session
from echoic.errors import MalformedFrameError
from echoic.wire import Frame, FrameKind, Hello, decode_hello, encode_frame, encode_hello

__all__ = ["COUNT", "Greeting", "count_frame", "tell_count"]

COUNT: Final = struct.Struct("<QQ")  # id of the session, frames received in it


def count_frame(session: int, received: int) -> bytes:
    """Return a frame that tells how many frames of a session have arrived."""
    return b"".join(encode_frame(FrameKind.ACKS, [COUNT.pack(session, received)]))


def tell_count(session: Session) -> None:
    """Put how many frames of a session have arrived into its outbox, uncounted."""
    session.outbox.append(count_frame(session.id, session.tell()))


class Greeting:
    """One side of a greeting. Send `opening`, feed frames to `receive`, until `done`."""

    def __init__(
        self,
        mine: Hello,
        known: Callable[[str], tuple[int, int]],
        *,
        dialled: bool,
        fresh: int,
        address: str = "",
        who: str = "",
    ) -> None:
        """Begin.

        Args:
            mine: What this hub says of itself.
            known: The session with the hub of an id and how many frames have arrived in it; (0, 0) for a stranger.
            dialled: Whether this hub made the connection.
            fresh: The id for a new session, never 0, should the dialler need one.
            address: Where the peer was found, which may not be how it calls itself.
            who: The name in the peer's certificate, "" if it has shown none.
        """
        self.dialled: Final = dialled
        self.address: Final = address
        self.who: Final = who
        self.done = False
        self.peer: Hello | None = None
        self.session = 0
        self.resumed = False
        self.received = self.received_by_peer = 0
        self._mine = b"".join(encode_frame(FrameKind.HELLO, [encode_hello(mine)]))
        self._known = known
        self._fresh = fresh
        self._told = (0, 0)

    @property
    def opening(self) -> bytes:
        """What to send before anything was received."""
        return self._mine if self.dialled else b""

    def receive(self, frame: Frame) -> bytes:
        """Take a frame of the peer, return what to answer.

        Raises:
            MalformedFrameError: It is not the frame that is due.
            ProtocolVersionError: The peer speaks another version.
        """
        if self.peer is None:
            self._expect(frame, FrameKind.HELLO)
            self.peer = decode_hello(frame.payload)
            if not self.peer.hub:
                raise MalformedFrameError("a hello does not say which hub it comes from")
            if self.dialled:
                return b""
            self._told = self._known(self.peer.hub)
            return self._mine + count_frame(*self._told)
        self._expect(frame, FrameKind.ACKS)
        if len(frame.payload) != COUNT.size:
            raise MalformedFrameError(f"a count has {len(frame.payload)} bytes, expected {COUNT.size}")
        session, received = COUNT.unpack(frame.payload)
        answer = self._decide(self.peer.hub, session) if self.dialled else self._follow(self.peer.hub, session)
        self.received_by_peer = received if self.resumed else 0
        self.done = True
        return answer

    def holds(self, session: Session) -> bool:
        """Whether what was told of a session is still so: more may have come by the connection before."""
        if not self.resumed or session.id != self.session:
            return True
        return session.received == self.received and session.confirmed <= self.received_by_peer

    def _decide(self, peer: str, session: int) -> bytes:
        """Go on with the session that the acceptor knows, if it is ours, or draw another; return what to say."""
        own, received = self._known(peer)
        self.resumed = session == own != 0
        self.session, self.received = (own, received) if self.resumed else (self._fresh, 0)
        return count_frame(self.session, self.received)

    def _follow(self, peer: str, session: int) -> bytes:
        """Do as the dialler has decided."""
        own, _ = self._known(peer)
        told, received = self._told
        if not session:
            raise MalformedFrameError("a dialler names no session")
        if own != told and session in (own, told):
            raise MalformedFrameError("a dialler goes on with a session that was given up while it greeted")
        self.resumed = session == own
        self.session, self.received = session, received if self.resumed else 0
        return b""

    def _expect(self, frame: Frame, kind: FrameKind) -> None:
        if self.done or frame.kind is not kind:
            raise MalformedFrameError(f"expected a {kind.name} frame in a greeting, got {frame.kind.name}")
