"""How the verbs that look at a running bus find it, ask it, and look again."""

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from echoic.cli.bus_scripts import NOT_FOUND, say_error
from echoic.cli.screen import json_text, printable, say
from echoic.cli.tables import print_table
from echoic.errors import LocalError, UnreachableError
from echoic.toolbus.desk import ask, running_buses

__all__ = ["Watch", "age_text", "check_watch", "chosen_bus", "look"]

Answer: TypeAlias = dict[str, Any]
Watch: TypeAlias = Annotated[float | None, Parameter(name=["--watch", "-w"], show_default=False)]


def chosen_bus(name: str, *, as_json: bool) -> Path | None:
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
        [
            each,
            state["script"],
            state["statistics"]["steps"],
            state["statistics"]["processes"],
            len(state["tools"]),
            state["statistics"]["references"],
        ]
        for each, state in states.items()
    ]
    print_table(["BUS", "SCRIPT", "STEPS", "PROCESSES", "TOOLS", "REFERENCES"], rows)
    return None


def check_watch(watch: float | None) -> None:
    """See that `--watch` is a time.

    Raises:
        LocalError: It is none.
    """
    if watch is not None and watch <= 0:
        raise LocalError(f"expected --watch to be a number of seconds, got {watch:g}")


def look(
    path: Path, question: str, lines: Callable[[Answer], Iterable[str]], *, watch: float | None, as_json: bool
) -> None:
    """Ask a bus and show its answer, once, or again and again until Ctrl-C or the end of the bus.

    Args:
        path: Its socket.
        question: One word.
        lines: Returns an answer as lines for people.
        watch: How many seconds lie between two questions; None for one only.
        as_json: Print the answer as it is instead.

    Raises:
        UnreachableError: The bus does not answer the first time.
    """

    def show(answer: Answer) -> None:
        print(json_text(answer) if as_json else "\n".join(map(printable, lines(answer))), flush=True)

    show(ask(path, question))
    try:
        while watch is not None:
            time.sleep(watch)
            answer = ask(path, question)
            if not as_json:
                print()
            show(answer)
    except KeyboardInterrupt:
        pass  # which is how it ends
    except UnreachableError:
        say("the bus has ended")


def age_text(seconds: float) -> str:
    """Return how long something takes as people say it."""
    seconds = max(0.0, seconds)
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
