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
    derived channels Derive   -> DerivedAs          make a channel of another one's events (to the manager)
                     Tune     -> Done               another parameter block (to the manager, and by it to the sources)
                     Save     -> Saved, Restore -> Done   the static variables of a derivation (to a source's hub)
                     Placed                         from event FIRST on, the events of my source are derived by you
                     Turn                           from these events on, a sink gets another channel instead
                     Trouble                        a derivation was refused, has faulted or is suspended
    proto-channels   Steer    -> Steered            start, stop or tune your sources (to the manager, and by it to them)
    shared objects   Watch    -> Update             how is this object, and tell of its changes (to the master's hub)
                     Write    -> Update             change fields of it
                     Unwatch  -> Done
                     Update                         it was changed, or is not shared any more (master's hub to watchers)
    recording        Kept, Ask -> Kept, Fetch -> Fetched, Mark -> Marked     see `journal_messages`
    names            Register -> Done, Resolve -> Resolved, Unregister -> Done
    looking around   Browse   -> Listing, Report -> Reported
    leaving          Farewell                       this hub ends; do not look for it
    any request      Refused                        and why
"""

from typing import Final, Literal, TypeAlias

import msgspec

from echoic.channels.actions import Plain, Steering
from echoic.channels.journal_messages import Ask, Fetch, Fetched, Kept, Mark, Marked, Tagged
from echoic.channels.recipe import Placement, Recipe, Step
from echoic.errors import EchoicError, MalformedFrameError
from echoic.wire import Buffer

__all__ = [
    "Attach",
    "Bind",
    "Browse",
    "ChannelCounts",
    "ChannelEntry",
    "Cut",
    "DerivationCounts",
    "Derive",
    "DerivedAs",
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
    "Placed",
    "Placement",
    "Recipe",
    "Refused",
    "Register",
    "Report",
    "Reported",
    "Resolve",
    "Resolved",
    "Restore",
    "Role",
    "Save",
    "Saved",
    "SinkHub",
    "Slow",
    "Steer",
    "Steered",
    "Step",
    "Trouble",
    "Tune",
    "Turn",
    "Turned",
    "Unregister",
    "Unwatch",
    "Update",
    "Watch",
    "Write",
    "decode_message",
    "encode_message",
]

Role: TypeAlias = Literal["source", "sink"]
Slow: TypeAlias = Literal["block", "drop_oldest", "latest", "disconnect"]


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
    turns: dict[str, bool] = {}
    """The sinks there that have come from another channel, or have left this one, for sources that come later."""
    journal: str = ""
    """The journal in which they are recorded: what it has not confirmed is kept, and sent again; "" if they are not."""
    held: bool = False  # whether to keep for a journal that was recorded there, since its recorder will come back


class ChannelEntry(msgspec.Struct, frozen=True):
    """A line of a listing."""

    name: str
    id: str
    type: str = ""
    sources: int = 0
    sinks: int = 0
    parent: str = ""
    """What it is derived from, in a manager's listing."""


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


class DerivationCounts(msgspec.Struct, frozen=True):
    """What a derivation has done in one hub, and what it has spared."""

    name: str
    id: str
    parent: str
    placement: Placement
    sources: int
    events_in: int
    events_out: int
    bytes_in: int
    bytes_out: int
    bytes_saved: int
    """Bytes that were not sent because the derivation runs here: to each hub that would have got the parent's."""
    busy_ns: int
    cost: int
    """The worst case for one event in units of about one instruction; 0 if loops have no proved bound."""
    faults: int
    suspended: str
    """Why it does not run, "" if it does."""
    fault: str = ""
    """Why the last event that faulted did."""


class Describe(Tagged, frozen=True):
    """Ask the manager for a channel's type and members."""

    name: str


class Described(Tagged, frozen=True):
    """The channel's type, empty for an untyped channel, and who takes part."""

    name: str
    descriptor: bytes
    sources: list[str]
    sinks: list[SinkHub]
    lineage: tuple[Step, ...] = ()
    context: bytes = b""
    """The descriptor of the context that its sources have; empty if they have none."""


class Join(Tagged, frozen=True):
    """Tell the manager that a hub takes part."""

    name: str
    role: Role
    hub: SinkHub
    lineage: tuple[Step, ...] = ()
    """For a derived channel, which a manager that was started anew does not know."""
    instead: str = ""
    """A channel that a sink leaves for this one, each source between two events."""
    handle: str = ""
    """The name of that sink there."""
    successor: str = ""
    """Its name here."""


class Joined(Tagged, frozen=True):
    """For a source's hub: the hubs that want its events, and what is derived from its channel and has sinks.

    Among the latter are channels without sinks from which others are derived; parents come first.
    """

    sinks: list[SinkHub]
    heard: tuple[Step, ...] = ()
    turned: tuple[str, ...] = ()
    """For a sink that has left another channel: the hubs that tell, each by a `Turn`, what is still to come of that."""
    journals: dict[str, bool] = msgspec.field(default_factory=dict)
    """For a source's hub: the journals that record the channel, even if their recorder is away; false: it has left."""


class Leave(Tagged, frozen=True):
    """Tell the manager that a hub no longer takes part; `held` if it is a recorder that will come back."""

    name: str
    role: Role
    address: str
    held: bool = False


class Attach(Tagged, frozen=True):
    """Tell a source's hub that another hub wants its events."""

    channel: str
    sink: SinkHub
    lineage: tuple[Step, ...] = ()
    instead: str = ""
    """The id of a channel that a sink leaves for this one, each source between two events."""
    handle: str = ""
    """The name of that sink there."""
    successor: str = ""
    """Its name here."""


class Detach(Tagged, frozen=True):
    """Tell a source's hub that another hub no longer wants its events; 0 means none of its subscriptions."""

    channel: str
    address: str
    subscription: int = 0
    journal: str = ""
    """A journal for which nothing need be kept any more, since its recorder has left."""


class Bind(Tagged, frozen=True):
    """Say which channel a number of the sender stands for, and how far its sources are.

    `since` is how far they were when the subscription began: what lies between and has never arrived is missing.
    """

    number: int
    channel: str
    positions: dict[int, int]
    since: dict[int, int] = msgspec.field(default_factory=dict)
    subscription: int = 0


class Gap(Tagged, frozen=True):
    """Say which events of a source were not sent, and why."""

    number: int
    source: int
    first: int
    last: int
    reason: str


class Cut(Tagged, frozen=True):
    """Say that no more events of a channel will be sent, and why; `asked` if the receiver or the manager wanted it."""

    number: int
    reason: str
    asked: bool = False


class Register(Tagged, frozen=True):
    """Ask a name server to remember where a channel is managed."""

    name: str
    id: str


class Unregister(Tagged, frozen=True):
    """Ask a name server to forget a channel."""

    name: str
    id: str


class Resolve(Tagged, frozen=True):
    """Ask a name server where a channel is managed."""

    name: str


class Resolved(Tagged, frozen=True):
    """The channel's id."""

    id: str


class Browse(Tagged, frozen=True):
    """Ask a hub or name server for the channels it knows."""


class Listing(Tagged, frozen=True):
    """The channels a hub or name server knows."""

    channels: list[ChannelEntry]


class Report(Tagged, frozen=True):
    """Ask a hub what goes through the channels that are open there."""


class Reported(Tagged, frozen=True):
    """What goes through the channels of a hub."""

    hub: str
    channels: list[ChannelCounts]
    derivations: list[DerivationCounts] = msgspec.field(default_factory=list)


class Derive(Tagged, frozen=True):
    """Ask the manager for a derived channel. A step without a group gets a name of its own.

    Whoever asks for the same recipe with the same parameters gets the same channel, unless it is not to be shared.
    """

    step: Step
    share: bool = True


class DerivedAs(Tagged, frozen=True):
    """The derived channel, or those of a router's ports."""

    steps: tuple[Step, ...]


class Tune(Tagged, frozen=True):
    """Replace the parameter block of a derived channel: named by its name to the manager, by its id to others.

    The manager counts the versions. A hub takes only a version that is later than the one it has, and answers with that
    if it is not.
    """

    channel: str
    values: bytes
    version: int = 0
    base: int = -1
    """To the manager: the version that was changed, so that it is refused if there is a later one; -1 for any."""


class Save(Tagged, frozen=True):
    """Ask a source's hub for the static variables of a derivation."""

    channel: str


class Saved(Tagged, frozen=True):
    """The blocks of static variables, one for each source, and the descriptor of their type."""

    states: dict[int, bytes]
    descriptor: bytes = b""


class Restore(Tagged, frozen=True):
    """Give the sources of a derivation their static variables; 0 stands for every source that is not named."""

    channel: str
    states: dict[int, bytes]


class Placed(Tagged, frozen=True):
    """Say where the events of a source are derived from a certain one on: `here`, or where they arrive."""

    number: int
    source: int
    first: int
    here: bool


class Turn(Tagged, frozen=True):
    """Say from which event of each source on a sink gets a channel's events no more, or again.

    Sources of the sender that are not named turned before their first event.
    """

    number: int
    handle: str
    positions: dict[int, int]
    taken: bool = False


class Turned(Tagged, frozen=True):
    """A source's hub has let a sink go over to a channel, and has sent a `Turn` to tell so."""

    hub: str


class Trouble(Tagged, frozen=True):
    """Tell those who hear a derived channel what is wrong with its derivation in one hub."""

    channel: str
    hub: str
    text: str
    faults: int = 0
    suspended: bool = False


class Watch(Tagged, frozen=True):
    """Ask the hub of a shared object's master for its values, from then on whenever they change.

    Who watches already gets them once more.
    """

    object: str
    format: bytes
    """The descriptor of the type that the object is taken for; with another one it is refused."""


class Unwatch(Tagged, frozen=True):
    """Ask to be told of a shared object no more."""

    object: str


class Write(Tagged, frozen=True):
    """Change fields of a shared object to what a record has in them.

    The sender numbers its changes; one that is sent again is applied once.
    """

    object: str
    number: int
    token: int
    """Of the format of the record."""
    fields: tuple[str, ...]
    values: bytes


class Update(Tagged, frozen=True):
    """The values of a shared object, as one record, and the last change of the receiver that is in them."""

    object: str
    version: int
    values: bytes
    confirmed: int = 0
    ended: bool = False
    """Whether it is not shared any more."""


class Steer(Tagged, frozen=True):
    """Ask the sources of a channel to do something: by its name to the manager, by its id to hubs with sources."""

    channel: str
    action: str
    values: dict[str, Plain] = msgspec.field(default_factory=dict)


class Steered(Tagged, frozen=True):
    """What each source has made of it."""

    answers: tuple[Steering, ...]


class Farewell(Tagged, frozen=True):
    """Say that this hub ends."""


class Done(Tagged, frozen=True):
    """A request was carried out."""


class Refused(Tagged, frozen=True):
    """A request was not carried out."""

    kind: str
    reason: str

    @classmethod
    def of(cls, error: EchoicError) -> "Refused":
        """Return the answer that tells an error to whoever has asked."""
        return cls(type(error).__name__, str(error))


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
    | Derive
    | DerivedAs
    | Tune
    | Save
    | Saved
    | Restore
    | Placed
    | Turn
    | Turned
    | Trouble
    | Steer
    | Steered
    | Watch
    | Unwatch
    | Write
    | Update
    | Kept
    | Ask
    | Fetch
    | Fetched
    | Mark
    | Marked
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
