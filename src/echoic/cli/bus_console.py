"""`echoic bus console`: look at a bus that runs on this machine, and end it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from echoic.cli.bus_looking import Watch, age_text, check_watch, chosen_bus, look
from echoic.cli.screen import json_text, say
from echoic.cli.tables import table_lines
from echoic.cli.where import AsJson, Flag
from echoic.toolbus.desk import ask

__all__ = ["console"]

LISTED_MAX: Final = 50


def console(
    name: str = "",
    /,
    *,
    watch: Watch = None,
    shutdown: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Show what a running bus is doing: its processes and what they wait for, its tools, queues, and warnings.

    Every bus that `echoic bus run` runs on this machine, for this user, can be looked at.

    Try:
        echoic bus console               the only bus, or a list of them
        echoic bus console calc          the one that runs calc.tb
        echoic bus console calc --watch 1
        echoic bus console calc --shutdown
        echoic bus console calc --json | jq '.processes[] | {name, waiting}'

    Args:
        name: The name of the bus, without which there must be only one.
        watch: Show it again and again, with so many seconds between, until Ctrl-C or the end of the bus.
        shutdown: End the bus in order: its tools are told to end.
        as_json: Print an object as JSON.
    """
    check_watch(watch)
    path = chosen_bus(name, as_json=as_json)
    if path is None:
        return
    if shutdown:
        answer = ask(path, "shutdown")
        if as_json:
            print(json_text(answer))
        else:
            say(f"bus {answer['name']} ends")
        return
    look(path, "state", _lines, watch=watch, as_json=as_json)


def _lines(state: dict[str, Any]) -> Iterator[str]:
    numbers = state["statistics"]
    age = age_text(time.time() - state["started"])
    yield f"bus:         {state['name']}, runs {state['script']} for {age}, seed {state['seed']}"
    yield f"tools at:    {state['address']}"
    yield (
        f"steps:       {numbers['steps']}, of them {numbers['handshakes']} handshakes; "
        f"{numbers['created']} processes were created"
    )
    if numbers["references"] or numbers["fetched"]:
        yield (
            f"references:  {numbers['references']} values are with tools; the bus itself has needed "
            f"{numbers['fetched']} (echoic bus refs {state['name']})"
        )
    yield ""
    yield from _process_lines(state)
    if state["tools"]:
        yield ""
        yield from _tool_lines(state)
    for title, texts in (("warnings", state["warnings"]), ("checks", state["checks"])):
        if texts:
            yield ""
            yield f"{title}:"
            yield from (f"  {text}" for text in texts[-LISTED_MAX:])


def _process_lines(state: dict[str, Any]) -> Iterator[str]:
    rows = []
    for process in state["processes"][:LISTED_MAX]:
        atoms = [each["text"] for each in process["waiting"]]
        lines = sorted({each["line"] for each in process["waiting"]})
        place = f"{Path(process['waiting'][0]['file']).name}:{','.join(map(str, lines))}" if lines else ""
        waits = "about to go on" if process["ready"] else " + ".join(atoms[:4]) + (" + ..." if len(atoms) > 4 else "")
        rows.append([process["number"], process["name"], place, process["notes_queued"], waits])
    yield from table_lines(["PROCESS", "NAME", "AT", "NOTES", "WAITS FOR"], rows)
    left = state["statistics"]["processes"] - len(rows)
    if left > 0:
        yield f"and {left} processes more"
    waiters = [each["waiter"] for each in state["waits"] if each["hopeless"]]
    lost = list(dict.fromkeys(f"{each['name']}({each['number']})" for each in waiters))
    if lost:
        more = f" and {len(lost) - LISTED_MAX} more" if len(lost) > LISTED_MAX else ""
        yield f"can never go on, for whoever could help waits too: {', '.join(lost[:LISTED_MAX])}{more}"
    for process in state["processes"][:LISTED_MAX]:
        for note in process["notes"][:10]:
            yield f"  note for {process['name']}({process['number']}): {note}"


def _tool_lines(state: dict[str, Any]) -> Iterator[str]:
    rows = [
        [
            *(each[key] for key in ("number", "name", "state", "queued_count")),
            len(each["unacknowledged"]),
            *(each[key] for key in ("told", "said")),
        ]
        for each in state["tools"][:LISTED_MAX]
    ]
    yield from table_lines(["TOOL", "NAME", "STATE", "QUEUED", "UNACKNOWLEDGED", "TOLD", "SAID"], rows)
    for tool in state["tools"][:LISTED_MAX]:
        for queued in tool["queued"][:10]:
            yield f"  {queued['kind']} of {tool['name']}({tool['number']}): {', '.join(queued['values'])}"
