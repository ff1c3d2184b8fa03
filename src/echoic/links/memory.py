"""Connections within a process: two hubs that happen to live together hand bytes over through two queues.

    MemoryConnection --- Pipe --->  MemoryConnection
                    <--- Pipe ---

A pipe holds at most `PIPE_BYTES_MAX`, and behaves like a socket's buffers otherwise: a full one takes nothing, an ended
one gives what it has and then the end, a broken one refuses. Bytes are handed over as they are when a single `bytes`
object is sent, and copied when not, since the owner of anything else may change it.

The hub polls file descriptors to learn where it can write again, and so a pipe has one: an eventfd, which the system
calls writable as long as its counter is below the greatest value. A full pipe sets it to that value.
"""

import errno
import io
import os
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final

from echoic.errors import MalformedFrameError
from echoic.links.connection import QUIET_SECONDS, join_first
from echoic.links.sockets import closed_error
from echoic.wire import Buffer

__all__ = ["MemoryConnection", "connect_in_memory"]

PIPE_BYTES_MAX: Final = 1024 * 1024
COUNTER_MAX: Final = 2**64 - 2


class Pipe:
    """Bytes on their way from one connection to the other."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self._ended = self._broken = self._full = False
        self._room = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def put(self, pieces: Sequence[Buffer]) -> int:
        """Take as many bytes as there is room for and return how many.

        Raises:
            BrokenPipeError: Nobody will read them.
        """
        with self._changed:
            if self._broken or self._ended:
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
            if self._full:
                return 0
            taken = join_first(pieces, PIPE_BYTES_MAX - self._held_bytes)
            if taken:
                self._held.append(taken)
                self._held_bytes += len(taken)
                self._set_full(self._held_bytes >= PIPE_BYTES_MAX)
                self._changed.notify_all()
        return len(taken)

    def get(self, seconds: float) -> bytes | None:
        """Return all bytes there are, b"" at the end, None when nothing comes within a time."""
        with self._changed:
            if not self._changed.wait_for(self._is_readable, seconds):
                return None
            data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
            self._held.clear()
            self._held_bytes = 0
            self._set_full(False)
        return data

    def wait_readable(self, seconds: float) -> bool:
        """Return whether `get` would return at once, within a time."""
        with self._changed:
            return self._changed.wait_for(self._is_readable, seconds)

    def wait_writable(self, seconds: float) -> bool:
        """Return whether `put` would take something or fail, within a time."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._full, seconds)

    def descriptor(self) -> int:
        """Return the file descriptor that is writable when there is room, -1 when the pipe is released."""
        return self._room

    def end(self) -> None:
        """Let the reader see the end behind what is in the pipe."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def break_off(self) -> None:
        """Let the writer fail, and drop what is in the pipe."""
        with self._changed:
            self._broken = True
            self._held.clear()
            self._held_bytes = 0
            self._set_full(False)
            self._changed.notify_all()

    def release(self) -> None:
        """Close the file descriptor; for the writer, when it is done."""
        with self._changed:
            self._full = False
            if self._room >= 0:
                os.close(self._room)
                self._room = -1

    def _is_readable(self) -> bool:
        return bool(self._held) or self._ended or self._broken

    def _set_full(self, full: bool) -> None:
        if full == self._full:
            return
        self._full = full
        if self._room >= 0:
            if full:
                os.eventfd_write(self._room, COUNTER_MAX)
            else:
                os.eventfd_read(self._room)
        if not full:
            self._changed.notify_all()


class MemoryConnection:
    """One end of two pipes."""

    checked: Final = False
    credentials: Final = None
    direct: Final = False

    def __init__(self, incoming: Pipe, outgoing: Pipe, peer: str) -> None:
        self.peer: Final = peer
        self._incoming = incoming
        self._outgoing = outgoing
        self._closed = False

    def handshake(self, timeout: float) -> None:
        """Do nothing: there is nothing to agree on."""

    def send(self, pieces: Sequence[Buffer]) -> int:
        """Hand over as much as there is room for and return how many bytes were taken, 0 when there is none.

        Raises:
            OSError: The connection is broken or closed.
        """
        if self._closed:
            raise closed_error(self.peer)
        return self._outgoing.put(pieces)

    def receive(self) -> bytes | None:
        """Return the next bytes, b"" at the end of the stream, None when nothing came for `QUIET_SECONDS`.

        Raises:
            OSError: The connection is closed.
        """
        if self._closed:
            raise closed_error(self.peer)
        return self._incoming.get(QUIET_SECONDS)

    def receive_into(self, buffer: memoryview) -> int | None:
        """Refuse: what arrives is handed over as it was sent.

        Raises:
            OSError: Always.
        """
        raise io.UnsupportedOperation(f"nothing is received into {len(buffer)} bytes here")

    @property
    def holds(self) -> bool:
        """Whether `receive` would return at once: the file descriptor knows nothing of that."""
        return self.readable(0)

    def readable(self, milliseconds: int) -> bool:
        """Return whether within a time `receive` would return at once."""
        return self._incoming.wait_readable(milliseconds / 1000)

    def writable(self, milliseconds: int) -> bool:
        """Return whether within a time `send` would take something, or fail."""
        return self._outgoing.wait_writable(milliseconds / 1000)

    def fileno(self) -> int:
        """Return a file descriptor on which POLLOUT says that `send` would take something; -1 when closed."""
        return self._outgoing.descriptor()

    def share(self, frame: Sequence[Buffer], size: int) -> Buffer | None:  # noqa: ARG002 - all memory is shared here
        """Return None: there is nothing to gain."""
        return None

    def unshare(self, payload: Buffer) -> bytes:
        """Refuse: no frame was placed in shared memory.

        Raises:
            MalformedFrameError: Always.
        """
        raise MalformedFrameError(
            f"a frame of {len(payload)} bytes refers to shared memory, there is none - from {self.peer}"
        )

    def finish(self) -> None:
        """Say that no more bytes come from this side."""
        self._outgoing.end()

    def close(self) -> None:
        """Close at once, and wake whoever receives."""
        self._closed = True
        self._outgoing.end()
        self._outgoing.release()
        self._incoming.break_off()


def connect_in_memory(dialled: str) -> tuple[MemoryConnection, MemoryConnection]:
    """Return the two ends of a connection: the one for the dialler of an address, and the one for its listener."""
    there, back = Pipe(), Pipe()
    return MemoryConnection(back, there, dialled), MemoryConnection(there, back, "this process")
