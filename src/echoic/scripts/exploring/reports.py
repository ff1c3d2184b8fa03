"""Reports: what an exploration shows about a script.

    deadlock            a state without steps in which there are processes
    livelock            a process, or all of them, that can do nothing but internal steps any more
    unacknowledged      a state with an event that was taken, from which no state without it can be reached
    growing queue       a step that was left out because a queue was full
    note never taken    a subscription that notes came by, none of which a `rec-note` ever took
    undefined           a step that used a variable without a value
    no value            an expression that has no value in a state that was reached
    never done          an atom that no step did, also one that has no partner

The last, and notes that are never taken, are only reported if everything was looked at. All of them are the same
whether or not the exploration was reduced; only traces may differ.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from echoic.scripts.checking.context import Context
from echoic.scripts.checking.partners import check_partners
from echoic.scripts.checking.survey import survey
from echoic.scripts.exploring.abstract_tools import AbstractTool
from echoic.scripts.exploring.components import components_of
from echoic.scripts.exploring.findings import Finding, FindingKind
from echoic.scripts.exploring.local_moves import Moves
from echoic.scripts.exploring.local_states import LocalState
from echoic.scripts.exploring.reached import Reached
from echoic.scripts.exploring.steps import Step, text_of
from echoic.scripts.exploring.successors import HALTED, State, Successors
from echoic.scripts.graph import Edge, substitute
from echoic.scripts.syntax.tree import Assign, Atom, Create, Span

__all__ = ["Reports"]

SHOWN_MAX: Final = 8


class Reports:
    """What one exploration shows."""

    def __init__(
        self, reached: Reached, moves: Moves, successors: Successors, *, complete: bool, shortest: bool
    ) -> None:
        self._reached = reached
        self._moves = moves
        self._successors = successors
        self._complete = complete
        self._shortest = shortest
        self._condition = " with the values of the domain" if moves.surroundings.speaks else ""
        self._first_states: dict[int, int] | None = None
        self._first_transitions: dict[int, int] = {}
        for transition, step in enumerate(reached.steps):
            self._first_transitions.setdefault(step, transition)

    @property
    def steps(self) -> list[Step]:
        """All steps, by number."""
        return self._reached.all_steps

    @property
    def states(self) -> int:
        """How many states were found."""
        return len(self._reached.states)

    def all(self) -> list[Finding]:
        """Return all findings, sort by sort in the order of the text."""
        partnerless = list(self._partnerless())
        silent = {finding.span for finding in partnerless}
        found = [
            *self._deadlocks(),
            *self._livelocks(),
            *self._unacknowledged(),
            *self._growing_queues(),
            *self._untaken_notes(),
            *self._undefined(),
            *self._without_value(),
            *partnerless,
            *(finding for finding in self._never_done() if finding.span not in silent),
        ]
        limit = self._moves.limits.findings_per_kind_max
        kept: dict[FindingKind, dict[tuple[Span | None, str], Finding]] = {kind: {} for kind in FindingKind}
        for finding in found:
            if len(kept[finding.kind]) < limit:
                kept[finding.kind].setdefault((finding.span, finding.text), finding)
        return [each for group in kept.values() for each in sorted(group.values(), key=_place)]

    def deadlocks(self) -> list[int]:
        """Return the states without steps in which there are processes."""
        reached = self._reached
        return [
            state
            for state in range(reached.expanded)
            if reached.starts[state] == reached.starts[state + 1]
            and reached.states[state] != HALTED
            and state not in reached.cut
        ]

    def _deadlocks(self) -> Iterator[Finding]:
        for number in self.deadlocks():
            text, span = self.stuck(self._reached.states[number])
            yield Finding(FindingKind.DEADLOCK, text, span, self._reached.trace(number), self._shortest)

    def stuck(self, state: State) -> tuple[str, Span | None]:
        """Return what the processes of a state wait for, and the first place where one does."""
        waiting: list[str] = []
        places: list[Span] = []
        for number in state[1:]:
            local = self._moves.states.all[number]
            edges = [edge for edge in local.node.edges if self._moves.allows(local, edge)]
            atoms = dict.fromkeys(_wanted(edge, local) for edge in edges)
            waiting.append(f"{local} waits for {' or '.join(atoms)}" if atoms else f"{local} can do nothing")
            places += [edge.span for edge in edges or local.node.edges][:1]
        more = f" and {len(waiting) - SHOWN_MAX} more processes wait" if len(waiting) > SHOWN_MAX else ""
        return ", ".join(waiting[:SHOWN_MAX]) + more, places[0] if places else None

    def _livelocks(self) -> Iterator[Finding]:
        known: list[frozenset[Span]] = []
        for finding, places in self._spinning():
            if places not in known:
                known.append(places)
                yield finding
        for state, places in self._idle_components():
            if not any(places == each for each in known) and not places <= frozenset().union(*known):
                known.append(places)
                text = "only internal steps are possible any more, and no end"
                yield Finding(FindingKind.LIVELOCK, text, min(places, key=_order), self._reached.trace(state))

    def _spinning(self) -> Iterator[tuple[Finding, frozenset[Span]]]:
        """Yield processes that can only do internal steps any more, each with its places."""
        states = self._moves.states.all
        known = self._moves.known

        def targets_of(number: int) -> list[int]:
            return [move.target for move in known[number].alone] if number in known else []

        component = components_of(len(states), targets_of)
        members: defaultdict[int, list[int]] = defaultdict(list)
        for number in range(1, len(states)):
            members[component[number]].append(number)
        for numbers in members.values():
            if not all(number in known and known[number].ample for number in numbers):
                continue
            steps = [move for number in numbers for move in known[number].alone]
            if any(component[move.target] != component[numbers[0]] or not move.target for move in steps):
                continue
            local = states[numbers[0]]
            first = min(self._first_state(number) for number in numbers)
            if first < 0:
                continue
            places = frozenset(move.edge.span for move in steps if move.edge is not None)
            text = f"process `{local.name}` can only do internal steps any more, and no end"
            trace = self._reached.trace(first)
            yield Finding(FindingKind.LIVELOCK, text, min(places, key=_order), trace, self._shortest), places

    def _idle_components(self) -> Iterator[tuple[int, frozenset[Span]]]:
        """Yield a state of each component that has internal steps only and cannot be left, with its places."""
        reached = self._reached
        steps = reached.all_steps
        if not any(steps[step].internal for step in self._first_transitions):
            return
        component = components_of(len(reached.states), reached.targets_of)
        left = set(component[reached.expanded :]) | {component[state] for state in reached.cut}
        places: defaultdict[int, set[Span]] = defaultdict(set)
        first: dict[int, int] = {}
        for state in range(reached.expanded):
            mine = component[state]
            first.setdefault(mine, state)
            for step, target in zip(reached.steps_of(state), reached.targets_of(state), strict=True):
                if component[target] != mine or not steps[step].internal:
                    left.add(mine)
                else:
                    places[mine].update(steps[step].places)
        for number, spans in places.items():
            if number not in left and spans:
                yield first[number], frozenset(spans)

    def _unacknowledged(self) -> Iterator[Finding]:
        reached, tools = self._reached, self._successors.tools.states.all
        items = {number: _open_items(tools[number]) for number in {state[0] for state in reached.states}}
        holding: defaultdict[tuple[str, Span], list[int]] = defaultdict(list)
        for number, state in enumerate(reached.states):
            for item in items[state[0]]:
                holding[item].append(number)
        for (text, span), states in sorted(holding.items(), key=lambda each: (_order(each[0][1]), each[0][0])):
            stuck = self._never_leaving(states)
            if stuck is not None:
                yield Finding(FindingKind.UNACKNOWLEDGED, text, span, reached.trace(stuck), self._shortest)

    def _never_leaving(self, states: list[int]) -> int | None:
        """Return the first of some states from which none but these states can be reached."""
        reached = self._reached
        within = set(states)
        sources: defaultdict[int, list[int]] = defaultdict(list)
        leaving = []
        for state in states:
            targets = set(reached.targets_of(state))
            if state >= reached.expanded or state in reached.cut or not targets <= within:
                leaving.append(state)
            for target in targets:
                sources[target].append(state)
        found = set(leaving)
        while leaving:
            for source in sources[leaving.pop()]:
                if source not in found:
                    found.add(source)
                    leaving.append(source)
        return min(within - found, default=None)

    def _growing_queues(self) -> Iterator[Finding]:
        numbers = (
            {state: number for number, state in enumerate(self._reached.states)} if self._successors.growing else {}
        )
        limit = self._moves.limits.notes_per_process_max
        for (span, name), (state, step) in self._successors.growing.items():
            trace = (*self._reached.trace(numbers[state]), self._reached.all_steps[step])
            text = f"process `{name}` may have more than {limit} notes that it has not taken"
            yield Finding(FindingKind.GROWING_QUEUE, text, span, trace, self._shortest)

    def _untaken_notes(self) -> Iterator[Finding]:
        if self._complete:
            for name, pattern in self._successors.delivered:
                if (name, pattern) not in self._moves.taken:
                    text = f"process `{name}` gets notes like `{text_of(pattern)}`, and never takes one"
                    yield Finding(FindingKind.UNTAKEN_NOTE, text, self._moves.subscribed[name, pattern])

    def _undefined(self) -> Iterator[Finding]:
        for number, transition in self._first_transitions.items():
            for span, name in self._reached.all_steps[number].undefined:
                trace = self._reached.trace_with(transition)
                yield Finding(FindingKind.UNDEFINED, f"`{name}` is used and has no value", span, trace, self._shortest)

    def _without_value(self) -> Iterator[Finding]:
        for span, text in self._moves.without_value:
            yield Finding(FindingKind.WITHOUT_VALUE, f"not enabled: {text}", span)

    def _partnerless(self) -> Iterator[Finding]:
        script = self._moves.program.script
        context = Context(script)
        check_partners(list(survey(script)), context)
        places = {(span.file, span.line, span.column): span for span in self._moves.actions}
        for problem in context.warnings.found:
            span = places.get((problem.file, problem.line, problem.column))
            yield Finding(FindingKind.PARTNERLESS, problem.message, span)

    def _never_done(self) -> Iterator[Finding]:
        if not self._complete:
            return
        done = {span for step in self._first_transitions for span in self._reached.all_steps[step].places}
        tried: set[Span] = set()
        for local in self._moves.states.all[1:]:
            tried.update(edge.span for edge in local.node.edges)
        behind = []
        never: dict[str, Finding] = {}
        for placed in survey(self._moves.program.script):
            node, process = placed.node, placed.process
            if not isinstance(node, Atom | Assign | Create) or node.span in done:
                continue
            if isinstance(node, Atom) and node.name == "delta":
                continue
            if node.span in tried:
                yield Finding(FindingKind.UNREACHABLE, f"this is never enabled{self._condition}", node.span)
            else:
                behind.append((process, node.span))
        unused = self._unused(done | tried)
        for process, span in behind:
            if process.name in unused:
                text = f"process `{process.name}` is never started"
                never.setdefault(process.name, Finding(FindingKind.UNREACHABLE, text, process.span))
            else:
                yield Finding(FindingKind.UNREACHABLE, f"this is never reached{self._condition}", span)
        yield from never.values()

    def _unused(self, reached: set[Span]) -> set[str]:
        """Return the names of processes of which nothing was reached."""
        used: dict[str, bool] = {}
        for placed in survey(self._moves.program.script):
            if isinstance(placed.node, Atom | Assign | Create):
                used[placed.process.name] = used.get(placed.process.name, False) or placed.node.span in reached
        return {name for name, is_used in used.items() if not is_used}

    def _first_state(self, local: int) -> int:
        """Return the first state in which a process stands somewhere, -1 where there is none."""
        if self._first_states is None:
            self._first_states = {}
            for number, state in enumerate(self._reached.states):
                for each in state[1:]:
                    self._first_states.setdefault(each, number)
        return self._first_states.get(local, -1)


def _open_items(tools: tuple[AbstractTool, ...]) -> list[tuple[str, Span]]:
    """Return what was taken from tools and is not settled, each with where it was taken."""
    found = []
    for tool in tools:
        for values, span in tool.taken:
            found.append((f"event `{','.join(map(text_of, values))}` of {tool} is never acknowledged", span))
        if tool.requested is not None:
            found.append((f"a request of {tool} never has a response", tool.requested))
    return found


def _wanted(edge: Edge, local: LocalState) -> str:
    values = [text_of(substitute(argument, local.slots)) for argument in edge.arguments]
    return f"{edge.name}({','.join(values)})" if values else edge.name


def _order(span: Span) -> tuple[str, int, int]:
    return span.file, span.line, span.column


def _place(finding: Finding) -> tuple[str, int, int, str]:
    return (*(("", 0, 0) if finding.span is None else _order(finding.span)), finding.text)
