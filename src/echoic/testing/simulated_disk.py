"""A disk in memory that does whatever a real one may do: it loses power, tears writes, fills up, rots, fails to read.

It is a `Storage`, so the code under test is the real code. Nothing is drawn but from the generator it was given, so a
failure is repeated by its seed:

    disk = SimulatedDisk(Random(seed))
    writer = JournalWriter.open(disk, "trades", id=bytes(16), now_ns=0)
    disk.stop(after=7)           # the eighth operation that changes something is the last, and may be done in part
    ...                          # whatever the program does: from there on every operation raises OSError
    disk.crash()                 # the power comes back; this is what was left (`FileImage`, `NameTree`)
    writer = JournalWriter.open(disk, "trades", id=bytes(16), now_ns=1)

What a program may rely on is what POSIX promises and no more: bytes and length of a file are there after `sync` of the
file, a name after `sync_directory` of its directory, a rename is done or not, 512 bytes are written or not. So a file
that was synced is gone if nobody synced its directory, which no common file system does to you and some do.

`kill` is the end of the process alone: what was written stays, in whatever order. `kill -9` of a real process tests no
more than that, because the page cache outlives it; that is why this disk exists.

A `sync` that fails (`fail_sync`) loses what it was to write, and the next one succeeds without it, as Linux does it.
Whether readers go on seeing the lost bytes depends on the file system: `cached`.
"""

import errno
import os
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec

from echoic.errors import LocalError
from echoic.testing.file_image import SECTOR_BYTES
from echoic.testing.name_tree import Directory, NameTree, Node
from echoic.wire import Buffer

__all__ = ["DiskStatistics", "SimulatedDisk", "SimulatedFile", "SimulatedLock"]

STALE_SECTORS_MAX: Final = 64
"""How many sectors of files that are gone are remembered, to appear again as garbage."""


class DiskStatistics(msgspec.Struct, frozen=True):
    """What a disk was asked for, and what it did."""

    appends: int = 0
    bytes: int = 0
    syncs: int = 0
    directory_syncs: int = 0
    crashes: int = 0
    kills: int = 0
    torn_files: int = 0
    """How many files had neither all nor nothing of what was written, after a loss of power."""
    lost_names: int = 0
    full: int = 0
    failed_syncs: int = 0
    failed_reads: int = 0
    flips: int = 0


