"""What processes do without tools and without a partner: `:=`, `printf`, `create`, notes, `read`, `shutdown`.

Each atom has a function that finds whether it can be done, and with what, without changing anything, and one that
does it with what was found. None stands for: not enabled. To find may take a value that is elsewhere, and ends with
`ValueNeeded` then; to do does not.
"""

from typing import TypeAlias

from echoic.scripts.graph import EVALUATION_ERRORS, Bindings, Edge, Kind, fits, fits_type, match, substitute
from echoic.scripts.running.formatting import format_text, text_of
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.messages import Announce, AskLine, Halted, Print, Tell, ToTool
from echoic.scripts.running.notes import find_note
from echoic.scripts.running.tools import HERE, ToolState
from echoic.scripts.running.world import World, creation_of
from echoic.terms import Value, plain, present

__all__ = ["done", "post"]

# Who gets a note, and whether he is to be woken for it.
Readers: TypeAlias = list[tuple[ProcessInstance, bool]]


def done(world: World, process: ProcessInstance, edge: Edge, bindings: Bindings | None, *shown: Value) -> None:
    """Let a process have done an atom."""
    world.move(process, edge, bindings)
    if world.traced:
        world.trace(process, edge, shown or None)
    if edge.drops:
        world.drop(process, edge)


def find_always(world: World, process: ProcessInstance, edge: Edge) -> bool:  # noqa: ARG001 - all have one signature
    """Return that it can be done."""
    return True


def do_tau(world: World, process: ProcessInstance, edge: Edge, found: object) -> None:  # noqa: ARG001 - the same
    """Do nothing."""
    done(world, process, edge, None)


def find_value(world: World, process: ProcessInstance, edge: Edge) -> Value | None:
    """Return the value of the right side of an assignment, None where it has none or is not of the variable's type."""
    try:
        value = edge.evaluation(process.slots, process)
    except EVALUATION_ERRORS as error:
        world.warn(f"nothing is assigned: {error}", edge.span)
        return None
    if not fits_type(edge.result, value):
        world.warn(f"nothing is assigned: a value of type `{edge.result.type}` is wanted", edge.span)
        return None
    return value


def do_assign(world: World, process: ProcessInstance, edge: Edge, found: Value) -> None:
    """Assign a value."""
    world.move(process, edge, ((edge.result.index, found),))
    if world.traced:
        world.trace(process, edge, (found,))
    if edge.drops:
        world.drop(process, edge)


def find_text(world: World, process: ProcessInstance, edge: Edge) -> str:  # noqa: ARG001 - the same
    """Return what is printed."""
    text, *values = [present(substitute(argument, process.slots)) for argument in edge.arguments]
    return format_text(text_of(text), tuple(values))


def do_print(world: World, process: ProcessInstance, edge: Edge, found: str) -> None:
    """Print."""
    world.effects.append(Print(found))
    done(world, process, edge, None)


def find_creation(world: World, process: ProcessInstance, edge: Edge) -> tuple[str, tuple[Value, ...]] | None:
    """Return the name and the arguments of a process that can be created."""
    creation = edge.creation
    if len(world.processes) >= world.limits.processes_max:
        world.warn(
            f"no more than {world.limits.processes_max} processes: `create` waits until one has ended", edge.span
        )
        return None
    try:
        name = creation.name
        if creation.variable is not None:
            name = str(plain(present(creation.variable(process.slots, process))))
        arguments = tuple(argument(process.slots, process) for argument in creation.arguments)
    except EVALUATION_ERRORS as error:
        world.warn(f"nothing is created: {error}", edge.span)
        return None
    if not world.program.knows(name) or not world.program.graph(name).takes(arguments):
        world.warn(f"nothing is created: there is no process `{name}` with such arguments", edge.span)
        return None
    return name, arguments


def do_create(world: World, process: ProcessInstance, edge: Edge, found: tuple[str, tuple[Value, ...]]) -> None:
    """Create a process."""
    made = world.create(*found)
    world.move(process, edge, ((edge.result.index, made.number),))
    if world.traced:
        world.trace(process, edge, (creation_of(*found), made.number))
    if edge.drops:
        world.drop(process, edge)


def post(world: World, value: Value) -> None:
    """Deliver a note.

    Raises:
        ValueNeeded: Who gets it, or goes on by it, depends on a value that is elsewhere; nobody has got it then.
    """
    _deliver(world, value, _readers(world, value))


def _readers(world: World, value: Value) -> Readers:
    """Return who gets a note, and whether each is to be woken for it."""
    subscribers = world.subscribers
    return [
        (process, not process.queued and _concerns(process, value, lost=subscribers.is_full(process)))
        for process in subscribers.wanting(value)
    ]


