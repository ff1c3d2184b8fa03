"""What a store says about what it holds."""

from typing import TypeAlias

import msgspec

from echoic.wire import Buffer

__all__ = ["StoreStatistics", "Stored"]

Pieces: TypeAlias = tuple[Buffer, ...]


class Stored(msgspec.Struct, frozen=True, eq=False):
    """A value that is bytes to its store: its pieces, one after the other, are the value."""

    pieces: Pieces
    size: int
    """How many bytes the pieces have in all."""


class StoreStatistics(msgspec.Struct, frozen=True):
    """How a store stands."""

    values: int
    heap_bytes: int
    """Of the values in memory, and of those that are arriving."""
    heap_bytes_peak: int
    shared_bytes: int
    file_bytes: int
    """What the spill files take of the disk: also what was released but has neighbours that are still needed."""
    spilled: int
    """How often a value was written to a file."""
    pinned: int
