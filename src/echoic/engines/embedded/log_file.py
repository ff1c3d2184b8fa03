"""The log of a member on the disk: what the ordering core must not forget (`groups.writes`).

    <number, 20 digits>.segment     blocks, appended; a number counts segments, from 1
    <number, 20 digits>.snapshot    a snapshot; the segment of the same number begins with it
    lock                            held by the one process that has the log open
    *.tmp                           unfinished, worth nothing

    write  -> Ballot -> BALLOT      Append -> APPEND, one or several       Snapshot -> a file, and the next segment
    sync   -> one gathering write, one fdatasync: the group commit. The core's messages go out only behind it

**Order is everything.** Blocks are in the order of the writes and are read back up to the first that is not whole, so
what a crash leaves is a beginning of what was written, with all that was synced. An APPEND replaces what the log had
from its first index on, so there is no other way to truncate, and the file only grows.

**A snapshot is a step.** Everything before it is synced; its file is written, synced, renamed, the directory synced;
then the next segment, whose first block names the snapshot, is made in the same way; that it has its name is the
moment from which the snapshot counts. A crash before leaves the former state and a file that nobody names, a crash
behind leaves files that nobody needs any more, and the next opening removes either. The first block repeats the ballot
too, so that segments can be removed when the snapshot has all their entries.

**Opening rewrites the last segment**, with another salt, into a file that takes its name. It would be wrong to append
to what was found. Whole blocks may be in the memory of the operating system alone: after an fdatasync that failed,
Linux takes pages for written which are not, and the next fdatasync succeeds. And what is cut off could come back: a
block of the same length in its place, and behind it, after the next loss of power, sectors from before the cut. It
costs at most one segment of copying, when a process starts.

**After a failed write or sync nothing is believed.** It cannot be repeated, for the reason above, so the log refuses
everything from there on, and says why. Opened again, it says what is really there.

Without durability (`durable=False`) a sync gives everything to the operating system, which is enough if only the
process ends. After a loss of power the end may be missing, or a segment torn in its middle, which is refused.

Measured by `benchmarks/group_log.py`: a commit of one entry of 60,000 bytes has about 0.8 of the speed of a writev and
an fdatasync of the same bytes, of eight such entries 0.85; without syncs an entry of 1,000 bytes costs 10 us.
"""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias

import msgspec

from echoic.engines.embedded.log_blocks import BlockKind, FileHeader
from echoic.engines.embedded.log_contents import SnapshotReference, State, check_entries, encode_ballot, encode_entries
from echoic.engines.embedded.log_extent import Extent
from echoic.engines.embedded.log_scan import Scan, scan
from echoic.engines.embedded.log_segment import SegmentFile, begin_segment, segment_path
from echoic.engines.embedded.snapshot_file import check_snapshot, snapshot_path, write_snapshot
from echoic.errors import ClosedError, JournalError, LocalError
from echoic.groups.writes import Append, Ballot, Entry, Image, Snapshot, Write
from echoic.recorder import Lock, Storage
from echoic.wire import Buffer

__all__ = ["LogFile", "LogStatistics"]

LOCK: Final = "lock"
SEGMENT_BYTES_MAX: Final = 32 * 1024 * 1024
APPEND_BYTES: Final = 1024 * 1024
"""A block gets no more entries when their payloads have so many bytes."""
U64_MAX: Final = 2**64 - 1
DrawSalt: TypeAlias = Callable[[], int]


class LogStatistics(msgspec.Struct, frozen=True):
    """What a log holds, and what was done since it was opened."""

    first: int
    """The index of the first entry that is there, or would be."""
    end: int
    """The index of the last entry."""
    segments: int
    segment_bytes: int
    """Of the segment that is being written."""
    torn_bytes: int
    """Of an unfinished write, cut off when it was opened."""
    entries: int = 0
    bytes: int = 0
    syncs: int = 0
    snapshots: int = 0
    failure: str = ""
    """Why it refuses everything, if it does."""


