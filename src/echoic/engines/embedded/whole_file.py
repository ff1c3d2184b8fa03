"""A file that is there whole or not at all.

It is written under a temporary name, synced, renamed, and the directory synced. A crash before the rename leaves a file
whose name says that it is worth nothing, a crash behind it the whole file, or the one that had the name before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from echoic.recorder import File, Storage

__all__ = ["TEMPORARY", "whole_file"]

TEMPORARY: Final = ".tmp"


@contextmanager
def whole_file(storage: Storage, path: str, *, durable: bool = True) -> Iterator[File]:
    """Give a file to be written and synced; afterwards it has its name, in place of one that has it. It stays open.

    Args:
        storage: Where it is made, in the root.
        path: Its name.
        durable: Whether the name must survive a loss of power.

    Raises:
        OSError: The storage cannot do it; it has, or has not, the name, and is closed.
    """
    aside = path + TEMPORARY
    if storage.exists(aside):
        storage.remove(aside)
    file = storage.open(aside, create=True)
    try:
        yield file
        storage.rename(aside, path)
        if durable:
            storage.sync_directory("")
    except BaseException:
        file.close()
        _give_up(storage, aside)
        raise


def _give_up(storage: Storage, path: str) -> None:
    """Remove what could not be finished, since the disk may be full of it."""
    try:
        storage.remove(path)
    except OSError:
        pass  # it has no name that counts, and the first error is the one to be told
