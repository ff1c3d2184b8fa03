"""The storage of a journal on a real disk.

One class that knows the operating system, so that everything else of a journal also runs on a simulated disk. A write
is one gathering `writev` at the end of the file: pieces of batches go from where they are to the kernel, uncopied. A
`sync` is `fdatasync`, which writes the bytes and the length but not the time of the last change, and is the cheapest
call that survives a loss of power. Reading maps the file, so that records are used where they lie in the page cache.
The lock is `flock`: the kernel lets go of it when the process ends in whatever way, so no stale lock can remain, which
a file with a process id in it cannot promise.

What is made here is its owner's alone, and may be read by the group of a folder that hands its group down
(`trust.private_files`).
"""

import errno
import fcntl
import mmap
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from echoic.recorder.storage import File, Lock
from echoic.trust import mode_in, open_private
from echoic.wire import Buffer
from echoic.wire.frames import size_of

__all__ = ["Disk"]

PIECES_MAX: Final = 1024  # of one writev, IOV_MAX of Linux
READ_BYTES: Final = 16 * 1024 * 1024  # at a time; the kernel may give fewer only at the end of the file
synchronize: Final = getattr(os, "fdatasync", os.fsync)


class Disk:
    """A directory of this machine."""

    def __init__(self, root: Path | str, *, mapped: bool = True) -> None:
        """Name a directory, which need not be there yet.

        Args:
            root: The directory.
            mapped: Whether files are mapped to be read. A mapped sector that the disk cannot read ends the process
                with SIGBUS; to look for damage they are read instead, so that it is an OSError.
        """
        self.root: Final = Path(root)
        self._mapped = mapped

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file; with `create` it must not be there yet.

        Raises:
            OSError: As the operating system says.
        """
        flags = os.O_RDWR | os.O_APPEND if write or create else os.O_RDONLY
        if create:
            flags |= os.O_CREAT | os.O_EXCL
        opened = open_private(self.root / path, flags) if create else os.open(self.root / path, flags)
        return DiskFile(opened, mapped=self._mapped)

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted.

        Raises:
            OSError: There is no such directory, or it cannot be read.
        """
        return sorted(entry.name for entry in (self.root / path).iterdir())

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        return (self.root / path).exists()

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it, also above the root, each made to last before one is made in it.

        Raises:
            OSError: As the operating system says.
        """
        made = []
        place = self.root / path
        while not place.exists():
            made.append(place)
            place = place.parent
        for place in reversed(made):
            place.mkdir(mode_in(place.parent), exist_ok=True)
            _sync_directory(place.parent)

    def rename(self, path: str, to: str) -> None:
        """Give a file another name, in place of a file that has it already.

        Raises:
            OSError: As the operating system says.
        """
        (self.root / path).replace(self.root / to)

    def remove(self, path: str) -> None:
        """Remove a file.

        Raises:
            OSError: As the operating system says.
        """
        (self.root / path).unlink()

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory are on the disk.

        Raises:
            OSError: As the operating system says.
        """
        _sync_directory(self.root / path)

    def lock(self, path: str) -> Lock:
        """Be the only writer.

        Raises:
            BlockingIOError: Somebody else is.
            OSError: As the operating system says.
        """
        descriptor = open_private(self.root / path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return DiskLock(descriptor)


class DiskFile:
    """An open file."""

    def __init__(self, descriptor: int, *, mapped: bool) -> None:
        self._descriptor = descriptor
        self._mapped = mapped

    def append(self, pieces: Sequence[Buffer]) -> None:
        """Write the pieces at the end.

        Raises:
            OSError: As the operating system says; any part of them may have been written.
        """
        for start in range(0, len(pieces), PIECES_MAX):
            self._write(pieces[start : start + PIECES_MAX])

    def _write(self, pieces: Sequence[Buffer]) -> None:
        """Write at most as many pieces as one call takes; a call may write fewer bytes than it was given."""
        left = sum(map(size_of, pieces)) - os.writev(self._descriptor, pieces)
        if not left:
            return
        rest = memoryview(b"".join(pieces))[-left:]
        while rest:
            written = os.write(self._descriptor, rest)
            if not written:
                raise OSError(errno.EIO, "nothing could be written")
            rest = rest[written:]

    def sync(self) -> None:
        """Return when everything written is on the disk.

        Raises:
            OSError: As the operating system says; what was written since the last time may be lost.
        """
        synchronize(self._descriptor)

    def truncate(self, size: int) -> None:
        """Cut the file to a size.

        Raises:
            OSError: As the operating system says.
        """
        os.ftruncate(self._descriptor, size)

    def size(self) -> int:
        """Return how many bytes it has.

        Raises:
            OSError: As the operating system says.
        """
        return os.fstat(self._descriptor).st_size

    def view(self) -> memoryview:
        """Return its bytes as they are at this moment; the view stays good when the file is closed.

        Raises:
            OSError: As the operating system says.
        """
        size = self.size()
        if self._mapped:
            return memoryview(mmap.mmap(self._descriptor, size, prot=mmap.PROT_READ) if size else b"")
        starts = range(0, size, READ_BYTES)
        return memoryview(
            b"".join(os.pread(self._descriptor, min(READ_BYTES, size - start), start) for start in starts)
        )

    def read(self, offset: int, size: int) -> bytes:
        """Return a copy of some bytes, fewer at the end of the file.

        Raises:
            OSError: As the operating system says.
        """
        return os.pread(self._descriptor, size, offset)

    def close(self) -> None:
        """Let go of it; again does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class DiskLock:
    """A lock that is held."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        """Let others write; again does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
