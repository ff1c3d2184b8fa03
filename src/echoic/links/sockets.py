"""Sockets: blocking ones, with the kernel's own time limit.

Blocking sockets and threads, because that is what was fastest: a round trip of 100 bytes takes 17 to 44 us with raw
blocking sockets and 80 to 118 with asyncio. Python's `settimeout` would make two system calls of each; SO_RCVTIMEO
costs nothing. A write never waits (MSG_DONTWAIT), though the socket is a blocking one.

A half-open connection is noticed within seconds: keepalive probes an idle one, TCP_USER_TIMEOUT limits how long sent
bytes may stay unconfirmed (together 2.2 s where each alone took 3.3 and 3.7).

How much to ask for at once: 64 KB, and over TCP 256 KB while calls come back full. Measured, GB/s of frames of 16 KB,
48 KB, 200 KB, 1 MB and 10 MB between two processes, always 64 KB, always 120 KB, and 64 KB with 256 KB or 1 MB if full:

              64                       120                      64 or 256                64 or 1024
    tcp       1.6 1.8 1.3 1.1 1.0      1.6 1.9 1.3 1.2 0.9      1.6 2.0 2.0 1.2 1.0      1.6 2.2 1.6 1.0 0.9
    unix      1.6 2.7 2.3 2.1 1.3      1.5 2.9 1.0 2.0 1.2      1.0 1.4 1.7 1.7 1.2      0.8 1.3 1.3 1.4 1.0

That is the median of seven interleaved runs on a busy machine; the same thing differs by a third from run to run, and
only what holds for all sizes is to be believed: more than 64 KB is worse for Unix sockets, and no matter for TCP.

TCP's buffers are left to the system, which adapts them: fixed ones of 256 KB took a fifth off the bandwidth or more, of
1 MB changed nothing, and on a long way any fixed size is wrong.

A file descriptor that is closed while another thread is about to use it may by then belong to another connection,
whose bytes would be lost. Hence `close` only shuts the connection down when somebody is inside `send` or `receive`,
and that one closes the socket on leaving:

    receive:  receiving = True;  closed? raise;  recv;  receiving = False;  closed? release
    close:    closed = True;     shut down;      receiving? leave it to them : release

Each side writes its own flag before it reads the other's, so that one of them always sees the other.
"""

import contextlib
import errno
import os
import select
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from echoic.errors import MalformedFrameError
from echoic.links.connection import QUIET_SECONDS
from echoic.wire import Buffer

if TYPE_CHECKING:
    from echoic.links.credentials import Credentials

__all__ = ["SocketConnection", "closed_error", "tune_tcp"]

PIECES_MAX: Final = 512  # below IOV_MAX, which is 1024
RECEIVE_BYTES: Final = 64 * 1024  # above 128 KB the C library may map memory for each call
RECEIVE_BYTES_CALM: Final = 8 * 1024  # where little comes: large rooms for it, shrunk each time, scatter the heap
RECEIVE_BYTES_BUSY: Final = 256 * 1024  # while the stream is faster than that
SEND_FLAGS: Final = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
QUIET: Final = struct.pack("ll", 0, int(QUIET_SECONDS * 1_000_000))
VANISHED_SECONDS: Final = 3
KEEPALIVE_PROBES: Final = 3


