"""Whose turn it is, and what it does.

A process whose turn it is tries its atoms in random order; the first that can be done is done, and the process goes
to the back of the queue. If none can, it waits: others find it by its offers, and it is queued again when a note
comes that it wants, a tool it waits for says something, its time has come, or, where it was refused by somebody who
prefers another (`meeting.py`), something was done. Some can be found before their turn (`offering.py`).

An atom with blockers gives them the first chance: that is all there is to `+>` and `<+` for the process itself. In one
turn nothing is tried twice, however many atoms give way to it.

Finding may need a value that is elsewhere (`ValueNeeded`). Then the turn is over before anything was done, and the
process has it again when the value is there (`holding.py`). So whatever looks at values is part of finding, and what
is found is done without asking anything.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from echoic.scripts.graph import NO_MESSAGE, Edge, Kind
from echoic.scripts.running import inner_atoms, tool_atoms
from echoic.scripts.running.holding import postpone
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.meeting import find_partner, meet
from echoic.scripts.running.offering import is_allowed, offer
from echoic.scripts.running.world import Find, World
from echoic.terms import ValueNeeded

__all__ = ["FINDING", "take_turns"]

Do: TypeAlias = Callable[[World, ProcessInstance, Edge, Any], None]

_ATOMS: Final[dict[Kind, tuple[Find, Do]]] = {
    Kind.TAU: (inner_atoms.find_always, inner_atoms.do_tau),
    Kind.ASSIGN: (inner_atoms.find_value, inner_atoms.do_assign),
    Kind.PRINTF: (inner_atoms.find_text, inner_atoms.do_print),
    Kind.READ: (inner_atoms.find_line, inner_atoms.do_read),
    Kind.CREATE: (inner_atoms.find_creation, inner_atoms.do_create),
    Kind.SND_MSG: (find_partner, meet),
    Kind.REC_MSG: (find_partner, meet),
    Kind.SND_NOTE: (inner_atoms.find_readers, inner_atoms.do_send_note),
    Kind.REC_NOTE: (inner_atoms.find_received_note, inner_atoms.do_receive_note),
    Kind.NO_NOTE: (inner_atoms.find_no_note, inner_atoms.do_tau),
    Kind.SUBSCRIBE: (inner_atoms.find_subscription, inner_atoms.do_subscribe),
    Kind.UNSUBSCRIBE: (inner_atoms.find_unsubscription, inner_atoms.do_unsubscribe),
    Kind.EXECUTE: (tool_atoms.find_room, tool_atoms.do_execute),
    Kind.AWAIT: (tool_atoms.find_awaited, tool_atoms.do_await),
    Kind.REC_CONNECT: (tool_atoms.find_connected, tool_atoms.do_connect),
    Kind.REC_DISCONNECT: (tool_atoms.find_gone, tool_atoms.do_disconnect),
    Kind.SND_EVAL: (tool_atoms.find_addressee, tool_atoms.do_tell),
    Kind.REC_VALUE: (tool_atoms.find_heard, tool_atoms.do_hear),
    Kind.SND_DO: (tool_atoms.find_addressee, tool_atoms.do_tell),
    Kind.SND_CANCEL: (tool_atoms.find_addressee, tool_atoms.do_tell),
    Kind.REC_EVENT: (tool_atoms.find_heard, tool_atoms.do_hear),
    Kind.SND_ACK_EVENT: (tool_atoms.find_pending, tool_atoms.do_acknowledge),
    Kind.REC_REQUEST: (tool_atoms.find_heard, tool_atoms.do_hear),
    Kind.SND_RESPONSE: (tool_atoms.find_addressee, tool_atoms.do_tell),
    Kind.SND_TERMINATE: (tool_atoms.find_addressee, tool_atoms.do_tell),
    Kind.SND_KILL: (tool_atoms.find_killable, tool_atoms.do_kill),
    Kind.GET_PERF_STATS: (tool_atoms.find_addressee, tool_atoms.do_tell),
    Kind.REC_PERF_STATS: (tool_atoms.find_heard, tool_atoms.do_hear),
    Kind.SHUTDOWN: (inner_atoms.find_result, inner_atoms.do_shutdown),
}
FINDING: Final[tuple[Find, ...]] = tuple(_ATOMS[kind][0] for kind in Kind)
DOING: Final[tuple[Do, ...]] = tuple(_ATOMS[kind][1] for kind in Kind)


def take_turns(world: World, turns_max: int) -> None:
    """Let processes have their turns, until this many have or nobody wants one."""
    queue = world.queue
    draws = world.awaited.draws
    limit = world.turns + turns_max
    while queue and world.turns < limit and not world.halted:
        process = queue.popleft()
        process.queued = False
        if process.barred:
            world.turns += not process.ended  # a turn that is missed is one: the log counts it
            continue
        world.turns += 1
        if process.offers:
            process.withdraw()
        edges = process.node.edges
        if draws is not None:
            draws.begin(process)
        try:
            if not (
                _attempt(world, process, edges[0], None) if len(edges) == 1 else _attempt_any(world, process, edges)
            ):
                _wait(world, process, edges)
        except ValueNeeded as needed:
            postpone(world, process, needed.reference)


def _attempt(world: World, process: ProcessInstance, edge: Edge, tried: set[Edge] | None) -> bool:
    """Do an edge if it can be done and was not tried, or one that blocks it if that can."""
    if tried is not None:
        if edge in tried:
            return False
        tried.add(edge)
    if not edge.plain:
        if not is_allowed(world, process, edge):
            return False
        for blocker in edge.blockers:
            if _attempt(world, process, blocker, tried):
                return True
    kind = edge.kind
    found = FINDING[kind](world, process, edge)
    if found is None:
        return False
    world.steps += 1
    DOING[kind](world, process, edge, found)
    return True


def _attempt_any(world: World, process: ProcessInstance, edges: Sequence[Edge]) -> bool:
    """Do one of several edges, each with the same chance among those that can be done."""
    random = world.chance.random
    rest = list(edges)
    count = len(rest)
    tried: set[Edge] | None = set() if world.biased else None
    while count > 1:
        picked = int(random() * count)
        count -= 1
        if _attempt(world, process, rest[picked], tried):
            return True
        rest[picked] = rest[count]
    return _attempt(world, process, rest[0], tried)


def _wait(world: World, process: ProcessInstance, edges: Sequence[Edge]) -> None:
    """Let a process be found and woken by whatever makes one of its edges possible."""
    for edge in edges:
        if not edge.plain and not is_allowed(world, process, edge):
            continue
        if edge.key is not NO_MESSAGE:
            offer(world, process, edge)
        elif edge.kind > Kind.REC_MSG or edge.kind is Kind.READ or edge.kind is Kind.CREATE:
            _watch(world, process, edge)


def _watch(world: World, process: ProcessInstance, edge: Edge) -> None:
    """Let a process be woken by a tool, a line, or the end of another process."""
    match edge.kind:
        case Kind.REC_NOTE | Kind.NO_NOTE:
            return
        case Kind.READ:
            inner_atoms.ask_line(world, process, edge)
            place = world.lines.watchers
        case Kind.CREATE:
            place = world.crowd
        case Kind.REC_CONNECT:
            place = world.tools.lobby.setdefault(tool_atoms.tool_type(edge), {})
        case _:
            tool = tool_atoms.tool_of(world, process, edge)
            if tool is not None:
                place = tool.watchers
            elif edge.kind is Kind.REC_DISCONNECT:
                place = world.tools.lobby.setdefault(tool_atoms.tool_type(edge), {})
            else:
                return
    world.offered += 1
    place[world.offered] = process
    process.offers.append((place, world.offered))
