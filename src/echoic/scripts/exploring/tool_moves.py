"""Tool moves: what a process can do with the tools there are, and what tools do by themselves.

The atoms are enabled as when a script runs; what tools say is what the environment (`environment.py`) lets them.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from echoic.scripts.exploring.abstract_tools import AbstractTool, Taken, ToolStates
from echoic.scripts.exploring.local_moves import Moves
from echoic.scripts.exploring.local_states import LocalState
from echoic.scripts.exploring.steps import Step, text_of
from echoic.scripts.exploring.stubs import NO_STUB, SAID, Stubs
from echoic.scripts.graph import Bindings, Edge, Kind, Pattern, Slots, consistent, match, substitute
from echoic.terms import Term, Value, plain

__all__ = ["ToolMove", "ToolMoves"]

VALUES_MAX = 4  # answers that nobody has taken


class ToolMove(NamedTuple):
    """A step, and where the process and the tools are after it."""

    step: int
    target: int
    tools: int


class ToolMoves:
    """The moves of all local states with all states of tools."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._surroundings = moves.surroundings
        self.states = ToolStates()
        self._stubs = Stubs(moves)
        self._known: dict[tuple[int, int, int], tuple[ToolMove, ...]] = {}
        self._own: dict[int, tuple[tuple[int, int], ...]] = {}

    def of(self, local: LocalState, tools: int, fresh: int) -> tuple[ToolMove, ...]:
        """Return what a process can do with tools; `fresh` is the number of the next one, none where it is 0."""
        key = (local.id, tools, fresh)
        found = self._known.get(key)
        if found is None:
            edges = self._moves.known[local.id].tools
            found = tuple(move for edge in edges for move in self._find(local, edge, tools, fresh))
            self._known[key] = found
        return found

    def own(self, tools: int) -> tuple[tuple[int, int], ...]:
        """Return what tools can do by themselves: steps, and how the tools are after them."""
        found = self._own.get(tools)
        if found is None:
            found = self._own[tools] = tuple(self._find_own(tools))
        return found

    def _find_own(self, tools: int) -> Iterator[tuple[int, int]]:
        for tool in self.states.all[tools]:
            if tool.gone:
                continue
            if tool.stub != NO_STUB:
                yield from self._find_own_of_stub(tool, tools)
            if tool.asked and len(tool.values) < VALUES_MAX:
                for value in tool.asked:
                    answered = tool._replace(asked=None, values=(*tool.values, value))
                    yield self._by_itself(tool, f"answers {text_of(value)}", answered, tools)
            if tool.name in self._surroundings.leaving and tool.stub == NO_STUB and tool.claimed:
                yield self._by_itself(tool, "leaves", _gone(tool), tools)
            elif self._surroundings.environment.tools_fail:
                yield self._by_itself(tool, "is lost", _gone(tool), tools)

    def _find_own_of_stub(self, tool: AbstractTool, tools: int) -> Iterator[tuple[int, int]]:
        for step, target, _ in self._stubs.alone(tool.stub):
            yield step, self.states.changed(tools, tool, tool._replace(stub=target))
        if tool.asked is not None and len(tool.values) < VALUES_MAX:
            for values, target in self._stubs.said(tool.stub, "snd-value"):
                answered = tool._replace(asked=None, values=(*tool.values, *values[:1]), stub=target)
                yield self._by_itself(tool, f"answers {','.join(map(text_of, values))}", answered, tools)
        for _ in self._stubs.said(tool.stub, "snd-disconnect"):
            yield self._by_itself(tool, "leaves", _gone(tool), tools)

    def _by_itself(self, tool: AbstractTool, text: str, other: AbstractTool, tools: int) -> tuple[int, int]:
        step = self._moves.steps.number(Step(str(tool), text, None))
        return step, self.states.changed(tools, tool, other)

    def _find(self, local: LocalState, edge: Edge, tools: int, fresh: int) -> Iterator[ToolMove]:
        match edge.kind:
            case Kind.EXECUTE:
                value = substitute(edge.arguments[0], local.slots)
                if fresh and isinstance(value, Term) and value.name in self._moves.program.tools:
                    yield self._join(local, edge, tools, self._made(fresh, value.name, True), None)
            case Kind.REC_CONNECT:
                yield from self._connect(local, edge, tools, fresh)
            case Kind.REC_DISCONNECT:
                yield from self._disconnect(local, edge, tools)
            case _:
                tool = _tool_of(self.states.all[tools], edge, local.slots)
                if tool is not None and not tool.gone:
                    told = tuple(substitute(argument, local.slots) for argument in edge.arguments[1:])
                    for stub in self._stubs.hear(tool.stub, edge.kind, told):
                        for other, bindings in self._deal(local, edge, tool._replace(stub=stub)):
                            yield self._move(local, edge, self.states.changed(tools, tool, other), bindings)

    def _move(
        self, local: LocalState, edge: Edge, tools: int, bindings: Bindings, value: Value | None = None
    ) -> ToolMove:
        slots = self._moves.after(local, edge, bindings)
        step = self._moves.step(local, edge, slots, value)
        return ToolMove(step, self._moves.states.moved(local, edge, slots), tools)

    def _join(
        self, local: LocalState, edge: Edge, tools: int, tool: AbstractTool, bindings: Bindings | None
    ) -> ToolMove:
        if bindings is not None:
            return self._move(local, edge, self.states.added(tools, tool), bindings)
        return self._move(local, edge, self.states.added(tools, tool), [(edge.result.index, tool.term)], tool.term)

    def _made(self, number: int, name: str, started: bool) -> AbstractTool:
        return AbstractTool(number, name, started, stub=self._stubs.begin(name, number), claimed=not started)

    def _connect(self, local: LocalState, edge: Edge, tools: int, fresh: int) -> Iterator[ToolMove]:
        there = self.states.all[tools]
        for name in self._moves.program.tools if fresh else ():
            came = sum(not tool.started and tool.name == name for tool in there)
            tool = self._made(fresh, name, False)
            bindings = _matched(edge.arguments[:1], local.slots, (tool.term,))
            if bindings is not None and came < self._surroundings.environment.connections_max:
                yield self._join(local, edge, tools, tool, bindings)

    def _disconnect(self, local: LocalState, edge: Edge, tools: int) -> Iterator[ToolMove]:
        for tool in self.states.all[tools]:
            bindings = _matched(edge.arguments[:1], local.slots, (tool.term,)) if tool.gone else None
            if bindings is not None:
                yield self._move(local, edge, self.states.changed(tools, tool, None), bindings)
                return

    def _deal(
        self, local: LocalState, edge: Edge, tool: AbstractTool
    ) -> Iterable[tuple[AbstractTool | None, Bindings]]:
        """Return how a tool can be after an atom about it, with what is bound."""
        match edge.kind:
            case Kind.AWAIT:
                return [(tool._replace(claimed=True), [(edge.result.index, tool.term)])]
            case Kind.SND_EVAL if tool.asked is None:
                answers = self._surroundings.answers_to(edge, tool.name) if tool.stub == NO_STUB else ()
                return [(tool._replace(asked=answers), [])]
            case Kind.SND_DO if tool.asked is None:
                return [(tool, [])]
            case Kind.GET_PERF_STATS if tool.asked is None:
                return [(tool._replace(measured=True), [])]
            case Kind.SND_CANCEL if tool.asked is not None:
                return [(tool._replace(asked=None), [])]
            case Kind.SND_RESPONSE:
                return [(tool._replace(requested=None), [])]
            case Kind.SND_TERMINATE:
                return [(self._dismissed(tool), [])]
            case Kind.SND_KILL if tool.started:
                return [(self._dismissed(tool), [])]
            case Kind.SND_ACK_EVENT:
                return _acknowledged(tool, edge, local.slots)
            case Kind.REC_VALUE | Kind.REC_EVENT | Kind.REC_REQUEST | Kind.REC_PERF_STATS:
                return self._hear(local, edge, tool)
            case _:
                return ()

    def _dismissed(self, tool: AbstractTool) -> AbstractTool | None:
        """Return a tool that has ended: somebody may still want to know."""
        return _gone(tool) if tool.name in self._surroundings.leaving else None

    def _hear(self, local: LocalState, edge: Edge, tool: AbstractTool) -> Iterator[tuple[AbstractTool, Bindings]]:
        patterns = edge.arguments[1:]
        if edge.kind is Kind.REC_VALUE:
            for position, value in enumerate(tool.values):
                bindings = _matched(patterns, local.slots, (value,))
                if bindings is not None:
                    yield tool._replace(values=tool.values[:position] + tool.values[position + 1 :]), bindings
                    return
        elif edge.kind is Kind.REC_PERF_STATS:
            for value in self._surroundings.domain.of_template(patterns[0], local.slots):
                bindings = _matched(patterns, local.slots, (value,))
                if bindings is not None and tool.measured:
                    yield tool._replace(measured=False), bindings
        elif edge.kind is Kind.REC_EVENT or tool.requested is None:
            for values, stub in self._sayings(edge.kind, tool):
                bindings = _matched(patterns, local.slots, values)
                if bindings is not None:
                    yield _heard(tool._replace(stub=stub), edge, values), bindings

    def _sayings(self, kind: Kind, tool: AbstractTool) -> Iterable[tuple[tuple[Value, ...], int]]:
        """Return the events or requests that a tool may send, and where its stub stands after them."""
        if tool.stub != NO_STUB:
            return self._stubs.said(tool.stub, SAID[kind])
        return [(values, NO_STUB) for values in self._surroundings.said[kind, tool.name]]


