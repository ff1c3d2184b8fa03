"""What could be done at a moment, found by looking at everything: for consoles, and to test that nothing was missed.

A machine never looks at everything. That whoever can do something is tried is the business of its index, queues and
timers; when it says that there is nothing to do, there must be no possibility here. What depends on a value that is
elsewhere is not possible, until the value is there; neither is what one would do who waits for a value.
"""

from echoic.scripts.graph import NO_MESSAGE, Edge, Kind
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.meeting import would_match
from echoic.scripts.running.offering import is_allowed
from echoic.scripts.running.world import World
from echoic.terms import ValueNeeded

__all__ = ["possibilities"]


def possibilities(world: World) -> list[tuple[ProcessInstance, Edge]]:
    """Return the atoms that could be done; of two that could meet, the sender's."""
    return [
        (process, edge)
        for process in world.processes.values()
        for edge in process.node.edges
        if edge.kind is not Kind.REC_MSG and not process.barred and _is_known_possible(world, process, edge)
    ]


def _is_known_possible(world: World, process: ProcessInstance, edge: Edge) -> bool:
    try:
        return _is_possible(world, process, edge, strict=True)
    except ValueNeeded:
        return False


def _is_possible(world: World, process: ProcessInstance, edge: Edge, *, strict: bool) -> bool:
    """Whether an atom could be done, and, `strict`, neither it nor its partner's is blocked."""
    if not is_allowed(world, process, edge) or (strict and _is_blocked(world, process, edge)):
        return False
    if edge.key is NO_MESSAGE:
        return world.finding[edge.kind](world, process, edge) is not None
    return any(
        other is not process
        and not other.barred
        and there.key is not NO_MESSAGE
        and there.kind is not edge.kind
        and would_match(process, edge, other, there)
        and is_allowed(world, other, there)
        and not (strict and _is_blocked(world, other, there))
        for other in world.processes.values()
        for there in other.node.edges
    )


def _is_blocked(world: World, process: ProcessInstance, edge: Edge) -> bool:
    return any(_is_possible(world, process, blocker, strict=False) for blocker in edge.blockers)
