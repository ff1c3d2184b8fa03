"""Successors of a global state: all steps that are possible in it, or enough of them.

    (tools, local of process 1, local of process 2, ...)

All parts are numbers; processes that have ended are left out, and without processes there are no tools: the bus has
halted. A process that is created, or a tool that is started, gets the smallest number that nobody has. (When a script
runs numbers are not used twice. Here they are, or a script that creates processes in a loop would have no end of
states. A tool's number is not used as long as a variable holds it; that a process compares the number of another one
that has ended with that of one that was created later is the only way to notice.)

Enough of them (`ample`): where a process can only do internal steps that no other process can see, prevent or enable,
its steps alone. Whatever the others could do, they can do afterwards as well, with the same results.
"""

from typing import TYPE_CHECKING, TypeAlias

from echoic.scripts.exploring.abstract_tools import NO_TOOLS
from echoic.scripts.exploring.local_moves import Creation, LocalMoves, Moves, Post
from echoic.scripts.exploring.local_states import ENDED, LocalState
from echoic.scripts.exploring.meetings import Meeting, find_meetings
from echoic.scripts.exploring.steps import Step, text_of
from echoic.scripts.exploring.tool_moves import ToolMoves
from echoic.scripts.graph import Kind, fits
from echoic.terms import Term, Value

if TYPE_CHECKING:
    from echoic.scripts.syntax.tree import Span

__all__ = ["HALTED", "State", "Successor", "Successors"]

State: TypeAlias = tuple[int, ...]
Successor: TypeAlias = tuple[int, State]

HALTED: State = (NO_TOOLS,)


