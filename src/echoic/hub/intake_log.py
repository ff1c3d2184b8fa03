"""The log of an intake: an epoch is committed when its record is on the disk.

    PATH/<channel>/intake/log             records, one behind the other
                          <random>.part   rows of an epoch that were too many for memory, named by its record

    0       4       8          12             16
    | "EIL" | head  | checksum | bytes of     | head (msgpack) | bodies of portions, as they were staged
    | 1     | bytes |          | bodies (u32) |

A commit is one append and one `fdatasync`: rows and what is said of them lie together, so that a small epoch costs what
the disk takes for one write. (A file for each epoch, renamed into place, costs three: its bytes, its name, and the
removal.) The record says from which number on the rows are to be numbered as events of the intake's sources. What was
published of it is therefore known to the journal, which counts them, and is not written down a second time.

The first record tells where everything stood when the file was begun: the next number of each source, the last epoch
of each query. When the file has become large and all of it is published, another is begun and renamed in its place.

A record that is not whole is the last one, from a crash while it was written, and was never acknowledged: it is cut
off. One that is followed by another is damage, and refused. The checksum is of the file's id and the record's place as
well, so that bytes of a former file, which a disk may show where nothing was written yet, are never taken for a record.

The last record may also be whole and in the memory of the operating system alone: from a process that was killed before
it could sync, or whose sync failed, after which Linux takes for written what is not and the next sync succeeds. Whoever
opens the log tells writers that this epoch is committed. So it is written again first: all of the log to another file,
which takes the place of this one, so that at every moment one of them is whole.
"""

import secrets
import struct
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from echoic.errors import JournalError
from echoic.recorder import File, Storage
from echoic.recorder.catalog import said
from echoic.wire import Buffer
from echoic.wire.frames import checksum

__all__ = ["LOG_BYTES_MAX", "Entry", "IntakeLog", "LoggedEpoch", "LoggedPart", "Standing"]

LOG_BYTES_MAX: Final = 64 * 1024 * 1024
HEADER: Final = struct.Struct("<4sIII")
MAGIC: Final = b"EIL1"
VERSION: Final = 1
ID_BYTES: Final = 16
NAME: Final = "log"
PREPARED: Final = "log.tmp"
PART: Final = ".part"


