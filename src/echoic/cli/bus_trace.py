"""`echoic bus trace`: the steps of a run, as text or as a page with a sequence diagram."""

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from echoic.cli.bus_scripts import find_file, say_error
from echoic.cli.bus_tracing import read_trace
from echoic.cli.screen import json_text, printable, say
from echoic.cli.where import AsJson, Flag
from echoic.errors import JournalError, LocalError
from echoic.toolbus.history import TracedStep

__all__ = ["trace"]

FAILED: Final = 1
PAGE_STEPS_MAX: Final = 5000


def trace(
    file: Path,
    /,
    *,
    html: Annotated[Path | None, Parameter(show_default=False)] = None,
    process: Annotated[str, Parameter(name=["--process", "-p"], show_default=False)] = "",
    atom: Annotated[str, Parameter(name=["--atom", "-a"], show_default=False)] = "",
    count: Annotated[int | None, Parameter(name=["--count", "-n"], show_default=False)] = None,
    handshakes: Flag = False,
    as_json: AsJson = False,
) -> None:
    """Show what happened in a run, step by step.

    Each line has the number of the step, when it was, who did what, and where that stands in the script. Where two
    processes met, the first is the one that sent.

    Try:
        echoic bus run calc.tb --trace calc.trace
        echoic bus trace calc.trace
        echoic bus trace calc.trace --process Calc --atom snd-eval
        echoic bus trace calc.trace --html calc.html     and open that file in a browser
        echoic bus trace calc.trace --json | jq -r .atom | sort | uniq -c

    Args:
        file: The trace, written by `echoic bus run --trace FILE`.
        html: Write a page with a sequence diagram to this file instead.
        process: Only the steps of this process, by its name or its number.
        atom: Only this atom.
        count: Only so many steps.
        handshakes: Only steps in which two processes met.
        as_json: Print an object as JSON a line.
    """
    if count is not None and count < 1:
        raise LocalError(f"expected --count to be a number of steps, got {count}")
    head, steps = read_trace(find_file(file, "trace"))
    chosen = _chosen(steps, process, atom, handshakes=handshakes)
    if html is not None:
        from echoic.cli.bus_trace_page import page_of

        drawn = list(islice(chosen, (count or PAGE_STEPS_MAX) + 1))
        limit = count or PAGE_STEPS_MAX
        _write(html, page_of(head, drawn[:limit], more=len(drawn) > limit))
        say(f"{min(len(drawn), limit)} steps are drawn in {html}")
        return
    try:
        for step in islice(chosen, count):
            print(json_text(msgspec.to_builtins(step)) if as_json else printable(_line(step)))
    except JournalError as error:
        sys.stdout.flush()
        say_error(str(error))
        sys.exit(FAILED)


def _chosen(steps: Iterator[TracedStep], process: str, atom: str, *, handshakes: bool) -> Iterator[TracedStep]:
    for step in steps:
        people = (step.name, str(step.process), step.partner_name, str(step.partner or ""))
        if (not process or process in people) and (not atom or step.atom == atom) and (not handshakes or step.partner):
            yield step


def _line(step: TracedStep) -> str:
    who = f"{step.name}({step.process})"
    place = f"{Path(step.file).name}:{step.line}"
    if step.partner:
        who += f" -> {step.partner_name}({step.partner})"
        place += f", {step.partner_line}"
    return f"{step.number:>6} {step.at:>10.6f}  {who:<24}  {step.text:<40}  {place}"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LocalError(f"{path} cannot be written: {error.strerror or error}") from error
