"""What can be seen of a machine from outside: records for people, consoles and tests."""

from dataclasses import dataclass

from echoic.scripts.running.messages import Input
from echoic.scripts.running.tools import ToolState
from echoic.scripts.syntax.tree import Span
from echoic.terms import Value

__all__ = [
    "LogEntry",
    "MachineState",
    "MachineStatistics",
    "Party",
    "Possible",
    "ProcessState",
    "ToolView",
    "Wait",
    "Waiting",
]


@dataclass(frozen=True, slots=True)
class LogEntry:
    """Something that was heard, or None where only time went on, after this many turns, at this time."""

    turns: int
    now_ns: int
    heard: Input | None


@dataclass(frozen=True, slots=True)
class MachineStatistics:
    """What a machine has done, and how much it has at the moment."""

    turns: int  # how often a process has tried its atoms
    steps: int  # atoms done; two that meet are one
    handshakes: int
    created: int
    processes: int
    waiting: int  # processes that nothing wakes but what they wait for
    tools: int
    notes_dropped: int
    warnings: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """An atom that a process could do next, as it is with the values of its variables."""

    atom: str
    arguments: tuple[Value, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Possible:
    """An atom that a process could do at once."""

    process: int
    name: str  # of the process
    atom: Waiting


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A process: what it waits for, where, and what it has."""

    number: int
    name: str
    queued: bool
    waiting: tuple[Waiting, ...]
    subscriptions: tuple[Value, ...]
    notes: tuple[Value, ...]
    due_ns: int | None
    arguments: tuple[Value, ...] = ()  # what it was given, as it is since


@dataclass(frozen=True, slots=True)
class ToolView:
    """A tool: its state, and what it has said that nobody has taken."""

    number: int
    name: str
    state: ToolState
    started: bool
    claimed: bool
    queued: tuple[tuple[str, tuple[Value, ...]], ...]
    pending: tuple[tuple[Value, ...], ...]  # events that are not acknowledged


@dataclass(frozen=True, slots=True)
class Party:
    """A process, or a tool; number 0 stands for any tool of a name."""

    number: int
    name: str
    is_tool: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Somebody who waits for somebody at an atom; for nobody there is where `awaited` is None.

    With `at_once` the other one has come to the other half of the atom, and it is time, or a test, or something else
    that is preferred which keeps the two apart. Without, he could come to it. With `hopeless` nobody ever will: all
    who could wait themselves, for each other, and nothing from outside can change that.
    """

    waiter: Party
    awaited: Party | None
    atom: str
    arguments: tuple[Value, ...]
    at_once: bool
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class MachineState:
    """Everything there is."""

    processes: tuple[ProcessState, ...]
    tools: tuple[ToolView, ...]
    lines: int
    statistics: MachineStatistics
