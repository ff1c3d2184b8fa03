"""The last events of a channel, as one batch: for a look at them in a notebook, a test, a shell.

    channel.recent(100)     recorded somewhere:  the journal's last 100, whoever recorded them, and whenever
                            else:                the last 100 that came since somebody asked for the first time

Nobody keeps events of a channel that is not recorded: a source sends them to the sinks that are there, and that is all.
So the first call subscribes, and from then on a ring here keeps what comes, `BYTES_MAX` of it. That subscription stays
until the hub is closed, since the next call may come at any time.

What comes is copied: a batch is a view of the frame that it came in, and a frame with one event that is kept would be
kept as a whole.
"""

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy

from echoic.errors import LocalError, UnreachableError
from echoic.recorder import Journal
from echoic.wire import Batch, Decoder, decoder_of

if TYPE_CHECKING:
    from echoic.hub.channel import Channel

__all__ = ["BYTES_MAX", "EVENTS_MAX", "Ring", "joined", "recent_events"]

EVENTS_MAX: Final = 1_000_000
BYTES_MAX: Final = 32 * 1024 * 1024

_beginning: Final = threading.Lock()


class Ring:
    """The last events that came, bounded in bytes: the oldest go, but one event is kept, however large it is."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._batches: deque[Batch] = deque()
        self._changed = threading.Condition()
        self._full = False
        self.count = 0
        self.bytes = 0

    def add(self, batch: Batch) -> None:
        """Keep a copy of events, and let go of the oldest if there are too many bytes."""
        kept = _copy(_within(batch, self._bytes_max))
        with self._changed:
            self._batches.append(kept)
            self.count += kept.count
            self.bytes += kept.record_bytes
            self._full = self._full or kept.count < batch.count
            while self.bytes > self._bytes_max and len(self._batches) > 1:
                gone = self._batches.popleft()
                self.count -= gone.count
                self.bytes -= gone.record_bytes
                self._full = True
            self._changed.notify_all()

    def last(self, count: int, seconds: float) -> list[Batch]:
        """Return the batches that hold the last events, when there are enough, or can be no more, or time is up."""
        with self._changed:
            self._changed.wait_for(lambda: self.count >= count or self._full, seconds)
            return _tail(self._batches, count)


def recent_events(channel: "Channel", count: int, seconds: float, journal: str) -> Batch:
    """Return the last events of a channel; `Channel.recent` says what each argument means.

    Raises:
        LocalError: The number is not from 1 to `EVENTS_MAX`, or the seconds are below 0; or the channel has no type,
            and nothing came.
        EchoicError: The channel cannot be subscribed to, or its journal cannot be read.
    """
    if not hasattr(count, "__index__") or not 1 <= count <= EVENTS_MAX:
        raise LocalError(f"the number of recent events is 1 to {EVENTS_MAX}, got {count}")
    if not 0 <= seconds < threading.TIMEOUT_MAX:
        raise LocalError(f"expected 0 seconds or more to wait, got {seconds}")
    try:
        recorded = channel.journal(journal)
    except UnreachableError:
        if journal:
            raise
        return joined(_ring_of(channel).last(count, seconds), channel.own_type or channel.format, channel.name)
    with recorded:
        batches = _recorded(recorded, count, seconds)
        return joined(batches, channel.own_type or channel.format or recorded.format, channel.name)


def joined(batches: Sequence[Batch], declared: object | None, name: str) -> Batch:
    """Return the events of several batches in one.

    Args:
        batches: In their order.
        declared: The type that they shall have; without one it is that of the last batch, and those before it are
            taken as far as they have the same type.
        name: What the channel is called, for a message.

    Raises:
        LocalError: Neither a type nor a batch is there.
        IncompatibleTypesError: Events cannot have the type.
    """
    if declared is None:
        if not batches:
            raise LocalError(f"nothing came on channel `{name}`, which has no type, so there is no batch to return")
        declared, batches = batches[-1].format, _alike(batches)
    decoder = decoder_of(declared)
    parts = [batch.to(decoder) for batch in batches]
    return parts[0] if len(parts) == 1 else _join(parts, decoder)


def _join(parts: Sequence[Batch], decoder: Decoder) -> Batch:
    format, count = decoder.binding.format, sum(part.count for part in parts)
    records = b"".join([part.records for part in parts])
    if not format.variable:
        return Batch(format, count, [records], None, decoder)
    bounds, start = [0], 0
    for part in parts:
        bounds.extend(start + end for end in part.bounds[1:])
        start = bounds[-1]
    return Batch(format, count, [records], bounds, decoder)


def _ring_of(channel: "Channel") -> Ring:
    """Return what keeps the channel's events here, from the first call on.

    Raises:
        EchoicError: The channel cannot be subscribed to.
    """
    with _beginning:
        if channel.ring is None:
            ring = Ring()

            def recent(batch: Batch) -> None:  # by which name others see the sink
                ring.add(batch)

            channel.subscribe(recent, batch=True)
            channel.ring = ring
        return channel.ring


def _recorded(journal: Journal, count: int, seconds: float) -> list[Batch]:
    """Return the batches that hold the last events of a journal, in the order of their time if it has partitions.

    Raises:
        JournalError: The journal cannot be read.
    """
    deadline = time.monotonic() + seconds
    heads, firsts = journal.heads, journal.firsts
    while sum(heads) - sum(firsts) < count and (left := deadline - time.monotonic()) > 0:
        journal.shelf.wait(heads, left)
        heads, firsts = journal.heads, journal.firsts
    starts = [max(first, head - count) for first, head in zip(firsts, heads, strict=True)]
    found: list[tuple[int, Batch]] = []
    for partition, (start, head) in enumerate(zip(starts, heads, strict=True)):
        kept: deque[tuple[int, Batch]] = deque()
        size = 0
        for recorded in journal.read(start, head, partition=partition) if start < head else ():
            kept.append((recorded.time_ns, recorded.batch))
            size += recorded.batch.record_bytes
            while size - kept[0][1].record_bytes >= BYTES_MAX:
                size -= kept.popleft()[1].record_bytes
        found.extend(kept)
    if len(starts) > 1:
        found.sort(key=lambda timed: timed[0])
    return _bounded([batch for _, batch in found], count)


def _bounded(batches: Iterable[Batch], count: int) -> list[Batch]:
    """Return the last events, but no more bytes than a ring would have."""
    taken: deque[Batch] = deque()
    size = 0
    for batch in reversed(_tail(batches, count)):
        fitting = _within(batch, BYTES_MAX - size) if taken else _within(batch, BYTES_MAX)
        size += fitting.record_bytes
        if taken and size > BYTES_MAX:
            break
        taken.appendleft(fitting)
        if fitting.count < batch.count:
            break
    return list(taken)


def _tail(batches: Iterable[Batch], count: int) -> list[Batch]:
    """Return the end of some batches, with so many events if there are as many."""
    taken: deque[Batch] = deque()
    for batch in reversed(list(batches)):
        if count <= 0:
            break
        taken.appendleft(_last(batch, count))
        count -= batch.count
    return list(taken)


def _last(batch: Batch, count: int) -> Batch:
    return batch.select(numpy.arange(max(batch.count - count, 0), batch.count))


def _within(batch: Batch, bytes_max: int) -> Batch:
    """Return the last events that have so many bytes, or the very last one."""
    if batch.record_bytes <= bytes_max:
        return batch
    bounds = numpy.asarray(batch.bounds)
    first = int(numpy.searchsorted(bounds, bounds[-1] - bytes_max))
    return _last(batch, max(batch.count - first, 1))


def _copy(batch: Batch) -> Batch:
    bounds = list(batch.bounds) if batch.format.variable else None
    return Batch(batch.format, batch.count, [bytes(batch.records)], bounds, batch.decoder)


def _alike(batches: Sequence[Batch]) -> list[Batch]:
    """Return the last batches, as far as they have one type."""
    format = batches[-1].format
    alike: deque[Batch] = deque()
    for batch in reversed(batches):
        if batch.format != format:
            break
        alike.appendleft(batch)
    return list(alike)
