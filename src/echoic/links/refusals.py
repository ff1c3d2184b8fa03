"""Refusals: which of them are worth a line in the log.

Strangers decide how often they are refused. So each reason is told once a minute for each place that they come from,
and so many lines a minute whoever they are; how many were left out stands in the next line. The caller says what time
it is.
"""

import threading
from typing import Final

from echoic.links.strangers import origin_of

__all__ = ["LINES_MAX", "PERIOD_NS", "Refusals"]

PERIOD_NS: Final = 60_000_000_000
LINES_MAX: Final = 20


class Refusals:
    """What was told in this minute. Any thread may call."""

    def __init__(self, intro: str) -> None:
        """Begin with nothing told; every line begins with `intro` and who it was."""
        self._intro = intro
        self._lock = threading.Lock()
        self._begun_ns: int | None = None
        self._told: set[tuple[str, str]] = set()
        self._untold = 0

    def line(self, peer: str, reason: str, now_ns: int) -> str:
        """Return what to log of a refusal, "" for nothing.

        Args:
            peer: Who was refused: its host and port.
            reason: Why.
            now_ns: The time, of a clock that does not leap.
        """
        told = origin_of(peer), reason.replace(peer, "")
        with self._lock:
            if self._begun_ns is None or now_ns - self._begun_ns >= PERIOD_NS:
                self._begun_ns = now_ns
                self._told.clear()
            if told in self._told or len(self._told) >= LINES_MAX:
                self._untold += 1
                return ""
            self._told.add(told)
            untold, self._untold = self._untold, 0
        return f"{self._intro} {peer}: {reason}" + (f" ({untold} more were not told)" if untold else "")
