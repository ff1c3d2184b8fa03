"""Where a reader gets chunks of a journal from: the files themselves, or a recorder that is far away.

    Journal -> PartitionReader -> Shelf -> LocalShelf -> SegmentReader -> mapped file
                                        -> over a link: Fetch, Fetched

A shelf gives only what is committed, and says what is there: the first and the next sequence number of each partition.
It needs no lock and changes nothing. Meanwhile the writer goes on: a segment may grow, be sealed and followed by
another, or vanish because of retention. So the list of segments is looked up again whenever the last one is sealed or
silent, or one that was listed is not there.

A poll costs a few system calls on the files that grow; waiting is sleep, longer each time up to 20 ms. The alternative,
inotify, needs a thread and a file descriptor for each partition, does not exist everywhere, and says nothing on
network file systems.
"""

import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, Protocol

from echoic.errors import JournalError, LocalError
from echoic.recorder.catalog import Catalog
from echoic.recorder.segment_reader import Chunk, Described, SegmentReader
from echoic.recorder.storage import Storage

__all__ = ["Chunk", "LocalShelf", "Shelf"]

SEGMENTS_OPEN_MAX: Final = 64
ATTEMPTS_MAX: Final = 16  # to find an event while segments come and go
LISTED_SECONDS_MAX: Final = 1.0
PAUSE_SECONDS_MIN: Final = 0.0005
PAUSE_SECONDS_MAX: Final = 0.02


class Shelf(Protocol):
    """Where chunks come from."""

    @property
    def id(self) -> str:
        """What tells the journal from every other one."""
        ...

    @property
    def channel(self) -> str:
        """The channel that was recorded."""
        ...

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        ...

    def heads(self) -> tuple[int, ...]:
        """Return for each partition the sequence number of the next event; all before it are committed."""
        ...

    def firsts(self) -> tuple[int, ...]:
        """Return for each partition the first sequence number that is still there."""
        ...

    def chunk(self, partition: int, sequence: int, bytes_max: int) -> Chunk | None:
        """Return committed blocks from the one that holds an event on, None if there is none yet.

        A chunk that begins with a later event says that those before it cannot be read.
        """
        ...

    def skip(self, partition: int, sequence: int, since_ns: int, until_ns: int) -> int:
        """Return a later sequence number if everything before it was recorded at another time, else the same."""
        ...

    def descriptors(self) -> tuple[bytes, ...]:
        """Return the types that were recorded, in the order in which they were first."""
        ...

    def marked(self, sink: str) -> tuple[int, ...] | None:
        """Return where a named sink goes on, for each partition; None if it was never marked."""
        ...

    def wait(self, heads: Sequence[int], seconds: float) -> bool:
        """Return when there is more in a partition than this, or after a time; tell whether there is."""
        ...


