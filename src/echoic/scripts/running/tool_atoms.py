"""What processes do with tools. As in `inner_atoms.py` each atom has a function that finds and one that does.

An atom about a tool that is lost, or that was never there, is not enabled; only `rec-disconnect` is.
"""

import re
from typing import Final, TypeAlias, cast

from echoic.scripts.graph import Bindings, Edge, Kind, Pattern, consistent, match_all, substitute
from echoic.scripts.running.formatting import text_of
from echoic.scripts.running.holding import tell
from echoic.scripts.running.inner_atoms import done
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.messages import Dismiss, FromTool, Kill, Start, ToTool
from echoic.scripts.running.tools import HERE, ToolInstance, ToolState, is_gone
from echoic.scripts.running.world import World
from echoic.terms import Reference, Term, Value, ValueNeeded, plain, present, refers, same

__all__ = ["tool_of", "tool_type"]

Taken: TypeAlias = tuple[ToolInstance, int, Bindings]

HEARD: Final = {
    Kind.REC_VALUE: FromTool.VALUE,
    Kind.REC_EVENT: FromTool.EVENT,
    Kind.REC_REQUEST: FromTool.REQUEST,
    Kind.REC_PERF_STATS: FromTool.STATISTICS,
}
TOLD: Final = {
    Kind.SND_EVAL: ToTool.EVAL,
    Kind.SND_DO: ToTool.DO,
    Kind.SND_CANCEL: ToTool.CANCEL,
    Kind.SND_RESPONSE: ToTool.RESPONSE,
    Kind.SND_TERMINATE: ToTool.TERMINATE,
    Kind.GET_PERF_STATS: ToTool.STATISTICS,
}
NEED_READY: Final = frozenset({Kind.SND_EVAL, Kind.SND_DO, Kind.GET_PERF_STATS})


def tool_of(world: World, process: ProcessInstance, edge: Edge) -> ToolInstance | None:
    """Return the tool that an atom is about."""
    value = plain(substitute(edge.arguments[0], process.slots))
    if not isinstance(value, Term) or len(value.args) != 1 or type(value.args[0]) is not int:
        return None
    tool = world.tools.get(value.args[0])
    return tool if tool is not None and tool.name == value.name else None


def tool_type(edge: Edge) -> str | None:
    """Return the name of the tools that an atom with `T?` waits for, None where any will do."""
    declared = getattr(edge.arguments[0], "type", None)
    return declared.name if isinstance(declared, Term) and declared.name != "term" else None


def find_room(world: World, process: ProcessInstance, edge: Edge) -> Term | None:
    """Return the tool that can be started."""
    value = present(substitute(edge.arguments[0], process.slots))
    if not isinstance(value, Term) or value.name not in world.program.tools:
        world.warn("nothing is executed: there is no such tool", edge.span)
        return None
    if not world.tools.has_room():
        world.warn(f"no more than {world.limits.tools_max} tools: `execute` is not possible", edge.span)
        return None
    return value


def do_execute(world: World, process: ProcessInstance, edge: Edge, found: Term) -> None:
    """Start a tool."""
    definition = world.program.tools[found.name]
    tool = world.tools.add(found.name, started=True)
    texts = {formal.name: text_of(value) for formal, value in zip(definition.formals, found.args, strict=False)}
    host, command, details = (_filled(definition.feature(feature), texts) for feature in ("host", "command", "details"))
    world.effects.append(Start(tool.number, tool.name, host, command, details))
    done(world, process, edge, [(edge.result.index, tool.term)], found, tool.term)


def _filled(text: str, texts: dict[str, str]) -> str:
    """Return a text with arguments in the place of parameters, all at once."""
    if not texts:
        return text
    names = "|".join(map(re.escape, sorted(texts, key=len, reverse=True)))
    return re.sub(rf"(?<![\w-])(?:{names})(?![\w-])", lambda found: texts[found[0]], text)


def find_awaited(world: World, process: ProcessInstance, edge: Edge) -> ToolInstance | None:
    """Return the tool that was started and has connected."""
    tool = tool_of(world, process, edge)
    return tool if tool is not None and tool.connected else None


def do_await(world: World, process: ProcessInstance, edge: Edge, found: ToolInstance) -> None:
    """Know a tool that was started."""
    found.claimed = True
    done(world, process, edge, [(edge.result.index, found.term)], found.term)


def find_connected(world: World, process: ProcessInstance, edge: Edge) -> tuple[ToolInstance, Bindings] | None:
    """Return the first tool that came by itself and is wanted."""
    return _first_matching(world.tools.unclaimed, process, edge.arguments[0])


def do_connect(world: World, process: ProcessInstance, edge: Edge, found: tuple[ToolInstance, Bindings]) -> None:
    """Know a tool that came by itself."""
    tool, bindings = found
    tool.claimed = True
    done(world, process, edge, bindings)


def find_gone(world: World, process: ProcessInstance, edge: Edge) -> tuple[ToolInstance, Bindings] | None:
    """Return the first tool that is gone and is asked for."""
    tool = tool_of(world, process, edge)
    if tool is not None:
        return (tool, []) if is_gone(tool) else None
    return _first_matching(world.tools.gone, process, edge.arguments[0])


def do_disconnect(world: World, process: ProcessInstance, edge: Edge, found: tuple[ToolInstance, Bindings]) -> None:
    """Forget a tool."""
    tool, bindings = found
    world.tools.release(tool)
    if not tool.dismissed:
        world.effects.append(Dismiss(tool.number))
    done(world, process, edge, bindings)


