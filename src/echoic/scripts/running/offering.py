"""Who can be found by others: those who wait, and those who choose.

A process with one atom to do is found when it has tried in vain, and waits. One with several, a message among them,
is found from the moment it comes to its state: two that always have something else to do would never meet otherwise,
since neither would ever wait. Where a script prefers something by `+>` or `<+`, everybody is: what can be done must
not depend on whose turn it is.
"""

from typing import TYPE_CHECKING, cast

from echoic.scripts.graph import EVALUATION_ERRORS, NO_MESSAGE, Edge, Kind, heads_at
from echoic.scripts.running.instances import ProcessInstance
from echoic.terms import ValueNeeded

if TYPE_CHECKING:
    from echoic.scripts.running.world import World

__all__ = ["is_allowed", "may_be_allowed", "offer", "offer_messages"]


def offer_messages(world: "World", process: ProcessInstance) -> None:
    """Let a process be found at all messages that it may do."""
    for edge in process.node.edges:
        if edge.key is not NO_MESSAGE and (edge.plain or may_be_allowed(world, process, edge)):
            offer(world, process, edge)


def offer(world: "World", process: ProcessInstance, edge: Edge) -> None:
    """Let a process be found at an edge."""
    key = edge.key
    head, inner = (key.head, key.inner) if key.known else heads_at(edge, process.slots)
    world.offered += 1
    mine = world.senders if edge.kind is Kind.SND_MSG else world.receivers
    place = mine.add(world.offered, (process, edge), head, inner)
    process.offers.append((cast("dict[int, object]", place), world.offered))


def may_be_allowed(world: "World", process: ProcessInstance, edge: Edge) -> bool:
    """Whether guards and time allow an edge, or only a value could tell: then who finds it asks again."""
    try:
        return is_allowed(world, process, edge)
    except ValueNeeded:
        return True


def is_allowed(world: "World", process: ProcessInstance, edge: Edge) -> bool:
    """Whether guards and time allow an edge; a test or time without a value does not, and is told of once.

    Raises:
        ValueNeeded: A guard depends on a value that is elsewhere.
    """
    slots = process.slots
    try:
        for guard in edge.guards:
            if guard(slots, process) is not True:
                return False
        return edge.timing is None or world.timers.allow(process, edge, world.now_ns)
    except EVALUATION_ERRORS as error:
        world.warn(f"{edge.name} is not enabled: {error}", edge.span)
        return False