class SocketConnection:
    """A connected stream socket."""

    receive_bytes_busy = RECEIVE_BYTES_BUSY

    def __init__(self, socket_: socket.socket, peer: str, *, checked: bool) -> None:
        """Take over a connected socket."""
        socket_.settimeout(None)
        socket_.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, QUIET)
        self.peer: Final = peer
        self.checked: Final = checked
        self.credentials: Credentials | None = None
        self._socket = socket_
        self._receive: Callable[[int], bytes] = socket_.recv
        self._receive_bytes = RECEIVE_BYTES
        self._closed = self._sending = self._receiving = False
        self._releasing = threading.Lock()

    def handshake(self, timeout: float) -> None:
        """Do nothing: there is nothing to agree on."""

    def send(self, pieces: Sequence[Buffer]) -> int:
        """Write as much as goes without waiting and return how many bytes were taken, 0 when there is no room.

        Raises:
            OSError: The connection is broken or closed.
        """
        self._sending = True
        try:
            if self._closed:
                raise closed_error(self.peer)
            if len(pieces) == 1:
                return self._socket.send(pieces[0], SEND_FLAGS)  # a microsecond less
            return self._socket.sendmsg(pieces if len(pieces) <= PIECES_MAX else pieces[:PIECES_MAX], (), SEND_FLAGS)
        except BlockingIOError:
            return 0
        finally:
            self._sending = False
            if self._closed:
                self._release()

    def receive(self) -> bytes | None:
        """Return the next bytes, b"" at the end of the stream, None when nothing came for `QUIET_SECONDS`.

        Raises:
            OSError: The connection is broken or closed.
        """
        self._receiving = True
        try:
            if self._closed:
                raise closed_error(self.peer)
            data = self._receive(self._receive_bytes)
            size = len(data)
            if size < RECEIVE_BYTES_CALM:
                self._receive_bytes = RECEIVE_BYTES_CALM
            else:
                self._receive_bytes = RECEIVE_BYTES if size < RECEIVE_BYTES else self.receive_bytes_busy
            return data
        except BlockingIOError:
            return None
        finally:
            self._receiving = False
            if self._closed:
                self._release()

    @property
    def direct(self) -> bool:
        """Whether `receive_into` can be used."""
        return True

    def receive_into(self, buffer: memoryview) -> int | None:
        """Receive into a buffer and return how many bytes came, 0 at the end of the stream, None when nothing came.

        Raises:
            OSError: The connection is broken or closed.
        """
        self._receiving = True
        try:
            if self._closed:
                raise closed_error(self.peer)
            return self._socket.recv_into(buffer)
        except BlockingIOError:
            return None
        finally:
            self._receiving = False
            if self._closed:
                self._release()

    @property
    def holds(self) -> bool:
        """Whether something was read from the socket and not returned yet: never."""
        return False

    def readable(self, milliseconds: int) -> bool:
        """Return whether within a time `receive` would return at once."""
        return poll(self._socket.fileno(), select.POLLIN, milliseconds)

    def writable(self, milliseconds: int) -> bool:
        """Return whether within a time `send` would take something, or fail."""
        return poll(self._socket.fileno(), select.POLLOUT, milliseconds)

    def fileno(self) -> int:
        """Return the socket's file descriptor, -1 when it is closed."""
        return self._socket.fileno()

    def share(self, frame: Sequence[Buffer], size: int) -> Buffer | None:  # noqa: ARG002 - there is none here
        """Return None: there is no shared memory."""
        return None

    def unshare(self, payload: Buffer) -> bytes:
        """Refuse: there is no shared memory.

        Raises:
            MalformedFrameError: Always.
        """
        raise MalformedFrameError(
            f"a frame of {len(payload)} bytes refers to shared memory, there is none - from {self.peer}"
        )

    def finish(self) -> None:
        """Say that no more bytes come from this side."""
        with contextlib.suppress(OSError):  # broken or closed: then the peer knows
            self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close at once, and wake whoever receives."""
        self._closed = True
        with self._releasing, contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._release()

    def _release(self) -> None:
        """Close the socket unless somebody is about to use it, who will then call this again."""
        with self._releasing:
            if not self._sending and not self._receiving:
                self._socket.close()


def closed_error(peer: str) -> OSError:
    """Return the error for using a connection that this side has closed."""
    return OSError(errno.EBADF, f"{os.strerror(errno.EBADF)}: the connection to {peer} was closed by this side")


def poll(descriptor: int, events: int, milliseconds: int) -> bool:
    """Return whether something happens at a file descriptor within a time; a closed one counts as happening.

    A poll object must not be used by two threads at once; making one costs less than a lock around it.
    """
    if descriptor < 0:
        return True
    poller = select.poll()
    poller.register(descriptor, events)
    return bool(poller.poll(milliseconds))


def tune_tcp(socket_: socket.socket, seconds: int | None = None) -> None:
    """Set what every TCP connection needs: no delay, and notice of a peer that has vanished, or takes nothing any more.

    Args:
        socket_: It is connected.
        seconds: After so many at the latest; if not given, as soon as suits links, which are made again.
    """
    if seconds is None:
        seconds = VANISHED_SECONDS
    socket_.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    socket_.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    socket_.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, seconds // KEEPALIVE_PROBES)
    socket_.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, seconds // KEEPALIVE_PROBES)
    socket_.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
    socket_.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * seconds)
