"""Events of a group as text, with their place in the order and who sent them before them.

_sequence: 7            _sequence,_sender,account,amount          {"_sequence":7,"_sender":"n1","account":"A",...}
_sender: n1             7,n1,A,100
account: A
---
"""

import csv
import io
from collections.abc import Callable
from typing import Final, TypeAlias

from echoic.cli.echo import Shape
from echoic.cli.screen import json_text, printable
from echoic.errors import LocalError

__all__ = ["StampedRenderer", "stamped"]

STAMPS: Final = ("_sequence", "_sender")

StampedRenderer: TypeAlias = Callable[[object, int, str], str]
"""From an event, its number and its sender to text."""


def stamped(shape: Shape, *, metadata: bool) -> StampedRenderer:
    """Return how to show an event, and before it, if that is wanted, what the group knows of it.

    Raises:
        LocalError: That cannot stand beside one field in JSON.
    """
    plain = shape.renderer()
    if not metadata:
        return lambda event, _, __: plain(event)
    if shape.csv and not shape.as_json:
        return lambda event, sequence, sender: _with_cells(plain(event), sequence, sender)
    if not shape.as_json:
        return lambda event, sequence, sender: f"_sequence: {sequence}\n_sender: {printable(sender)}\n{plain(event)}"
    if shape.field:
        raise LocalError("--metadata stands beside all fields of an event, not beside one --field in JSON")
    return lambda event, sequence, sender: (
        f"{json_text(dict(zip(STAMPS, (sequence, sender), strict=True)))[:-1]},{plain(event)[1:]}"
    )


def _with_cells(text: str, sequence: int, sender: str) -> str:
    """Return lines of CSV with cells in front; the first of two is a header."""
    *heads, cells = csv.reader(io.StringIO(text))
    rows = [[*STAMPS, *head] for head in heads] + [[str(sequence), printable(sender), *cells]]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
