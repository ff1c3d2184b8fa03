"""Which files a journal has, what they are called, and the small ones among them.

    PATH/<channel>/journal.json               what the journal is; it is there from the moment the journal is made
                   lock                       held by the one writer
                   sinks/<name>.json          where a named sink goes on
                   <partition>/<sequence of its first event, 20 digits>.segment
                                              .index          a hint, see `index`
                                              .tail           half of a repair, see `mending`
                               *.torn *.damaged               what was put aside
                               *.tmp                          unfinished, worth nothing

Names of channels and sinks are percent-quoted, so that any name is a file name and leads nowhere else.

The small files are JSON for people, with a checksum for machines, and are replaced whole: written beside, synced,
renamed, and the directory synced, so that at every moment either the former or the latter is there. They are read back
only if they are byte for byte what this program would write, which makes any change to them seen.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar
from urllib.parse import quote, unquote

import msgspec

from echoic.errors import JournalError, LocalError
from echoic.recorder.storage import File, Lock, Storage
from echoic.wire import Buffer
from echoic.wire.frames import checksum

__all__ = ["Catalog", "JournalInfo", "SinkPositions", "channels_of", "encode_small", "said"]

VERSION: Final = 1
NAME_BYTES_MAX: Final = 200  # of a quoted name; file systems take 255, and endings are added
PARTITIONS_MAX: Final = 1024
SMALL_BYTES_MAX: Final = 1024 * 1024
INFO: Final = "journal.json"
LOCK: Final = "lock"
SINKS: Final = "sinks"
SEGMENT: Final = ".segment"
TEMPORARY: Final = ".tmp"
U64_MAX: Final = 2**64 - 1


class JournalInfo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a journal is. `id` are 32 hexadecimal digits that tell it from every other journal."""

    version: int
    id: str
    channel: str
    partitions: int
    created_ns: int
    checksum: str = ""


