"""Abstract tools: tools as a script sees them, without what they compute.

A tool is there, is busy with an eval, or is gone. `taken` are the events that a process has received and not
acknowledged, `requested` is where a request was received that has no response. The tools of a global state are one
number, as local states are (`local_states.py`).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from echoic.scripts.exploring.local_states import identity
from echoic.scripts.syntax.tree import Span
from echoic.terms import Term, Value

__all__ = ["NO_TOOLS", "AbstractTool", "Taken", "ToolStates"]

NO_TOOLS: Final = 0
"""The number of the state in which there are no tools."""

Taken: TypeAlias = tuple[tuple[Value, ...], Span]


class AbstractTool(NamedTuple):
    """One tool; `asked` are the values it may answer with, None where nobody has asked."""

    number: int
    name: str
    started: bool
    gone: bool = False
    asked: tuple[Value, ...] | None = None
    values: tuple[Value, ...] = ()
    taken: tuple[Taken, ...] = ()
    requested: Span | None = None
    measured: bool = False
    stub: int = -1  # where its stub stands, if it has one
    claimed: bool = True  # whether a process knows it; one that was started is not known before it has connected

    @property
    def term(self) -> Term:
        """The tool as processes know it."""
        return Term(self.name, self.number)

    @property
    def key(self) -> tuple[object, ...]:
        """What is equal for tools in the same state only."""
        return (
            self[:4],
            None if self.asked is None else tuple(map(identity, self.asked)),
            tuple(map(identity, self.values)),
            tuple((tuple(map(identity, values)), span) for values, span in self.taken),
            self[7:],
        )

    def __str__(self) -> str:
        return f"{self.name}({self.number})"


class ToolStates:
    """The states of all tools that were reached, by number."""

    def __init__(self) -> None:
        self.all: list[tuple[AbstractTool, ...]] = [()]
        self._numbers: dict[object, int] = {(): NO_TOOLS}

    def number(self, tools: tuple[AbstractTool, ...]) -> int:
        """Return the number of a state."""
        key = tuple(tool.key for tool in tools)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.all)
            self.all.append(tools)
        return found

    def changed(self, number: int, tool: AbstractTool, other: AbstractTool | None) -> int:
        """Return the number of a state with another tool in the place of one, or none."""
        return self.number(tuple(_replaced(self.all[number], tool, other)))

    def added(self, number: int, tool: AbstractTool) -> int:
        """Return the number of a state with one more tool."""
        return self.number(tuple(sorted((*self.all[number], tool), key=lambda each: each.number)))


def _replaced(
    tools: tuple[AbstractTool, ...], tool: AbstractTool, other: AbstractTool | None
) -> Iterator[AbstractTool]:
    for each in tools:
        if each is not tool:
            yield each
        elif other is not None:
            yield other