class LoggedPart(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one partition: which source publishes them, and their portions, here or in a file."""

    lane: int
    rows: int
    sizes: tuple[int, ...]
    file: str = ""


class LoggedEpoch(msgspec.Struct, frozen=True, array_like=True, tag="epoch"):
    """A committed epoch. `firsts` has for each source the number of the first of its rows."""

    query: str
    epoch: int
    firsts: tuple[int, ...]
    parts: tuple[LoggedPart, ...]

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(part.rows for part in self.parts)

    def nexts(self) -> tuple[int, ...]:
        """Return for each source the number after the last of its rows."""
        found = list(self.firsts)
        for part in self.parts:
            found[part.lane] += part.rows
        return tuple(found)


class Standing(msgspec.Struct, frozen=True, array_like=True, tag="standing"):
    """Where everything stood when a file was begun."""

    version: int
    id: bytes
    nexts: tuple[int, ...]
    queries: tuple[tuple[str, int], ...]


class Entry(msgspec.Struct, frozen=True):
    """A committed epoch, and where its rows are in the log."""

    epoch: LoggedEpoch
    offset: int


Head: TypeAlias = LoggedEpoch | Standing
_heads: Final[msgspec.msgpack.Decoder[Head]] = msgspec.msgpack.Decoder(Head)


class IntakeLog:
    """The log of an intake. Use `open`; appended to by one thread, read by any."""

    def __init__(self, storage: Storage, directory: str, file: File, standing: Standing, entries: list[Entry]) -> None:
        self._storage, self._directory = storage, directory
        self._file, self._id = file, standing.id
        self._size = file.size()
        self.queries: Final = standing.queries
        """The last epoch of each query when the file was begun."""
        self.begun: Final = standing.nexts
        """The next number of each source when the file was begun."""
        self.entries: Final = tuple(entries)
        """What was committed since, when the log was opened."""
        self.nexts: tuple[int, ...] = entries[-1].epoch.nexts() if entries else standing.nexts
        """The next number of each source."""
        self.failed = ""
        """Why nothing more can be committed, since what is on the disk is not known any more."""

    @classmethod
    def open(cls, storage: Storage, directory: str, positions: Sequence[int]) -> "IntakeLog":
        """Open the log in a directory, or begin one.

        Args:
            storage: Where journals are.
            directory: That of the intake.
            positions: How far the journal is with each source, for a log that is begun.

        Raises:
            JournalError: It is damaged, has another number of sources, or cannot be read or written.
        """
        path = f"{directory}/{NAME}"
        with said("open the log of an intake", path):
            storage.make_directory(directory)
            storage.sync_directory(directory.rpartition("/")[0])
            if not storage.exists(path):
                _, file = _prepare(storage, directory, tuple(positions), ())
                file.close()
                _put_in_place(storage, directory)
            file = storage.open(path, write=True)
            try:
                standing, entries, size = _scan(file, path)
                if len(standing.nexts) != len(positions):
                    raise JournalError(
                        f"the log is for {len(standing.nexts)} partitions, the journal has {len(positions)} - at {path}"
                    )
                if entries or size < file.size():
                    found, entries = _write_again(storage, directory, file.view(), standing, entries)
                    file.close()
                    file, standing = found
                    _put_in_place(storage, directory)
                else:
                    storage.sync_directory(directory)
                return cls(storage, directory, file, standing, entries)
            except BaseException:
                file.close()
                raise

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self._size

    def append(self, query: str, epoch: int, parts: Sequence[LoggedPart], bodies: Sequence[Buffer]) -> Entry:
        """Commit an epoch: it is on the disk when this returns.

        Raises:
            JournalError: It could not be written, and is not committed; or the log has `failed`, and whether it is will
                be known when it is opened again.
        """
        path = f"{self._directory}/{NAME}"
        if self.failed:
            raise JournalError(f"{self.failed} - at {path}")
        logged = LoggedEpoch(query, epoch, self.nexts, tuple(parts))
        pieces = _record(logged, bodies, self._id, self._size)
        with said("commit an epoch", path):
            try:
                self._file.append(pieces)
            except OSError:
                self._cut()
                raise
            try:
                self._file.sync()
            except OSError as error:
                self.failed = f"the log failed ({error.strerror or error}): start the intake again"
                raise
        offset = self._size + len(pieces[0]) + len(pieces[1])
        self._size += sum(map(len, pieces))
        self.nexts = logged.nexts()
        return Entry(logged, offset)

    def bodies(self, entry: Entry) -> Iterator[tuple[int, bytes]]:
        """Yield the portions of an epoch, each with the number of its source.

        Raises:
            JournalError: They cannot be read.
        """
        offset = entry.offset
        for part in entry.epoch.parts:
            path = f"{self._directory}/{part.file or NAME}"
            with said("read an epoch", path):
                file = self._storage.open(path) if part.file else self._file
                place = 0 if part.file else offset
                try:
                    for size in part.sizes:
                        body = file.read(place, size)
                        if len(body) != size:
                            raise JournalError(f"an epoch has {len(body)} of {size} bytes of a portion - at {path}")
                        place += size
                        yield part.lane, body
                finally:
                    if part.file:
                        file.close()
                    else:
                        offset = place

    def forget(self, entry: Entry) -> None:
        """Remove the files of an epoch that was published.

        Raises:
            JournalError: One cannot be removed.
        """
        for part in entry.epoch.parts:
            if part.file:
                with said("remove rows that were published", f"{self._directory}/{part.file}"):
                    self._storage.remove(f"{self._directory}/{part.file}")

    def clear(self, entries: Sequence[Entry]) -> None:
        """Remove files of rows that no epoch has which is yet to be published: nobody has committed them.

        Raises:
            JournalError: That cannot be done.
        """
        wanted = {part.file for entry in entries for part in entry.epoch.parts}
        with said("clear the intake", self._directory):
            for name in self._storage.names(self._directory):
                if name.endswith(PART) and name not in wanted:
                    self._storage.remove(f"{self._directory}/{name}")

    def renew(self, queries: Sequence[tuple[str, int]]) -> None:
        """Begin another file in place of this one, all of which has been published.

        Raises:
            JournalError: That cannot be done. The log goes on as it is, or has `failed` if it may have been replaced:
                what is appended to a file that has no name any more would be gone.
        """
        with said("begin the log of an intake anew", f"{self._directory}/{NAME}"):
            standing, fresh = _prepare(self._storage, self._directory, self.nexts, tuple(queries))
            try:
                size = fresh.size()
                _put_in_place(self._storage, self._directory)
            except OSError as error:
                fresh.close()
                self.failed = f"the log may have been replaced ({error.strerror or error}): start the intake again"
                raise
        self._file.close()
        self._file, self._id, self._size = fresh, standing.id, size

    def close(self) -> None:
        """Let go of it."""
        self._file.close()

    def _cut(self) -> None:
        """Take back what was written of a record."""
        try:
            self._file.truncate(self._size)
        except OSError as error:
            self.failed = f"the log cannot be cut ({error.strerror or error}): start the intake again"


def _record(head: Head, bodies: Sequence[Buffer], id: bytes, place: int) -> list[Buffer]:
    told = msgspec.msgpack.encode(head)
    value = _checksum(id, place, [told, *bodies])
    return [HEADER.pack(MAGIC, len(told), value, sum(map(len, bodies))), told, *bodies]


def _checksum(id: bytes, place: int, pieces: Sequence[Buffer]) -> int:
    return checksum([id, place.to_bytes(8, "little"), *pieces])


def _prepare(
    storage: Storage, directory: str, nexts: tuple[int, ...], queries: tuple[tuple[str, int], ...]
) -> tuple[Standing, File]:
    """Write a log of one record beside the one that is there, and leave it open."""
    path = f"{directory}/{PREPARED}"
    standing = Standing(VERSION, secrets.token_bytes(ID_BYTES), nexts, queries)
    if storage.exists(path):
        storage.remove(path)
    file = storage.open(path, write=True, create=True)
    try:
        file.append(_record(standing, [], b"", 0))
        file.sync()
    except BaseException:
        file.close()
        raise
    return standing, file


def _write_again(
    storage: Storage, directory: str, view: memoryview, standing: Standing, entries: Sequence[Entry]
) -> tuple[tuple[File, Standing], list[Entry]]:
    """Write a log beside the one that is there, of the same epochs, and leave it open."""
    anew, file = _prepare(storage, directory, standing.nexts, standing.queries)
    moved: list[Entry] = []
    try:
        place = file.size()
        for entry in entries:
            size = sum(sum(part.sizes) for part in entry.epoch.parts if not part.file)
            pieces = _record(entry.epoch, [view[entry.offset : entry.offset + size]], anew.id, place)
            file.append(pieces)
            moved.append(Entry(entry.epoch, place + len(pieces[0]) + len(pieces[1])))
            place += sum(map(len, pieces))
        file.sync()
    except BaseException:
        file.close()
        raise
    return (file, anew), moved


def _put_in_place(storage: Storage, directory: str) -> None:
    """Let the log that was prepared be the one that is there: at every moment either of them is."""
    storage.rename(f"{directory}/{PREPARED}", f"{directory}/{NAME}")
    storage.sync_directory(directory)


def _scan(file: File, path: str) -> tuple[Standing, list[Entry], int]:
    """Return what a log has, and how many bytes of it are good.

    Raises:
        JournalError: It is damaged.
    """
    view = file.view()
    end = _end_of(view, 0, b"")
    standing = _head(view, 0, path) if end is not None else None
    if not isinstance(standing, Standing) or end is None:
        raise JournalError(f"the log of an intake has no beginning - at {path}")
    if standing.version != VERSION:
        raise JournalError(f"the log of an intake has version {standing.version}, expected {VERSION} - at {path}")
    entries: list[Entry] = []
    nexts, place = standing.nexts, end
    while (end := _end_of(view, place, standing.id)) is not None:
        head = _head(view, place, path)
        if not isinstance(head, LoggedEpoch):
            raise JournalError(f"a record of a log is out of place, at byte {place} - at {path}")
        _check_epoch(head, nexts, path)
        entries.append(Entry(head, place + HEADER.size + HEADER.unpack_from(view, place)[1]))
        nexts, place = head.nexts(), end
    if _is_followed(view, place, standing.id):
        raise JournalError(f"the log of an intake is damaged at byte {place}, and goes on behind that - at {path}")
    return standing, entries, place


def _end_of(view: memoryview, place: int, id: bytes) -> int | None:
    """Return where the record at a place ends, None if there is none that is whole."""
    if len(view) - place < HEADER.size:
        return None
    magic, length, value, size = HEADER.unpack_from(view, place)
    end: int = place + HEADER.size + length + size
    if magic != MAGIC or end > len(view):
        return None
    return end if _checksum(id, place, [view[place + HEADER.size : end]]) == value else None


def _is_followed(view: memoryview, place: int, id: bytes) -> bool:
    """Whether there is a whole record anywhere behind one that is not."""
    data = bytes(view[place:])
    found = data.find(MAGIC, 1)
    while found >= 0:
        if _end_of(view, place + found, id) is not None:
            return True
        found = data.find(MAGIC, found + 1)
    return False


def _head(view: memoryview, place: int, path: str) -> Head:
    """Return what a record that is whole says.

    Raises:
        JournalError: It makes no sense.
    """
    start = place + HEADER.size
    try:
        return _heads.decode(view[start : start + HEADER.unpack_from(view, place)[1]])
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise JournalError(f"a record of a log cannot be read: {error}, at byte {place} - at {path}") from error


def _check_epoch(epoch: LoggedEpoch, firsts: tuple[int, ...], path: str) -> None:
    """Refuse an epoch whose numbers are not those after the one before."""
    lanes = range(len(firsts))
    if epoch.firsts != firsts or any(part.lane not in lanes or part.rows < 0 for part in epoch.parts):
        raise JournalError(
            f"epoch {epoch.epoch} begins at numbers {list(epoch.firsts)}, expected {list(firsts)} - at {path}"
        )