class Successors:
    """What follows on the states of one program."""

    def __init__(self, moves: Moves) -> None:
        self._moves = moves
        self._known = moves.known
        self._states = moves.states
        self._limits = moves.limits
        self._notes = moves.surroundings.notes
        self.tools = ToolMoves(moves)
        self._meetings: dict[int, dict[int, tuple[Meeting, ...]]] = {}
        self._referred: dict[int, frozenset[int]] = {}
        self.delivered: dict[tuple[str, Value], None] = {}
        self.left_out: dict[str, None] = {}
        self.growing: dict[tuple[Span, str], tuple[State, int]] = {}
        self.cut = False  # whether something was left out since somebody last looked

    def initial(self) -> State:
        """Return the state in which the program begins."""
        program = self._moves.program
        started = [program.graph(name).starting(arguments) for name, arguments in program.initial]
        return _settled([NO_TOOLS, *(self._states.begin(number, *each) for number, each in enumerate(started, 1))])

    def ample(self, state: State, after: int) -> tuple[int, list[Successor]]:
        """Return the first position behind `after` of a process that is enough, and its steps; 0 where none is."""
        known = self._known
        for position in range(after + 1, len(state)):
            moves = known[state[position]]
            if moves.ample:
                return position, [(step, self._put(state, position, target)) for step, target, _ in moves.alone]
        return 0, []

    def all(self, state: State) -> list[Successor]:
        """Return all steps that are possible."""
        known = self._known
        found: list[Successor] = []
        senders: list[int] = []
        receivers: list[int] = []
        elsewhere: list[int] = []
        for position in range(1, len(state)):
            moves = known[state[position]]
            for step, target, _ in moves.alone:
                found.append((step, self._put(state, position, target)))
            if moves.sends:
                senders.append(position)
            if moves.receives:
                receivers.append(position)
            if moves.elsewhere:
                elsewhere.append(position)
        if receivers:
            for position in senders:
                self._meet(state, position, receivers, found)
        for position in elsewhere:
            self._reach_out(state, position, known[state[position]], found)
        if state[0]:
            found += [(step, (tools, *state[1:])) for step, tools in self.tools.own(state[0])]
        if self._notes:
            self._hear_channels(state, found)
        return found

    def _put(self, state: State, position: int, target: int) -> State:
        if target:
            return (*state[:position], target, *state[position + 1 :])
        return _settled([*state[:position], *state[position + 1 :]])

    def _meet(self, state: State, position: int, receivers: list[int], found: list[Successor]) -> None:
        mine = state[position]
        known = self._meetings.get(mine)
        if known is None:
            known = self._meetings[mine] = {}
        for other in receivers:
            if other == position:
                continue
            theirs = state[other]
            meetings = known.get(theirs)
            if meetings is None:
                meetings = known[theirs] = self._find_meetings(mine, theirs)
            for step, sender, receiver in meetings:
                parts = list(state)
                parts[position], parts[other] = sender, receiver
                found.append((step, tuple(parts) if sender and receiver else _settled(parts)))

    def _find_meetings(self, sender: int, receiver: int) -> tuple[Meeting, ...]:
        one, other = self._states.all[sender], self._states.all[receiver]
        return find_meetings(self._moves, one, other)

    def _reach_out(self, state: State, position: int, moves: LocalMoves, found: list[Successor]) -> None:
        """Add what changes more than processes that meet."""
        local = self._local(state, position)
        for post in moves.posts:
            self._post(state, position, post, found)
        for step, _, _ in moves.endings:
            found.append((step, HALTED))
        for creation in moves.creations:
            self._create(state, position, creation, found)
        if moves.tools:
            for step, target, tools in self.tools.of(local, state[0], self._fresh_tool(state, moves)):
                found.append((step, self._put((tools, *state[1:]), position, target)))

    def _post(self, state: State, position: int, post: Post, found: list[Successor]) -> None:
        parts = list(state)
        parts[position] = post.target
        full = self._local(state, position).name if post.full else self._deliver(state, position, post.value, parts)
        if full is None:
            found.append((post.step, _settled(parts)))
        else:
            self.growing.setdefault((post.edge.span, full), (state, post.step))
            self._leave_out(f"queues of more than {self._limits.notes_per_process_max} notes")

    def _deliver(self, state: State, sender: int, value: Value, parts: list[int]) -> str | None:
        """Put a note into the queues of `parts`; return the name of a process whose queue is full."""
        for position in range(1, len(state)):
            local = self._local(state, position)
            wanted = [pattern for pattern in local.subscriptions if fits(pattern, value)]
            self.delivered.update(dict.fromkeys((local.name, pattern) for pattern in wanted))
            if not wanted or position == sender:
                continue
            if len(local.notes) >= self._limits.notes_per_process_max:
                return local.name
            parts[position] = self._states.with_notes(local, (*local.notes, value))
        return None

    def _hear_channels(self, state: State, found: list[Successor]) -> None:
        for value in self._notes:
            parts = list(state)
            if self._deliver(state, 0, value, parts) is None and parts != list(state):
                step = self._moves.steps.number(Step("channel", f"sends {text_of(value)}", None))
                found.append((step, tuple(parts)))

    def _create(self, state: State, position: int, creation: Creation, found: list[Successor]) -> None:
        if len(state) > self._limits.processes_max:
            self._leave_out(f"more than {self._limits.processes_max} processes at a time")
            return
        numbers = [self._local(state, each).number for each in range(1, len(state))]
        number = next(each for each in range(1, len(state) + 1) if each not in numbers)
        local = self._local(state, position)
        edge, name, arguments = creation
        slots = self._moves.after(local, edge, [(edge.result.index, number)])
        text = f"create({text_of(Term(name, *arguments))},{number})"
        undefined = self._moves.undefined(local, edge, *arguments)
        step = self._moves.steps.number(Step(str(local), text, edge.span, undefined=undefined))
        parts = list(state)
        parts[position] = self._states.moved(local, edge, slots)
        made = self._states.begin(number, name, arguments)
        at = 1 + sum(each < number for each in numbers)
        parts.insert(at, made)
        found.append((step, _settled(parts)))

    def _fresh_tool(self, state: State, moves: LocalMoves) -> int:
        """Return the smallest number that no tool has and no variable holds, 0 where no tool is wanted or may come."""
        if not any(edge.kind in (Kind.EXECUTE, Kind.REC_CONNECT) for edge in moves.tools):
            return 0
        used = {tool.number for tool in self.tools.states.all[state[0]]}
        if len(used) >= self._limits.tools_max:
            self._leave_out(f"more than {self._limits.tools_max} tools at a time")
            return 0
        for number in state[1:]:
            if number not in self._referred:
                self._referred[number] = self._find_referred(number)
            used |= self._referred[number]
        return next(number for number in range(1, len(used) + 2) if number not in used)

    def _find_referred(self, number: int) -> frozenset[int]:
        local = self._states.all[number]
        names = self._moves.program.tools
        return frozenset(
            value.args[0]
            for value in local.slots
            if isinstance(value, Term)
            and value.name in names
            and len(value.args) == 1
            and isinstance(value.args[0], int)
        )

    def _leave_out(self, what: str) -> None:
        self.cut = True
        self.left_out[what] = None

    def _local(self, state: State, position: int) -> LocalState:
        return self._states.all[state[position]]


def _settled(parts: list[int]) -> State:
    """Return a state without the processes that have ended."""
    rest = [part for part in parts[1:] if part != ENDED]
    return (parts[0], *rest) if rest else HALTED
