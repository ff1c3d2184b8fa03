"""Who waits for whom: what a process cannot do at the moment, and who could make it possible.

    Hypatia --take(1)--> FORK(1) --lay-down(1)--> Kant --take(2)--> FORK(2) --lay-down(2)--> ... --> Hypatia

In a machine that rests, two that wait for each other's message have met already. So it is no use to look for a partner
among what others wait for: the partner is somewhere else in its script, and will come to it, or never. What a process
may still do is found in its graph, from where it stands: variables that nothing on the way assigns keep their values,
others may have any. Who could send or receive a message of that form is waited for. A ring of such waits, which nobody
outside of it can break, is a deadlock, and can be seen as one.

That somebody could come does not mean that he will; that nobody could is said only where everything was looked at. Of
a `||` there is much to look at, so there are limits on it, and what was found from a node is kept for the next time.
"""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

from echoic.errors import ScriptError
from echoic.scripts.graph import (
    EVALUATION_ERRORS,
    Bind,
    Edge,
    Kind,
    Node,
    Pattern,
    Slot,
    Slots,
    Template,
    head_of,
    substitute,
)
from echoic.scripts.graph.templates import ANY_HEAD, binds
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.messages import FromTool
from echoic.scripts.running.records import Party, Wait
from echoic.scripts.running.tools import ToolInstance
from echoic.scripts.running.world import World
from echoic.terms import UNDEFINED, Placeholder, Reference, Term, TermList, Value, ValueNeeded, accepts, plain

__all__ = ["Prospect", "waits"]

TOOLS_MAX: Final = 200
NODES_MAX: Final = 200
PARTNERS_MAX: Final = 8
WAITS_MAX: Final = 1000
PAIRS_MAX: Final = 1000
ANYTHING: Final = Placeholder(Term("term"))
ANSWERS: Final = {
    Kind.SND_MSG: Kind.REC_MSG,
    Kind.REC_MSG: Kind.SND_MSG,
    Kind.REC_NOTE: Kind.SND_NOTE,
}
"""Atoms that another process makes possible, and by which."""
OF_TOOLS: Final = frozenset(
    {
        Kind.AWAIT,
        Kind.REC_CONNECT,
        Kind.REC_DISCONNECT,
        Kind.SND_EVAL,
        Kind.REC_VALUE,
        Kind.SND_DO,
        Kind.SND_CANCEL,
        Kind.REC_EVENT,
        Kind.REC_REQUEST,
        Kind.GET_PERF_STATS,
        Kind.REC_PERF_STATS,
    }
)
"""Atoms that a tool makes possible."""
TAKING: Final = {
    FromTool.EVENT: Kind.REC_EVENT,
    FromTool.REQUEST: Kind.REC_REQUEST,
    FromTool.VALUE: Kind.REC_VALUE,
}
MESSAGES: Final = frozenset({Kind.SND_MSG, Kind.REC_MSG})
KEPT: Final = frozenset({*ANSWERS.values(), *TAKING.values(), Kind.SND_ACK_EVENT})


@dataclass(frozen=True, slots=True)
class Prospect:
    """What can be done from a node on: the atoms that others may wait for, and the variables that are assigned."""

    edges: tuple[Edge, ...]
    assigned: frozenset[int]
    creates: bool
    complete: bool


@dataclass(frozen=True, slots=True)
class Offer:
    """An atom that a process may do, at once or later."""

    process: ProcessInstance
    arguments: tuple[Value, ...]
    at_once: bool


class Offers:
    """What everybody may do, found by what could match it: by the head of the first argument, and of its first."""

    def __init__(self) -> None:
        self._offers: dict[tuple[Kind, Hashable], dict[Hashable, list[Offer]]] = {}

    def add(self, kind: Kind, offer: Offer) -> None:
        """Enter an offer."""
        head, inner = _heads(offer.arguments)
        self._offers.setdefault((kind, head), {}).setdefault(inner, []).append(offer)

    def like(self, kind: Kind, arguments: tuple[Value, ...]) -> Iterator[Offer]:
        """Yield the offers that could match arguments, and some that could not."""
        head, inner = _heads(arguments)
        heads = [
            each for each in self._offers if each[0] is kind and (head in (ANY_HEAD, each[1]) or each[1] is ANY_HEAD)
        ]
        for each in heads:
            places = self._offers[each]
            if each[1] is ANY_HEAD or inner is ANY_HEAD:
                yield from chain.from_iterable(places.values())
            else:
                yield from chain(places.get(inner, ()), places.get(ANY_HEAD, ()))


