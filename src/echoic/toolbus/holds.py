"""Holds: processes that wait until a tool has the values that they told it of.

The thesis lets a process wait until the tool has acknowledged, so that what a script does next can rely on it. A tool
that is stalled must not stop a process for ever, though: a script may guard itself by a timeout, which is not looked at
while its process waits. So a hold ends after a while, with or without an acknowledgement; the value itself is held on,
since the tool may still come for it.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from echoic.scripts.running.messages import Delivered, Input

__all__ = ["Holds"]

HOLD_SECONDS: Final = 2.0
WATCH_SECONDS: Final = 0.1


@dataclass(slots=True)
class Held:
    """A delivery that is not acknowledged."""

    hold: int | None
    """Whom the machine holds for it; None for nobody, or not any more."""
    until: float


class Holds:
    """The deliveries that are not acknowledged, and who waits for them."""

    def __init__(self, feed: Callable[[Input], None], seconds: float = HOLD_SECONDS) -> None:
        """Begin with none.

        Args:
            feed: Gives the machine an input.
            seconds: How long a process waits.
        """
        self._feed = feed
        self._seconds = seconds
        self._lock = threading.Lock()
        self._held: dict[tuple[int, int], Held] = {}
        self._watching = False

    def __len__(self) -> int:
        return len(self._held)

    def begin(self, tool: int, delivery: int, hold: int | None) -> None:
        """Let a process wait until a tool has acknowledged a delivery."""
        with self._lock:
            self._held[tool, delivery] = Held(hold, time.monotonic() + self._seconds)
            starts = hold is not None and not self._watching
            self._watching = self._watching or starts
        if starts:
            threading.Thread(target=self._watch, name="echoic-bus-holds", daemon=True).start()

    def end(self, tool: int, deliveries: Iterable[int]) -> None:
        """Let processes go on whose deliveries are acknowledged, or never will be."""
        for delivery in deliveries:
            with self._lock:
                held = self._held.get((tool, delivery))
                hold = None if held is None else held.hold
            if hold is not None:
                self._feed(Delivered(hold))  # before it is over: somebody may look whether anything is under way
            with self._lock:
                self._held.pop((tool, delivery), None)

    def _watch(self) -> None:
        """End what takes too long, while anybody waits."""
        while True:
            time.sleep(WATCH_SECONDS)
            now = time.monotonic()
            with self._lock:
                late = [held for held in self._held.values() if held.hold is not None and held.until <= now]
                holds = [held.hold for held in late]
                for held in late:
                    held.hold = None
                watching = any(held.hold is not None for held in self._held.values())
                self._watching = watching
            for hold in holds:
                if hold is not None:
                    self._feed(Delivered(hold))
            if not watching:
                return
