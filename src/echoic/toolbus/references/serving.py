"""Serving: a value on its way out, chunk by chunk, as fast as whoever asked gives credit.

    GET  ->  PUT with size, CHUNK x window      (one CHUNK at least, the last one flagged)
    MORE ->  CHUNK x what it grants

Nothing here waits. Whoever takes its time costs a view of a value that is kept anyway; one that is silent for too long
is forgotten. The chunks of several requests go in between each other, since each has a credit of its own.
"""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from echoic.errors import EncodeError
from echoic.toolbus.protocol import Message
from echoic.toolbus.references.words import Chunk, Refusal, encode_chunk, encode_refusal
from echoic.wire.frames import Buffer, size_of

__all__ = ["Sending"]


class Sending:
    """One value on its way to who asked for it."""

    def __init__(
        self,
        request: int,
        size: int,
        chunks: Iterator[Buffer],
        say: Callable[[Message], object],
        on_end: Callable[[bool], None],
    ) -> None:
        """Begin, without credit.

        Args:
            request: The number that its chunks have.
            size: How many bytes there are.
            chunks: Which are these.
            say: Sends a message; does not wait for long.
            on_end: Called once, with whether everything was sent.
        """
        self.used_ns = time.monotonic_ns()
        self._request = request
        self._left = size
        self._chunks = chunks
        self._say = say
        self._on_end = on_end
        self._credit = 0
        self._ended = False
        self._lock = threading.Lock()

    def more(self, credit: int) -> None:
        """Send so many chunks more."""
        self.used_ns = time.monotonic_ns()
        complete = False
        with self._lock:
            self._credit += credit
            while self._credit and not self._ended:
                self._credit -= 1
                self._ended = complete = self._send_next()
        if complete:
            self._on_end(True)

    def end(self) -> None:
        """Send no more."""
        with self._lock:
            ended, self._ended = self._ended, True
        if not ended:
            self._on_end(False)

    def _send_next(self) -> bool:
        """Send a chunk; return whether it was the last."""
        try:
            body: Final[Buffer] = next(self._chunks, b"")
        except EncodeError as error:  # of a string, whose pieces are made on the way
            self._say(encode_refusal(Refusal(self._request, str(error))))
            return True
        self._left -= size_of(body)
        last = self._left <= 0 or not body
        self._say(encode_chunk(Chunk(self._request, body, last)))
        return last
