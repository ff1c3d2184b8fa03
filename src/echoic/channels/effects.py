"""What a concentrator wants done: the events it hands over, and the effects it leaves behind."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from echoic.channels.derivation import Derivation
from echoic.channels.journal_messages import Fetch, Mark
from echoic.channels.member import Member
from echoic.channels.messages import Gap, Trouble
from echoic.channels.modulation import Modulation
from echoic.channels.requests import Answer
from echoic.channels.runner import Runner
from echoic.rights import Decision
from echoic.wire import Batch

__all__ = [
    "Audited",
    "Compile",
    "Consult",
    "Delivery",
    "Dial",
    "Dismiss",
    "Drain",
    "Effect",
    "Ended",
    "Forgotten",
    "Missed",
    "Troubled",
]


class Delivery(msgspec.Struct, frozen=True, gc=False):
    """Events that have arrived for the sinks of a channel here. `call` is not 0 when somebody waits for them."""

    member: Member
    batch: Batch
    source: int
    first: int
    hub: str
    number: int
    size: int
    call: int
    raw: bool = False
    """Whether they have yet to be derived, because that was placed with the sinks."""
    again: bool = False
    """Whether they were here before, so that only a recorder has use for them, which may have begun since."""


class Dial(msgspec.Struct, frozen=True):
    """Connect to the hub at an address, and tell how it went by `meet` or `unreachable`."""

    address: str


class Missed(msgspec.Struct, frozen=True):
    """Tell the sinks of a channel here that events will not arrive."""

    member: Member
    gap: Gap


class Ended(msgspec.Struct, frozen=True):
    """Tell the sinks of a channel here that a hub sends them no more."""

    member: Member
    reason: str


class Forgotten(msgspec.Struct, frozen=True):
    """A hub was given up: close its connection, if there is one."""

    hub: str
    reason: str


class Compile(msgspec.Struct, frozen=True):
    """Compile the code of a derivation, and tell how it went by `compiled`."""

    derivation: Derivation


class Dismiss(msgspec.Struct, frozen=True):
    """End a modulator that is not needed any more."""

    runner: Runner


class Drain(msgspec.Struct, frozen=True):
    """Send what a modulator holds back, then go on."""

    modulation: Modulation
    then: Callable[[], None]


class Troubled(msgspec.Struct, frozen=True):
    """Tell the sinks of a derived channel here what is wrong with its derivation in some hub."""

    member: Member
    trouble: Trouble


class Consult(msgspec.Struct, frozen=True):
    """Look into the journal of a channel that is recorded here, and answer, perhaps later."""

    member: Member
    message: Fetch | Mark
    answer: Answer


class Audited(msgspec.Struct, frozen=True):
    """Note, for whoever keeps a trail, what somebody wanted and whether he was let."""

    decision: Decision
    request: str
    address: str
    """Where he says he can be reached."""


Effect: TypeAlias = Audited | Consult | Dial | Missed | Ended | Forgotten | Compile | Dismiss | Drain | Troubled