def _heads(arguments: tuple[Value, ...]) -> tuple[Hashable, Hashable]:
    """Return what is equal for all that may match each other; `ANY_HEAD` for what may match anything."""
    first = plain(arguments[0]) if arguments else UNDEFINED
    inner = first.args[0] if isinstance(first, Term) and first.args else UNDEFINED
    return head_of(first, ()), head_of(inner, ())


def waits(world: World, known: dict[Node, Prospect], processes_max: int) -> tuple[Wait, ...]:
    """Return who waits for whom; nobody who is about to go on.

    Args:
        world: What there is.
        known: What was found from nodes before; more is added.
        processes_max: How many processes are looked at, the oldest first.
    """
    processes = list(islice(world.processes.values(), processes_max))
    complete = len(processes) == len(world.processes)
    offers = Offers()
    for process in processes:
        prospect = known.get(process.node)
        if prospect is None:
            prospect = known[process.node] = _prospect(process.node)
        complete = complete and prospect.complete
        _offer(process, prospect, offers)
    found = [
        wait
        for process in processes
        if not process.queued and not process.barred
        for edge in process.node.edges
        if _is_open(process, edge)
        for wait in _waits_at(world, process, edge, offers, complete=complete)
    ]
    lost = _hopeless(processes, found, known) if complete else frozenset()
    marked = (replace(wait, hopeless=wait.waiter.number in lost) for wait in found)
    return tuple(islice(chain(marked, _waits_of_tools(world, offers)), WAITS_MAX))


def _hopeless(processes: list[ProcessInstance], found: list[Wait], known: dict[Node, Prospect]) -> frozenset[int]:
    """Return the processes that can never go on: whoever could help is one of them."""
    helpers: dict[int, set[int]] = {each.number: set() for each in processes if _waits_for_messages(each)}
    for wait in found:
        number, other = wait.waiter.number, wait.awaited
        if number in helpers and other is not None:
            helpers[number].add(0 if wait.at_once or other.is_tool else other.number)
    lost = {number for number, others in helpers.items() if len(others) < PARTNERS_MAX}
    while hoping := {number for number in lost if not helpers[number] <= lost}:
        lost -= hoping
    if any(each.number not in lost and known[each.node].creates for each in processes):
        return frozenset()  # a helper may be created yet
    return frozenset(lost)


def _waits_for_messages(process: ProcessInstance) -> bool:
    """Whether a process waits for messages only: everything else may come from outside, or with time."""
    return (
        not process.queued
        and not process.barred
        and process.due_ns is None
        and bool(process.node.edges)
        and all(edge.kind in MESSAGES for edge in process.node.edges if _is_open(process, edge))
    )


def _is_open(process: ProcessInstance, edge: Edge) -> bool:
    """Whether the tests before an atom allow it: what they forbid only the process itself could change."""
    try:
        return all(guard(process.slots, process) is True for guard in edge.guards)
    except EVALUATION_ERRORS:
        return False  # told of when it is tried
    except ValueNeeded:
        return True


def _prospect(start: Node) -> Prospect:
    """Walk from a node, not too far."""
    edges: dict[object, Edge] = {}
    assigned: set[int] = set()
    seen, ahead = {start}, [start]
    complete, creates = True, False
    while ahead:
        node = ahead.pop()
        try:
            following = node.edges
        except ScriptError:
            complete = False  # what is wrong there is told when somebody comes to it
            continue
        for edge in following:
            assigned.update(edge.resets, (bind.index for bind in binds(edge.arguments)))
            assigned.add(edge.result.index)
            creates = creates or edge.kind is Kind.CREATE
            if edge.kind in KEPT:
                edges.setdefault((edge.origin, edge.kind), edge)
            if edge.target not in seen:
                if len(seen) < NODES_MAX:
                    seen.add(edge.target)
                    ahead.append(edge.target)
                else:
                    complete = False
    return Prospect(tuple(edges.values()), frozenset(assigned), creates, complete)


def _offer(process: ProcessInstance, prospect: Prospect, offers: Offers) -> None:
    """Enter what a process may do."""
    at_once = {(edge.origin, edge.kind) for edge in process.node.edges}
    for edge in process.node.edges:
        if edge.kind in KEPT:
            offers.add(edge.kind, Offer(process, _substituted(edge, process.slots), at_once=True))
    for edge in prospect.edges:
        if (edge.origin, edge.kind) not in at_once or prospect.assigned:
            later = tuple(_prospective(each, process.slots, prospect.assigned) for each in edge.arguments)
            offers.add(edge.kind, Offer(process, later, at_once=False))


def _substituted(edge: Edge, slots: Slots) -> tuple[Value, ...]:
    return tuple(substitute(each, slots) for each in edge.arguments)


