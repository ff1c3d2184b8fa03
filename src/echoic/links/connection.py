"""Connections: what every way of moving bytes between two hubs can do.

    TcpConnection, UnixConnection    a socket; the Unix one also has shared memory
    TlsConnection                    a TCP socket with TLS 1.3 on top
    MemoryConnection                 two queues in this process

A connection is a byte stream in both directions. Nothing here knows of frames, channels or events, with one exception:
a frame that is large can be placed in shared memory, where a small frame of the kind SHARED stands for it in the
stream (`echoic.links.ring`).

Sending never waits. How long to wait for a slow peer, and what to do with what it does not take, is a decision of the
hub. Receiving waits for at most `QUIET_SECONDS`, so that whoever receives can look at the clock now and then.

Threads: one may send, one receive and one more ask `readable` at the same time; `close` may come from any.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from echoic.links.credentials import Credentials
from echoic.wire import Buffer

__all__ = ["QUIET_SECONDS", "Connection", "join_first"]

QUIET_SECONDS: Final = 0.1


class Connection(Protocol):
    """A byte stream to and from another hub."""

    @property
    def peer(self) -> str:
        """Who is at the other side, for messages."""

    @property
    def checked(self) -> bool:
        """Whether frames need checksums here, since the bytes leave this machine unprotected."""

    @property
    def credentials(self) -> Credentials | None:
        """Who the peer has proved to be by the handshake, None where nobody proves anything."""

    def handshake(self, timeout: float) -> None:
        """Agree with the peer on how to go on; must come before anything else. Does nothing but for TLS.

        Raises:
            UnreachableError: The peer is not who it should be, or does not answer within `timeout` seconds.
        """

    def send(self, pieces: Sequence[Buffer]) -> int:
        """Write as much as goes without waiting and return how many bytes were taken, 0 when there is no room.

        Raises:
            OSError: The connection is broken or closed.
        """

    def receive(self) -> bytes | None:
        """Return the next bytes, b"" at the end of the stream, None when nothing came for `QUIET_SECONDS`.

        None may come sooner when something arrived that was for the connection itself.

        Raises:
            OSError: The connection is broken or closed.
        """

    @property
    def direct(self) -> bool:
        """Whether `receive_into` can be used."""

    def receive_into(self, buffer: memoryview) -> int | None:
        """Receive into a buffer and return how many bytes came, 0 at the end of the stream, None as `receive` does.

        Raises:
            OSError: The connection is broken or closed.
        """

    @property
    def holds(self) -> bool:
        """Whether `receive` would return at once, whatever the file descriptor says: what came was read from it."""

    def readable(self, milliseconds: int) -> bool:
        """Return whether within a time `receive` would return at once."""

    def writable(self, milliseconds: int) -> bool:
        """Return whether within a time `send` would take something, or fail."""

    def fileno(self) -> int:
        """Return a file descriptor on which POLLOUT says that `send` would take something; -1 when closed."""

    def share(self, frame: Sequence[Buffer], size: int) -> Buffer | None:
        """Place a frame of `size` bytes in shared memory and return the small frame that stands for it.

        The small frame must then be sent in the order of the calls. None means that there is no shared memory, no room
        in it, or no gain: send the frame itself.
        """

    def unshare(self, payload: Buffer) -> bytes:
        """Return the frame that a received frame of the kind SHARED stands for, and free its room.

        Raises:
            MalformedFrameError: The payload does not say where the next frame is.
            OSError: The connection is closed.
        """

    def finish(self) -> None:
        """Say that no more bytes come from this side; the peer reads all that was sent, and then the end."""

    def close(self) -> None:
        """Close at once, and wake whoever receives. May be called again, and by any thread."""


def join_first(pieces: Sequence[Buffer], size_max: int) -> bytes:
    """Return the first bytes of all pieces as one object: one piece of `bytes` as it is, a copy of anything else."""
    if len(pieces) == 1 and isinstance(pieces[0], bytes) and len(pieces[0]) <= size_max:
        return pieces[0]
    first: list[Buffer] = []
    for piece in pieces:
        view = memoryview(piece).cast("B")
        first.append(view[:size_max])
        size_max -= len(view)
        if size_max <= 0:
            break
    return b"".join(first)
