"""What a tab and the viewer tell each other, as JSON in text frames of one WebSocket.

    tab      {"type": "Open", "number": 7, "watch": 3, "channel": "wind", "view": {"type": "Field", "field": "wind"}}
    viewer   {"type": "Opened", "number": 7, "watch": 3, "channel": "echoic://...", "code": "...", "fields": ["wind"]}
    viewer   binary: u32 watch | u32 0 | frames FORMATS and EVENTS of the wire protocol          8-byte aligned

A request has a number above 0, and its answer the same: the one of its kind, or `Failed`. What the viewer says of
itself (`Overview`, `Saved`, `Lost`, `Trouble`, `Ended`) has none. Nothing about a tab is kept when its socket closes;
the page says again what it wants.
"""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from echoic.errors import MalformedFrameError
from echoic.monitor.reduction import FieldKind, FieldShape

__all__ = [
    "Chart",
    "Check",
    "Checked",
    "Close",
    "Derive",
    "Describe",
    "Description",
    "Done",
    "Drop",
    "Ended",
    "Events",
    "Failed",
    "Field",
    "Look",
    "Lost",
    "Mistake",
    "Open",
    "Opened",
    "Overview",
    "Page",
    "Parameter",
    "Push",
    "Reply",
    "Request",
    "Saved",
    "Steer",
    "Trouble",
    "Tune",
    "View",
    "WatchLoad",
    "decode_request",
    "encode",
    "number_of",
]

Number: TypeAlias = Annotated[int, msgspec.Meta(gt=0, le=2**53)]
WatchNumber: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
Path: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
Size: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=4096)]
PerSecond: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=100_000)]
Value: TypeAlias = bool | int | float | str
Page: TypeAlias = Literal["channels", "groups", "bus", "pipelines", ""]
ParameterValue: TypeAlias = bool | int | float | str | list[bool | int | float | str]

TROUBLE_CHARACTERS_MAX: Final = 2000


class Tagged(msgspec.Struct, tag_field="type", frozen=True):
    """A message with its kind in it."""


class Chart(Tagged, frozen=True):
    """Lines over time: an envelope of each field, so and so many a second."""

    fields: Annotated[list[Path], msgspec.Meta(min_length=1, max_length=32)]
    points_per_second: PerSecond = 100


class Field(Tagged, frozen=True):
    """A rectangle of an array, as cells."""

    field: Path
    columns: Size = 400
    rows: Size = 200
    frames_per_second: PerSecond = 20


class Events(Tagged, frozen=True):
    """Events as they are, a few of them."""

    per_second: PerSecond = 10


View: TypeAlias = Chart | Field | Events


class Look(Tagged, frozen=True):
    """Push an overview once a second; "" for none."""

    number: Number
    page: Page


class Describe(Tagged, frozen=True):
    """Say what a channel is."""

    number: Number
    channel: Name


class Open(Tagged, frozen=True):
    """Begin to push what a view of a channel needs."""

    number: Number
    watch: WatchNumber
    channel: Name
    view: View


class Tune(Tagged, frozen=True):
    """Change what the sources send for a watch."""

    number: Number
    watch: WatchNumber
    values: dict[str, int | float]


class Close(Tagged, frozen=True):
    """End a watch."""

    number: Number
    watch: WatchNumber


class Steer(Tagged, frozen=True):
    """Change parameters of any derived channel."""

    number: Number
    channel: Name
    values: dict[str, ParameterValue]


class Check(Tagged, frozen=True):
    """Say what is wrong with the code of a derivation."""

    number: Number
    channel: Name
    code: str
    params: dict[str, ParameterValue] | str = ""
    output: str = ""


class Derive(Tagged, frozen=True):
    """Derive a channel."""

    number: Number
    channel: Name
    code: str
    params: dict[str, ParameterValue] | str = ""
    output: str = ""
    name: Annotated[str, msgspec.Meta(max_length=200)] = ""


class Drop(Tagged, frozen=True):
    """Forget a channel that was derived here."""

    number: Number
    channel: Name


Request: TypeAlias = Look | Describe | Open | Tune | Close | Steer | Check | Derive | Drop


class Mistake(msgspec.Struct, frozen=True):
    """Where something is wrong in what a person has written, counted from 1, and what."""

    line: int
    column: int
    message: str
    part: Literal["code", "output", "params"] = "code"


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a derived channel; `kind` is that of a field, `shape` its dimensions."""

    name: str
    kind: FieldKind
    value: object
    shape: list[int] = []


class Done(Tagged, frozen=True):
    """It was done."""

    number: int


class Failed(Tagged, frozen=True):
    """It was not done."""

    number: int
    message: str
    mistakes: list[Mistake] = []


class Checked(Tagged, frozen=True):
    """What is wrong with code: nothing, or these; and what an event costs at most."""

    number: int
    mistakes: list[Mistake]
    cost: int = 0
    cost_max: int = 0


class Description(Tagged, frozen=True):
    """What a channel is, and what can be shown of it."""

    number: int
    name: str
    id: str
    channel_type: str
    layout: str
    fields: list[FieldShape]
    parent: str
    code: str
    spelling: str
    output: str
    params: list[Parameter]
    derived_here: bool
    sources: int
    sinks: int
    views: list[str]
    may: tuple[str, ...] = ("derive", "steer")
    """What this tab may do with it, of these two."""


class Opened(Tagged, frozen=True):
    """A watch has begun; the code runs inside the sources for it, and `fields` are its f0, f1, ..."""

    number: int
    watch: int
    channel: str
    derived: str
    code: str
    fields: list[str]


Reply: TypeAlias = Done | Failed | Checked | Description | Opened


class Overview(Tagged, frozen=True):
    """How all channels, groups, buses or pipelines get on."""

    page: str
    load: object


class WatchLoad(msgspec.Struct, frozen=True):
    """What the derivation of a watch has done so far, at all sources."""

    bytes_in: int
    bytes_out: int
    bytes_saved: int
    events_in: int
    events_out: int
    ns_per_event: float


class Saved(Tagged, frozen=True):
    """What was not sent because derivations run at the sources: of all, and of this tab's watches.

    `share` is that of the bytes that would have been sent.
    """

    bytes: int
    per_second: float
    share: float
    watches: dict[int, WatchLoad]


class Lost(Tagged, frozen=True):
    """Events that a watch will not get; `first` is the number of the first at its source, if known."""

    watch: int
    reason: str
    events: int
    first: int | None = None


class Trouble(Tagged, frozen=True):
    """The code of a watch faults at a source, or is suspended there."""

    watch: int
    message: str
    suspended: bool


class Ended(Tagged, frozen=True):
    """The channel of a watch has ended, and the watch with it."""

    watch: int
    reason: str


Push: TypeAlias = Overview | Saved | Lost | Trouble | Ended

_requests: Final[msgspec.json.Decoder[Request]] = msgspec.json.Decoder(Request)
_numbers: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encoder: Final = msgspec.json.Encoder()


def decode_request(text: str) -> Request:
    """Return what a tab asks for.

    Raises:
        MalformedFrameError: This is no request; the message says why.
    """
    try:
        return _requests.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise MalformedFrameError(f"this is no request: {error}") from error


def number_of(text: str) -> int:
    """Return the number of what is perhaps no request otherwise, so that its sender learns of it; 0 for none."""
    try:
        found = msgspec.json.decode(_numbers.decode(text).get("number", msgspec.Raw(b"0")), type=int)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return 0
    return found if 0 < found <= 2**53 else 0


def encode(message: Reply | Push) -> str:
    """Return a message as a text frame."""
    return _encoder.encode(message).decode()