def _deliver(world: World, value: Value, readers: Readers) -> None:
    for process, _ in readers:
        if world.subscribers.is_full(process):
            limit = world.limits.notes_per_process_max
            world.warn(
                f"process `{process.name}` ({process.number}) has {limit} notes: the oldest are lost",
                ("notes", process.number),
            )
        world.subscribers.deliver(process, value)
    for process, concerned in readers:
        if concerned:
            world.wake(process)


def _concerns(process: ProcessInstance, value: Value, *, lost: bool) -> bool:
    """Whether one who waits may go on by a note, or by having `lost` another: all others he has looked at in vain."""
    for edge in process.node.edges:
        if edge.kind is Kind.REC_NOTE:
            if match(edge.arguments[0], process.slots, value, []):
                return True
        elif lost and edge.kind is Kind.NO_NOTE:
            return True
    return False


def find_readers(world: World, process: ProcessInstance, edge: Edge) -> tuple[Value, Readers]:
    """Return a note, and who gets it."""
    value = substitute(edge.arguments[0], process.slots)
    return value, _readers(world, value)


def do_send_note(world: World, process: ProcessInstance, edge: Edge, found: tuple[Value, Readers]) -> None:
    """Send a note."""
    value, readers = found
    world.effects.append(Announce(value))
    _deliver(world, value, readers)
    done(world, process, edge, None)


def find_received_note(world: World, process: ProcessInstance, edge: Edge) -> tuple[int, Bindings] | None:  # noqa: ARG001
    """Return the oldest note that matches."""
    return find_note(process, edge.arguments[0])


def do_receive_note(world: World, process: ProcessInstance, edge: Edge, found: tuple[int, Bindings]) -> None:
    """Take a note."""
    position, bindings = found
    if process.notes is not None:
        del process.notes[position]
    done(world, process, edge, bindings)


def find_no_note(world: World, process: ProcessInstance, edge: Edge) -> bool | None:  # noqa: ARG001 - the same
    """Return whether no note matches."""
    return True if find_note(process, edge.arguments[0]) is None else None


def find_subscription(world: World, process: ProcessInstance, edge: Edge) -> Value:  # noqa: ARG001 - the same
    """Return what is subscribed to, all of it: notes would have to wait for what is missing."""
    return present(substitute(edge.arguments[0], process.slots))


def do_subscribe(world: World, process: ProcessInstance, edge: Edge, found: Value) -> None:
    """Subscribe to notes."""
    if not world.subscribers.subscribe(process, found):
        limit = world.limits.subscriptions_per_process_max
        world.warn(f"no more than {limit} subscriptions of a process: this one does not count", edge.span)
    done(world, process, edge, None)


def find_unsubscription(world: World, process: ProcessInstance, edge: Edge) -> Value:
    """Return what is no longer subscribed to, where it is known which notes go with it."""
    pattern = present(substitute(edge.arguments[0], process.slots))
    if world.awaited.referring:
        for note in process.notes or ():
            fits(pattern, note)
    return pattern


def do_unsubscribe(world: World, process: ProcessInstance, edge: Edge, found: Value) -> None:
    """Unsubscribe, and forget the notes that were meant."""
    world.subscribers.unsubscribe(process, found)
    done(world, process, edge, None)


def find_line(world: World, process: ProcessInstance, edge: Edge) -> Bindings | None:
    """Return what the next line binds."""
    present(substitute(edge.arguments[0], process.slots))
    return world.lines.find(process, edge.arguments[1])


def do_read(world: World, process: ProcessInstance, edge: Edge, found: Bindings) -> None:
    """Take a line."""
    world.lines.take()
    done(world, process, edge, found)


def ask_line(world: World, process: ProcessInstance, edge: Edge) -> None:
    """Ask for a line that a process waits for; one that it cannot use is thrown away."""
    lines = world.lines
    while len(lines):
        if find_line(world, process, edge) is not None:
            world.wake(process)
            return
        world.warn(f"a line was typed that `read` does not want: {lines.take()[:100]!r}")
    if not lines.asked and not lines.ended:
        lines.asked = True
        world.effects.append(AskLine(text_of(substitute(edge.arguments[0], process.slots))))


def find_result(world: World, process: ProcessInstance, edge: Edge) -> tuple[Value | None]:  # noqa: ARG001 - the same
    """Return what the bus ends with, and all tools are told."""
    return (present(substitute(edge.arguments[0], process.slots)) if edge.arguments else None,)


def do_shutdown(world: World, process: ProcessInstance, edge: Edge, found: tuple[Value | None]) -> None:
    """End all tools, and the bus."""
    (value,) = found
    for tool in world.tools:
        if tool.state in HERE:
            tool.state = ToolState.TERMINATED
            world.effects.append(Tell(tool.number, ToTool.TERMINATE, () if value is None else (value,)))
    world.halted, world.result = True, value
    done(world, process, edge, None)
    world.effects.append(Halted(value))