class SinkPositions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a named sink goes on: for each partition the sequence of the next event it wants."""

    positions: list[int]
    checksum: str = ""


Small = TypeVar("Small", JournalInfo, SinkPositions)


@contextmanager
def said(what: str, path: str) -> Iterator[None]:
    """Say what could not be done, and where, when the storage cannot do it.

    Raises:
        JournalError: The storage raised an OSError, which is the cause.
    """
    try:
        yield
    except OSError as error:
        raise JournalError(f"cannot {what}: {error.strerror or error} - at {path}") from error


class Catalog:
    """The files of one channel's journal."""

    def __init__(self, storage: Storage, channel: str) -> None:
        """Name a journal; nothing is looked at.

        Raises:
            LocalError: The channel's name is empty or too long for a file system.
        """
        self.storage: Final = storage
        self.channel: Final = channel
        self.directory: Final = _quoted(channel, "channel")

    def partition(self, number: int) -> str:
        """Return the directory of a partition."""
        return f"{self.directory}/{number}"

    def stem(self, partition: int, sequence: int) -> str:
        """Return the path of a segment without its ending."""
        return f"{self.directory}/{partition}/{sequence:020}"

    def segment(self, partition: int, sequence: int) -> str:
        """Return the path of a segment."""
        return self.stem(partition, sequence) + SEGMENT

    def index(self, partition: int, sequence: int) -> str:
        """Return the path of a segment's index."""
        return self.stem(partition, sequence) + ".index"

    def tail(self, partition: int, sequence: int) -> str:
        """Return the path of what a repair of a segment keeps meanwhile."""
        return self.stem(partition, sequence) + ".tail"

    def names(self, partition: int) -> list[str]:
        """Return the names of all files of a partition.

        Raises:
            JournalError: The partition cannot be listed.
        """
        path = self.partition(partition)
        with said("list a partition of the journal", path):
            return self.storage.names(path)

    def segments(self, partition: int) -> list[int]:
        """Return the first sequences of a partition's segments, ascending.

        Raises:
            JournalError: The partition cannot be listed.
        """
        names = [name.removesuffix(SEGMENT) for name in self.names(partition) if name.endswith(SEGMENT)]
        return [int(name) for name in names if named_by_sequence(name)]

    def exists(self) -> bool:
        """Whether the journal was made.

        Raises:
            JournalError: That cannot be found out.
        """
        path = f"{self.directory}/{INFO}"
        with said("look for the journal", path):
            return self.storage.exists(path)

    def info(self) -> JournalInfo:
        """Return what the journal says of itself.

        Raises:
            JournalError: There is none, or it cannot be read, or is of another version.
        """
        path = f"{self.directory}/{INFO}"
        info = self._read(path, JournalInfo)
        if info.version != VERSION:
            raise JournalError(f"the journal has version {info.version}, expected {VERSION} - at {path}")
        if info.channel != self.channel:
            raise JournalError(f"the journal is of channel {info.channel!r}, expected {self.channel!r} - at {path}")
        if not 1 <= info.partitions <= PARTITIONS_MAX or not _is_id(info.id):
            raise JournalError(f"the journal says {info.partitions} partitions and id {info.id!r} - at {path}")
        return info

    def write_info(self, info: JournalInfo) -> None:
        """Make the journal to be this, durably.

        Raises:
            JournalError: It cannot be written.
        """
        self._write(f"{self.directory}/{INFO}", info)

    def lock(self) -> Lock:
        """Be the only writer.

        Raises:
            JournalError: Somebody else is, or the lock cannot be made.
        """
        path = f"{self.directory}/{LOCK}"
        try:
            return self.storage.lock(path)
        except BlockingIOError as error:
            raise JournalError(f"the journal is in use by another writer - at {path}") from error
        except OSError as error:
            raise JournalError(f"cannot lock the journal: {error.strerror or error} - at {path}") from error

    def sinks(self) -> list[str]:
        """Return the names of the sinks whose positions are kept.

        Raises:
            JournalError: They cannot be listed.
        """
        return sorted(unquote(path.rpartition("/")[2].removesuffix(".json")) for path in self.sink_paths())

    def sink_paths(self) -> list[str]:
        """Return where the positions of all sinks are kept.

        Raises:
            JournalError: They cannot be listed.
        """
        path = f"{self.directory}/{SINKS}"
        with said("list the sinks of the journal", path):
            names = self.storage.names(path) if self.storage.exists(path) else []
        return [f"{path}/{name}" for name in names if name.endswith(".json")]

    def sink_path(self, sink: str) -> str:
        """Return where a sink's positions are kept.

        Raises:
            LocalError: The sink's name is empty or too long for a file system.
        """
        return f"{self.directory}/{SINKS}/{_quoted(sink, 'sink')}.json"

    def mark(self, sink: str, positions: Sequence[int]) -> None:
        """Keep where a sink goes on, durably.

        Raises:
            LocalError: These are not positions, or the name is no name.
            JournalError: They cannot be written.
        """
        path = self.sink_path(sink)
        if not positions or not all(0 <= position <= U64_MAX for position in positions):
            raise LocalError(f"positions of a sink must be 0 to {U64_MAX}, got {list(positions)}")
        directory = f"{self.directory}/{SINKS}"
        with said("keep the position of a sink", path):
            if not self.storage.exists(directory):
                self.storage.make_directory(directory)
                self.storage.sync_directory(self.directory)
        self._write(path, SinkPositions(list(positions)))

    def marked(self, sink: str) -> tuple[int, ...] | None:
        """Return where a sink goes on, None if nothing was kept.

        Raises:
            LocalError: The sink's name is empty or too long for a file system.
            JournalError: It cannot be read.
        """
        path = self.sink_path(sink)
        with said("look for the position of a sink", path):
            if not self.storage.exists(path):
                return None
        return self.read_positions(path)

    def read_positions(self, path: str) -> tuple[int, ...]:
        """Return where the sink goes on whose positions are kept in a file.

        Raises:
            JournalError: It cannot be read, or these are not positions.
        """
        positions = self._read(path, SinkPositions).positions
        if not positions or not all(0 <= position <= U64_MAX for position in positions):
            raise JournalError(f"positions of a sink must be 0 to {U64_MAX}, got {positions[:10]} - at {path}")
        return tuple(positions)

    def put(self, path: str, pieces: Sequence[Buffer], *, sync: bool = True) -> None:
        """Write a file whole, in place of one that is there: at every moment either of them is.

        Raises:
            OSError: It cannot be done; what was there is there still, or else all of the pieces are.
        """
        self.begin(path, pieces, sync=sync).close()
        self.storage.rename(path + TEMPORARY, path)
        if sync:
            self.storage.sync_directory(path.rpartition("/")[0])

    def begin(self, path: str, pieces: Sequence[Buffer], *, sync: bool = True) -> File:
        """Write a file under a temporary name and return it open; nothing of it remains when that fails.

        Raises:
            OSError: It cannot be done.
        """
        temporary = path + TEMPORARY
        if self.storage.exists(temporary):
            self.storage.remove(temporary)
        file = self.storage.open(temporary, write=True, create=True)
        try:
            file.append(pieces)
            if sync:
                file.sync()
        except OSError:
            self.abandon(path, file)
            raise
        return file

    def abandon(self, path: str, file: File) -> None:
        """Remove a file that was begun; a remainder does no harm, it is removed when the journal is next opened."""
        file.close()
        try:
            self.storage.remove(path + TEMPORARY)
        except OSError:
            return

    def _read(self, path: str, kind: type[Small]) -> Small:
        with said("read the journal", path):
            file = self.storage.open(path)
            try:
                data = bytes(file.view()[: SMALL_BYTES_MAX + 1])
            finally:
                file.close()
        try:
            found = msgspec.json.decode(data, type=kind)
            sound = encode_small(found) == data
        except (msgspec.MsgspecError, UnicodeError, OverflowError, RecursionError) as error:
            raise JournalError(f"this is not what a journal writes: {error} - at {path}") from error
        if not sound:
            raise JournalError(f"a file of {len(data)} bytes was changed, its checksum does not fit - at {path}")
        return found

    def _write(self, path: str, small: JournalInfo | SinkPositions) -> None:
        with said("write the journal", path):
            self.put(path, [encode_small(small)])


