"""The one writer of a journal: what was committed is there, whatever happens.

    writer = JournalWriter.open(Disk("journals"), "trades", id=secrets.token_bytes(16), now_ns=time.time_ns())
    writer.append(batch, source, first, now_ns)     any number of times, from any number of sources
    committed = writer.commit(now_ns)               tell the sources: everything before these positions is on the disk

Commits are for groups: an fdatasync takes milliseconds whether it is for one event or for a million, so whoever records
appends what has arrived while the last commit was under way, and commits again.

A source that is not sure what arrived sends it again; what the journal has already is dropped by (source, number).

It reads no clock and draws no random numbers, so that a simulation repeats. It is not for several threads at a time,
but for what concerns named sinks: `mark`, `marked` and `sinks` may be called by one thread beside that which writes.
What it shows (`positions`, `heads`, `firsts`) may be looked at by any.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from echoic.errors import ClosedError, JournalError, LocalError
from echoic.recorder.blocks import BLOCK_HEAD_BYTES, SEGMENT_HEADER_BYTES
from echoic.recorder.catalog import PARTITIONS_MAX, VERSION, Catalog, JournalInfo, said
from echoic.recorder.mending import free_name, load_segment
from echoic.recorder.partition import SEGMENT_BYTES_MAX, JournalOptions, PartitionWriter, Retention
from echoic.recorder.standing import Standings
from echoic.recorder.storage import Lock, Storage
from echoic.wire import Batch
from echoic.wire.allocator import settle_allocator

__all__ = ["SEGMENT_BYTES_MAX", "Committed", "JournalOptions", "JournalWriter", "Retention", "WriterStatistics"]

ID_BYTES: Final = 16
EMPTY_SEGMENT_BYTES: Final = SEGMENT_HEADER_BYTES + BLOCK_HEAD_BYTES


class Committed(msgspec.Struct, frozen=True):
    """What is on the disk."""

    positions: dict[int, int]
    """For each source that advanced the number of its next event."""
    heads: tuple[int, ...]
    """For each partition the sequence of its next event."""


class WriterStatistics(msgspec.Struct, frozen=True):
    """What was written so far."""

    events: int
    bytes: int
    commits: int
    segments: int
    duplicates: int
    gaps: int
    pending_bytes: int


class JournalWriter:
    """Writes a journal. Use `open` to make one."""

    def __init__(self, catalog: Catalog, info: JournalInfo, partitions: list[PartitionWriter], lock: Lock) -> None:
        self.id = info.id
        self.partitions = info.partitions
        self.recovered = tuple(note for partition in partitions for note in partition.recovered)
        """What was put aside when it was opened, for people."""
        self.heads = tuple(partition.head for partition in partitions)
        """For each partition the sequence of its next event; all before it are on the disk."""
        self.positions: Mapping[int, int] = Standings([partition.durable for partition in partitions])
        """For each source the number of its next event; all before it are on the disk."""
        self._catalog = catalog
        self._partitions = partitions
        self._lock = lock
        self._advanced: dict[int, int] = {}
        self._commits = 0
        self._closed = False

    @classmethod
    def open(
        cls,
        storage: Storage,
        channel: str,
        options: JournalOptions = JournalOptions(),  # noqa: B008 - it is frozen
        *,
        id: bytes,
        now_ns: int,
    ) -> "JournalWriter":
        """Make a journal, or take up one that is there; bytes of a write that did not finish are put aside.

        Args:
            storage: Where journals are.
            channel: Which of them.
            options: How to write it.
            id: 16 random bytes, for a journal that is being made.
            now_ns: The time.

        Raises:
            LocalError: An option, the channel's name or the id cannot be.
            JournalError: Another writer has it, the last segment is damaged, or the storage fails.
        """
        _check_options(options, id)
        settle_allocator()
        catalog = Catalog(storage, channel)
        with said("make the journal's directory", catalog.directory):
            storage.make_directory(catalog.directory)
            storage.sync_directory("")
        lock = catalog.lock()
        partitions: list[PartitionWriter] = []
        try:
            if not catalog.exists():
                _create(catalog, options, id, now_ns)
            with said("open the journal", catalog.directory):
                storage.sync_directory(catalog.directory)
            info = catalog.info()
            for number in range(info.partitions):
                partition = PartitionWriter(catalog, number, bytes.fromhex(info.id), options)
                partition.open(now_ns)
                partitions.append(partition)
        except BaseException:
            for partition in partitions:
                partition.close()
            lock.release()
            raise
        return cls(catalog, info, partitions, lock)

    def append(self, batch: Batch, source: int, first: int, now_ns: int) -> int:
        """Add a batch to what the next commit writes; return how many of its events the journal did not have.

        A source that the journal knows goes on where it was: what it has is dropped, and if numbers are left out that
        is recorded as a gap. One that it does not know begins with `first`.

        Args:
            batch: The events.
            source: Who sent them.
            first: The number the first of them has among the source's events.
            now_ns: The time.

        Raises:
            LocalError: A number is out of range, or the writer was closed.
            LimitExceededError: A single event is too large, so that no journal can have it.
            JournalError: The writer is `failed`.
            MalformedBatchError: Only a part of the batch is fresh, and it cannot be cut.
        """
        return self._partition_of(source).append(batch, source, first, now_ns)

    def miss(self, source: int, first: int, last: int, reason: str, now_ns: int) -> None:
        """Record that events of a source, from `first` to `last`, will never come.

        Raises:
            LocalError: A number is out of range, or the writer was closed.
            JournalError: The writer is `failed`.
        """
        self._partition_of(source).miss(source, first, last, reason, now_ns)

    def commit(self, now_ns: int) -> Committed:
        """Put everything on the disk.

        Raises:
            ClosedError: The writer was closed.
            JournalError: It could not be written (a full disk): everything is kept and may be committed later. Or a
                sync failed: the writer is `failed` and must be opened again.
        """
        self._check_open()
        heads = list(self.heads)
        try:
            for number, partition in enumerate(self._partitions):
                self._advanced.update(partition.commit(now_ns))  # one that was written is told, though the next fails
                heads[number] = partition.head
        finally:
            self.heads = tuple(heads)
        self._commits += 1
        advanced, self._advanced = self._advanced, {}
        return Committed(advanced, self.heads)

    def settle(self, now_ns: int) -> bool:
        """Make the mark of the last commit durable too; for when nothing happens.

        Return whether it is. If there was no room for it, readers do not see the last events until this, or a commit,
        is tried again.

        Raises:
            ClosedError: The writer was closed.
            JournalError: The writer is `failed`.
        """
        self._check_open()
        settled = [partition.settle(now_ns) for partition in self._partitions]  # each, also behind one that is not
        return all(settled)

    def close(self, now_ns: int) -> None:
        """Commit, and let go of the journal; again does nothing.

        Raises:
            JournalError: What was pending could not be written; the journal is let go nevertheless.
        """
        if self._closed:
            return
        try:
            if not self.failed:
                self.commit(now_ns)
                self.settle(now_ns)
        finally:
            self._closed = True
            for partition in self._partitions:
                partition.close()
            self._lock.release()

    def trim(self, partition: int, upto: int) -> None:
        """Remove the segments of a partition whose events are all before a sequence; never the last one.

        Raises:
            LocalError: There is no such partition, or the writer was closed.
            JournalError: One cannot be removed.
        """
        self._check_open()
        if not 0 <= partition < self.partitions:
            raise LocalError(f"there is no partition {partition}, the journal has {self.partitions}")
        self._partitions[partition].trim(upto)

    def mark(self, sink: str, positions: Sequence[int]) -> None:
        """Keep where a named sink goes on, durably.

        Raises:
            LocalError: These are not positions, or the name is no name.
            JournalError: They cannot be written.
        """
        self._check_open()
        if len(positions) != self.partitions:
            raise LocalError(f"a sink has {len(positions)} positions, the journal has {self.partitions} partitions")
        self._catalog.mark(sink, positions)

    def marked(self, sink: str) -> tuple[int, ...] | None:
        """Return where a named sink goes on, None if nothing was kept.

        Raises:
            LocalError: The name is no name.
            JournalError: It cannot be read.
        """
        return self._catalog.marked(sink)

    def sinks(self) -> list[str]:
        """Return the names of the sinks whose positions are kept.

        Raises:
            JournalError: They cannot be listed.
        """
        return self._catalog.sinks()

    @property
    def firsts(self) -> tuple[int, ...]:
        """For each partition the sequence of the first event that is still there."""
        return tuple(partition.first for partition in self._partitions)

    @property
    def pending_bytes(self) -> int:
        """How many bytes the next commit writes."""
        return sum(partition.pending_bytes for partition in self._partitions)

    @property
    def failed(self) -> bool:
        """Whether it must be opened again, since what is on the disk is not known any more."""
        return any(partition.failed for partition in self._partitions)

    @property
    def trouble(self) -> str:
        """The last thing that went wrong without harm: no room to begin a segment, or one that cannot be removed."""
        return next((partition.trouble for partition in self._partitions if partition.trouble), "")

    def statistics(self) -> WriterStatistics:
        """Return what was written so far."""
        parts = self._partitions
        return WriterStatistics(
            events=sum(part.events for part in parts),
            bytes=sum(part.bytes for part in parts),
            commits=self._commits,
            segments=sum(part.segments for part in parts),
            duplicates=sum(part.duplicates for part in parts),
            gaps=sum(part.gaps for part in parts),
            pending_bytes=self.pending_bytes,
        )

    def _partition_of(self, source: int) -> PartitionWriter:
        if self._closed:
            self._check_open()
        return self._partitions[source % self.partitions]

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError(f"the writer of the journal was closed - at {self._catalog.directory}")


def _check_options(options: JournalOptions, id: bytes) -> None:
    if not 1 <= options.partitions <= PARTITIONS_MAX:
        raise LocalError(f"a journal must have 1 to {PARTITIONS_MAX} partitions, got {options.partitions}")
    if options.segment_bytes_max < 1:
        raise LocalError(f"a segment must have at least 1 byte, got {options.segment_bytes_max}")
    if len(id) != ID_BYTES:
        raise LocalError(f"the id of a journal must have {ID_BYTES} bytes, got {len(id)}")


def _create(catalog: Catalog, options: JournalOptions, id: bytes, now_ns: int) -> None:
    """Make a journal: first its partitions, each with a segment, and last `journal.json`, which says that they are.

    So a partition without a segment is never left by a crash, but is damage.
    """
    storage = catalog.storage
    with said("make the journal", catalog.directory):
        for number in range(options.partitions):
            storage.make_directory(catalog.partition(number))
        storage.make_directory(f"{catalog.directory}/sinks")
        storage.sync_directory(catalog.directory)
        for name in storage.names(catalog.directory):
            if name.isdecimal():
                _clear(catalog, int(name))
    for number in range(options.partitions):
        PartitionWriter(catalog, number, id, options).create(now_ns)
    catalog.write_info(JournalInfo(VERSION, id.hex(), catalog.channel, options.partitions, now_ns))


def _clear(catalog: Catalog, number: int) -> None:
    """Put aside what is left of a journal that was not made to the end, which has no events yet."""
    for sequence in catalog.segments(number):
        path = catalog.segment(number, sequence)
        if sequence or len(load_segment(catalog, number, sequence)) > EMPTY_SEGMENT_BYTES:
            raise JournalError(f"there are segments but no journal.json, `recover` makes up for it - at {path}")
        catalog.storage.rename(path, free_name(catalog, catalog.stem(number, sequence), ".torn"))
    catalog.storage.sync_directory(catalog.partition(number))
