"""What is said on a connection: at once if it goes, else from a queue with a limit.

A bus must not wait for a tool. `put` writes in the caller's thread as much as the connection takes without waiting,
which is nearly always everything and saves a change of threads. The rest is queued, and a thread of its own writes it,
which ends when the queue is empty. So a tool that does not read costs memory up to the limit, and nobody any time.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from echoic.links import Connection
from echoic.wire.frames import Buffer, size_of

__all__ = ["Outgoing"]

PIECES_MAX: Final = 64
WRITABLE_MILLISECONDS: Final = 100


class Outgoing:
    """The way out of a connection."""

    def __init__(
        self, connection: Connection, name: str, queue_bytes_max: int, on_broken: Callable[[str], None]
    ) -> None:
        """Begin.

        Args:
            connection: Where to write; nobody else does.
            name: Of the thread that writes what did not go at once.
            queue_bytes_max: How much may wait.
            on_broken: Called once, with a reason, when the connection broke while it was written to.
        """
        self._connection = connection
        self._name = name
        self._queue_bytes_max = queue_bytes_max
        self._on_broken = on_broken
        self._queue: deque[Buffer] = deque()
        self._queued_bytes = 0
        self._lock = threading.Lock()
        self._writing = self._broken = False
        self._close_at: float | None = None

    @property
    def queued_bytes(self) -> int:
        """How much waits."""
        return self._queued_bytes

    def put(self, pieces: Sequence[Buffer]) -> bool:
        """Say something; False where there is no room for it, or nobody to say it to."""
        with self._lock:
            if self._broken or self._close_at is not None:
                return False
            if not self._queue:
                try:
                    pieces = _behind(pieces, self._connection.send(pieces))
                except OSError as error:
                    self._broken = True
                    reason = error.strerror or str(error)
                else:
                    reason = ""
            else:
                reason = ""
            if not reason:
                return self._keep(pieces)
        self._on_broken(reason)
        return False

    def finish(self, seconds: float) -> None:
        """Say that no more comes when everything is written; close the connection if that takes too long.

        Whoever receives closes it, when the other side has hung up: what that has not read would be lost otherwise.
        """
        with self._lock:
            if self._close_at is not None:
                return
            self._close_at = time.monotonic() + seconds
            if self._queue:
                return  # whoever writes it goes on
        self._connection.finish()

    def _keep(self, pieces: Sequence[Buffer]) -> bool:
        """Queue what was not taken, while holding the lock; see that somebody writes it."""
        size = sum(map(size_of, pieces))
        if not size:
            return True
        if self._queued_bytes + size > self._queue_bytes_max:
            self._broken = True  # the peer would see a message with a hole in it
            return False
        self._queue.extend(pieces)
        self._queued_bytes += size
        if not self._writing:
            self._writing = True
            threading.Thread(target=self._write_queue, name=self._name, daemon=True).start()
        return True

    def _write_queue(self) -> None:
        """Write until nothing is left."""
        more, closing = True, False
        while more:
            try:
                with self._lock:
                    more = self._write_some() and not self._is_late()
                    if not more:
                        self._writing = False
                        closing = self._close_at is not None
                if more:
                    self._connection.writable(WRITABLE_MILLISECONDS)
            except OSError as error:
                self._broken = True
                self._on_broken(error.strerror or str(error))
                return
        if closing:
            self._connection.finish()
            if self._queue:
                self._connection.close()

    def _write_some(self) -> bool:
        """Write what goes and return whether more is left; while holding the lock."""
        while self._queue:
            pieces = [self._queue[at] for at in range(min(PIECES_MAX, len(self._queue)))]
            sent = self._connection.send(pieces)
            if not sent:
                return True
            self._queued_bytes -= sent
            for _ in pieces:
                self._queue.popleft()
            self._queue.extendleft(reversed(_behind(pieces, sent)))
        return False

    def _is_late(self) -> bool:
        return self._close_at is not None and time.monotonic() > self._close_at


def _behind(pieces: Sequence[Buffer], sent: int) -> list[Buffer]:
    """Return what is left of pieces when so many bytes of them are gone."""
    left: list[Buffer] = []
    for piece in pieces:
        size = size_of(piece)
        if sent >= size:
            sent -= size
            continue
        left.append(memoryview(piece).cast("B")[sent:] if sent else piece)
        sent = 0
    return left
