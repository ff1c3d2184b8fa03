"""What hubs say to each other about channels, as msgpack in CONTROL frames.

A request carries a number, its reply the same number; a notice carries 0. Every message is a tagged Struct, so an
unknown or malformed one is refused by the decoder and nothing else is ever built from received bytes.

    opening          Describe -> Described          what is this channel's type, and who takes part?
    membership       Join     -> Joined             this hub has sources / sinks of a channel (to the manager)
                     Leave    -> Done
                     Attach   -> Done               send your events of this channel to that hub (manager to sources)
                     Detach   -> Done
    data path        Bind                           my channel number N is this channel (source hub to sink hub)
                     Gap                            you missed the events FIRST to LAST of my source: never silent
                     Cut                            you are sent no more events of this channel
                     Detach                         I do not want these any more (sink hub to source hub)
    names            Register -> Done, Resolve -> Resolved, Unregister -> Done
    looking around   Browse   -> Listing, Report -> Reported
    leaving          Farewell                       this hub ends; do not look for it
    any request      Refused                        and why
"""

from typing import Final, Literal, TypeAlias

import msgspec

from echoic.errors import MalformedFrameError
from echoic.wire import Buffer

__all__ = [
    "Attach",
    "Bind",
    "Browse",
    "ChannelCounts",
    "ChannelEntry",
    "Cut",
    "Describe",
    "Described",
    "Detach",
    "Done",
    "Envelope",
    "Farewell",
    "Gap",
    "Join",
    "Joined",
    "Leave",
    "Listing",
    "Message",
    "Refused",
    "Register",
    "Report",
    "Reported",
    "Resolve",
    "Resolved",
    "Role",
    "SinkHub",
    "Slow",
    "Unregister",
    "decode_message",
    "encode_message",
]

Role: TypeAlias = Literal["source", "sink"]
Slow: TypeAlias = Literal["block", "drop_oldest", "latest", "disconnect"]


class _Tagged(msgspec.Struct, frozen=True, tag=True):
    pass


class SinkHub(msgspec.Struct, frozen=True):
    """A hub that wants the events of a channel, what to do when it does not keep up, and what its sinks are called.

    `hub` and `subscription` are filled in when the hub joins: they tell this wish from one of a hub that stood at the
    same address before, or from an earlier one of the same hub.
    """

    address: str
    slow: Slow = "block"
    sinks: tuple[str, ...] = ()
    hub: str = ""
    subscription: int = 0


class ChannelEntry(msgspec.Struct, frozen=True):
    """A line of a listing."""

    name: str
    id: str
    type: str = ""
    sources: int = 0
    sinks: int = 0


class ChannelCounts(msgspec.Struct, frozen=True):
    """What went through a channel in one hub since it was opened there."""

    name: str
    id: str
    type: str
    sources: int
    sinks: int
    targets: int
    events_out: int
    bytes_out: int
    events_in: int
    bytes_in: int
    missed: int
    dropped: int
    waiting_bytes: int


class Describe(_Tagged, frozen=True):
    """Ask the manager for a channel's type and members."""

    name: str


class Described(_Tagged, frozen=True):
    """The channel's type, empty for an untyped channel, and who takes part."""

    name: str
    descriptor: bytes
    sources: list[str]
    sinks: list[SinkHub]


class Join(_Tagged, frozen=True):
    """Tell the manager that a hub takes part."""

    name: str
    role: Role
    hub: SinkHub


class Joined(_Tagged, frozen=True):
    """For a source's hub: the hubs that want its events."""

    sinks: list[SinkHub]


class Leave(_Tagged, frozen=True):
    """Tell the manager that a hub no longer takes part."""

    name: str
    role: Role
    address: str


class Attach(_Tagged, frozen=True):
    """Tell a source's hub that another hub wants its events."""

    channel: str
    sink: SinkHub


class Detach(_Tagged, frozen=True):
    """Tell a source's hub that another hub no longer wants its events; 0 means none of its subscriptions."""

    channel: str
    address: str
    subscription: int = 0


class Bind(_Tagged, frozen=True):
    """Say which channel a number of the sender stands for, and how far its sources are.

    `since` is how far they were when the subscription began: what lies between and has never arrived is missing.
    """

    number: int
    channel: str
    positions: dict[int, int]
    since: dict[int, int] = {}
    subscription: int = 0


class Gap(_Tagged, frozen=True):
    """Say which events of a source were not sent, and why."""

    number: int
    source: int
    first: int
    last: int
    reason: str


class Cut(_Tagged, frozen=True):
    """Say that no more events of a channel will be sent, and why; `asked` if the receiver or the manager wanted it."""

    number: int
    reason: str
    asked: bool = False


class Register(_Tagged, frozen=True):
    """Ask a name server to remember where a channel is managed."""

    name: str
    id: str


class Unregister(_Tagged, frozen=True):
    """Ask a name server to forget a channel."""

    name: str
    id: str


class Resolve(_Tagged, frozen=True):
    """Ask a name server where a channel is managed."""

    name: str


class Resolved(_Tagged, frozen=True):
    """The channel's id."""

    id: str


class Browse(_Tagged, frozen=True):
    """Ask a hub or name server for the channels it knows."""


class Listing(_Tagged, frozen=True):
    """The channels a hub or name server knows."""

    channels: list[ChannelEntry]


class Report(_Tagged, frozen=True):
    """Ask a hub what goes through the channels that are open there."""


class Reported(_Tagged, frozen=True):
    """What goes through the channels of a hub."""

    hub: str
    channels: list[ChannelCounts]


class Farewell(_Tagged, frozen=True):
    """Say that this hub ends."""


class Done(_Tagged, frozen=True):
    """A request was carried out."""


class Refused(_Tagged, frozen=True):
    """A request was not carried out."""

    kind: str
    reason: str


Message: TypeAlias = (
    Describe
    | Described
    | Join
    | Joined
    | Leave
    | Attach
    | Detach
    | Bind
    | Gap
    | Cut
    | Register
    | Unregister
    | Resolve
    | Resolved
    | Browse
    | Listing
    | Report
    | Reported
    | Farewell
    | Done
    | Refused
)


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """A message with the number that joins a reply to its request."""

    number: int
    reply: bool
    message: Message


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Envelope)


def encode_message(number: int, message: Message, *, reply: bool = False) -> bytes:
    """Return the payload of a CONTROL frame."""
    return _encoder.encode(Envelope(number, reply, message))


def decode_message(payload: Buffer) -> Envelope:
    """Return what a CONTROL frame says.

    Raises:
        MalformedFrameError: It says nothing that this version knows.
    """
    try:
        return _decoder.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFrameError(f"a control message of {len(payload)} bytes cannot be read: {error}") from error