class LogFile:
    """The log of a member. One thread uses it.

    Invariant: `_extent` and `_ballot` are those after all writes, `_starts` has the number of each segment that is
    there and the last index that the log had when it was begun.
    """

    def __init__(self, storage: Storage, lock: Lock, *, segment_bytes_max: int, durable: bool, draw: DrawSalt) -> None:
        self._storage = storage
        self._lock = lock
        self._segment_bytes_max = segment_bytes_max
        self._durable = durable
        self._draw = draw
        self._image: Image | None = None
        self._extent = Extent()
        self._ballot = Ballot(0, "")
        self._reference: SnapshotReference | None = None
        self._starts: list[tuple[int, int]] = []
        self._life = 0
        self._segment: SegmentFile | None = None
        self._failure = ""
        self._gathered: list[Entry] = []
        self._gathered_first = 0
        self._gathered_due = False
        self._torn_bytes = self._entries = self._bytes = self._syncs = self._snapshots = 0

    @classmethod
    def open(
        cls,
        storage: Storage,
        *,
        life: int,
        segment_bytes_max: int = SEGMENT_BYTES_MAX,
        durable: bool = True,
        draw: DrawSalt = lambda: secrets.randbits(64),
    ) -> "LogFile":
        """Open a log, or make one if there is none, and be the only one that has it.

        Args:
            storage: Where it is, alone.
            life: Drawn at random; a log that is there already keeps its own.
            segment_bytes_max: When a segment has so many bytes the next one is begun, at the first write after a sync.
            durable: Whether a sync makes everything survive a loss of power, or the end of the process alone.
            draw: Returns a number of 64 bits that is never the same twice.

        Raises:
            LocalError: These are not settings.
            JournalError: It is in use, damaged, or cannot be read or written.
        """
        if not 0 <= life <= U64_MAX or segment_bytes_max < 1:
            raise LocalError(
                f"a log was given life {life} and {segment_bytes_max} bytes for a segment, expected 0 to {U64_MAX} "
                f"and at least 1"
            )
        lock = _take_lock(storage)
        log = cls(storage, lock, segment_bytes_max=segment_bytes_max, durable=durable, draw=draw)
        try:
            log._find(life)
        except BaseException:
            log._let_go()
            raise
        return log

    def image(self) -> Image:
        """Return what was found. It is not kept beyond the first write, since it may be large.

        Raises:
            LocalError: The log was written to, or closed.
        """
        if self._image is None:
            raise LocalError("what was found in a log can be asked for only before the first write")
        return self._image

    def write(self, writes: Sequence[Write]) -> None:
        """Take over writes, in their order. They survive a crash when `sync` has returned; a snapshot does at once.

        Raises:
            ClosedError: The log was closed.
            LocalError: A write does not fit what is there; those before it were taken over, and the log can go on.
            JournalError: The storage failed, in this call or before, and nothing is taken any more.
        """
        segment = self._check()
        self._image = None
        with self._guarded("write"):
            if segment.size >= self._segment_bytes_max and not segment.dirty:
                self._rotate(segment)
            for write in writes:
                if isinstance(write, Append):
                    self._append(write)
                    continue
                self._add_gathered()
                if isinstance(write, Ballot):
                    self._add(BlockKind.BALLOT, [encode_ballot(write)])
                    self._ballot = write
                else:
                    self._compact(write)
            self._add_gathered()

    def sync(self) -> None:
        """Return when everything written is on the disk; without durability, with the operating system.

        If nothing was written since the last time, that one is marked, which costs no sync: a driver that has nothing
        else to do should call this once more.

        Raises:
            ClosedError: The log was closed.
            JournalError: The storage failed, in this call or before: nobody knows what is on the disk, and nothing is
                taken any more.
        """
        segment = self._check()
        with self._guarded("sync"):
            if self._durable:
                self._syncs += segment.dirty
                segment.sync()
            else:
                segment.pass_on()

    def statistics(self) -> LogStatistics:
        """Return what the log holds, and what was done since it was opened."""
        return LogStatistics(
            first=self._extent.start + 1,
            end=self._extent.end,
            segments=len(self._starts),
            segment_bytes=self._segment.size if self._segment is not None else 0,
            torn_bytes=self._torn_bytes,
            entries=self._entries,
            bytes=self._bytes,
            syncs=self._syncs,
            snapshots=self._snapshots,
            failure=self._failure,
        )

    def close(self) -> None:
        """Sync, and let go of the log; again does nothing.

        Raises:
            JournalError: What was written could not be synced; the log is let go nevertheless.
        """
        try:
            if self._segment is not None and not self._failure:
                with self._guarded("sync"):
                    if self._durable:
                        self._segment.settle()
                    else:
                        self._segment.pass_on()
        finally:
            self._let_go()

    def _find(self, life: int) -> None:
        """Read what is there, and make it a log that can be written."""
        with self._guarded("open"):
            found = scan(self._storage)
            if found is None:
                self._make(life)
            else:
                self._take_over(found)

    def _make(self, life: int) -> None:
        self._life = life
        self._image = Image(life, self._ballot, None, ())
        self._begin(1, State(self._ballot, 0, None, None))

    def _take_over(self, found: Scan) -> None:
        image, last = found.image, found.segments[-1]
        self._life, self._ballot, self._image = image.life, image.ballot, image
        self._reference = last.state.snapshot
        if self._reference is not None:
            self._extent = Extent(self._reference.index, self._reference.term)
        self._extent.append(self._extent.start + 1, image.entries)
        self._starts = [(segment.header.number, segment.state.end) for segment in found.segments[:-1]]
        self._torn_bytes = found.torn_bytes
        kept = [segment.path for segment in found.segments[:-1]]
        for path in [*kept, snapshot_path(self._reference.number)] if self._reference is not None else kept:
            self._sync_file(path)  # it may have been written without durability
        header = FileHeader(self._life, last.header.number, self._draw())
        self._segment = begin_segment(self._storage, header, last.state, found.blocks)
        self._starts.append((last.header.number, last.state.end))
        for name in found.leftovers:
            if self._storage.exists(name):  # a temporary file may have become the segment
                self._storage.remove(name)

    def _sync_file(self, path: str) -> None:
        file = self._storage.open(path)
        try:
            file.sync()
        finally:
            file.close()

    def _append(self, append: Append) -> None:
        """Gather entries; those of writes that follow each other are written together."""
        try:
            if self._gathered_due and append.first != self._extent.end + 1:
                self._add_gathered()
            check_entries(append.entries)
            self._extent.append(append.first, append.entries)
        except LocalError:
            self._add_gathered()
            raise
        if not self._gathered_due:
            self._gathered_first = append.first
            self._gathered_due = True
        self._gathered.extend(append.entries)

    def _add_gathered(self) -> None:
        """Add what was gathered; each block is sound for itself, so a crash may leave the first without the rest."""
        if not self._gathered_due:
            return
        entries, first = self._gathered, self._gathered_first
        self._gathered, self._gathered_due = [], False
        for portion in self._portions(entries):
            body, heads_bytes = encode_entries(portion)
            self._add(BlockKind.APPEND, body, first, heads_bytes)
            first += len(portion)
        self._entries += len(entries)

    def _portions(self, entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
        """Cut entries so that each block has about as many bytes as it should; there is always one."""
        limit = min(APPEND_BYTES, self._segment_bytes_max)
        start = size = 0
        for place, entry in enumerate(entries, 1):
            size += len(entry.payload)
            if size >= limit and place < len(entries):
                yield entries[start:place]
                start, size = place, 0
        yield entries[start:]

    def _add(self, kind: BlockKind, body: Sequence[Buffer], first: int = 0, heads_bytes: int = 0) -> None:
        segment = self._check()
        before = segment.size
        segment.add(kind, body, first, heads_bytes)
        self._bytes += segment.size - before

    def _rotate(self, segment: SegmentFile) -> None:
        """Begin the next segment; the one before must be whole on the disk, its last mark too."""
        if self._durable:
            segment.settle()
        state = State(self._ballot, self._extent.end, segment.ending(), self._reference)
        segment.close()
        self._begin(segment.number + 1, state, durable=self._durable)

    def _compact(self, snapshot: Snapshot) -> None:
        """Let a snapshot take the place of entries: its file, then a segment that begins with it."""
        segment = self._check()
        self._extent.check_snapshot(snapshot.index)
        check_snapshot(snapshot)
        if self._durable:
            segment.settle()
        else:
            segment.pass_on()
        number, former = segment.number + 1, self._reference
        self._reference = write_snapshot(self._storage, self._life, number, self._draw(), snapshot)
        self._extent.compact(snapshot.index, snapshot.term)
        state = State(self._ballot, self._extent.end, segment.ending(), self._reference)
        segment.close()
        self._begin(number, state)
        self._snapshots += 1
        self._remove_covered(former)

    def _remove_covered(self, former: SnapshotReference | None) -> None:
        """Remove what the snapshot has made superfluous. If a loss of power undoes it, the next opening does it."""
        while len(self._starts) > 1 and self._starts[1][1] <= self._extent.start:
            # From the next one on, all entries behind the snapshot are there.
            self._storage.remove(segment_path(self._starts[0][0]))
            del self._starts[0]
        if former is not None:
            self._storage.remove(snapshot_path(former.number))

    def _begin(self, number: int, state: State, *, durable: bool = True) -> None:
        header = FileHeader(self._life, number, self._draw())
        self._segment = begin_segment(self._storage, header, state, durable=durable)
        self._starts.append((number, state.end))

    @contextmanager
    def _guarded(self, what: str) -> Iterator[None]:
        """Refuse everything from here on if the storage fails, or if something else comes between.

        Raises:
            JournalError: The storage has failed.
        """
        path = self._segment.path if self._segment is not None else "its directory"
        try:
            yield
        except (LocalError, JournalError):
            raise
        except OSError as error:
            self._failure = f"cannot {what} the log: {(error.strerror or str(error)).lower()} - at {path}"
            raise JournalError(self._failure) from error
        except BaseException as error:
            self._failure = f"cannot {what} the log: interrupted by {type(error).__name__} - at {path}"
            raise

    def _check(self) -> SegmentFile:
        if self._failure:
            raise JournalError(f"the log takes nothing any more and must be opened again: {self._failure}")
        if self._segment is None:
            raise ClosedError("the log was closed")
        return self._segment

    def _let_go(self) -> None:
        segment, self._segment = self._segment, None
        self._image = None
        if segment is not None:
            segment.close()
        self._lock.release()


def _take_lock(storage: Storage) -> Lock:
    """Be the only one that has a log.

    Raises:
        JournalError: Somebody else is, or the storage fails.
    """
    try:
        storage.make_directory("")
        return storage.lock(LOCK)
    except BlockingIOError as error:
        raise JournalError(f"the log is in use by another process - at {LOCK}") from error
    except OSError as error:
        raise JournalError(f"cannot lock the log: {(error.strerror or str(error)).lower()} - at {LOCK}") from error
