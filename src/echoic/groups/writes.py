"""What the ordering core wants on the disk, and what it gets back when it starts: records only.

The core changes its log in memory and notes each change as a *write*; whoever drives it puts the writes on the disk,
syncs, and only then sends what the core wants sent and hands over what it has delivered. After a crash, `Image` is what
is left: all that was synced, and perhaps more, but never a part of an entry.
"""

from typing import TypeAlias

import msgspec

__all__ = ["EMPTY", "Append", "Ballot", "Entry", "Image", "Snapshot", "Write"]


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One place in the order."""

    term: int
    kind: int
    sender: str
    life: int
    number: int
    payload: bytes


class Ballot(msgspec.Struct, frozen=True, array_like=True):
    """The term a member is in, and whom it has voted for in it. A later one takes the place of an earlier one."""

    term: int
    vote: str


class Append(msgspec.Struct, frozen=True, array_like=True):
    """Entries from an index on; whatever the log had from there on is no more."""

    first: int
    entries: tuple[Entry, ...]


class Snapshot(msgspec.Struct, frozen=True, array_like=True):
    """What stands for all entries up to an index, which are forgotten; entries after it stay.

    If the log does not have the entry of this index and term, it is emptied.
    """

    index: int
    term: int
    body: bytes
    """Of the core: members, senders, view. Some kilobytes."""
    summary: bytes
    """Of the group: how many messages came before, their types."""
    chunks: tuple[bytes, ...]
    """Of the application, if it has state; may be hundreds of megabytes."""


Write: TypeAlias = Ballot | Append | Snapshot


class Image(msgspec.Struct, frozen=True):
    """A log as it was found: `entries` begin right behind the snapshot, at index 1 if there is none."""

    life: int
    """Drawn when the storage was made; a member that lost its disk is another one."""
    ballot: Ballot
    snapshot: Snapshot | None
    entries: tuple[Entry, ...]


EMPTY = Image(0, Ballot(0, ""), None, ())
