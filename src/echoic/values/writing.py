"""Pieces of bytes go to a file descriptor, uncopied, at the position they belong to."""

import errno
import os
from collections.abc import Sequence
from typing import Final

from echoic.wire import Buffer
from echoic.wire.frames import size_of

__all__ = ["total_of", "write_at"]

PIECES_MAX: Final = 1024  # of one pwritev, IOV_MAX of Linux


def total_of(pieces: Sequence[Buffer]) -> int:
    """Return how many bytes the pieces have."""
    return sum(map(size_of, pieces))


def write_at(descriptor: int, pieces: Sequence[Buffer], offset: int) -> int:
    """Write the pieces one after the other from `offset` on; return where they end.

    Raises:
        OSError: As the operating system says; any part of them may have been written.
    """
    waiting = [piece for piece in pieces if size_of(piece)]
    first = 0
    while first < len(waiting):
        # A call may write fewer bytes than it was given, 2 GiB at most.
        written = os.pwritev(descriptor, waiting[first : first + PIECES_MAX], offset)
        if not written:
            raise OSError(errno.EIO, "nothing could be written")
        offset += written
        while first < len(waiting) and written >= size_of(waiting[first]):
            written -= size_of(waiting[first])
            first += 1
        if written:
            waiting[first] = memoryview(waiting[first]).cast("B")[written:]
    return offset
