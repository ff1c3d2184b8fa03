"""Events that handlers submit to sinks in their own process.

A handler holds its sink, and perhaps the turn of the source whose event it handles. If it went on to call the handlers
of another channel, which does the same the other way round in another thread, the two would wait for each other for
ever. So what a handler submits to sinks here waits in its source, and a thread of the hub, which holds nothing, hands
it over.
"""

import logging
import queue
import threading
from typing import TYPE_CHECKING

from echoic.errors import EchoicError

if TYPE_CHECKING:
    from echoic.hub.outbound import Source

__all__ = ["Errands", "handling", "inside_handler"]

log = logging.getLogger("echoic.hub")


class _Handling(threading.local):
    """How many handlers the current thread is inside of, and how many links it reads, which may call any."""

    depth = 0


handling = _Handling()


def inside_handler() -> bool:
    """Whether the current thread is inside a handler of this process."""
    return handling.depth > 0


class Errands:
    """The thread that hands over what handlers have submitted; started when first needed."""

    def __init__(self) -> None:
        self._asked: queue.SimpleQueue[Source | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._started = False

    def ask(self, source: "Source") -> None:
        """Let a source hand over what waits in it. What waits is bounded by the source."""
        with self._lock:
            if not self._started:
                self._started = True
                threading.Thread(target=self._run, name="echoic-errands", daemon=True).start()
        self._asked.put(source)

    def close(self) -> None:
        """End the thread, after what was asked before."""
        self._asked.put(None)

    def _run(self) -> None:
        while (source := self._asked.get()) is not None:
            try:
                source.deliver_later()
            except EchoicError as error:
                log.info("what a handler submitted was not handed over: %s", error)
