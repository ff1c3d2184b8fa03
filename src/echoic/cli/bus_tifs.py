"""`echoic bus tifs`: what a script wants from its tools, and tools that begin with that."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from echoic.cli.bus_scripts import NOT_FOUND, PLAIN, Preparation, say_error
from echoic.cli.screen import json_text, printable, say
from echoic.cli.where import AsJson
from echoic.scripts.checking import Interface, interface, require
from echoic.scripts.syntax.problems import did_you_mean
from echoic.terms import write_text

__all__ = ["tifs"]


def tifs(
    script: Path,
    tool: str = "",
    /,
    *,
    stubs: Annotated[Literal["python"] | None, Parameter(show_default=False)] = None,
    preparation: Preparation = PLAIN,
    as_json: AsJson = False,
) -> None:
    """Show the interfaces of a script's tools: what each is told, and what it may say.

    They are found in the script; nothing is run. A tool that connects must fit: it can take all that the script may
    send to it, and sends nothing that the script does not expect.

    Try:
        echoic bus tifs calc.tb
        echoic bus tifs calc.tb calc --stubs python > calc.py     a program that runs, to go on from

    Args:
        script: The file of the script.
        tool: Only this tool.
        stubs: Print a program with the methods of the tools instead.
        preparation: How the text of the script is read.
        as_json: Print a list of objects as JSON.
    """
    tree = preparation.load(script)
    require(tree)
    names = [each.name for each in tree.tools]
    if tool and tool not in names:
        say_error(f"{script} has no tool {tool}{did_you_mean(tool, names) or _list(names)}")
        sys.exit(NOT_FOUND)
    chosen = [interface(tree, name) for name in names if tool in ("", name)]
    if not chosen:
        say(f"{script} has no tools")
    elif stubs is not None:
        from echoic.cli.bus_skeleton import skeleton_of

        print(skeleton_of(tree, script.name, [each.tool for each in chosen]), end="")
    elif as_json:
        print(json_text([_as_object(each) for each in chosen]))
    else:
        print("".join(printable(each.text, keep="\n") for each in chosen), end="")


def _list(names: list[str]) -> str:
    return f"; there is {', '.join(names)}" if names else "; it has none"


def _as_object(each: Interface) -> dict[str, object]:
    return {
        "tool": each.tool,
        "input": [write_text(entry) for entry in each.input],
        "output": [write_text(entry) for entry in each.output],
        "other": [write_text(entry) for entry in each.other],
        "signature": write_text(each.term),
    }