def _heard(tool: AbstractTool, edge: Edge, values: tuple[Value, ...]) -> AbstractTool:
    if edge.kind is Kind.REC_REQUEST:
        return tool._replace(requested=edge.span)
    taken = tool.taken if any(each[0] == values for each in tool.taken) else (*tool.taken, (values, edge.span))
    return tool._replace(taken=tuple(sorted(taken, key=_text)))


def _text(taken: Taken) -> tuple[str, int, int]:
    return ",".join(map(text_of, taken[0])), taken[1].line, taken[1].column


def _acknowledged(tool: AbstractTool, edge: Edge, slots: Slots) -> list[tuple[AbstractTool, Bindings]]:
    """Return the tool without the event that is acknowledged: an equal one, or one that begins as what is said."""
    wanted = plain(substitute(edge.arguments[1], slots))
    exact = [each for each in tool.taken if _matched(edge.arguments[1:2], slots, each[0][:1]) is not None]
    for taken in [*exact, *(each for each in tool.taken if _begins(plain(each[0][0]), wanted))]:
        return [(tool._replace(taken=tuple(each for each in tool.taken if each is not taken)), [])]
    return []


def _begins(event: Value, wanted: Value) -> bool:
    if not isinstance(event, Term) or not isinstance(wanted, Term) or event.name != wanted.name:
        return False
    return event.args[: len(wanted.args)] == wanted.args


def _gone(tool: AbstractTool) -> AbstractTool:
    return AbstractTool(tool.number, tool.name, tool.started, gone=True)


def _tool_of(tools: tuple[AbstractTool, ...], edge: Edge, slots: Slots) -> AbstractTool | None:
    value = plain(substitute(edge.arguments[0], slots))
    return next((tool for tool in tools if tool.term is value), None)


def _matched(patterns: tuple[Pattern, ...], slots: Slots, values: tuple[Value, ...]) -> Bindings | None:
    """Return what is bound where all patterns match all values."""
    bindings: Bindings = []
    if len(patterns) != len(values):
        return None
    for pattern, value in zip(patterns, values, strict=True):
        if not match(pattern, slots, value, bindings):
            return None
    return bindings if consistent(bindings) else None
