"""Waiting for values: what becomes of a process that needs one, or has told a tool of one.

A machine passes references on without their values, and two things can stop a process there:

    its turn needs a value      postponed   nothing is done, `Fetch` is said once for each reference, and when it is
                                            `Fetched` the process has its turn before all others
    it has told a tool          held        the atom is done, the process keeps its place in the queue; if its turn
                                            comes before the tool has all values (`Delivered`), it is queued again then

Either way it is `barred`: it has no turns, and nobody finds it. Whoever is found and looked at needs no value that
the one who looks would not wait for.

It should not matter whether something is a value or a reference. So a turn that is postponed is as if it had begun
later: what it has drawn from chance it draws again (`awaited.py`). Where values are there at once, a run with
references has the same steps as one with values, with whatever script and seed.

Where a tool does not get what it was told of, only the process that told it waits, and not longer than the tool is
there.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from echoic.scripts.running.awaited import Draws
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.messages import Fetch, Tell, ToTool
from echoic.scripts.running.tools import ToolInstance
from echoic.scripts.running.world import World
from echoic.terms import Reference, Value, references_in, refers, with_values

__all__ = [
    "begin_referring",
    "deliver",
    "holders",
    "need",
    "postpone",
    "release",
    "replace",
    "resume",
    "tell",
]


def begin_referring(world: World, values: Iterable[Value]) -> None:
    """Be prepared for references, if there are any."""
    if not world.awaited.referring and any(map(refers, values)):
        world.chance = world.awaited.draws = Draws(world.chance.random)


def postpone(world: World, process: ProcessInstance, reference: Reference) -> None:
    """Let a process that is in its turn, and has done nothing, have it when a value is there."""
    process.withdraw()
    process.barred = True
    if world.awaited.draws is not None:
        world.awaited.draws.keep(process)
    need(world, reference).append(process)


def need(world: World, reference: Reference) -> list[ProcessInstance]:
    """Have a value fetched; return those whose turns it is for."""
    waiting = world.awaited.needed.get(reference)
    if waiting is None:
        waiting = world.awaited.needed[reference] = []
        world.effects.append(Fetch(reference))
    return waiting


def resume(world: World, reference: Reference) -> None:
    """Let those whose turns were postponed for a value have them next, in the order in which they had begun."""
    for process in reversed(world.awaited.needed.pop(reference, ())):
        process.barred = False
        if process.queued:
            world.queue.remove(process)
        process.queued = True
        world.queue.appendleft(process)


def tell(world: World, process: ProcessInstance, tool: ToolInstance, kind: ToTool, values: tuple[Value, ...]) -> None:
    """Tell a tool something; with references in it, the process is held until the tool has the values."""
    hold = None
    if world.awaited.referring and any(map(refers, values)):
        world.awaited.told += 1
        hold = world.awaited.told
        world.awaited.holds[hold] = (process, tool.number)
        process.barred = True
    world.effects.append(Tell(tool.number, kind, values, hold))


def deliver(world: World, hold: int) -> None:
    """Let a process go on that has told a tool something; a number that is not known is of one that does already."""
    found = world.awaited.holds.pop(hold, None)
    if found is None:
        return
    process, _ = found
    process.barred = False
    if not process.node.edges:
        world.end(process)
        return
    world.wake(process)
    world.arrive(process)


def release(world: World, tool: int) -> None:
    """Let those go on who have told something to a tool that is gone."""
    for hold in [hold for hold, (_, number) in world.awaited.holds.items() if number == tool]:
        deliver(world, hold)


def replace(world: World, values: Mapping[Reference, Value]) -> None:
    """Put values into the places of references, wherever these are."""
    for process in world.processes.values():
        slots = process.slots
        for index, each in enumerate(slots):
            if each is not None and refers(each):
                slots[index] = with_values(each, values)
        for position, note in enumerate(process.notes or ()):
            if refers(note) and process.notes is not None:
                process.notes[position] = with_values(note, values)
    for tool in world.tools:
        for said in (*tool.queues.values(), tool.pending):
            for position, parts in enumerate(said):
                if any(map(refers, parts)):
                    said[position] = tuple(with_values(part, values) for part in parts)
    for position, note in enumerate(world.awaited.posted):
        world.awaited.posted[position] = with_values(note, values)


def holders(world: World) -> dict[Reference, tuple[str, ...]]:
    """Return by whom each reference is held, for people, found by looking everywhere."""
    found: dict[Reference, dict[str, None]] = {}
    for value, where in _held(world):
        if value is not None:
            for reference in references_in(value):
                found.setdefault(reference, {})[where] = None
    return {reference: tuple(places) for reference, places in found.items()}


def _held(world: World) -> Iterator[tuple[Value | None, str]]:
    """Yield every value that there is, with the words for where it is."""
    for process in world.processes.values():
        for index, value in enumerate(process.slots):
            yield value, f"`{process.graph.slot_names[index]}` of process {_named(process)}"
        for note in process.notes or ():
            yield note, f"a note of process {_named(process)}"
    for tool in world.tools:
        for kind, queue in tool.queues.items():
            for value in chain.from_iterable(queue):
                yield value, f"{kind} said by tool {_named(tool)}"
        for value in chain.from_iterable(tool.pending):
            yield value, f"an event of tool {_named(tool)} that is not acknowledged"
    for note in world.awaited.posted:
        yield note, "a note from outside"
    for reference, waiting in world.awaited.needed.items():
        yield reference, f"needed by {', '.join(map(_named, waiting)) or 'a note from outside'}"


def _named(holder: ProcessInstance | ToolInstance) -> str:
    return f"`{holder.name}({holder.number})`"
