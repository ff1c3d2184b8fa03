"""What recorders and those who want to be recorded say to each other.

    Kept                     your events before these are on my disk (recorder to the hubs of sources)
    Ask      -> Kept         how far is this source recorded? (a named source that begins again)
    Fetch    -> Fetched      the journal's blocks from a place on (a durable sink, a remote reader, to the recorder)
    Mark     -> Marked       this sink goes on here; without positions: where does it?

Ask is answered from memory; Fetch and Mark touch files, so the concentrator leaves them to the edge (`consulting`).
"""

import msgspec

__all__ = ["Ask", "Fetch", "Fetched", "Kept", "Mark", "Marked", "Tagged"]


class Tagged(msgspec.Struct, frozen=True, tag=True):
    """A message, which tells its kind."""


class Kept(Tagged, frozen=True):
    """Say that the events of sources before certain numbers are on a recorder's disk."""

    channel: str
    """The channel's id."""
    journal: str
    positions: dict[int, int]
    """For each source the number of the first event that is not."""
    trouble: str = ""
    """Why no more can be kept for the moment; "" if all is well."""


class Ask(Tagged, frozen=True):
    """Ask a recorder how far a source is recorded; it answers Kept."""

    channel: str
    source: int


class Fetch(Tagged, frozen=True):
    """Ask a recorder for what its journal has of a partition from a sequence on.

    It waits for more, at most `wait_ns`, if there is nothing yet. With `positions`, one for each partition, it answers
    with what any of them has from there on; they take turns, beginning with `partition`, and `sequence` says nothing.
    Without room for any bytes, it answers without blocks; then it may be asked for every type that was recorded.
    """

    channel: str
    partition: int
    sequence: int
    bytes_max: int
    wait_ns: int = 0
    positions: tuple[int, ...] = ()
    types: bool = False


class Fetched(Tagged, frozen=True):
    """Blocks of one segment, as they lie in the journal; none if nothing has come."""

    journal: str
    heads: tuple[int, ...]
    firsts: tuple[int, ...]
    seed: int = 0
    sequence: int = 0
    end: int = 0
    formats: tuple[bytes, ...] = ()
    blocks: bytes = b""
    partition: int = 0
    file: str = ""
    offset: int = 0
    """Where the blocks lie, for messages to people."""
    reason: str = ""
    """Why sequences are missing before or between the blocks, if any are."""


class Mark(Tagged, frozen=True):
    """Tell a recorder where a named sink goes on, per partition; without positions, ask it."""

    channel: str
    sink: str
    positions: tuple[int, ...] = ()


class Marked(Tagged, frozen=True):
    """Where a named sink goes on; nothing if it was never marked."""

    positions: tuple[int, ...]
