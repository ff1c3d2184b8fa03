"""`echoic layout`: where the fields of an event type lie, here or on another machine."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from echoic.errors import FormatError
from echoic.formats import ARCHITECTURES, NATIVE, Format

__all__ = ["layout"]


def layout(
    declared: str,
    *,
    on: str = "native",
    pointers: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Show where the fields of an event type lie.

    The type is named as MODULE:CLASS; modules in the current folder are found.

    Examples:
        echoic layout echoic.testing.samples:Trade

        echoic layout echoic.testing.samples:Trade --on sparc32

    Args:
        declared: The event type, MODULE:CLASS.
        on: The machine: native, x86_64, i386, arm, sparc32, sparc64, ppc64, windows32, ...
        pointers: Lay strings and dynamic arrays out as C pointers, as a C program does.
        as_json: Print the layout as JSON.
    """
    machine = NATIVE if on == "native" else ARCHITECTURES.get(on)
    if machine is None:
        raise FormatError(f"no machine is called `{on}`; known are native, {', '.join(sorted(ARCHITECTURES))}")
    format = Format.of(_find(declared)).on(machine.with_pointers() if pointers else machine)
    if not as_json:
        print(format.describe())
        return
    rows = [{"field": path, "type": field.spelling, "offset": field.offset} for path, field in format.walk()]
    head = {"name": format.name, "byte_order": format.byte_order, "size": format.size, "alignment": format.alignment}
    print(msgspec.json.encode({**head, "token": f"{format.token:016x}", "fields": rows}).decode())


def _find(declared: str) -> object:
    """Return the class that MODULE:CLASS names.

    Raises:
        FormatError: There is no such module or class.
    """
    module, _, name = declared.partition(":")
    if not module or not name:
        raise FormatError(f"expected MODULE:CLASS, got `{declared}`")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = import_module(module)
    except ImportError as error:
        raise FormatError(f"cannot import `{module}`: {error}") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise FormatError(f"`{module}` has no `{name}`")
        found = getattr(found, part)
    return found
