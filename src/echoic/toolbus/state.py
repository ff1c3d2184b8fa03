"""The state of a bus as plain values: what goes from a running bus to a console, a viewer, and `--json`.

Texts and lists have limits, so that a console of a bus with 100,000 processes is answered at once; the numbers beside
them are of all.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from echoic.scripts.running import MachineState, Party, ProcessState, ToolView, Wait, Waiting
    from echoic.scripts.syntax.tree import Span
    from echoic.terms import Value
    from echoic.toolbus import Bus
    from echoic.toolbus.options import ReferenceState

__all__ = ["LISTED_MAX", "StateObject", "held_up", "references_of", "state_of", "waiting_lines"]

LISTED_MAX: Final = 1000
WAITING_MAX: Final = 200
QUEUED_MAX: Final = 100
TEXT_CHARACTERS_MAX: Final = 300
BY_TOOLS: Final = frozenset({"rec-event", "rec-request"})
"""Atoms that a tool may enable at any time."""
BY_BUSY_TOOLS: Final = frozenset({"snd-eval", "snd-do", "rec-value", "get-perf-stats", "rec-perf-stats"})
"""Atoms that a tool may enable by what it answers."""

StateObject = dict[str, Any]


def state_of(
    bus: "Bus", script: str, started: float, checks: list[str], processes_max: int = LISTED_MAX
) -> StateObject:
    """Return the state of a bus that may be running.

    Args:
        bus: The bus.
        script: The file of its script.
        started: When it was started, in seconds since 1970.
        checks: What the static checks warn of, partnerless atoms among it.
        processes_max: How many processes are told of; the bus stands still while they are looked at.
    """
    processes_max = min(processes_max, LISTED_MAX)
    state, statistics = bus.state(processes_max), bus.statistics()
    sources = {name: text.split("\n") for name, text in bus.script.sources.items()}
    talking = {tool.number: tool for tool in statistics.tools}
    tools = []
    for view in islice(state.tools, LISTED_MAX):
        line = talking.get(view.number)
        tools.append({**_tool(view), "said": line.said if line else 0, "told": line.told if line else 0})
    return {
        "name": bus.name,
        "script": script,
        "address": statistics.address,
        "seed": bus.seed,
        "started": started,
        "halted": bus.halted,
        "statistics": {
            **msgspec.to_builtins(statistics.machine),
            "warned": statistics.warnings,
            "references": statistics.references,
            "fetched": statistics.fetched,
        },
        "processes": [_process(each, sources) for each in state.processes],
        "tools": tools,
        "waits": [_wait(each) for each in bus.waits(min(processes_max, WAITING_MAX))],
        "programs": list(statistics.processes[:LISTED_MAX]),
        "lines": state.lines,
        "warnings": [text[:TEXT_CHARACTERS_MAX] for text in bus.warnings()[-QUEUED_MAX:]],
        "checks": checks[:QUEUED_MAX],
    }


def _process(process: "ProcessState", sources: Mapping[str, list[str]]) -> StateObject:
    return {
        "number": process.number,
        "name": process.name,
        "arguments": _texts(process.arguments),
        "ready": process.queued,
        "waiting": [
            {
                "atom": each.atom,
                "text": _written(each.span, sources) or each.atom,
                "arguments": _texts(each.arguments),
                "file": each.span.file,
                "line": each.span.line,
                "column": each.span.column,
            }
            for each in process.waiting[:QUEUED_MAX]
        ],
        "subscriptions": _texts(process.subscriptions),
        "notes": _texts(process.notes),
        "notes_queued": len(process.notes),
        "timed": process.due_ns is not None,
    }


def _written(span: "Span", sources: Mapping[str, list[str]]) -> str:
    """Return an atom as it stands in the script, in one line."""
    lines = sources.get(span.file, [])[span.line - 1 : span.end_line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return " ".join(" ".join(lines).split())[:TEXT_CHARACTERS_MAX]


def _tool(view: "ToolView") -> StateObject:
    return {
        "number": view.number,
        "name": view.name,
        "state": view.state.value,
        "started": view.started,
        "claimed": view.claimed,
        "queued": [{"kind": kind, "values": _texts(values)} for kind, values in view.queued[:QUEUED_MAX]],
        "queued_count": len(view.queued),
        "unacknowledged": [_texts(values) for values in view.pending[:QUEUED_MAX]],
    }


def _texts(values: Iterable["Value"]) -> list[str]:
    from echoic.terms.text import show

    return [show(value, TEXT_CHARACTERS_MAX)[:TEXT_CHARACTERS_MAX] for value in islice(values, QUEUED_MAX)]


def _wait(wait: "Wait") -> StateObject:
    return {
        "waiter": _party(wait.waiter),
        "awaited": None if wait.awaited is None else _party(wait.awaited),
        "atom": wait.atom,
        "arguments": _texts(wait.arguments),
        "at_once": wait.at_once,
        "hopeless": wait.hopeless,
    }


def _party(party: "Party") -> StateObject:
    return {"number": party.number, "name": party.name, "is_tool": party.is_tool}


def references_of(bus: "Bus", script: str, *, older_seconds: float = 0.0) -> StateObject:
    """Return the values that are with tools and that a script refers to, the largest first.

    Args:
        bus: The bus, which may be running.
        script: The file of its script.
        older_seconds: Leave out what is not older.
    """
    found = [each for each in bus.references() if each.age_seconds >= older_seconds]
    found.sort(key=lambda each: (-each.bytes, -each.age_seconds))
    return {
        "name": bus.name,
        "script": script,
        "count": len(found),
        "bytes": sum(each.bytes for each in found),
        "references": [_reference(each) for each in found[:LISTED_MAX]],
    }


def _reference(reference: "ReferenceState") -> StateObject:
    return {
        "owner": reference.owner,
        "variable": reference.variable,
        "signature": reference.signature[:TEXT_CHARACTERS_MAX],
        "bytes": reference.bytes,
        "age_seconds": round(reference.age_seconds, 3),
        "holders": list(reference.holders[:QUEUED_MAX]),
        "in_flight": list(reference.in_flight[:QUEUED_MAX]),
    }


def held_up(state: "MachineState", sources: Mapping[str, str], *, channels: bool, typing: bool) -> bool:
    """Whether nothing can happen any more: no process can go on, and nothing from outside could change that.

    A bus whose values are on their way (`Bus.busy`) is not held up, whatever its processes wait for.

    Args:
        state: What there is.
        sources: The text of the script.
        channels: Whether notes may come from channels.
        typing: Whether lines may be typed.
    """
    tools = {tool.number: tool for tool in state.tools}
    lines = {name: text.split("\n") for name, text in sources.items()}
    return bool(state.processes) and not any(
        process.queued
        or process.due_ns is not None
        or any(_may_come(each, tools, lines, channels=channels, typing=typing) for each in process.waiting)
        for process in state.processes
    )


def _may_come(
    waiting: "Waiting",
    tools: Mapping[int, "ToolView"],
    sources: Mapping[str, list[str]],
    *,
    channels: bool,
    typing: bool,
) -> bool:
    """Whether somebody outside of the script may enable an atom."""
    from echoic.scripts.running.tools import HERE, ToolState

    atom, tool = waiting.atom, _tool_in(waiting, tools)
    if atom in ("rec-note", "no-note"):
        return channels
    if atom == "rec-connect" and _written(waiting.span, sources).startswith("execute"):
        return any(each.state is ToolState.UNCONNECTED for each in tools.values())  # only who was started can come
    if atom == "rec-disconnect":
        return tool is not None or bool(tools)
    if atom in BY_BUSY_TOOLS:
        return tool is not None and tool.state is ToolState.BLOCKED
    if atom in BY_TOOLS:
        return tool is not None and tool.state in HERE
    return atom == "rec-connect" or (atom == "read" and typing)


def _tool_in(waiting: "Waiting", tools: Mapping[int, "ToolView"]) -> "ToolView | None":
    """Return the tool that an atom is about, if it is known."""
    from echoic.terms import Term

    match waiting.arguments:
        case (Term(args=(int() as number,)), *_):
            return tools.get(number)
        case _:
            return None


def waiting_lines(state: StateObject, count: int) -> list[str]:
    """Return what processes wait for, one line each, and how many more there are."""
    processes = state["processes"]
    lines = []
    for process in processes[:count]:
        atoms = [f"{each['text']} at line {each['line']}" for each in process["waiting"][:4]]
        if len(process["waiting"]) > len(atoms):
            atoms.append("...")
        lines.append(f"  {process['name']}({process['number']}) waits for {' or '.join(atoms) or 'nothing'}")
    left = state["statistics"]["processes"] - len(lines)
    return [*lines, f"  and {left} more"] if left > 0 else lines
