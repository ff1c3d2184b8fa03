"""What members of a group tell each other, as one multicast of the engine below each.

Two kinds are frequent, and have a header of fixed size; the payload of a pack is sent from where it lies, and lies at a
multiple of eight bytes where it arrives:

    pack   | 1 | 7 zeros | epoch: 8 | number: 8 | held: 8 | payload ...        little endian
    ack    | 2 | 7 zeros | epoch: 8 | held: 8 |
    other  | 3 | msgpack of one of the records below, an array that begins with its tag

`held` says up to which position the sender holds the order of this epoch. A pack does not name its sender: the engine
below says which process sent it, and that process has said who it is by its State.
"""

import struct
from typing import Final, TypeAlias

import msgspec

from echoic.errors import MalformedFrameError
from echoic.wire import Buffer

__all__ = [
    "ACK",
    "CONTROL",
    "HEADER_BYTES",
    "PACK",
    "VERSION",
    "Admitted",
    "Beginning",
    "Caught",
    "Chunk",
    "Control",
    "Done",
    "Item",
    "Membership",
    "Missed",
    "Outgoing",
    "Pack",
    "Piece",
    "Place",
    "Promise",
    "Ready",
    "Senders",
    "Signature",
    "State",
    "Want",
    "decode_ack",
    "decode_control",
    "decode_pack",
    "encode_ack",
    "encode_control",
    "encode_pack",
]

VERSION: Final = 2
PACK: Final = 1
ACK: Final = 2
CONTROL: Final = 3
_PACK: Final = struct.Struct("<B7xQQQ")
_ACK: Final = struct.Struct("<B7xQQ")
HEADER_BYTES: Final = _PACK.size

Place: TypeAlias = tuple[int, int]
"""A process, as the engine below names it: its node, and its number there."""
Senders: TypeAlias = dict[str, tuple[int, int]]
"""Of each sender, its last life in the order, and the number of its last pack."""
Signature: TypeAlias = tuple[tuple[int, int, int], ...]
"""Which States a decision rests on: node, process and serial of each, sorted."""


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """One multicast: the header, and what comes right behind it."""

    header: bytes
    payload: Buffer = b""
    lasting: bool = False
    """Whether it still counts after the round it was made in: a State does."""


class Pack(msgspec.Struct, frozen=True, array_like=True, gc=False, tag=1):
    """A place in the order: a pack of a member."""

    sender: str
    life: int
    number: int
    payload: memoryview


class Membership(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A place in the order: a view; the names of its members with their lives, sorted."""

    members: tuple[tuple[str, int], ...]


Item: TypeAlias = Pack | Membership


class State(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """What a member has, said in every view of the engine below, before anything is delivered in it."""

    version: int
    name: str
    life: int
    members: tuple[str, ...]
    """The configuration of the group, sorted."""
    serial: int
    """Counts the States of this life, from 1; the later one replaces the earlier one."""
    history: bool
    """Whether it takes part in the group's history; one that has just started does not."""
    promised: int
    """It will not accept an epoch that is not above this one."""
    accepted: int
    """The epoch whose order it holds."""
    delivered: int
    """Up to where it has given the order to its group: this much is settled for good."""
    end: int
    """Up to where it holds it."""
    senders: Senders
    """As of `end`; in one epoch, two orders with the same `end` and `senders` are the same."""
    applied: int
    """The number of messages that its application has."""


class Promise(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Will accept no epoch below this one, and has decided by these States."""

    epoch: int
    signature: Signature


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Has accepted an epoch: holds the order it begins with."""

    epoch: int


class Want(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Asks for what came after a position, or, if `have` is below 0, for the state of an application."""

    epoch: int
    number: int
    """Counts what this member asks for, so that answers to an earlier question are told apart."""
    have: int
    fresh: bool
    """Whether it has just started, and its application has `applied` messages."""
    applied: int


class Caught(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Is up to date, and wants to take part."""

    epoch: int


class Admitted(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """A member that has caught up takes part from here on; only the chosen member says so."""

    epoch: int
    place: Place


class Beginning(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A state follows, as of a position."""

    epoch: int
    to: Place
    want: int
    position: int
    senders: Senders
    summary: bytes


class Chunk(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A part of a chunk of the application's state."""

    epoch: int
    to: Place
    want: int
    last: bool
    body: bytes


class Missed(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Places of the order, one after another, that a member has missed."""

    epoch: int
    to: Place
    want: int
    first: int
    items: tuple[Item, ...]


class Done(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Everything up to a position has been sent."""

    epoch: int
    to: Place
    want: int
    position: int


Piece: TypeAlias = Beginning | Chunk | Missed | Done
Control: TypeAlias = State | Promise | Ready | Want | Caught | Admitted | Piece

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final[msgspec.msgpack.Decoder[Control]] = msgspec.msgpack.Decoder(Control)


def encode_pack(epoch: int, number: int, held: int) -> bytes:
    """Return the header of a pack."""
    return _PACK.pack(PACK, epoch, number, held)


def decode_pack(data: Buffer) -> tuple[int, int, int, memoryview]:
    """Return epoch, number, held and payload of a pack.

    Raises:
        MalformedFrameError: It is shorter than its header.
    """
    if len(data) < HEADER_BYTES:
        raise MalformedFrameError(f"expected a pack of at least {HEADER_BYTES} bytes, got {len(data)}")
    _, epoch, number, held = _PACK.unpack_from(data)
    return epoch, number, held, memoryview(data)[HEADER_BYTES:]


def encode_ack(epoch: int, held: int) -> bytes:
    """Return an ack."""
    return _ACK.pack(ACK, epoch, held)


def decode_ack(data: Buffer) -> tuple[int, int]:
    """Return epoch and held of an ack.

    Raises:
        MalformedFrameError: It is not as long as an ack.
    """
    if len(data) != _ACK.size:
        raise MalformedFrameError(f"expected an ack of {_ACK.size} bytes, got {len(data)}")
    _, epoch, held = _ACK.unpack_from(data)
    return epoch, held


def encode_control(message: Control) -> bytes:
    """Return a message that is neither a pack nor an ack."""
    return bytes((CONTROL,)) + _encoder.encode(message)


def decode_control(data: Buffer) -> Control:
    """Return what `encode_control` was given.

    Raises:
        MalformedFrameError: These bytes are no such message.
    """
    try:
        return _decoder.decode(memoryview(data)[1:])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise MalformedFrameError(f"expected a message of a group, got {len(data)} bytes: {problem}") from problem
