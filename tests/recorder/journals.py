"""Journals for tests of those who read them."""

from collections.abc import Sequence
from pathlib import Path

from echoic import Batch
from echoic.recorder import Disk, JournalOptions, JournalWriter

SECOND = 1_000_000_000
BEGIN = 1_763_000_000 * SECOND


class Scribe:
    """Writes a journal batch by batch, and numbers the events of each source."""

    def __init__(self, path: Path, channel: str = "ticks", **options: object) -> None:
        self.path = path
        self._writer = JournalWriter.open(Disk(path), channel, JournalOptions(**options), id=bytes(16), now_ns=BEGIN)
        self._next: dict[int, int] = {}

    def write(self, events: Sequence[object] | Batch, source: int = 1, at: float = 0.0) -> None:
        """Record events, so many seconds after the beginning."""
        batch = events if isinstance(events, Batch) else Batch.of(events)
        first = self._next.get(source, 0)
        self._writer.append(batch, source, first, BEGIN + round(at * SECOND))
        self._next[source] = first + batch.count

    def close(self) -> Path:
        self._writer.close(BEGIN)
        return self.path
