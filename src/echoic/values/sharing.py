"""Shared places: another process of the same user reads a value where it lies.

A value is written into a memory file (memfd) once and sealed: from then on nobody can write, shrink or grow it, its
maker neither. Whoever is told the place opens it and maps it; N readers share the same pages, and the value is copied
once in all instead of once for each.

    owner: memfd, write, seal          says (pid, descriptor, size, inode)
    reader: open /proc/PID/fd/N  ->  checks  ->  maps it read-only, and closes its descriptor

The file has no name, so nothing needs to be removed: it goes with the last descriptor and the last mapping, also when
everybody is killed. Files of /dev/shm stay behind then, and need a tracker process, which itself can be killed. A
descriptor that travels over a Unix socket would do as well and needs no /proc, but it needs the socket; a place is four
numbers that can travel any way.

The numbers are somebody else's word, so nothing is done with the file before it is known to be harmless (`ring.py` of
the links has the same reasons):

    regular file, ours       no device, pipe or terminal is opened for it; a file of another user is not ours to read
    the inode                descriptor numbers are used again; another file under the number is not the value
    the size                 what is mapped is what was announced
    sealed against shrinking touching a page that is gone would kill this process
    sealed against writing   what was checked stays what it was, so that a reader needs no copy of its own
    pages of ordinary size   huge pages can be missing when they are touched, which kills as well
"""

import contextlib
import fcntl
import mmap
import os
import stat
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from echoic.errors import MalformedFrameError, UnreachableError
from echoic.values.writing import write_at
from echoic.wire import Buffer

__all__ = ["SharedMemory", "SharedPlace", "open_shared"]

SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
SEALS_NEEDED: Final = {fcntl.F_SEAL_SHRINK: "shrinking", fcntl.F_SEAL_WRITE: "writing"}


class SharedPlace(msgspec.Struct, frozen=True):
    """Where a process of this machine has a value for others to map."""

    pid: int
    descriptor: int
    size: int
    inode: int


class SharedMemory:
    """A sealed memory file with the bytes of one value."""

    def __init__(self, pieces: Sequence[Buffer], size: int) -> None:
        """Copy the pieces, `size` bytes in all, into memory that others can map.

        Raises:
            OSError: The system has no more files, no memory, or no memory files.
        """
        descriptor = os.memfd_create("echoic-value", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self.close: Final = weakref.finalize(self, os.close, descriptor)
        """Let go of it; whoever has mapped it keeps it."""
        try:
            write_at(descriptor, pieces, 0)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
            inode = os.fstat(descriptor).st_ino
        except OSError:
            self.close()
            raise
        self.place: Final = SharedPlace(os.getpid(), descriptor, size, inode)

    def view(self) -> memoryview:
        """Return its bytes; the view stays good when the memory is closed.

        Raises:
            OSError: The system has no more files or no memory.
        """
        return _map(self.place.descriptor, self.place.size)


def open_shared(place: SharedPlace) -> memoryview:
    """Return the bytes of a value that another process of this user shares, uncopied and unchangeable.

    Raises:
        UnreachableError: The value or its process is gone, or is not for us to read.
        MalformedFrameError: What is there is not safe to touch, or not what was announced.
    """
    if not (place.pid > 0 and place.descriptor >= 0 and place.size >= 0):
        raise MalformedFrameError(f"a shared place has numbers below zero: {place}")
    path = Path(f"/proc/{place.pid}/fd/{place.descriptor}")
    try:
        _check(path.stat(), place)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        raise UnreachableError(f"the value shared by process {place.pid} is gone: {error.strerror}") from error
    try:
        _check(os.fstat(descriptor), place)  # it may be another one since
        _check_seals(descriptor, place)
        return _map(descriptor, place.size)
    except OSError as error:
        raise UnreachableError(f"the value shared by process {place.pid} cannot be mapped: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _check(found: os.stat_result, place: SharedPlace) -> None:
    if not stat.S_ISREG(found.st_mode) or found.st_ino != place.inode:
        raise UnreachableError(f"the value shared by process {place.pid} is gone: its descriptor is another file's")
    if found.st_uid != os.geteuid():
        raise UnreachableError(f"the value shared by process {place.pid} belongs to user {found.st_uid}")
    if found.st_size != place.size:
        raise MalformedFrameError(f"a shared value has {found.st_size} bytes, announced were {place.size}")


def _check_seals(descriptor: int, place: SharedPlace) -> None:
    seals = 0
    with contextlib.suppress(OSError):  # files that have no seals at all
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    for seal, danger in SEALS_NEEDED.items():
        if not seals & seal:
            raise MalformedFrameError(f"the value shared by process {place.pid} is not sealed against {danger}")
    if os.fstatvfs(descriptor).f_bsize != mmap.PAGESIZE:
        raise MalformedFrameError(f"the value shared by process {place.pid} has pages of another size than ours")


def _map(descriptor: int, size: int) -> memoryview:
    return memoryview(mmap.mmap(descriptor, size, prot=mmap.PROT_READ) if size else b"")
