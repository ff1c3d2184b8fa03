"""What a journal needs of a disk, so that it runs on a real one and on one that loses power (`echoic.testing`).

Paths are texts relative to the root of the storage, with `/` between names. Every method raises OSError as the
operating system does: FileNotFoundError, FileExistsError, ENOSPC, EIO. What was written is safe from a crash of the
process at once, from a loss of power only after `sync` (of a file: its bytes and its length; of a directory: which
names it has).
"""

from collections.abc import Sequence
from typing import Protocol

from echoic.wire import Buffer

__all__ = ["File", "Lock", "Storage"]


class File(Protocol):
    """A file that grows at its end."""

    def append(self, pieces: Sequence[Buffer]) -> None:
        """Write the pieces at the end. When this fails, any part of them may have been written."""

    def sync(self) -> None:
        """Return when everything written is on the disk. When this fails, what was written since may be lost."""

    def truncate(self, size: int) -> None:
        """Cut the file to a size."""

    def size(self) -> int:
        """Return how many bytes it has."""

    def view(self) -> memoryview:
        """Return its bytes as they are at this moment, read only; mapped into memory where that is possible."""

    def read(self, offset: int, size: int) -> bytes:
        """Return a copy of some bytes, fewer at the end of the file; safe where another process may cut the file."""

    def close(self) -> None:
        """Let go of it."""


class Lock(Protocol):
    """That nobody else writes."""

    def release(self) -> None:
        """Let others write."""


class Storage(Protocol):
    """A directory tree."""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        """Open a file; with `create` it must not be there yet."""

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; FileNotFoundError if there is none."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""

    def make_directory(self, path: str) -> None:
        """Make a directory and those above it, unless they are there."""

    def rename(self, path: str, to: str) -> None:
        """Give a file another name, in place of a file that has it already."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def sync_directory(self, path: str) -> None:
        """Return when the names in a directory are on the disk."""

    def lock(self, path: str) -> Lock:
        """Be the only writer; BlockingIOError when somebody else is. A process that ends lets go."""