def channels_of(storage: Storage) -> list[str]:
    """Return the channels that have a journal in a storage.

    Raises:
        JournalError: The storage cannot be listed.
    """
    with said("list the journals", "the root of the storage"):
        names = [name for name in storage.names("") if storage.exists(f"{name}/{INFO}")]
    return sorted(unquote(name) for name in names)


def named_by_sequence(stem: str) -> bool:
    """Whether this is how a segment is called."""
    return len(stem) == 20 and stem.isascii() and stem.isdecimal() and int(stem) <= U64_MAX


def _quoted(name: str, what: str) -> str:
    """Return a name as a file has it, which is never empty, `.` or `..`."""
    try:
        quoted = quote(name, safe="")
    except UnicodeEncodeError as error:
        raise LocalError(f"the name of a {what} is not text: {name[:40]!r}") from error
    if not quoted.strip("."):
        quoted = quoted.replace(".", "%2E")
    if not 1 <= len(quoted) <= NAME_BYTES_MAX:
        raise LocalError(
            f"the name of a {what} must have 1 to {NAME_BYTES_MAX} bytes when quoted, got {len(quoted)}: {name[:40]!r}"
        )
    return quoted


def encode_small(small: JournalInfo | SinkPositions) -> bytes:
    """Return the bytes of a small file, with its checksum."""
    plain = msgspec.json.encode(msgspec.structs.replace(small, checksum=""))
    return msgspec.json.encode(msgspec.structs.replace(small, checksum=f"{checksum([plain]):08x}")) + b"\n"


def _is_id(text: str) -> bool:
    return len(text) == 32 and not text.strip("0123456789abcdef")
