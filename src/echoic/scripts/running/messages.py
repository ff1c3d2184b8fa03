"""What goes into a machine and what comes out of it: its whole conversation with the world.

A machine (`machine.py`) decides and does not act. Somebody else starts tools, moves bytes and looks at the clock,
tells the machine by an `Input`, and does what its `Effect`s say. A log of the inputs, each with the number of steps
done before it, is all that it takes to repeat a run.

    tool                      Input                    atom                      Effect
    connects                  Connected       ->       rec-connect, execute
    answers an eval           Said(VALUE)     ->       rec-value
    has done                  Said(VOID)
                                                       snd-eval, snd-do      ->  Tell(EVAL), Tell(DO)
    has news                  Said(EVENT)     ->       rec-event
                                                       snd-ack-event         ->  Tell(ACK_EVENT)
    asks                      Said(REQUEST)   ->       rec-request
                                                       snd-response          ->  Tell(RESPONSE)
    leaves, or is lost        Said(DISCONNECT), Lost   rec-disconnect        ->  Dismiss

    has been told all         Delivered       ->       whatever follows a Tell with references
    keeps a value             Fetched         ->       whatever needs the value  ->  Fetch

Values may have references in them (`echoic.terms`), which a machine passes on without the values. Where it does need
one it says `Fetch`, once, and the process that asked does nothing until it is `Fetched`. What is `Fetched` takes the
place of the reference everywhere, so it may also come unasked; that a value is gone is a value too. A tool that is told
references has to get the values from those who keep them, and as long as that takes the process that told it waits:
`Tell` has a number then, and `Delivered` says that number.
"""

import enum
from dataclasses import dataclass
from typing import TypeAlias

from echoic.scripts.syntax.tree import Span
from echoic.terms import Reference, Value

__all__ = [
    "Announce",
    "AskLine",
    "Connected",
    "Delivered",
    "Dismiss",
    "Effect",
    "Fetch",
    "Fetched",
    "FromTool",
    "Halted",
    "Input",
    "Kill",
    "LineRead",
    "Lost",
    "Note",
    "Print",
    "Said",
    "Start",
    "Step",
    "Tell",
    "ToTool",
    "Warned",
]


class ToTool(enum.StrEnum):
    """What a bus says to a tool."""

    EVAL = "eval"
    DO = "do"
    CANCEL = "cancel"
    ACK_EVENT = "ack-event"
    RESPONSE = "response"
    TERMINATE = "terminate"
    STATISTICS = "get-perf-stats"


class FromTool(enum.StrEnum):
    """What a tool says to its bus."""

    VALUE = "value"
    VOID = "void"
    EVENT = "event"
    REQUEST = "request"
    DISCONNECT = "disconnect"
    STATISTICS = "perf-stats"


# Inputs


@dataclass(frozen=True, slots=True)
class Connected:
    """A tool of this name is there; `instance` is what `Start` said, None where nobody has started it."""

    name: str
    instance: int | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A tool says something; `values` are its arguments, as after the tool in the atom."""

    tool: int
    kind: FromTool
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Lost:
    """A tool is gone without a word, or could not be started; `reason` is for people."""

    tool: int
    reason: str


@dataclass(frozen=True, slots=True)
class Note:
    """A note from outside, of a channel that is bound to notes."""

    value: Value


@dataclass(frozen=True, slots=True)
class LineRead:
    """Somebody has typed a line, asked for by `AskLine`; None at the end of the input."""

    text: str | None


@dataclass(frozen=True, slots=True)
class Fetched:
    """The value of a reference is known, whoever has asked for it."""

    reference: Reference
    value: Value


@dataclass(frozen=True, slots=True)
class Delivered:
    """A tool has all that a `Tell` with this number refers to, or will never have it: the process goes on."""

    hold: int


Input: TypeAlias = Connected | Said | Lost | Note | LineRead | Fetched | Delivered


# Effects


@dataclass(frozen=True, slots=True)
class Print:
    """`printf`."""

    text: str


@dataclass(frozen=True, slots=True)
class Start:
    """Start a tool: run its command, which then connects with this instance."""

    tool: int
    name: str
    host: str
    command: str
    details: str


@dataclass(frozen=True, slots=True)
class Tell:
    """Say something to a tool; with `hold`, who has said it waits until that is `Delivered`."""

    tool: int
    kind: ToTool
    values: tuple[Value, ...]
    hold: int | None = None


@dataclass(frozen=True, slots=True)
class Fetch:
    """Somebody needs the value of a reference: `Fetched` is awaited."""

    reference: Reference


@dataclass(frozen=True, slots=True)
class Dismiss:
    """A tool is no longer known: its connection can be closed."""

    tool: int


@dataclass(frozen=True, slots=True)
class Kill:
    """End the process of a tool that was started."""

    tool: int


@dataclass(frozen=True, slots=True)
class AskLine:
    """`read` wants a line of text."""

    prompt: str


@dataclass(frozen=True, slots=True)
class Announce:
    """A note was sent; whoever binds channels to notes may publish it."""

    value: Value


@dataclass(frozen=True, slots=True)
class Step:
    """An atom was executed, only told where somebody listens (`traced`)."""

    number: int
    process: int
    name: str  # of the process
    atom: str
    arguments: tuple[Value, ...]
    span: Span
    partner: int | None
    partner_span: Span | None
    at_ns: int


@dataclass(frozen=True, slots=True)
class Warned:
    """Something is not as it should be, and the bus goes on."""

    text: str


@dataclass(frozen=True, slots=True)
class Halted:
    """The bus has ended: by `shutdown(value)`, or, with None, because its last process has."""

    value: Value | None


Effect: TypeAlias = Print | Start | Tell | Fetch | Dismiss | Kill | AskLine | Announce | Step | Warned | Halted
