"""What is replayed of a recording, and how."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from echoic.errors import LocalError
from echoic.recorder import Hole, Journal, Recorded
from echoic.recorder.journal import Moment
from echoic.recorder.replaying import GAP_SECONDS_MAX, Pacing
from echoic.recorder.stamping import check_stamp

__all__ = ["OnBatch", "OnHole", "ReplayOptions", "Window", "bounds_of"]

OnBatch: TypeAlias = Callable[[Recorded], object]
OnHole: TypeAlias = Callable[[Hole], object]


class Window(msgspec.Struct, frozen=True):
    """What is replayed of a recording; all of it if nothing is said."""

    start: int | None = None
    """The first sequence number, of the only partition or of `partition`."""
    end: int | None = None
    """The sequence number behind the last."""
    since: Moment | None = None
    """The first time: nanoseconds since 1970, a datetime, or ISO text."""
    until: Moment | None = None
    """The time behind the last."""
    partition: int | None = None
    """The only partition, None for all."""

    def read(
        self, journal: Journal, partition: int, end: int, on_hole: Callable[[Hole], None] | None = None
    ) -> Iterator[Recorded]:
        """Read what there is of a partition, before an event.

        Raises:
            LocalError: What is given as a time is none; at once.
            JournalError: The journal cannot be read; at once or later.
        """
        return journal.read(self.start, end, partition=partition, since=self.since, until=self.until, on_hole=on_hole)


class ReplayOptions(msgspec.Struct, frozen=True):
    """How a recording is replayed."""

    rate: float = 1.0
    window: Window = Window()
    loop: int = 1
    paused: bool = False
    gap_seconds_max: float = GAP_SECONDS_MAX
    stamp: str = ""
    on_batch: OnBatch | None = None
    on_hole: OnHole | None = None

    def pacing(self) -> Pacing:
        """Return what keeps the pace.

        Raises:
            LocalError: The rate or the longest gap is not one.
        """
        return Pacing(self.rate, gap_seconds_max=self.gap_seconds_max, paused=self.paused)

    def check(self, journal: Journal) -> None:
        """Make sure that a journal can be replayed like this.

        Raises:
            LocalError: An option is wrong.
            FormatError: A recorded type has no such field for the time.
            JournalError: The journal cannot be read.
        """
        self.pacing()
        if self.loop < 0:
            raise LocalError(f"expected a loop of at least 1, or 0 for ever, got {self.loop}")
        for format in journal.formats if self.stamp else ():
            check_stamp(format, self.stamp)
        for partition, (_, end) in zip(*bounds_of(journal, self.window), strict=True):
            self.window.read(journal, partition, end)


def bounds_of(journal: Journal, window: Window) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Return which partitions are replayed, and for each the first sequence number and the one behind the last.

    Raises:
        LocalError: The window is not one of this journal.
    """
    total, partition = journal.partitions, window.partition
    if partition is not None and not 0 <= partition < total:
        raise LocalError(f"there is no partition {partition}, the journal of `{journal.name}` has {total}")
    partitions = tuple(range(total)) if partition is None else (partition,)
    firsts, heads = journal.firsts, journal.heads
    if len(partitions) > 1 and (window.start is not None or window.end is not None):
        raise LocalError(f"a sequence number is one of a partition, and there are {total}: name one, or a time")
    start, end = window.start, window.end
    bounds = []
    for each in partitions:
        first = firsts[each] if start is None else start
        last = heads[each] if end is None else min(end, heads[each])
        if start is not None and not firsts[each] <= start <= heads[each]:
            raise LocalError(
                f"cannot start at sequence number {start}, the journal has {firsts[each]} to {heads[each]}"
            )
        bounds.append((first, max(first, last)))
    return partitions, tuple(bounds)
