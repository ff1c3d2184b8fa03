"""`echoic layout`: where the fields of an event type lie, here or on another machine."""

from typing import Annotated

import msgspec
from cyclopts import Parameter

from echoic.cli.declaring import find_class
from echoic.errors import FormatError
from echoic.formats import ARCHITECTURES, NATIVE, Format

__all__ = ["layout", "layout_of"]


def layout(
    declared: str,
    *,
    on: str = "native",
    pointers: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Show where the fields of an event type lie.

    The type is named as MODULE:CLASS; modules in the current folder are found.

    Try:
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
    format = Format.of(find_class(declared)).on(machine.with_pointers() if pointers else machine)
    if not as_json:
        print(format.describe())
        return
    print(msgspec.json.encode(layout_of(format)).decode())


def layout_of(format: Format) -> dict[str, object]:
    """Return a layout as plain values."""
    rows = [{"field": path, "type": field.spelling, "offset": field.offset} for path, field in format.walk()]
    head = {"name": format.name, "byte_order": format.byte_order, "size": format.size, "alignment": format.alignment}
    return {**head, "token": f"{format.token:016x}", "fields": rows}
