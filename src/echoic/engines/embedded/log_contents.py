"""What the blocks of a segment say: the state at its beginning, entries, ballots.

Small things are msgpack. The entries of an APPEND are their heads as one msgpack array, and behind it the payloads one
after the other, so that a payload goes to the disk from where it is, uncopied:

    body  := heads | payload | payload ...
    heads := [[term, kind, sender, life, number, payload bytes], ...]

A writev of a thousand tiny pieces costs more than to copy them together, so payloads that are small on average are.
"""

from collections.abc import Sequence
from typing import Annotated, Final, TypeVar

import msgspec

from echoic.engines.embedded.log_blocks import Block
from echoic.errors import JournalError, LocalError
from echoic.groups.writes import Ballot, Entry
from echoic.wire import Buffer

__all__ = [
    "PAYLOAD_BYTES_MAX",
    "Previous",
    "SnapshotReference",
    "State",
    "check_entries",
    "decode_ballot",
    "decode_entries",
    "decode_state",
    "encode_ballot",
    "encode_entries",
    "encode_state",
]

PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
JOINED_BYTES_MAX: Final = 4096
"""Payloads that are smaller on average are copied together."""

Count = Annotated[int, msgspec.Meta(ge=0)]


class Previous(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How the segment before ended: it must be exactly that, unless it has been removed."""

    bytes: Count
    seed: Count


class SnapshotReference(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Which snapshot is in force. `seed` is that of its file, which has a salt: no other file is taken for it."""

    number: Count
    seed: Count
    index: Count
    term: Count


class State(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What must be known to read on from the beginning of a segment, without those before it."""

    ballot: Ballot
    end: Count
    """The last index that the log has; that of the snapshot if it has no entries behind it."""
    previous: Previous | None
    snapshot: SnapshotReference | None


class EntryHead(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """An entry without its payload."""

    term: int
    kind: int
    sender: str
    life: int
    number: int
    payload_bytes: Count


Content = TypeVar("Content")
encoder: Final = msgspec.msgpack.Encoder()
ballots: Final = msgspec.msgpack.Decoder(Ballot)
states: Final = msgspec.msgpack.Decoder(State)
heads_of_entries: Final = msgspec.msgpack.Decoder(list[EntryHead])


def encode_state(state: State) -> bytes:
    """Return the body of a STATE."""
    return encoder.encode(state)


def encode_ballot(ballot: Ballot) -> bytes:
    """Return the body of a BALLOT."""
    return encoder.encode(ballot)


def check_entries(entries: Sequence[Entry]) -> None:
    """Do nothing if entries can be written.

    Raises:
        LocalError: A payload is larger than one can be.
    """
    for entry in entries:
        if len(entry.payload) > PAYLOAD_BYTES_MAX:
            raise LocalError(f"an entry has {len(entry.payload)} payload bytes, limit is {PAYLOAD_BYTES_MAX}")


def encode_entries(entries: Sequence[Entry]) -> tuple[list[Buffer], int]:
    """Return the pieces of the body of an APPEND, and how many bytes of it are heads."""
    payloads = [entry.payload for entry in entries]
    sizes = [len(payload) for payload in payloads]
    rows = [
        (entry.term, entry.kind, entry.sender, entry.life, entry.number, size)
        for entry, size in zip(entries, sizes, strict=True)
    ]
    heads = encoder.encode(rows)
    if sum(sizes) < JOINED_BYTES_MAX * len(sizes):
        return [b"".join([heads, *payloads])], len(heads)
    return [heads, *payloads], len(heads)


def decode_state(block: Block, path: str) -> State:
    """Return what a STATE says.

    Raises:
        JournalError: It says nothing.
    """
    return _decode(states, block.body, block, path)


def decode_ballot(block: Block, path: str) -> Ballot:
    """Return what a BALLOT says.

    Raises:
        JournalError: It says nothing.
    """
    return _decode(ballots, block.body, block, path)


def decode_entries(block: Block, path: str) -> list[Entry]:
    """Return the entries of an APPEND; their payloads are copies.

    Raises:
        JournalError: Heads and payloads do not fit.
    """
    heads = _decode(heads_of_entries, block.body[: block.heads_bytes], block, path)
    at = block.heads_bytes
    size = at + sum(head.payload_bytes for head in heads)
    if size != len(block.body):
        raise JournalError(f"entries need {size} bytes, the block has {len(block.body)} - at {path}, {block.offset}")
    entries = []
    for head in heads:
        payload = bytes(block.body[at : at + head.payload_bytes])
        entries.append(Entry(head.term, head.kind, head.sender, head.life, head.number, payload))
        at += head.payload_bytes
    return entries


def _decode(decoder: "msgspec.msgpack.Decoder[Content]", data: memoryview, block: Block, path: str) -> Content:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise JournalError(f"a block {block.kind.name} says nothing: {error} - at {path}, {block.offset}") from error
