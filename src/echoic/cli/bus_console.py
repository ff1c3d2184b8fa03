"""`echoic bus console`: look at a bus that runs on this machine, and end it."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import Parameter

from echoic.cli.bus_desk import ask, running_buses
from echoic.cli.bus_scripts import NOT_FOUND, say_error
from echoic.cli.screen import json_text, printable, say
from echoic.cli.tables import print_table, table_lines
from echoic.cli.where import AsJson, Flag
from echoic.errors import LocalError, UnreachableError

__all__ = ["console"]

LISTED_MAX: Final = 50


def console(
    name: str = "",
    /,
    *,
    watch: Annotated[float | None, Parameter(name=["--watch", "-w"], show_default=False)] = None,
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
    if watch is not None and watch <= 0:
        raise LocalError(f"expected --watch to be a number of seconds, got {watch:g}")
    path = _chosen(name, as_json=as_json)
    if path is None:
        return
    if shutdown:
        answer = ask(path, "shutdown")
        if as_json:
            print(json_text(answer))
        else:
            say(f"bus {answer['name']} ends")
        return
    _show(ask(path, "state"), as_json=as_json)
    try:
        while watch is not None:
            time.sleep(watch)
            state = ask(path, "state")
            if not as_json:
                print()
            _show(state, as_json=as_json)
    except KeyboardInterrupt:
        pass  # which is how it ends
    except UnreachableError:
        say("the bus has ended")


def _chosen(name: str, *, as_json: bool) -> Path | None:
    """Return the socket of the bus that is meant, None after a list was shown; the verb ends where there is none."""
    running = running_buses()
    if name in running:
        return running[name]
    if name:
        from echoic.scripts.syntax.problems import did_you_mean

        there = did_you_mean(name, running) or (f"; there is {', '.join(running)}" if running else "")
        say_error(f"no bus {name} runs here{there}")
        sys.exit(NOT_FOUND)
    if len(running) == 1:
        return next(iter(running.values()))
    if not running:
        say_error("no bus runs here (echoic bus run --help)")
        sys.exit(NOT_FOUND)
    states = {each: ask(path, "state") for each, path in running.items()}
    if as_json:
        print(json_text(list(states.values())))
        return None
    rows = [
        [each, state["script"], state["statistics"]["steps"], state["statistics"]["processes"], len(state["tools"])]
        for each, state in states.items()
    ]
    print_table(["BUS", "SCRIPT", "STEPS", "PROCESSES", "TOOLS"], rows)
    return None


def _show(state: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print(json_text(state), flush=True)
        return
    print("\n".join(printable(line) for line in _lines(state)), flush=True)


def _lines(state: dict[str, Any]) -> Iterator[str]:
    numbers = state["statistics"]
    yield f"bus:         {state['name']}, runs {state['script']} for {_age(state['started'])}, seed {state['seed']}"
    yield f"tools at:    {state['address']}"
    yield (
        f"steps:       {numbers['steps']}, of them {numbers['handshakes']} handshakes; "
        f"{numbers['created']} processes were created"
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


def _age(started: float) -> str:
    seconds = max(0.0, time.time() - started)
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
