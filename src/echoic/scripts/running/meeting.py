"""Messages: two processes meet.

Who looks for a partner compares with those who wait, oldest first. The guards of a waiting offer need no second look,
since they depend on the variables of a process that does nothing; its time and its blockers do, and so does a guard
that depends on a reference.

A blocked offer, the left of `P +> Q`, is refused as long as something of Q could be done: with those who can be found
(`offering.py`), or with the one who asks. What those prefer themselves is not asked there, since two could prefer each
other's second choice and asking would have no end. Who is refused asks again when somebody has done something.
"""

from typing import Final, TypeAlias

from echoic.scripts.graph import NO_MESSAGE, Bindings, Edge, Kind, consistent, heads_at, may_unify, unify
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.offering import is_allowed
from echoic.scripts.running.world import World
from echoic.terms import ValueNeeded

__all__ = ["Meeting", "find_partner", "meet", "would_match"]

SENDING: Final = Kind.SND_MSG
RECEIVING: Final = Kind.REC_MSG

Meeting: TypeAlias = tuple[ProcessInstance, Edge, Bindings, Bindings]


def find_partner(world: World, process: ProcessInstance, edge: Edge) -> Meeting | None:
    """Return who would meet a process at an edge, where he would do it, and what would be bound on both sides.

    Raises:
        ValueNeeded: Only the value of a reference decides; so may all others here.
    """
    key = edge.key
    arguments = edge.arguments
    slots = process.slots
    head, inner = (key.head, key.inner) if key.known else heads_at(edge, slots)
    partners = world.receivers if edge.kind is SENDING else world.senders
    for other, there in partners.candidates(len(arguments), head, inner):
        if other is process:
            continue
        mine: Bindings = []
        theirs: Bindings = []
        other_slots = other.slots
        try:
            for one, another in zip(arguments, there.arguments):  # noqa: B905 - of one length
                if not unify(one, slots, another, other_slots, mine, theirs):
                    break
            else:
                if (
                    (not edge.repeats or consistent(mine))
                    and (not there.repeats or consistent(theirs))
                    and (there.plain or _is_available(world, other, there, process))
                ):
                    return other, there, mine, theirs
        except ValueNeeded:
            if may_unify(arguments, slots, there.arguments, other_slots):
                raise
    return None


def meet(world: World, process: ProcessInstance, edge: Edge, found: Meeting) -> None:
    """Let two processes meet."""
    other, there, mine, theirs = found
    other.withdraw()
    world.handshakes += 1
    world.move(process, edge, mine)
    world.move(other, there, theirs)
    if world.traced:
        if edge.kind is SENDING:
            world.trace(process, edge, None, other, there)
        else:
            world.trace(other, there, None, process, edge)
    if edge.drops:
        world.drop(process, edge)
    if there.drops:
        world.drop(other, there)


def _is_available(world: World, process: ProcessInstance, edge: Edge, asking: ProcessInstance) -> bool:
    """Whether a waiting process may be met at an edge: in time, and nothing that it prefers is possible."""
    if (edge.timing is not None or world.awaited.referring) and not is_allowed(world, process, edge):
        return False
    if any(_is_possible(world, process, blocker, asking) for blocker in edge.blockers):
        world.refused[asking.number] = asking
        return False
    return True


def _is_possible(world: World, process: ProcessInstance, edge: Edge, asking: ProcessInstance) -> bool:
    """Whether a waiting process could do an edge, with anybody who waits or with who asks."""
    if not is_allowed(world, process, edge):
        return False
    if edge.kind is not SENDING and edge.kind is not RECEIVING:
        return world.finding[edge.kind](world, process, edge) is not None
    key = edge.key
    head, inner = (key.head, key.inner) if key.known else heads_at(edge, process.slots)
    partners = world.receivers if edge.kind is SENDING else world.senders
    if any(
        other is not process
        and would_match(process, edge, other, there)
        and (there.plain or is_allowed(world, other, there))
        for other, there in partners.candidates(len(edge.arguments), head, inner)
    ):
        return True
    return any(
        would_match(process, edge, asking, each) and is_allowed(world, asking, each)
        for each in asking.node.edges
        if each.kind is not edge.kind and each.key is not NO_MESSAGE
    )


def would_match(process: ProcessInstance, edge: Edge, other: ProcessInstance, there: Edge) -> bool:
    """Whether two would match, had they met."""
    if len(edge.arguments) != len(there.arguments):
        return False
    mine: Bindings = []
    theirs: Bindings = []
    return (
        all(
            unify(one, process.slots, another, other.slots, mine, theirs)
            for one, another in zip(edge.arguments, there.arguments, strict=True)
        )
        and consistent(mine)
        and consistent(theirs)
    )
