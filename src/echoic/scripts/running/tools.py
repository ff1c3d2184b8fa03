"""Tools as a machine sees them: what state each is in, and what it has said that nobody has taken yet.

    UNCONNECTED --Connected--> READY <--value, void, cancel--> BLOCKED     an eval or a do is under way
                                 |
          snd-terminate          |  Said(DISCONNECT)     Lost             snd-kill
          TERMINATED             |  DISCONNECTED         UNREACHABLE      KILLED

A tool that is gone stays known until a `rec-disconnect` releases it, or until there would be too many tools; of one
that was terminated only a process that names it learns by `rec-disconnect`. What a tool says is kept in the order of
its arrival, a queue for each sort, and can be taken also when it has gone since. What it says out of turn, a value that
nobody asked for, is told as a warning and forgotten.
"""

import enum
from collections import deque
from collections.abc import Iterator
from typing import Final, final

from echoic.scripts.running.limits import MachineLimits
from echoic.scripts.running.messages import FromTool
from echoic.terms import Term, Value

__all__ = ["GONE", "HERE", "ToolInstance", "ToolState", "Tools"]


class ToolState(enum.StrEnum):
    """What a tool is doing, or how it went."""

    UNCONNECTED = "unconnected"
    READY = "ready"
    BLOCKED = "blocked"
    DISCONNECTED = "disconnected"
    UNREACHABLE = "unreachable"
    KILLED = "killed"
    TERMINATED = "terminated"


HERE: Final = frozenset({ToolState.READY, ToolState.BLOCKED})
LEAVING: Final = frozenset({ToolState.TERMINATED, ToolState.DISCONNECTED})
"""Those who end what they were doing, and say so, although nobody waits for it."""
GONE: Final = frozenset({ToolState.DISCONNECTED, ToolState.UNREACHABLE, ToolState.KILLED})
QUEUED: Final = (FromTool.VALUE, FromTool.EVENT, FromTool.REQUEST, FromTool.STATISTICS)


@final
class ToolInstance:
    """A tool that was started or has connected."""

    __slots__ = (
        "claimed",
        "connected",
        "departed",
        "dismissed",
        "dos",
        "evals",
        "name",
        "number",
        "overflowed",
        "pending",
        "queues",
        "started",
        "state",
        "term",
        "watchers",
    )

    def __init__(self, number: int, name: str, *, started: bool) -> None:
        self.number = number
        self.name = name
        self.term: Value = Term(name, number)
        self.started = started
        self.state = ToolState.UNCONNECTED
        self.connected = False  # whether it ever was
        self.claimed = False  # whether a process knows it
        self.departed = False  # whether its connection is gone, whatever its state
        self.dismissed = False  # whether everybody else was told to forget it
        self.overflowed = False
        self.evals = 0
        self.dos = 0
        self.queues: dict[FromTool, deque[tuple[Value, ...]]] = {kind: deque() for kind in QUEUED}
        self.pending: list[tuple[Value, ...]] = []  # events that are not acknowledged
        self.watchers: dict[int, object] = {}  # processes that wait for it

    @property
    def waiting(self) -> int:
        """How much it has said that nobody has taken."""
        return sum(map(len, self.queues.values()))

    def settle(self) -> None:
        """Be ready or blocked, as what is under way says."""
        if self.state in HERE:
            self.state = ToolState.BLOCKED if self.evals or self.dos else ToolState.READY

    def hear(self, kind: FromTool, values: tuple[Value, ...], messages_max: int) -> str | None:
        """Keep what the tool says; return what is wrong with it, None for nothing, empty if that was said before."""
        if self.state not in HERE and not (self.state in LEAVING and kind is FromTool.VOID):
            return f"said `{kind}` while {self.state}"
        match kind:
            case FromTool.VOID:
                if not self.dos:
                    return None if self.state in LEAVING else "said `void`, and nothing was to be done"
                self.dos -= 1
            case FromTool.VALUE if not self.evals:
                return "said `value`, and nobody has asked"
            case FromTool.VALUE:
                self.evals -= 1
            case _:
                pass
        self.settle()
        if kind not in self.queues:
            return None
        if self.waiting >= messages_max:
            told, self.overflowed = self.overflowed, True
            return "" if told else f"has said more than {messages_max} things that nobody takes; the rest is lost"
        self.queues[kind].append(values)
        if kind is FromTool.EVENT:
            self.pending.append(values)
            del self.pending[: -2 * messages_max]
        return None


class Tools:
    """The tools that are known."""

    def __init__(self, limits: MachineLimits) -> None:
        self._limits = limits
        self._tools: dict[int, ToolInstance] = {}
        self._count = 0
        self.lobby: dict[
            str | None, dict[int, object]
        ] = {}  # processes that wait for a tool to come or go, by its name

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[ToolInstance]:
        return iter(self._tools.values())

    def get(self, number: int) -> ToolInstance | None:
        """Return the tool of this number."""
        return self._tools.get(number)

    @property
    def unclaimed(self) -> list[ToolInstance]:
        """Those that have connected by themselves and nobody knows yet, in the order in which they came."""
        return [tool for tool in self._tools.values() if tool.connected and not tool.claimed and not tool.started]

    @property
    def gone(self) -> list[ToolInstance]:
        """Those of which a process may learn that they are gone, without knowing them."""
        return [tool for tool in self._tools.values() if tool.state in GONE]

    def has_room(self) -> bool:
        """Whether there may be one more; what is gone and of no interest to anybody makes room."""
        if len(self._tools) < self._limits.tools_max:
            return True
        for tool in [tool for tool in self._tools.values() if is_gone(tool) and not tool.watchers]:
            self.release(tool)
        return len(self._tools) < self._limits.tools_max

    def add(self, name: str, *, started: bool) -> ToolInstance:
        """Return a tool that is known from now on."""
        self._count += 1
        tool = self._tools[self._count] = ToolInstance(self._count, name, started=started)
        return tool

    def release(self, tool: ToolInstance) -> None:
        """Forget a tool."""
        self._tools.pop(tool.number, None)


def is_gone(tool: ToolInstance) -> bool:
    """Whether a tool is gone, for a `rec-disconnect`."""
    return tool.state in GONE or (tool.state is ToolState.TERMINATED and tool.departed)