def _prospective(pattern: Pattern, slots: Slots, assigned: frozenset[int]) -> Value:
    """Return a pattern as it may be later: what is assigned until then may be anything."""
    match pattern:
        case Slot(index=index) if index in assigned or index >= len(slots):
            return ANYTHING
        case Slot(index=index, fallback=fallback) if slots[index] is None and fallback is not None:
            return _prospective(fallback, slots, assigned)
        case Template(name=name):
            parts = [_prospective(each, slots, assigned) for each in pattern.arguments]
            return TermList(*parts) if name is None else Term(name, *parts)
        case Slot() | Bind():
            return substitute(pattern, slots)
        case _:
            return pattern


def _waits_at(world: World, process: ProcessInstance, edge: Edge, offers: Offers, *, complete: bool) -> Iterator[Wait]:
    """Yield whom a process waits for at an atom."""
    waiter = Party(process.number, process.name)
    if edge.kind in OF_TOOLS:
        arguments = _substituted(edge, process.slots)
        yield Wait(waiter, _tool_in(world, arguments), edge.name, arguments, at_once=False)
    elif edge.kind in ANSWERS:
        arguments = _substituted(edge, process.slots)
        others = _partners(process, arguments, offers.like(ANSWERS[edge.kind], arguments))
        for other, at_once in others.items():
            yield Wait(waiter, other, edge.name, arguments, at_once)
        if complete and not others and edge.kind is not Kind.REC_NOTE:  # a note may come from a channel
            yield Wait(waiter, None, edge.name, arguments, at_once=False)


def _partners(process: ProcessInstance, arguments: tuple[Value, ...], offers: Iterable[Offer]) -> dict[Party, bool]:
    """Return who could do the other half of an atom, and whether at once; not too many."""
    found: dict[Party, bool] = {}
    for offer in offers:
        other = offer.process
        party = Party(other.number, other.name)
        if other is process or (party not in found and len(found) >= PARTNERS_MAX):
            continue
        if _may_agree(arguments, offer.arguments):
            found[party] = found.get(party, False) or offer.at_once
    return found


def _tool_in(world: World, arguments: tuple[Value, ...]) -> Party | None:
    """Return the tool that an atom is about: a certain one, or, with number 0, any of its name."""
    match arguments:
        case (Term(name=name, args=(int() as number,)), *_):
            return Party(number, name, is_tool=True) if world.tools.get(number) is not None else None
        case (Placeholder(type=Term(name=name)), *_):
            return Party(0, name, is_tool=True)
        case _:
            return None


def _waits_of_tools(world: World, offers: Offers) -> Iterator[Wait]:
    """Yield whom tools wait for: those who could take what they have said, or acknowledge it."""
    for tool in islice(world.tools, TOOLS_MAX):
        for values in islice(tool.pending, PARTNERS_MAX):
            yield from _waits_of(tool, Kind.SND_ACK_EVENT, "snd-ack-event", values, offers)
        for said, taking in TAKING.items():
            for values in islice(tool.queues[said], 1):
                yield from _waits_of(tool, taking, f"rec-{said.value}", values, offers)


def _waits_of(tool: ToolInstance, kind: Kind, atom: str, values: tuple[Value, ...], offers: Offers) -> Iterator[Wait]:
    waiter, arguments = Party(tool.number, tool.name, is_tool=True), (tool.term, *values)
    found: dict[Party, bool] = {}
    for offer in offers.like(kind, arguments):
        if len(found) < PARTNERS_MAX and _may_agree(arguments[:1], offer.arguments[:1]):
            party = Party(offer.process.number, offer.process.name)
            found[party] = found.get(party, False) or offer.at_once
    for party, at_once in found.items():
        yield Wait(waiter, party, atom, arguments, at_once)


def _may_agree(ones: tuple[Value, ...], others: tuple[Value, ...]) -> bool:
    """Whether values could be the same if placeholders and references had values; yes where it takes long to tell."""
    if len(ones) != len(others):
        return False
    pairs = list(zip(ones, others, strict=True))
    for _ in range(PAIRS_MAX):
        if not pairs:
            return True
        one, other = map(plain, pairs.pop())
        match one, other:
            case (Reference(), _) | (_, Reference()) | (Placeholder(), Placeholder()):
                continue
            case (Placeholder(type=wanted), value) | (value, Placeholder(type=wanted)):
                if isinstance(value, int | float | str | bytes) and not accepts(wanted, value):
                    return False
            case Term(), Term():
                if (one.name, one.quoted, len(one.args)) != (other.name, other.quoted, len(other.args)):
                    return False
                pairs += zip(one.args, other.args, strict=True)
            case TermList(), TermList():
                if len(one) != len(other):
                    return False
                pairs += zip(islice(one.elements, PAIRS_MAX), islice(other.elements, PAIRS_MAX), strict=True)
            case _:
                if type(one) is not type(other) or one != other:
                    return False
    return True
