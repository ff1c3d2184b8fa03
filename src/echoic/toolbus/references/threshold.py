"""The threshold: from which size on it pays to send a reference instead of a value. This module is pure.

A value by reference saves one of the two times that its bytes travel, and costs a question and its answer. The saving
is size / bandwidth, the cost a round trip, so they are even at

    threshold = latency x bandwidth

which is the amount of data that is under way on a busy link anyway. The thesis leaves the choice to the user, since it
depends on both; here both are measured while the tools work: each GET tells how long its answer took to begin, each
transfer how fast the rest was. What was measured is smoothed, one eighth of the difference each time, as TCP does it
with round trips, and the result is kept between 64 KiB, below which a value fits into a message, and 4 MiB, above which
memory decides. Until something is measured it is 256 KiB, the break-even of plain sockets on one machine. Whoever knows
better sets it.
"""

from dataclasses import dataclass
from typing import Final

__all__ = ["THRESHOLD_BYTES", "THRESHOLD_BYTES_MAX", "THRESHOLD_BYTES_MIN", "Threshold", "ThresholdStatistics"]

THRESHOLD_BYTES: Final = 256 * 1024
THRESHOLD_BYTES_MIN: Final = 64 * 1024
THRESHOLD_BYTES_MAX: Final = 4 * 1024 * 1024
TRANSFER_BYTES_MIN: Final = 64 * 1024
"""Smaller transfers tell nothing about bandwidth."""
SMOOTHING: Final = 8
SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ThresholdStatistics:
    """What a threshold is, and why."""

    bytes: float
    fixed: bool
    latency_ns: float | None
    """None while it was not measured."""
    bytes_per_second: float | None


class Threshold:
    """The threshold of one tool."""

    def __init__(self, fixed: float | None = None) -> None:
        """Begin with a value that is set, or with one that is to be measured.

        Args:
            fixed: Bytes, 0 for everything, infinity for nothing; None if it is to be measured.
        """
        self.fixed = fixed
        self._latency_ns: float | None = None
        self._bytes_per_ns: float | None = None

    @property
    def bytes(self) -> float:
        """From so many bytes on a value goes by reference."""
        if self.fixed is not None:
            return self.fixed
        if self._latency_ns is None or self._bytes_per_ns is None:
            return THRESHOLD_BYTES
        even = int(self._latency_ns * self._bytes_per_ns)
        return min(max(even, THRESHOLD_BYTES_MIN), THRESHOLD_BYTES_MAX)

    def observe_latency(self, duration_ns: int) -> None:
        """Learn from the time between a question and the beginning of its answer."""
        if duration_ns > 0:
            self._latency_ns = _smoothed(self._latency_ns, duration_ns)

    def observe_transfer(self, size: int, duration_ns: int) -> None:
        """Learn from the time that the bytes of a value took, without the question."""
        if size >= TRANSFER_BYTES_MIN and duration_ns > 0:
            self._bytes_per_ns = _smoothed(self._bytes_per_ns, size / duration_ns)

    def statistics(self) -> ThresholdStatistics:
        """Return what it is, and why."""
        rate = None if self._bytes_per_ns is None else self._bytes_per_ns * SECOND_NS
        return ThresholdStatistics(self.bytes, self.fixed is not None, self._latency_ns, rate)


def _smoothed(before: float | None, measured: float) -> float:
    return measured if before is None else before + (measured - before) / SMOOTHING