def find_addressee(world: World, process: ProcessInstance, edge: Edge) -> ToolInstance | None:
    """Return the tool that can be told what an atom says."""
    tool = tool_of(world, process, edge)
    if tool is None or tool.state not in HERE:
        return None
    if edge.kind in NEED_READY and tool.state is not ToolState.READY:
        return None
    return None if edge.kind is Kind.SND_CANCEL and not tool.evals else tool


def do_tell(world: World, process: ProcessInstance, edge: Edge, found: ToolInstance) -> None:
    """Tell a tool what an atom says."""
    values = tuple(substitute(argument, process.slots) for argument in edge.arguments[1:])
    kind = edge.kind
    if kind is Kind.SND_EVAL:
        found.evals += 1
    elif kind is Kind.SND_DO:
        found.dos += 1
    elif kind is Kind.SND_CANCEL:
        found.evals -= 1
        world.wake_all(found.watchers.values())
    elif kind is Kind.SND_TERMINATE:
        found.state = ToolState.TERMINATED
    found.settle()
    tell(world, process, found, TOLD[kind], values)
    done(world, process, edge, None)


def find_heard(world: World, process: ProcessInstance, edge: Edge) -> Taken | None:
    """Return the oldest of what a tool has said that an atom takes; it may be gone since."""
    tool = tool_of(world, process, edge)
    if tool is None:
        return None
    patterns = edge.arguments[1:]
    for position, values in enumerate(tool.queues[HEARD[edge.kind]]):
        bindings = _matching(patterns, process, values)
        if bindings is not None:
            return tool, position, bindings
    return None


def do_hear(world: World, process: ProcessInstance, edge: Edge, found: Taken) -> None:
    """Take what a tool has said."""
    tool, position, bindings = found
    del tool.queues[HEARD[edge.kind]][position]
    done(world, process, edge, bindings)


def find_pending(world: World, process: ProcessInstance, edge: Edge) -> tuple[ToolInstance, int] | None:
    """Return the event that is acknowledged: the oldest that is equal, or begins as what is said of it does."""
    tool = tool_of(world, process, edge)
    if tool is None or tool.state not in HERE:
        return None
    for position, values in enumerate(tool.pending):
        if values and _matching(edge.arguments[1:2], process, values[:1]) is not None:
            return tool, position
    wanted = plain(substitute(edge.arguments[1], process.slots))
    for position, values in enumerate(tool.pending):
        if values and _begins(plain(values[0]), wanted):
            return tool, position
    return None


def do_acknowledge(world: World, process: ProcessInstance, edge: Edge, found: tuple[ToolInstance, int]) -> None:
    """Tell a tool that its event was seen; it hears the event as it was, and what comes along."""
    tool, position = found
    event = tool.pending.pop(position)[0]
    more = tuple(substitute(argument, process.slots) for argument in edge.arguments[2:])
    tell(world, process, tool, ToTool.ACK_EVENT, (event, *more))
    done(world, process, edge, None)


def find_killable(world: World, process: ProcessInstance, edge: Edge) -> ToolInstance | None:
    """Return a tool that was started, and was not killed yet or lost."""
    tool = tool_of(world, process, edge)
    if tool is None or not tool.started or tool.departed or is_gone(tool):
        return None
    return tool


def do_kill(world: World, process: ProcessInstance, edge: Edge, found: ToolInstance) -> None:
    """Kill a tool."""
    found.state = ToolState.KILLED
    world.effects.append(Kill(found.number))
    world.wake_all(found.watchers.values())
    done(world, process, edge, None)


def _matching(patterns: tuple[Pattern, ...], process: ProcessInstance, values: tuple[Value, ...]) -> Bindings | None:
    """Return what is bound where all patterns match all values."""
    bindings: Bindings = []
    if len(patterns) != len(values) or not match_all(patterns, process.slots, values, bindings):
        return None
    return bindings if consistent(bindings) else None


def _first_matching(
    tools: "list[ToolInstance]", process: ProcessInstance, pattern: Pattern
) -> tuple[ToolInstance, Bindings] | None:
    for tool in tools:
        bindings = _matching((pattern,), process, (tool.term,))
        if bindings is not None:
            return tool, bindings
    return None


def _begins(event: Value, wanted: Value) -> bool:
    """Whether an event has the name that is wanted, and begins with the arguments that are."""
    if refers(event) or refers(wanted):
        return _begins_referring(event, wanted)
    if not isinstance(event, Term) or not isinstance(wanted, Term) or event.name != wanted.name:
        return False
    return event.args[: len(wanted.args)] == wanted.args


def _begins_referring(event: Value, wanted: Value) -> bool:
    """Answer the same question as far as it can be without values: what differs for certain decides first."""
    for each in (event, wanted):
        if not isinstance(each, Term | Reference) or (isinstance(each, Reference) and each.kind.type is not Term):
            return False
    if getattr(event, "name", None) != getattr(wanted, "name", None):
        return False
    if isinstance(wanted, Reference):
        raise ValueNeeded(wanted)
    if isinstance(event, Reference):
        if not isinstance(wanted, Term) or len(wanted.args) > event.count:
            return False
        if wanted.args:
            raise ValueNeeded(event)
        return True
    return _begins_alike(cast("Term", event).args, cast("Term", wanted).args)


def _begins_alike(values: tuple[Value, ...], wanted: tuple[Value, ...]) -> bool:
    needed: Reference | None = None
    if len(wanted) > len(values):
        return False
    for one, other in zip(values, wanted, strict=False):
        try:
            if not (same(one, other) if refers(one) or refers(other) else one == other):
                return False
        except ValueNeeded as error:
            needed = needed or error.reference
    if needed is not None:
        raise ValueNeeded(needed)
    return True
