"""What the hub and a confined process say to each other.

    hub                                   confined process
                              <-  Hello   it has started, and imported all that it needs
    Begin + parcel            ->          it confines itself, then loads the code
                              <-  Begun
    Changed + values          ->          of a shared object, without an answer, as often as necessary
    Work + batch              ->
                              <-  Get, Call, Pull, Write + values     any number, while it works
    Answer (+ values)         ->          to each of them
                              <-  Done + batch
                              <-  Failed  instead of any answer: it cannot go on

`+` is the body of the message (`pipe`). `Work` and `Done` have a number, so that an answer that was sent too early or
twice is found out.
"""

from typing import Annotated, Final, TypeAlias

import msgspec

from echoic.eager.limits import FAULT_CHARACTERS_MAX, FAULTS_MAX

__all__ = [
    "Answer",
    "Begin",
    "Begun",
    "Call",
    "Changed",
    "Done",
    "Failed",
    "FromHub",
    "Get",
    "Hello",
    "Pull",
    "ToHub",
    "Work",
    "Write",
    "decode_from_hub",
    "decode_to_hub",
]

NAME_CHARACTERS_MAX: Final = 128
ARGUMENTS_MAX: Final = 64
FIELDS_MAX: Final = 4096

Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=NAME_CHARACTERS_MAX)]
Fault: TypeAlias = Annotated[str, msgspec.Meta(max_length=FAULT_CHARACTERS_MAX)]


class Begin(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """Load a modulator; the parcel is the body."""

    key: str
    input: bytes
    """The descriptor of the events that will come."""
    memory_bytes: int
    """How much more memory may be taken."""
    used_bytes: int
    """How much of its addresses the process uses already."""


class Changed(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """A shared object has other values; they are the body."""

    attribute: str
    version: int
    stale: bool


class Work(msgspec.Struct, array_like=True, frozen=True, tag=3):
    """Do one call; the batch is the body."""

    number: int
    source: int
    batch: bool
    """Whether there is one."""
    period: bool
    ready: bool
    drain: bool
    forgotten: tuple[int, ...]
    """Sources that have ended."""


class Answer(msgspec.Struct, array_like=True, frozen=True, tag=4):
    """What a service, or a shared object, has answered; new values of the latter are the body."""

    value: object = None
    method: bool = False
    """Whether what was asked for is a method, which can be called."""
    error: str = ""
    version: int = 0
    stale: bool = False


class Hello(msgspec.Struct, array_like=True, frozen=True, tag=11):
    """It has started."""


class Begun(msgspec.Struct, array_like=True, frozen=True, tag=12):
    """The modulator is loaded."""

    filtered: bool
    """Whether system calls are filtered."""


class Done(msgspec.Struct, array_like=True, frozen=True, tag=13):
    """A call is over; the batch is the body."""

    number: int
    batch: bool
    """Whether there is one."""
    faults: Annotated[tuple[Fault, ...], msgspec.Meta(max_length=FAULTS_MAX)]
    waiting: bool


class Failed(msgspec.Struct, array_like=True, frozen=True, tag=14):
    """It cannot go on."""

    reason: Annotated[str, msgspec.Meta(max_length=2 * FAULT_CHARACTERS_MAX)]
    unconfined: bool = False
    """Whether that is because the process is not confined as it should be."""


class Get(msgspec.Struct, array_like=True, frozen=True, tag=15):
    """Return an attribute of a service, or say that it is a method."""

    source: int
    service: Name
    name: Name


class Call(msgspec.Struct, array_like=True, frozen=True, tag=16):
    """Call a method of a service."""

    source: int
    service: Name
    name: Name
    arguments: Annotated[list[object], msgspec.Meta(max_length=ARGUMENTS_MAX)]
    named: Annotated[dict[Name, object], msgspec.Meta(max_length=ARGUMENTS_MAX)]


class Pull(msgspec.Struct, array_like=True, frozen=True, tag=17):
    """Fetch the newest values of a shared object."""

    attribute: Name


class Write(msgspec.Struct, array_like=True, frozen=True, tag=18):
    """Publish fields of a shared object; all its values are the body."""

    attribute: Name
    fields: Annotated[tuple[Name, ...], msgspec.Meta(max_length=FIELDS_MAX)]


FromHub: TypeAlias = Begin | Changed | Work | Answer
ToHub: TypeAlias = Hello | Begun | Done | Failed | Get | Call | Pull | Write

decode_from_hub: Final = msgspec.msgpack.Decoder(FromHub).decode
decode_to_hub: Final = msgspec.msgpack.Decoder(ToHub).decode
