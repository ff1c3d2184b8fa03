"""Local moves: what a process can do where it stands, found once for each local state.

Guards, expressions and patterns are those of `graph`, and an atom is enabled under the same conditions as when the
script runs; there is no second meaning of the language here. What differs:

- Time is not measured. What waits for a `delay` may be done at once, what has a `timeout` may be done until time
  passes, which it can at any moment and is a step of its own.
- What is typed for `read` is any value of the domain that matches.
- An atom gives way to a preferred one (`P +> Q`) that the process can do by itself. To a message, an event or another
  thing that others take part in it does not: a partner may prefer something himself and refuse, and a tool may say
  what is preferred only later, so that what is preferred less may be done all the same.

    alone          takes nobody else: tau := printf read, rec-note no-note subscribe unsubscribe, and time
    sends, receives    messages, `meetings.py` finds out who meets whom
    posts          notes, which go to others as well
    creations, tools, endings    change more than this process

A process is *ample* when all it can do here is tau, `:=` or printf: no other process can see, prevent or enable that,
so in a reduced exploration nothing else needs to be looked at in that state.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from echoic.scripts.checking.survey import survey
from echoic.scripts.exploring.environment import Surroundings
from echoic.scripts.exploring.limits import ExplorationLimits
from echoic.scripts.exploring.local_states import ENDED, LocalState, LocalStates
from echoic.scripts.exploring.steps import Step, Steps, atom_text
from echoic.scripts.exploring.undefined import undefined_values, undefined_variables
from echoic.scripts.graph import (
    EVALUATION_ERRORS,
    Bindings,
    Edge,
    Kind,
    Program,
    consistent,
    fits,
    fits_type,
    match,
    substitute,
)
from echoic.scripts.syntax.tree import Span
from echoic.terms import Value, plain

__all__ = ["Alone", "Creation", "LocalMoves", "Moves", "Post"]

INTERNAL: Final = frozenset({Kind.TAU, Kind.ASSIGN, Kind.PRINTF})
CERTAIN: Final = frozenset({Kind.SND_NOTE, Kind.SHUTDOWN, Kind.EXECUTE})
FIRST_TOOL_KIND: Final = Kind.EXECUTE


class Alone(NamedTuple):
    """A step to another local state."""

    step: int
    target: int
    edge: Edge | None = None


class Post(NamedTuple):
    """A note that is sent; `full` where the sender's own queue has no place for it."""

    step: int
    target: int
    edge: Edge
    value: Value
    full: bool


class Creation(NamedTuple):
    """A process that can be created."""

    edge: Edge
    name: str
    arguments: tuple[Value, ...]


@dataclass(slots=True)
class LocalMoves:
    """What can be done in one local state."""

    alone: list[Alone] = field(default_factory=list)
    sends: list[Edge] = field(default_factory=list)
    receives: list[Edge] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)
    creations: list[Creation] = field(default_factory=list)
    tools: list[Edge] = field(default_factory=list)
    endings: list[Alone] = field(default_factory=list)
    ample: bool = False
    elsewhere: bool = False  # whether there is anything but `alone`, `sends` and `receives`


class Known(dict[int, LocalMoves]):
    """Moves by local states: what is asked for the first time is found then, and asking again costs next to nothing."""

    def __init__(self, moves: "Moves") -> None:
        super().__init__()
        self._moves = moves

    def __missing__(self, number: int) -> LocalMoves:
        found = self[number] = self._moves.find(number)
        return found


