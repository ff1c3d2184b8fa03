"""Nodes and edges: the control graph of a process.

    rec-msg(a) . snd-msg(b) + tau           node --rec-msg(a)--> node --snd-msg(b)--> END
                                                 --tau---------> END

A process is at a node; an edge is an atom that it may do next, and doing it takes the process to the edge's `target`.
All that had to be decided about the operators of the language has been decided when an edge was made:

- `guards` are the tests of the conditionals in front of the atom: all must be true, whenever it is tried.
- `resets` are the variables that the edge declares: a `let` begins with its first atom. Guards and arguments of the
  edge have been compiled as after the reset, so nobody needs to reset anything in order to try. `drops` are the
  variables whose scope the edge leaves.
- `blockers` are the edges of the preferred side of `+>` and `<+`: while one of them could be done, this one is not.
- `path` says where in a `||` or `>>` the atom stands, and `replaces` which part of the state ends with it: what was
  waiting elsewhere keeps its time (`keeps_time`).

Edges of a node are made when somebody first stands there (`Node.edges`), since most of what a `||` could reach is never
reached, and are shared by all instances of a process.
"""

import enum
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, final

from echoic.errors import ScriptError
from echoic.scripts.graph.expressions import Evaluation, always
from echoic.scripts.graph.templates import Bind, Pattern, Slot
from echoic.scripts.syntax.tree import Span
from echoic.terms import UNDEFINED

__all__ = [
    "END",
    "NO_CREATION",
    "NO_EVALUATION",
    "NO_MESSAGE",
    "NO_RESULT",
    "Creation",
    "Edge",
    "Kind",
    "MessageKey",
    "Node",
    "Timing",
    "keeps_time",
]


class Kind(enum.IntEnum):
    """What an edge does. The names are those of the atoms; `ASSIGN` is `:=`, and `AWAIT` the end of an `execute`."""

    TAU = 0
    ASSIGN = 1
    PRINTF = 2
    READ = 3
    CREATE = 4
    SND_MSG = 5
    REC_MSG = 6
    SND_NOTE = 7
    REC_NOTE = 8
    NO_NOTE = 9
    SUBSCRIBE = 10
    UNSUBSCRIBE = 11
    EXECUTE = 12
    AWAIT = 13
    REC_CONNECT = 14
    REC_DISCONNECT = 15
    SND_EVAL = 16
    REC_VALUE = 17
    SND_DO = 18
    SND_CANCEL = 19
    REC_EVENT = 20
    SND_ACK_EVENT = 21
    REC_REQUEST = 22
    SND_RESPONSE = 23
    SND_TERMINATE = 24
    SND_KILL = 25
    GET_PERF_STATS = 26
    REC_PERF_STATS = 27
    SHUTDOWN = 28


@dataclass(frozen=True, slots=True)
class Timing:
    """When an atom is enabled, from when it became possible: each bound is seconds, or a date with its fields."""

    delays: tuple[Evaluation, ...] = ()
    timeouts: tuple[Evaluation, ...] = ()
    dates: tuple[tuple[Evaluation, ...], ...] = ()  # abs-delay
    last_dates: tuple[tuple[Evaluation, ...], ...] = ()  # abs-timeout


@dataclass(frozen=True, slots=True)
class Creation:
    """What `create` creates: the process of this name, or, `variable`, of this value, with these arguments."""

    name: str
    variable: Evaluation | None
    arguments: tuple[Evaluation, ...]


@dataclass(frozen=True, slots=True)
class MessageKey:
    """Where messages look for partners: heads of the first argument and of the first argument within it.

    `known` is false where a variable decides, so that it must be asked for each time; `variable` where it decides about
    the inner head only.
    """

    known: bool
    head: Hashable = None
    inner: Hashable = None
    variable: Slot | None = None


NO_MESSAGE: Final = MessageKey(False)
NO_EVALUATION: Final = always(UNDEFINED)
NO_CREATION: Final = Creation("", None, ())
NO_RESULT: Final = Bind(-1, UNDEFINED)


@final
class Edge:
    """An atom that a process may do next. See the module for its fields."""

    __slots__ = (
        "arguments",
        "blockers",
        "creation",
        "drops",
        "evaluation",
        "guards",
        "key",
        "kind",
        "name",
        "origin",
        "path",
        "plain",
        "repeats",
        "replaces",
        "resets",
        "result",
        "span",
        "target",
        "timing",
    )
    kind: Kind
    name: str  # of the atom
    span: Span
    guards: tuple[Evaluation, ...]
    arguments: tuple[Pattern, ...]
    evaluation: Evaluation  # the right side of `:=`
    creation: Creation
    result: Bind  # what `:=`, `create` and `execute` assign to
    timing: Timing | None
    target: "Node"
    resets: tuple[int, ...]
    drops: tuple[int, ...]
    blockers: "tuple[Edge, ...]"
    path: tuple[int, ...]
    replaces: tuple[int, ...]
    key: MessageKey  # of messages, `NO_MESSAGE` else
    repeats: bool  # whether something is to be bound twice
    plain: bool  # no guards, timing or blockers: may be done whenever its kind may
    origin: object  # the atom in its scope, the same in all edges that stand for it

    def copy(self) -> "Edge":
        """Return another edge that is the same."""
        made = Edge()
        for name in Edge.__slots__:
            setattr(made, name, getattr(self, name))
        return made

    def __repr__(self) -> str:
        return f"<{self.name} at {self.span.line}:{self.span.column}>"


@final
class Node:
    """A state of a process: the atoms that it may do next."""

    __slots__ = ("_edges", "_make", "choosing", "number", "talking", "timed")

    def __init__(self, number: int, make: Callable[[], tuple[Edge, ...]]) -> None:
        self.number = number
        self._make = make
        self._edges: tuple[Edge, ...] | None = None
        # Known once there are edges:
        self.timed: tuple[Edge, ...] = ()  # those of its edges that time matters to
        self.talking = False  # whether there is a message among them
        self.choosing = False  # whether there is, and something else

    @property
    def edges(self) -> tuple[Edge, ...]:
        """What can be done here, in the order of the script.

        Raises:
            ScriptError: The script was not checked, and is wrong here; or calls in place are nested too deep.
        """
        if self._edges is None:
            try:
                self._edges = self._make()
            except RecursionError:
                raise ScriptError("processes call each other in place deeper than can be followed") from None
            self._make = tuple  # what it took is no longer needed
            self.timed = tuple(edge for edge in self._edges if edge.timing is not None)
            self.talking = any(edge.key is not NO_MESSAGE for edge in self._edges)
            self.choosing = self.talking and len(self._edges) > 1
        return self._edges

    def __repr__(self) -> str:
        return f"<node {self.number}>"


END: Final = Node(0, tuple)
"""Where a process has ended."""


def keeps_time(edge: Edge, done: Edge) -> bool:
    """Whether an edge that was there before `done` and is there after it goes on with its time."""
    kept = min(len(edge.path), len(done.replaces))
    return edge.path[:kept] != done.replaces[:kept]
