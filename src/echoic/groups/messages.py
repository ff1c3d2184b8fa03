"""What the members of a group say to each other, as msgpack with a number in front that tells which it is.

candidate   PreVote -> PreVoted    would you vote for me?       asked before a term is begun, so that a member
            Vote    -> Voted       vote for me                  that was cut off does not disturb the others
leader      Append  -> Appended    the next entries, and how far the order is safe; empty ones are heartbeats
            Install -> Appended    a snapshot, in chunks, for who has missed more than the log has
            Resign                 be my successor
member      Forward                packs to be ordered
            Knock   -> Turned      let me in: at the first start, or with a new home; or why not
            Ask                    change the roster
            Bye                    I leave
"""

from typing import Annotated, Final, TypeAlias

import msgspec

from echoic.errors import MalformedFrameError
from echoic.groups.writes import Entry
from echoic.wire import Buffer

__all__ = [
    "Append",
    "Appended",
    "Ask",
    "Bye",
    "Forward",
    "Install",
    "Introduction",
    "Knock",
    "Message",
    "PreVote",
    "PreVoted",
    "Resign",
    "Turned",
    "Vote",
    "Voted",
    "decode_introduction",
    "decode_message",
    "encode_message",
]


Number: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
"""A term, a place or a count: what arithmetic can be done with, without thinking of its limits."""
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=512)]
"""A name or an address of somebody who is a stranger yet: what can be kept and shown, however many come."""


class Introduction(msgspec.Struct, frozen=True, array_like=True):
    """The first thing said on a connection: which group, who speaks, with which home, and where it is reached."""

    group: Text
    name: Text
    home: int
    address: Text


class PreVote(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Would you vote for me, if I began this term?"""

    group: int
    term: Number
    last: Number
    last_term: Number


class PreVoted(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """I would."""

    term: Number


class Vote(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Vote for me in this term; my log ends so."""

    group: int
    term: Number
    last: Number
    last_term: Number


class Voted(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """I do, or do not."""

    term: Number
    granted: bool


class Append(msgspec.Struct, frozen=True, array_like=True, tag=5, gc=False):
    """Put these entries behind that one; everything up to `commit` is safe."""

    group: int
    term: Number
    previous: Number
    previous_term: Number
    entries: list[Entry]
    commit: Number


class Appended(msgspec.Struct, frozen=True, array_like=True, tag=6, gc=False):
    """My log agrees with yours up to `index`; or it does not, but may up to there."""

    term: Number
    agreed: bool
    index: Number
    refused: Number
    """Behind which entry those were to be put that are refused; 0 if none are."""
    after: Number
    """The last message that the application here has, should a snapshot be needed."""
    full: bool
    """Whether this member takes no entries for the moment."""


class Forward(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Packs of mine, numbered from `first` in this life."""

    group: int
    life: int
    first: Number
    payloads: list[bytes]


class Knock(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """I have this home and no seat; I expect these members. Followers pass it on to their leader."""

    group: int
    """0 from a member that was never of one."""
    name: str
    home: int
    address: str
    after: Number
    peers: tuple[str, ...]


class Turned(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """You are not let in, or not any more."""

    reason: str
    final: bool
    home: int
    """Whom it is meant for, since others may have used its name."""
    term: Number


class Install(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """A piece of a snapshot."""

    group: int
    term: Number
    index: Number
    index_term: Number
    ticket: Number
    """Which transfer it is a piece of."""
    number: Number
    """Of this piece, from 0."""
    body: bytes
    """With the first piece, as is the summary."""
    summary: bytes
    chunk: bytes
    """Of the application's state; empty in the first piece and in the last."""
    last: bool


class Resign(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """I end: begin a term at once."""

    group: int
    term: Number


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Give a name a seat, or take it away."""

    group: int
    name: str
    address: str
    admit: bool


class Bye(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """I leave: do not wait for me."""

    group: int


Message: TypeAlias = (
    PreVote | PreVoted | Vote | Voted | Append | Appended | Forward | Knock | Turned | Install | Resign | Ask | Bye
)

_introductions: Final = msgspec.msgpack.Decoder(Introduction)
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final[msgspec.msgpack.Decoder[Message]] = msgspec.msgpack.Decoder(Message)


def encode_message(message: Message) -> bytes:
    """Return a message as it travels."""
    return _encoder.encode(message)


def decode_message(payload: Buffer) -> Message:
    """Return the message of a payload.

    Raises:
        MalformedFrameError: It is none.
    """
    try:
        return _decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrameError(f"a group message of {len(payload)} bytes cannot be read: {error}") from error


def decode_introduction(payload: Buffer) -> Introduction:
    """Return what somebody says of itself.

    Raises:
        MalformedFrameError: It says nothing of the kind.
    """
    try:
        return _introductions.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrameError(f"an introduction of {len(payload)} bytes cannot be read: {error}") from error