class Moves:
    """The local moves of all local states, and what was noticed when they were found."""

    def __init__(self, program: Program, surroundings: Surroundings, limits: ExplorationLimits) -> None:
        self.program = program
        self.surroundings = surroundings
        self.limits = limits
        self.states = LocalStates(program)
        self.steps = Steps()
        self.actions: dict[Span, object] = {}
        for script in (*(stub.script for stub in surroundings.environment.stubs.values()), program.script):
            self.actions.update((placed.node.span, placed.node) for placed in survey(script))
        self.without_value: dict[tuple[Span, str], None] = {}
        self.subscribed: dict[tuple[str, Value], Span] = {}
        self.taken: set[tuple[str, Value]] = set()
        self.known: dict[int, LocalMoves] = Known(self)

    def find(self, number: int) -> LocalMoves:
        """Return what can be done in a local state, found anew."""
        local = self.states.all[number]
        return self._find(local)

    def after(self, local: LocalState, edge: Edge, bindings: Bindings | None = None) -> list[Value | None]:
        """Return the variables of a process when it has done an edge, and not yet dropped any."""
        slots = list(local.slots)
        for index in edge.resets:
            slots[index] = None
        for index, value in bindings or ():
            slots[index] = value
        return slots

    def step(self, local: LocalState, edge: Edge, slots: list[Value | None], value: Value | None = None) -> int:
        """Return the number of the step of a process alone."""
        action = self.actions.get(edge.span)
        return self.steps.number(
            Step(
                str(local),
                atom_text(edge, action, slots, value),
                edge.span,
                internal=edge.kind in INTERNAL,
                undefined=self.undefined(local, edge, value),
            )
        )

    def undefined(self, local: LocalState, edge: Edge, *values: Value | None) -> tuple[tuple[Span, str], ...]:
        """Return which variables without a value are used."""
        action = self.actions.get(edge.span)
        names = undefined_variables(action, edge, local.slots)
        names += undefined_values(action, tuple(value for value in values if value is not None))
        return tuple((edge.span, name) for name in names)

    def allows(self, local: LocalState, edge: Edge) -> bool:
        """Whether guards and time allow an edge."""
        if edge.plain:
            return True
        slots = local.slots
        try:
            for guard in edge.guards:
                if guard(slots, local) is not True:
                    return False
            if edge.timing is None:
                return True
            for duration in (*edge.timing.delays, *edge.timing.timeouts):
                if type(plain(duration(slots, local))) not in (int, float):
                    raise ValueError("a time is a number of seconds")
        except EVALUATION_ERRORS as error:
            self.without_value[edge.span, str(error)] = None
            return False
        return (edge.path, edge.origin) not in local.late

    def _find(self, local: LocalState) -> LocalMoves:
        moves = LocalMoves()
        allowed = [edge for edge in local.node.edges if self.allows(local, edge)]
        alone: dict[Edge, list[Alone]] = {}
        for edge in allowed:
            if edge.kind < FIRST_TOOL_KIND and edge.kind not in (Kind.SND_MSG, Kind.REC_MSG):
                alone[edge] = self._alone(local, edge)
        for edge in allowed:
            if not self._is_blocked(edge, allowed, alone):
                self._place(local, edge, alone, moves)
        moves.ample = bool(moves.alone) and all(edge.kind in INTERNAL and edge.timing is None for edge in allowed)
        if moves.ample and any(move.target == ENDED for move in moves.alone):
            # an end frees a number, stops notes, and the last one ends the bus: others could notice
            moves.ample = not (self.surroundings.creates or self.program.tools or local.subscriptions)
        moves.elsewhere = bool(moves.posts or moves.creations or moves.tools or moves.endings)
        return moves

    def _is_blocked(self, edge: Edge, allowed: list[Edge], alone: dict[Edge, list[Alone]]) -> bool:
        """Whether something is possible for certain that an edge gives way to."""
        for blocker in edge.blockers:
            timing = blocker.timing
            if blocker not in allowed or (timing is not None and (timing.delays or timing.dates)):
                continue  # a delay may not have passed yet
            if blocker.kind in CERTAIN or (alone.get(blocker) and blocker.kind is not Kind.READ):
                return True
        return False

    def _place(self, local: LocalState, edge: Edge, alone: dict[Edge, list[Alone]], moves: LocalMoves) -> None:
        match edge.kind:
            case Kind.SND_MSG:
                moves.sends.append(edge)
            case Kind.REC_MSG:
                moves.receives.append(edge)
            case Kind.SND_NOTE:
                moves.posts.append(self._post(local, edge))
            case Kind.CREATE:
                self._create(local, edge, moves)
            case Kind.SHUTDOWN:
                moves.endings.append(Alone(self.step(local, edge, self.after(local, edge)), ENDED, edge))
            case kind if kind >= FIRST_TOOL_KIND:  # `shutdown` has been dealt with
                moves.tools.append(edge)
            case _:
                moves.alone += alone[edge]
        timing = edge.timing
        if timing is not None and (timing.timeouts or timing.last_dates):
            text = f"the time of {edge.name} at {edge.span.line}:{edge.span.column} is over"
            step = self.steps.number(Step(str(local), text, None, internal=True))
            moves.alone.append(Alone(step, self.states.with_late(local, edge)))

    def _alone(self, local: LocalState, edge: Edge) -> list[Alone]:
        match edge.kind:
            case Kind.TAU | Kind.PRINTF:
                return [self._move(local, edge, None)]
            case Kind.ASSIGN:
                return self._assign(local, edge)
            case Kind.READ:
                return self._read(local, edge)
            case Kind.REC_NOTE:
                return self._take_note(local, edge)
            case Kind.NO_NOTE:
                return [] if self._notes(local, edge) else [self._move(local, edge, None)]
            case Kind.SUBSCRIBE:
                return [self._subscribe(local, edge)]
            case Kind.UNSUBSCRIBE:
                return [self._unsubscribe(local, edge)]
            case _:
                return []

    def _move(self, local: LocalState, edge: Edge, bindings: Bindings | None, value: Value | None = None) -> Alone:
        slots = self.after(local, edge, bindings)
        return Alone(self.step(local, edge, slots, value), self.states.moved(local, edge, slots), edge)

    def _assign(self, local: LocalState, edge: Edge) -> list[Alone]:
        try:
            value = edge.evaluation(local.slots, local)
        except EVALUATION_ERRORS as error:
            self.without_value[edge.span, str(error)] = None
            return []
        if not fits_type(edge.result, value):
            self.without_value[edge.span, f"a value of type `{edge.result.type}` is wanted"] = None
            return []
        return [self._move(local, edge, [(edge.result.index, value)], value)]

    def _read(self, local: LocalState, edge: Edge) -> list[Alone]:
        pattern = edge.arguments[1]
        found = []
        for value in self.surroundings.domain.of_template(pattern, local.slots):
            bindings: Bindings = []
            if match(pattern, local.slots, value, bindings) and consistent(bindings):
                found.append(self._move(local, edge, bindings))
        return found

    def _notes(self, local: LocalState, edge: Edge) -> list[tuple[int, Bindings]]:
        """Return where the oldest note is that an atom is about, and what it binds."""
        for position, value in enumerate(local.notes):
            bindings: Bindings = []
            if match(edge.arguments[0], local.slots, value, bindings) and consistent(bindings):
                return [(position, bindings)]
        return []

    def _take_note(self, local: LocalState, edge: Edge) -> list[Alone]:
        for position, bindings in self._notes(local, edge):
            value = local.notes[position]
            self.taken.update((local.name, each) for each in local.subscriptions if fits(each, value))
            slots = self.after(local, edge, bindings)
            step = self.step(local, edge, slots)
            rest = local.notes[:position] + local.notes[position + 1 :]
            return [Alone(step, self.states.moved(local, edge, slots, notes=rest), edge)]
        return []

    def _subscribe(self, local: LocalState, edge: Edge) -> Alone:
        pattern = substitute(edge.arguments[0], local.slots)
        self.subscribed.setdefault((local.name, pattern), edge.span)
        wanted = local.subscriptions if pattern in local.subscriptions else (*local.subscriptions, pattern)
        slots = self.after(local, edge)
        step = self.step(local, edge, slots)
        return Alone(step, self.states.moved(local, edge, slots, subscriptions=wanted), edge)

    def _unsubscribe(self, local: LocalState, edge: Edge) -> Alone:
        pattern = substitute(edge.arguments[0], local.slots)
        wanted = tuple(each for each in local.subscriptions if each != pattern)
        notes = tuple(note for note in local.notes if not fits(pattern, note))
        slots = self.after(local, edge)
        step = self.step(local, edge, slots)
        return Alone(step, self.states.moved(local, edge, slots, notes=notes, subscriptions=wanted), edge)

    def _post(self, local: LocalState, edge: Edge) -> Post:
        value = substitute(edge.arguments[0], local.slots)
        own = any(fits(pattern, value) for pattern in local.subscriptions)
        full = own and len(local.notes) >= self.limits.notes_per_process_max
        slots = self.after(local, edge)
        step = self.step(local, edge, slots)
        notes = (*local.notes, value) if own and not full else local.notes
        return Post(step, self.states.moved(local, edge, slots, notes=notes), edge, value, full)

    def _create(self, local: LocalState, edge: Edge, moves: LocalMoves) -> None:
        creation = edge.creation
        try:
            name = creation.name
            if creation.variable is not None:
                name = str(plain(creation.variable(local.slots, local)))
            arguments = tuple(argument(local.slots, local) for argument in creation.arguments)
        except EVALUATION_ERRORS as error:
            self.without_value[edge.span, str(error)] = None
            return
        if not self.program.knows(name) or not self.program.graph(name).takes(arguments):
            self.without_value[edge.span, f"there is no process `{name}` with such arguments"] = None
            return
        moves.creations.append(Creation(edge, name, arguments))
