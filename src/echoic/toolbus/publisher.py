"""A thread that submits events for a bus: a channel may make its sources wait, and a machine must not."""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Final

from echoic.errors import EchoicError

__all__ = ["Publisher"]

QUEUED_MAX: Final = 100_000
CLOSE_SECONDS: Final = 2.0
log: Final = logging.getLogger("echoic.toolbus")


class Publisher:
    """Does errands in order; those beyond a limit are not done, and counted."""

    def __init__(self, name: str, on_overflow: Callable[[], None]) -> None:
        """Begin.

        Args:
            name: Of the thread.
            on_overflow: Called when an errand is dropped for the first time since there was room.
        """
        self.dropped = 0
        self._on_overflow = on_overflow
        self._overflowing = False
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether the caller's thread is this one: then what it is called with is an event of the bus's own."""
        return threading.current_thread() is self._thread

    def do(self, errand: Callable[[], None]) -> None:
        """Have something done. Does not wait."""
        if self._queue.qsize() >= QUEUED_MAX:
            self.dropped += 1
            if not self._overflowing:
                self._overflowing = True
                self._on_overflow()
            return
        self._overflowing = False
        self._queue.put(errand)

    def close(self) -> None:
        """Do what is waiting, for a while, and nothing more."""
        self._queue.put(None)
        if not self.is_here:
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while (errand := self._queue.get()) is not None:
            try:
                errand()
            except EchoicError as error:
                log.warning("an event of a bus was not published: %s", error)
