"""The world of a machine: everything that its parts share and change.

Parts are modules of functions that take the world: `meeting.py` for messages, `inner_atoms.py` for what a process
does alone, `tool_atoms.py` for tools, `turns.py` for whose turn it is, `holding.py` for who waits for values. `Machine`
is what others see of it.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias, cast

from echoic.scripts.graph import Edge, Program, shown
from echoic.scripts.running.awaited import Awaited
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.limits import MachineLimits
from echoic.scripts.running.lines import Lines
from echoic.scripts.running.messages import Effect, Halted, Step, Warned
from echoic.scripts.running.notes import Subscribers
from echoic.scripts.running.offering import offer_messages
from echoic.scripts.running.offers import Offers
from echoic.scripts.running.timers import Timers, activate
from echoic.scripts.running.tools import Tools
from echoic.scripts.syntax.tree import Span
from echoic.terms import Term, Value, references_in, refers, to_placeholder, with_values

__all__ = ["Chance", "Find", "World", "creation_of"]


class Chance(Protocol):
    """Where chance comes from; the same numbers make the same run."""

    def random(self) -> float:
        """Return a number of [0, 1)."""


Find: TypeAlias = Callable[["World", ProcessInstance, Edge], object]


class World:
    """What the parts of a machine share.

    It has no more than thirty attributes: that many Python 3.11 finds without looking into a dictionary, and a
    handshake looks at most of them.
    """

    def __init__(
        self, program: Program, chance: Chance, now_ns: int, epoch_ns: int, limits: MachineLimits, traced: bool
    ) -> None:
        self.program = program
        self.biased = program.biased
        self.chance = chance
        self.now_ns = now_ns
        self.epoch_ns = epoch_ns
        self.limits = limits
        self.traced = traced
        self.processes: dict[int, ProcessInstance] = {}
        self.queue: deque[ProcessInstance] = deque()
        self.senders = Offers()
        self.receivers = Offers()
        self.timers = Timers(epoch_ns)
        self.subscribers = Subscribers(limits)
        self.tools = Tools(limits)
        self.lines = Lines(limits)
        self.crowd: dict[int, object] = {}  # processes that wait for room for another one
        self.refused: dict[int, ProcessInstance] = {}  # those whose partner prefers somebody else for the moment
        self.effects: list[Effect] = []
        self.halted = False
        self.result: Value | None = None
        self.turns = 0
        self.steps = 0
        self.handshakes = 0
        self.warnings = 0
        self.created = 0
        self.offered = 0  # how often somebody began to wait: the number under which he does
        self.finding: Sequence[Find] = ()  # for each kind of edge, what finds whether it can be done
        self.awaited = Awaited()
        self._warned: set[object] = set()

    def local_ns(self) -> int:
        """Return the time of day."""
        return self.now_ns + self.epoch_ns

    def warn(self, text: str, place: object = None) -> None:
        """Tell that something is not as it should be, once for each place."""
        self.warnings += 1
        if place is not None:
            if place in self._warned or len(self._warned) >= self.limits.warnings_max:
                return
            self._warned.add(place)
        if isinstance(place, Span):
            text = f"{place.file}:{place.line}:{place.column}: {text}"
        self.effects.append(Warned(text))

    def wake(self, process: ProcessInstance) -> None:
        """Have a process tried again."""
        if not process.queued and not process.ended:
            process.queued = True
            self.queue.append(process)

    def wake_all(self, watchers: Iterable[object]) -> None:
        """Have all of these processes tried again."""
        for process in watchers:
            self.wake(cast("ProcessInstance", process))

    def retry(self) -> None:
        """Have those tried again who were refused, since something was done."""
        refused, self.refused = self.refused, {}
        self.wake_all(refused.values())

    def appear(self, process: ProcessInstance) -> None:
        """Let a process that has come to its state, or whose time has come, be found, if it may be before its turn."""
        if (process.node.choosing or (self.biased and process.node.talking)) and not process.barred:
            process.withdraw()
            offer_messages(self, process)

    def arrive(self, process: ProcessInstance) -> None:
        """Let a process that has come to its state be found, and those try again who were refused for its sake."""
        if process.node.choosing or self.biased:
            self.appear(process)
            if self.refused:
                self.retry()

    def create(self, name: str, arguments: tuple[Value, ...]) -> ProcessInstance:
        """Return a process that runs from now on."""
        self.created += 1
        process = ProcessInstance(self.created, self.program.graph(name), arguments, self)
        if not process.node.edges:
            process.ended = True  # it can only do delta
            return process
        self.processes[process.number] = process
        if process.node.timed:
            activate(process, None, process.node, self.now_ns)
        self.wake(process)
        self.appear(process)
        return process

    def shuffle(self) -> None:
        """Let chance decide in which order those who are queued have their turns."""
        queue = self.queue
        for last in range(len(queue) - 1, 0, -1):
            other = int(self.chance.random() * (last + 1))
            queue[last], queue[other] = queue[other], queue[last]

    def end(self, process: ProcessInstance) -> None:
        """Remove a process that can do nothing any more."""
        process.ended = process.barred = True
        process.withdraw()
        if not self.traced:
            _empty(process)
        self.timers.forget(process)
        self.subscribers.forget(process)
        del self.processes[process.number]
        if self.crowd:
            self.wake_all(self.crowd.values())
        if self.refused:
            self.retry()
        if not self.processes:
            self.halt(None)

    def halt(self, value: Value | None) -> None:
        """Stop everything."""
        if not self.halted:
            self.halted = True
            self.result = value
            self.effects.append(Halted(value))

    def move(self, process: ProcessInstance, edge: Edge, bindings: Iterable[tuple[int, Value]] | None) -> None:
        """Let a process have done an atom: variables begin, are bound and end, and it stands at the edge's target."""
        slots = process.slots
        if edge.resets:
            missing = max(edge.resets) + 1 - len(slots)
            if missing > 0:
                slots.extend([None] * missing)
            for index in edge.resets:
                slots[index] = None
        if bindings:
            for index, value in bindings:
                slots[index] = value
        target = process.node = edge.target
        edges = target.edges
        if process.due_ns is not None:
            self.timers.forget(process)
        if target.timed or process.activations is not None:
            activate(process, edge, target, self.now_ns)
        if not edges:
            if not process.barred:  # else it is held, and ends then
                self.end(process)
            return
        if not process.queued:
            process.queued = True
            self.queue.append(process)
        if target.choosing or self.biased:
            self.arrive(process)

    def drop(self, process: ProcessInstance, edge: Edge) -> None:
        """Forget the variables whose scope an edge has left."""
        slots = process.slots
        for index in edge.drops:
            slots[index] = None

    def trace(
        self,
        process: ProcessInstance,
        edge: Edge,
        arguments: tuple[Value, ...] | None = None,
        partner: ProcessInstance | None = None,
        partner_edge: Edge | None = None,
    ) -> None:
        """Tell of a step that was done; to be called before variables are dropped."""
        if arguments is None:
            arguments = tuple(shown(argument, process.slots) for argument in edge.arguments)
        if self.awaited.referring:
            arguments = tuple(map(_told, arguments))
        for each in (process, partner):
            if each is not None and each.ended:
                _empty(each)
        self.effects.append(
            Step(
                self.steps,
                process.number,
                process.name,
                edge.name,
                arguments,
                edge.span,
                None if partner is None else partner.number,
                None if partner_edge is None else partner_edge.span,
                self.now_ns,
            )
        )


def _empty(process: ProcessInstance) -> None:
    """Forget the values of a process that has ended: a timer that comes too late may keep it for a while."""
    process.slots = [None] * len(process.slots)


def _told(value: Value) -> Value:
    """Return a value as a step tells of it: a reference that is kept by nobody else is not kept for this."""
    if not refers(value):
        return value
    return with_values(value, {reference: to_placeholder(reference) for reference in references_in(value)})


def creation_of(name: str, arguments: tuple[Value, ...]) -> Value:
    """Return the call of a process as a term."""
    return Term(name, *arguments)
