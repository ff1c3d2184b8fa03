"""`echoic ecode check`: what a derivation's code is, before anybody runs it.

The same front end and the same analysis that a source uses, so that what passes here is not refused there, as long as
the source's policy allows what it costs.
"""

import sys
from typing import Annotated, Final

from cyclopts import Parameter

from echoic.channels import Policy
from echoic.cli.declaring import declared_type
from echoic.cli.meeting import visit
from echoic.cli.recipes import AROUND, Around, read_code
from echoic.cli.screen import json_text, printable
from echoic.cli.where import NOWHERE, AsJson, Text, Where
from echoic.ecode import Analysis, Program, analyse
from echoic.errors import ECodeError, FormatError, LocalError
from echoic.formats import Format
from echoic.monitor import find

__all__ = ["check"]

FAILED: Final = 1
SPELLINGS: Final = {"ecode": "E-Code", "python": "Python"}


def check(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    declared: Annotated[str, Parameter(name="--input", show_default=False)] = "",
    channel: Text = "",
    around: Around = AROUND,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Check a derivation's code against the types it works on, without running it.

    Shows every mistake with its line and a caret, and ends with exit code 1; or shows what the code is: how much an
    event costs at most, which loops are proved to end and which run on fuel, which variables it keeps from event to
    event, and which fields it uses.

    Try:
        echo 'input.price < param.low' | echoic ecode check - --channel trades --param low=75.5
        echoic ecode check mean.ec --input 'Field{n: int, samples: float[n]}' --output 'Mean{average: float}'
        echoic ecode check cheap.py --channel trades --json

    Args:
        file: Where the code is, - for stdin; in files *.py it is a Python function.
        declared: The type of the events: a declaration or MODULE:CLASS.
        channel: A channel of that type, instead: its name, or its id echoic://HOST:PORT/NAME.
        around: The other types around the code.
        as_json: Print an object as JSON.
        where: Where to look for the channel.
    """
    code = read_code("", file, python=around.python)
    signature = around.signature(*_formats(declared, channel, where))
    try:
        program = code.check(signature)
    except ECodeError as error:
        if as_json:
            problems = [{"line": line, "column": column, "message": text} for line, column, text in error.problems]
            print(json_text({"ok": False, "file": code.file, "problems": problems}))
        else:
            print(printable(str(error), keep="\n\t"))
        sys.exit(FAILED)
    analysis = analyse(program)
    if as_json:
        print(json_text(_as_object(program, analysis)))
    else:
        print("\n".join(map(printable, _lines(program, analysis))))


def _formats(declared: str, channel: str, where: Where) -> tuple[Format, Format | None]:
    """Return the type of the events that come in, and that of the context that their sources have.

    Raises:
        EchoicError: There is none, or two.
    """
    if bool(declared) == bool(channel):
        raise LocalError("name the type of the events by --input TYPE or --channel CHANNEL, and not by both")
    if declared:
        return Format.of(declared_type(declared)), None
    with visit(where, "ecode") as hub:
        opened = find(hub, channel)
        format = opened.format
    if format is None:
        raise FormatError(f"channel '{channel}' has no type, and only typed channels can be derived from")
    return format, opened.context


def _kind(program: Program) -> str:
    signature = program.signature
    if signature.ports:
        return "router"
    return "transform" if signature.output is not None else "filter"


def _loops(analysis: Analysis) -> list[dict[str, int | None]]:
    """Return where the loops are, and how often each turns at most; None for those that run on fuel."""
    proved = [(loop.at, turns) for loop, turns in analysis.trips.items()]
    found: list[tuple[tuple[int, int], int | None]] = [*proved, *((loop.at, None) for loop in analysis.burns)]
    return [{"line": at[0], "column": at[1], "turns": turns} for at, turns in sorted(found, key=lambda loop: loop[0])]


def _statics(program: Program) -> list[dict[str, str]]:
    format = program.static_format()
    return [{"name": each.name, "type": each.spelling} for each in format.fields] if format is not None else []


def _uses(program: Program) -> list[str]:
    return sorted(".".join((root, *path)) for root, path in program.used)


def _as_object(program: Program, analysis: Analysis) -> dict[str, object]:
    return {
        "ok": True,
        "file": program.file,
        "kind": _kind(program),
        "ports": program.signature.ports,
        "spelling": program.spelling,
        "cost": analysis.cost,
        "bounded": analysis.bounded,
        "loops": _loops(analysis),
        "statics": _statics(program),
        "static_bytes": program.static_bytes,
        "uses": _uses(program),
        "nodes": program.nodes,
    }


def _lines(program: Program, analysis: Analysis) -> list[str]:
    signature, policy = program.signature, Policy()
    made = f" to {signature.output.name}" if signature.output is not None else ""
    ports = f" with {signature.ports} ports" if signature.ports else ""
    lines = [
        f"kind:     {_kind(program)} of {signature.input.name}{made}{ports}, in {SPELLINGS[program.spelling]}",
        f"cost:     at most {analysis.cost} units an event{_verdict(analysis, policy)}",
    ]
    for loop in _loops(analysis):
        turns = loop["turns"]
        ending = f"at most {turns} turns, proved" if turns is not None else "no bound proved, runs on fuel"
        lines.append(f"loop:     line {loop['line']}, {ending}")
    lines += [f"static:   {each['name']}: {each['type']}" for each in _statics(program)]
    lines.append(f"uses:     {', '.join(_uses(program)) or 'no fields'}")
    return lines


def _verdict(analysis: Analysis, policy: Policy) -> str:
    if analysis.cost > policy.cost_max:
        return f", which sources refuse unless their policy allows more than {policy.cost_max}"
    return "" if analysis.bounded else f", and up to {policy.fuel} units of fuel for loops without a bound"