class LocalShelf:
    """The journal of a channel in a storage. It may be used by several threads."""

    def __init__(self, storage: Storage, channel: str) -> None:
        """Open a journal for reading.

        Raises:
            JournalError: There is none, or it cannot be read.
        """
        self._catalog = Catalog(storage, channel)
        self.info: Final = self._catalog.info()
        self.id: Final = self.info.id
        self.channel: Final = channel
        self.partitions: Final = self.info.partitions
        self._lock = threading.RLock()
        self._segments: dict[tuple[int, int], SegmentReader] = {}
        self._lists: dict[int, list[int]] = {}
        self._listed: dict[int, float] = {}
        self._described: dict[tuple[int, int], tuple[Described, ...]] = {}

    def heads(self) -> tuple[int, ...]:
        """Return for each partition the sequence number of the next event; all before it are committed.

        Raises:
            JournalError: The journal cannot be read.
        """
        return tuple(self._head(partition) for partition in range(self.partitions))

    def firsts(self) -> tuple[int, ...]:
        """Return for each partition the first sequence number that is still there.

        Raises:
            JournalError: The journal cannot be read.
        """
        with self._lock:
            lists = [self._list(partition) for partition in range(self.partitions)]
        return tuple(firsts[0] if firsts else 0 for firsts in lists)

    def chunk(self, partition: int, sequence: int, bytes_max: int) -> Chunk | None:
        """Return committed blocks from the one that holds an event on, None if there is none yet.

        Raises:
            LocalError: There is no such partition or sequence number.
            JournalError: The journal cannot be read.
        """
        self._check(partition, sequence)
        with self._lock:
            for _ in range(ATTEMPTS_MAX):
                firsts = self._known(partition)
                if not firsts:
                    return None
                at = bisect_right(firsts, sequence) - 1
                try:
                    found = self._take(partition, firsts, at, sequence, bytes_max)
                except FileNotFoundError:
                    self._list(partition)
                    continue
                if found is not None or not self._goes_on(partition, firsts):
                    return found
        raise JournalError(
            f"segments vanish faster than they can be read - at channel `{self.channel}`, partition {partition}, "
            f"sequence {sequence}"
        )

    def skip(self, partition: int, sequence: int, since_ns: int, until_ns: int) -> int:
        """Return a later sequence number if everything before it was recorded at another time, else the same.

        Raises:
            LocalError: There is no such partition or sequence number.
            JournalError: The journal cannot be read.
        """
        self._check(partition, sequence)
        with self._lock:
            while True:
                firsts = self._known(partition)
                at = bisect_right(firsts, sequence) - 1
                if at < 0:
                    return sequence
                try:
                    found = self._opened(partition, firsts, at).leap(sequence, since_ns, until_ns)
                except (FileNotFoundError, JournalError):
                    return sequence  # whoever reads it will be told why it cannot be
                if found == sequence or at + 1 >= len(firsts) or found < firsts[at + 1]:
                    return found
                sequence = found

    def descriptors(self) -> tuple[bytes, ...]:
        """Return the types that were recorded, in the order in which they were first.

        Between partitions the order is that of time. Segments that cannot be read have no say.

        Raises:
            JournalError: The journal cannot be listed.
        """
        found: dict[bytes, int] = {}
        with self._lock:
            for partition in range(self.partitions):
                firsts = self._list(partition)
                for at in range(len(firsts)):
                    for described in self._types(partition, firsts, at):
                        time_ns = found.setdefault(described.descriptor, described.time_ns)
                        if self.partitions > 1:
                            found[described.descriptor] = min(time_ns, described.time_ns)
        return tuple(found if self.partitions == 1 else sorted(found, key=found.__getitem__))

    def sizes(self) -> tuple[int, int]:
        """Return how many segments there are, and how many bytes they have.

        Raises:
            JournalError: The journal cannot be read.
        """
        count = size = 0
        for partition in range(self.partitions):
            for first in self._catalog.segments(partition):
                try:
                    file = self._catalog.storage.open(self._catalog.segment(partition, first))
                except OSError:
                    continue  # retention was faster, or `verify` will tell
                count, size = count + 1, size + file.size()
                file.close()
        return count, size

    def marked(self, sink: str) -> tuple[int, ...] | None:
        """Return where a named sink goes on, for each partition; None if it was never marked.

        Raises:
            LocalError: This cannot be the name of a sink.
            JournalError: It cannot be read.
        """
        return self._catalog.marked(sink)

    def wait(self, heads: Sequence[int], seconds: float) -> bool:
        """Return when there is more in a partition than this, or after a time; tell whether there is.

        Raises:
            JournalError: The journal cannot be read.
        """
        deadline, pause = time.monotonic() + seconds, PAUSE_SECONDS_MIN
        while True:
            if any(here > there for here, there in zip(self.heads(), heads, strict=False)):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, PAUSE_SECONDS_MAX)

    def close(self) -> None:
        """Let go of all files; what was taken from them stays good."""
        with self._lock:
            for segment in self._segments.values():
                segment.close()
            self._segments.clear()

    def _check(self, partition: int, sequence: int) -> None:
        if not 0 <= partition < self.partitions:
            raise LocalError(f"there is no partition {partition}, `{self.channel}` has {self.partitions}")
        if sequence < 0:
            raise LocalError(f"a sequence number is 0 or more, got {sequence} - at channel `{self.channel}`")

    def _head(self, partition: int) -> int:
        with self._lock:
            for _ in range(ATTEMPTS_MAX):
                firsts = self._known(partition)
                if not firsts:
                    return 0
                try:
                    last = self._opened(partition, firsts, len(firsts) - 1)
                except FileNotFoundError:
                    self._list(partition)
                    continue
                if not self._goes_on(partition, firsts):
                    return last.head
        raise JournalError(
            f"segments come faster than they can be read - at channel `{self.channel}`, partition {partition}"
        )

    def _take(self, partition: int, firsts: list[int], at: int, sequence: int, bytes_max: int) -> Chunk | None:
        """Return a chunk of a segment, or of the one behind it if this cannot be read."""
        if at < 0:
            reason = f"they were removed, `{self._catalog.segment(partition, firsts[0])}` is the first that is left"
            return Chunk(0, (), b"", firsts[0], firsts[0], reason=reason)
        try:
            return self._opened(partition, firsts, at).take(sequence, bytes_max, self.descriptors)
        except JournalError as error:
            if at == len(firsts) - 1:
                raise
            path, reason = self._catalog.segment(partition, firsts[at]), str(error)
            return Chunk(0, (), b"", firsts[at + 1], firsts[at + 1], path, reason=reason)

    def _goes_on(self, partition: int, firsts: list[int]) -> bool:
        """Tell whether the last segment is sealed and there is another one since."""
        last = self._segments.get((partition, firsts[-1]))
        return (last is None or last.sealed) and self._list(partition) != firsts

    def _types(self, partition: int, firsts: list[int], at: int) -> tuple[Described, ...]:
        key = (partition, firsts[at])
        known = self._described.get(key)
        if known is not None:
            return known
        try:
            segment = self._opened(partition, firsts, at)
            found = segment.described()
        except (FileNotFoundError, JournalError):
            return ()
        if segment.finished:
            self._described[key] = found
        return found

    def _opened(self, partition: int, firsts: list[int], at: int) -> SegmentReader:
        """Return a segment as it is at this moment.

        Raises:
            FileNotFoundError: It is not there any more.
            JournalError: It cannot be read.
        """
        key = (partition, firsts[at])
        segment = self._segments.pop(key, None)
        if segment is None:
            if len(self._segments) >= SEGMENTS_OPEN_MAX:
                self._segments.pop(next(iter(self._segments))).close()
            segment = self._open(partition, firsts[at])
        self._segments[key] = segment
        if at + 1 < len(firsts):
            segment.finish(firsts[at + 1])
        else:
            segment.refresh()
        return segment

    def _open(self, partition: int, first: int) -> SegmentReader:
        try:
            return SegmentReader(self._catalog, partition, first, self.id)
        except JournalError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                raise FileNotFoundError from error
            raise

    def _known(self, partition: int) -> list[int]:
        """Return the first sequence numbers of the segments, as they were a moment ago."""
        if time.monotonic() - self._listed.get(partition, -LISTED_SECONDS_MAX) < LISTED_SECONDS_MAX:
            return self._lists[partition]
        return self._list(partition)

    def _list(self, partition: int) -> list[int]:
        """Return the first sequence numbers of the segments. The last is opened anew, since it may be another file."""
        firsts = self._catalog.segments(partition)
        before = self._lists.get(partition)
        if before == firsts and firsts and time.monotonic() - self._listed[partition] >= LISTED_SECONDS_MAX:
            last = self._segments.pop((partition, firsts[-1]), None)
            if last is not None:
                last.close()
        self._lists[partition], self._listed[partition] = firsts, time.monotonic()
        gone = set(before or ()).difference(firsts)
        for first in gone:
            self._described.pop((partition, first), None)
            segment = self._segments.pop((partition, first), None)
            if segment is not None:
                segment.close()
        return firsts