class SimulatedDisk:
    """A `Storage` in memory. `capacity_bytes` may be changed at any time; 0 is no limit."""

    def __init__(self, random: Random, *, capacity_bytes: int = 0) -> None:
        self.capacity_bytes = capacity_bytes
        self._random = random
        self._tree = NameTree()
        self._stale: deque[bytes] = deque(maxlen=STALE_SECTORS_MAX)
        self._boot = 0
        self._off = False
        self._left: int | None = None
        self._syncs_left: int | None = None
        self._cached = False
        self._statistics = DiskStatistics()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> "SimulatedFile":
        """Open a file; with `create` it must not be there yet, and can be written.

        Raises:
            OSError: There is none, or there is one already, or the disk is full.
        """
        if create:
            self.change(lambda: self._make(path))
        else:
            self.check_power()
        return SimulatedFile(self, self._tree.file(path), path, write=write or create)

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted.

        Raises:
            OSError: There is no such directory.
        """
        self.check_power()
        return sorted(self._tree.directory(path).names)

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        self.check_power()
        try:
            self._tree.find(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it, unless they are there.

        Raises:
            OSError: A file stands in the way.
        """
        self.change(lambda: self._tree.make_directories(path))

    def rename(self, path: str, to: str) -> None:
        """Give a file another name, in place of a file that has it already.

        Raises:
            OSError: There is no such file.
        """
        node = self._tree.file(path)
        before, after = self._tree.place(path), self._tree.place(to)
        if before != after:
            self.change(lambda: self._tree.change((*before, None), (*after, node)))

    def remove(self, path: str) -> None:
        """Remove a file. Who has it open can still use it.

        Raises:
            OSError: There is no such file.
        """
        node = self._tree.file(path)
        place = self._tree.place(path)
        self.change(lambda: self._tree.change((*place, None)))
        self.discard(node.image.data())

    def sync_directory(self, path: str) -> None:
        """Put the names in a directory on the disk.

        Raises:
            OSError: There is no such directory, or the disk failed to.
        """
        directory = self._tree.directory(path)
        self.change(lambda: self._sync_names(directory))

    def lock(self, path: str) -> "SimulatedLock":
        """Be the only writer, until the lock is released or the process ends.

        Raises:
            BlockingIOError: Somebody else is.
        """
        if not self.exists(path):
            self.change(lambda: self._make(path))
        node = self._tree.file(path)
        if node.locked:
            raise BlockingIOError(errno.EWOULDBLOCK, "Resource temporarily unavailable", path)
        node.locked = True
        return SimulatedLock(self, node)

    def crash(self) -> None:
        """Lose power, and let it come back: what was not synced is there, or not, or in part."""
        self.count(crashes=1)
        for node in self._tree.nodes():
            if node.image.dirty:
                outcome = node.image.lose_power(self._random, self._garbage)
                self.count(torn_files=outcome in {"in order", "scattered"})
        self.count(lost_names=self._tree.lose_power(self._random))
        self._start_again()

    def kill(self) -> None:
        """Let the process end on the spot: everything written stays, locks are let go, open files are no more."""
        self.count(kills=1)
        self._start_again()

    def stop(self, after: int) -> None:
        """Let everything come to a halt after so many more operations that change something.

        The one at which it does is done, done in part, or not; it and all after it raise OSError until `crash` or
        `kill` says what the halt was.

        Raises:
            LocalError: `after` is negative.
        """
        self._left = _count_of(after, "operations")

    def fail_sync(self, after: int = 0, *, cached: bool = False) -> None:
        """Let one sync fail after so many more that succeed: what it was to write is lost, or in part.

        Args:
            after: How many syncs succeed before, of files and directories.
            cached: Whether readers go on seeing what is lost, until the power is.

        Raises:
            LocalError: `after` is negative.
        """
        self._syncs_left, self._cached = _count_of(after, "syncs"), cached

    def fail_read(self, path: str, start: int = 0, end: int | None = None) -> None:
        """Let nobody read some bytes of a file: who wants any of them, or a view of the whole, gets an OSError.

        Raises:
            OSError: There is no such file.
        """
        self._tree.file(path).unreadable.append((start, 1 << 63 if end is None else end))

    def mend(self) -> None:
        """Let everything be read again, and no sync fail."""
        self._syncs_left = None
        for _, node in self._tree.files():
            node.unreadable.clear()

    def flip(self, path: str, bit: int) -> None:
        """Turn one bit of a file round; twice, and it is as before.

        Raises:
            OSError: There is no such file.
            LocalError: It has no such bit.
        """
        image = self._tree.file(path).image
        if not 0 <= bit < 8 * len(image):
            raise LocalError(f"there is no bit {bit}, the file has {8 * len(image)} - at `{path}`")
        image.flip(bit)
        self.count(flips=1)

    def files(self) -> dict[str, int]:
        """Return the path of every file, sorted, and how many bytes it has. It needs no power."""
        return {path: len(node.image) for path, node in self._tree.files()}

    def read(self, path: str) -> bytes:
        """Return the bytes of a file, whatever is wrong with the disk.

        Raises:
            OSError: There is no such file.
        """
        return self._tree.file(path).image.data()

    def copy(self, random: Random) -> "SimulatedDisk":
        """Return a disk with the same files, closed and not locked, that goes its own way."""
        other = SimulatedDisk(random, capacity_bytes=self.capacity_bytes)
        other._tree = self._tree.copy()
        return other

    @property
    def used_bytes(self) -> int:
        """How many bytes all files have."""
        return sum(len(node.image) for _, node in self._tree.files())

    def statistics(self) -> DiskStatistics:
        """Return what the disk was asked for, and what it did."""
        return self._statistics

    def check_power(self, boot: int | None = None) -> None:
        """Do nothing while the disk runs, and has since a certain start.

        Raises:
            OSError: It does not, or the file was opened before.
        """
        if self._off:
            raise OSError(errno.EIO, "the power is off")
        if boot is not None and boot != self._boot:
            raise OSError(errno.EBADF, "the file was open when the process ended")

    def change(self, action: Callable[[], None], half: Callable[[], None] | None = None) -> None:
        """Do something that changes the disk, unless it has come to a halt.

        Args:
            action: What to do.
            half: What is done of it when the disk comes to a halt within.

        Raises:
            OSError: It has, or does at this operation.
        """
        self.check_power()
        if self._left != 0:
            self._left = None if self._left is None else self._left - 1
            action()
            return
        self._off = True
        if self._random.random() < 0.5:
            (half or action)()
        self.check_power()

    def append(self, node: Node, pieces: Sequence[Buffer]) -> None:
        """Write at the end of a file.

        Raises:
            OSError: The disk is full, with a part written, or has come to a halt.
        """
        data = b"".join(pieces)
        part = data[: self._random.randint(0, len(data))] if self._left == 0 else b""
        self.change(lambda: self._write(node, data), lambda: self._write(node, part))

    def sync(self, node: Node) -> None:
        """Put the bytes of a file on the disk.

        Raises:
            OSError: The disk failed to, or has come to a halt.
        """
        self.change(lambda: self._sync(node))

    def discard(self, data: bytes) -> None:
        """Remember some bytes of a file that are given up, to be found by others as garbage."""
        for start in range(0, min(len(data), STALE_SECTORS_MAX * SECTOR_BYTES), SECTOR_BYTES):
            self._stale.append(data[start : start + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0"))

    def count(self, **more: int) -> None:
        """Add to the statistics."""
        former = self._statistics
        self._statistics = msgspec.structs.replace(
            former, **{name: getattr(former, name) + value for name, value in more.items()}
        )

    @property
    def stopped(self) -> bool:
        """Whether it has come to a halt, and waits for `crash` or `kill`."""
        return self._off

    @property
    def boot(self) -> int:
        """How many times it was started again."""
        return self._boot

    def _start_again(self) -> None:
        self._boot += 1
        self._off, self._left, self._syncs_left = False, None, None
        for _, node in self._tree.files():
            node.locked = False

    def _make(self, path: str) -> None:
        directory, name = self._tree.place(path)
        if name in directory.names:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        if self.capacity_bytes and self.used_bytes >= self.capacity_bytes:
            raise self._full(path)
        self._tree.change((directory, name, Node()))

    def _write(self, node: Node, data: bytes) -> None:
        room = self.capacity_bytes - self.used_bytes if self.capacity_bytes else len(data)
        self.count(appends=1, bytes=min(len(data), max(room, 0)))
        if room >= len(data):
            node.image.append(data)
            return
        node.image.append(data[: max(0, self._random.choice((0, room, self._random.randint(0, max(room, 0)))))])
        raise self._full("")

    def _full(self, path: str) -> OSError:
        self.count(full=1)
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _sync(self, node: Node) -> None:
        self.count(syncs=1)
        if self._sync_fails():
            node.image.lose_power(self._random, self._garbage, cached=self._cached)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        node.image.sync()

    def _sync_names(self, directory: Directory) -> None:
        self.count(directory_syncs=1)
        if self._sync_fails():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._tree.sync(directory)

    def _sync_fails(self) -> bool:
        if self._syncs_left is None:
            return False
        fails = self._syncs_left == 0
        self._syncs_left = None if fails else self._syncs_left - 1
        self.count(failed_syncs=fails)
        return fails

    def _garbage(self) -> bytes:
        """Return a sector of zeros, of noise, or of a file that is gone."""
        match self._random.randrange(3):
            case 0:
                return bytes(SECTOR_BYTES)
            case 1 if self._stale:
                return self._random.choice(self._stale)
            case _:
                return self._random.randbytes(SECTOR_BYTES)


class SimulatedFile:
    """An open file of a simulated disk."""

    def __init__(self, disk: SimulatedDisk, node: Node, path: str, *, write: bool) -> None:
        self._disk = disk
        self._node = node
        self._path = path
        self._write = write
        self._boot = disk.boot
        self._closed = False

    def append(self, pieces: Sequence[Buffer]) -> None:
        """Write the pieces at the end.

        Raises:
            OSError: The disk is full or stopped, and a part of them was written; or the file cannot be written.
        """
        self._check(write=True)
        self._disk.append(self._node, pieces)

    def sync(self) -> None:
        """Put everything written on the disk.

        Raises:
            OSError: The disk failed to.
        """
        self._check()
        self._disk.sync(self._node)

    def truncate(self, size: int) -> None:
        """Cut the file to a size.

        Raises:
            OSError: The file cannot be written.
        """
        self._check(write=True)
        self._disk.change(lambda: self._disk.discard(self._node.image.truncate(size)))

    def size(self) -> int:
        """Return how many bytes it has.

        Raises:
            OSError: The file is no more.
        """
        self._check()
        return len(self._node.image)

    def read(self, offset: int, size: int) -> bytes:
        """Return a copy of some of its bytes, fewer at its end.

        Raises:
            OSError: Some of them cannot be read.
        """
        return bytes(self._bytes(offset, offset + size)[offset : offset + size])

    def view(self) -> memoryview:
        """Return its bytes as they are at this moment; what is appended later does not show.

        Raises:
            OSError: Some of them cannot be read.
        """
        return memoryview(self._bytes(0, self.size()))

    def close(self) -> None:
        """Let go of it."""
        self._closed = True

    def _bytes(self, start: int, end: int) -> bytes:
        self._check()
        data = self._node.image.data()
        for low, high in self._node.unreadable:
            if max(start, low) < min(end, high, len(data)):
                self._disk.count(failed_reads=1)
                raise OSError(errno.EIO, os.strerror(errno.EIO), self._path)
        return data

    def _check(self, *, write: bool = False) -> None:
        self._disk.check_power(self._boot)
        if self._closed or (write and not self._write):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), self._path)


class SimulatedLock:
    """That nobody else writes."""

    def __init__(self, disk: SimulatedDisk, node: Node) -> None:
        self._node = node
        self._disk = disk
        self._boot = disk.boot

    def release(self) -> None:
        """Let others write; nothing happens if the process that held it has ended."""
        if self._boot == self._disk.boot:
            self._node.locked = False
            self._boot = -1


def _count_of(after: int, what: str) -> int:
    if after < 0:
        raise LocalError(f"a disk cannot fail {after} {what} from here, expected 0 or more")
    return after
