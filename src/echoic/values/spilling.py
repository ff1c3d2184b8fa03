"""Spill files: bytes that memory has no room for, in files that nobody can see.

Values are written one after the other into segments, files without a name. Such a file is gone when its last
descriptor and its last mapping are, also after `kill -9`, so there is nothing to clean up and no list to clean up by.

    segment, 64 MiB, or one value if that is larger               offsets are multiples of 64
    | extent | extent (released) | extent |  ...  | not written: takes nothing of the disk |

A file for each value would be simpler, but a store of 8 GiB with values of 64 KiB would need 131 072 descriptors where
a process often may have 1024; segments need two each, 256. A segment is mapped as a whole, once, and what is read is a
view of the mapping. No byte of a segment is written twice: a view that somebody still has when the value is released
stays what it was. The price is that one extent keeps the disk space of its released neighbours; it is given back with
the last of them. So the limit counts what segments take of the disk, not what is alive in them.

Room for an extent is an offset and no more, and bytes are counted when they are written: somebody who announces 8 GiB
and sends nothing takes nothing.
"""

import contextlib
import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from echoic.errors import LimitExceededError
from echoic.values.writing import total_of, write_at
from echoic.wire import Buffer

__all__ = ["Extent", "SpillFolder"]

SEGMENT_BYTES: Final = 64 * 1024 * 1024
ALIGNMENT: Final = 64


class Segment:
    """A file without a name that is filled from front to back and mapped as a whole."""

    def __init__(self, folder: Path, capacity: int) -> None:
        """Make a file of `capacity` bytes, more than none, of which the disk has none yet.

        Raises:
            OSError: As the operating system says.
        """
        self.capacity: Final = capacity
        self.used = 0
        self.extents = 0
        self.charged_bytes = 0
        self.process: Final = os.getpid()
        self.descriptor: Final = open_nameless(folder)
        self.close: Final = weakref.finalize(self, os.close, self.descriptor)
        """Let go of the file; views of it stay good."""
        try:
            os.ftruncate(self.descriptor, capacity)
            self.mapped: Final = memoryview(mmap.mmap(self.descriptor, capacity, prot=mmap.PROT_READ))
        except OSError:
            self.close()
            raise


class Extent:
    """Room for the bytes of one value in a segment. One thread writes it, then any may read it."""

    __slots__ = ("_folder", "_offset", "_written", "released", "segment", "size")

    def __init__(self, folder: "SpillFolder", segment: Segment, offset: int, size: int) -> None:
        self.size: Final = size
        self.segment: Final = segment
        self.released = False
        self._folder = folder
        self._offset = offset
        self._written = 0

    def append(self, pieces: Sequence[Buffer]) -> None:
        """Write the pieces behind what has been written; they must fit.

        Raises:
            LimitExceededError: The files are full, or the disk does not take it; the extent is of no use any more.
        """
        size = total_of(pieces)
        # Invariant: no extent writes into its neighbour.
        if self._written + size > self.size:
            raise LimitExceededError(f"{self._written + size} bytes are too many for an extent of {self.size}")
        self._folder.charge(self.segment, size)
        try:
            write_at(self.segment.descriptor, pieces, self._offset + self._written)
        except OSError as error:
            raise LimitExceededError(f"a value of {self.size} bytes could not be spilled: {error}") from error
        self._written += size

    def view(self) -> memoryview:
        """Return the bytes, which stay good when the extent is released."""
        return self.segment.mapped[self._offset : self._offset + self.size]

    def release(self) -> None:
        """Give the room back; again does nothing."""
        self._folder.leave(self)


class SpillFolder:
    """The spill files of a store. Threads may share it."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        """Use a folder, where nothing is made before it is needed, for at most `bytes_max` bytes."""
        self._folder = folder
        self._bytes_max = bytes_max
        self._bytes = 0
        self._segment: Segment | None = None
        self._lock = threading.Lock()

    @property
    def bytes(self) -> int:
        """How many bytes the files take of the disk."""
        return self._bytes

    def reserve(self, size: int) -> Extent:
        """Return room for a value of `size` bytes.

        Raises:
            LimitExceededError: There are never so many bytes, or no file can be made.
        """
        if size > self._bytes_max:
            raise LimitExceededError(f"a value has {size} bytes, limit of the spill files is {self._bytes_max}")
        try:
            with self._lock:
                segment, offset = self._segment_for(size)
                segment.used = offset + size
                segment.extents += 1
        except OSError as error:
            raise LimitExceededError(f"a value of {size} bytes could not be spilled: {error}") from error
        return Extent(self, segment, offset, size)

    def write(self, pieces: Sequence[Buffer]) -> Extent:
        """Return the pieces on the disk.

        Raises:
            LimitExceededError: The files are full, or the disk does not take it.
        """
        extent = self.reserve(total_of(pieces))
        try:
            extent.append(pieces)
        except BaseException:
            extent.release()
            raise
        return extent

    def charge(self, segment: Segment, size: int) -> None:
        """Count bytes that are about to be written to a segment.

        Raises:
            LimitExceededError: The files are full.
        """
        with self._lock:
            if self._bytes + size > self._bytes_max:
                total = self._bytes + size
                raise LimitExceededError(f"spilled values would take {total} bytes, limit is {self._bytes_max}")
            self._bytes += size
            segment.charged_bytes += size

    def leave(self, extent: Extent) -> None:
        """Count one extent less in its segment, which goes with its last; again does nothing."""
        segment = extent.segment
        with self._lock:
            if extent.released:
                return
            extent.released = True
            segment.extents -= 1
            if segment.extents:
                return
            self._bytes -= segment.charged_bytes
            if segment is self._segment:
                self._segment = None
        segment.close()

    def _segment_for(self, size: int) -> tuple[Segment, int]:
        """Return a segment that has `size` bytes, and where in it; large values have one of their own."""
        if size > SEGMENT_BYTES:
            return Segment(self._folder, size), 0
        # A forked process has its parent's segment too, and must not write where the parent does.
        if self._segment is not None and self._segment.process == os.getpid():
            offset = -(-self._segment.used // ALIGNMENT) * ALIGNMENT
            if offset + size <= self._segment.capacity:
                return self._segment, offset
        self._segment = Segment(self._folder, SEGMENT_BYTES)
        return self._segment, 0


def open_nameless(folder: Path) -> int:
    """Return the descriptor of a file that has no name and can be read and written by this process alone.

    Raises:
        OSError: As the operating system says.
    """
    nameless = getattr(os, "O_TMPFILE", 0)
    if nameless:
        with contextlib.suppress(OSError):  # not every file system has them; what else is wrong is said below
            return os.open(folder, os.O_RDWR | os.O_EXCL | nameless, 0o600)
    descriptor, name = tempfile.mkstemp(prefix="echoic-", dir=folder)
    Path(name).unlink()
    return descriptor
