"""The paper's difference mode: an event passes only when something has changed (JECho, appendix B).

A viewer that was filtering by a bounding box switches to watching for alarms: of each cell of the grid it wants to hear
only when the value has moved by more than a threshold since it last heard. So the last value that passed must be kept
at the source, once for all events or once per cell.

`Difference` keeps it in the statics of E-Code: one value, or a table with one row per cell of a grid whose extent is
told. The table is an array and the cell its index, which is exact and takes the same few nanoseconds for each event;
64 KB of statics are room for 7281 cells. `DifferenceByKey` is the same for keys of any kind, texts among them, as a
Python modulator with a bounded dictionary; the cell that was heard of longest ago is forgotten first, and a forgotten
cell's next event passes. A hash table in E-Code would have been possible, but either inexact or large.

A value that is not a number always passes, and so does the one after it: an alarm is rather given twice than never. For
the same reason events outside of the grid pass.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from echoic.eager.modulator import EcodeModulator, Modulator
from echoic.eager.ready.arguments import check_real, check_whole
from echoic.eager.ready.bounds import parameters, spelled
from echoic.eager.ready.fields import Reader, check_key, check_number
from echoic.eager.shared_object import SharedObject
from echoic.errors import LocalError
from echoic.formats import Array

__all__ = ["Difference", "DifferenceByKey"]

STATICS_BYTES_MAX: Final = 65_536
CELL_BYTES: Final = 9  # a double and a char
CELLS_MAX: Final = STATICS_BYTES_MAX // CELL_BYTES - 1
CELL_MAX: Final = 1 << 53  # beyond, doubles skip integers
KEYS_MAX: Final = 65_536

SINGLE: Final = """{{
    static double last = 0;
    static char known = 0;
    if (known && (input.{field} == last || fabs(input.{field} - last) <= {threshold})) return 0;
    last = input.{field};
    known = 1;
    return 1;
}}"""

GRID: Final = """{{
    static double last[{cells}];
    static char known[{cells}];
    long cell = 0;
    {steps}
    if (known[cell] && (input.{field} == last[cell] || fabs(input.{field} - last[cell]) <= {threshold})) return 0;
    last[cell] = input.{field};
    known[cell] = 1;
    return 1;
}}"""

STEP: Final = """if (input.{path} < {low} || input.{path} > {high}) return 1;
    cell = cell * {extent} + (input.{path} - {low});"""


class Difference(EcodeModulator):
    """Pass an event when a field has changed by more than a threshold since the last event that passed.

    Args:
        field: The field that is watched.
        threshold: By how much it must change: a number, or the name of a field of `box`.
        cells: Watch each cell of a grid for itself: the integer fields that tell the cell, with their lowest and
            highest values.
        box: The shared object that holds the threshold, if that is a name.
        declared: The event type, if the fields are to be checked here and not only where the events are.

    Raises:
        LocalError: There is no such field, the threshold is not a number from 0, or there are too many cells.
    """

    def __init__(
        self,
        field: str,
        threshold: float | str,
        *,
        cells: Mapping[str, tuple[int, int]] | None = None,
        box: SharedObject | None = None,
        declared: object | None = None,
    ) -> None:
        check_number(declared, field)
        if not isinstance(threshold, str):
            threshold = _checked_threshold(threshold)
        spelling = spelled("threshold", threshold, box)
        self.field: Final = field
        self.threshold: Final = threshold
        if cells:
            steps = "\n    ".join(_step(path, *extent, declared) for path, extent in cells.items())
            code = GRID.format(cells=_count(cells), steps=steps, field=field, threshold=spelling)
        else:
            code = SINGLE.format(field=field, threshold=spelling)
        super().__init__(code, params=parameters({"threshold": threshold}, box))

    def __repr__(self) -> str:
        return f"Difference({self.field!r}, {self.threshold!r})"


class DifferenceByKey(Modulator):
    """Pass an event when a field has changed by more than a threshold since the last event of its key that passed.

    Args:
        field: The field that is watched.
        threshold: By how much it must change.
        keys: The fields that tell what an event is about, such as `symbol`.
        keys_max: How many keys are remembered.
        declared: The event type, if the fields are to be checked here and not only where the events are.

    Raises:
        LocalError: There is no such field, or the threshold is not a number from 0.
    """

    field: str
    threshold: float
    keys: Array[str, ...]
    keys_max: int

    def __init__(
        self,
        field: str,
        threshold: float,
        keys: str | Sequence[str],
        *,
        keys_max: int = KEYS_MAX,
        declared: object | None = None,
    ) -> None:
        check_number(declared, field)
        names = [check_key(declared, key) for key in ([keys] if isinstance(keys, str) else keys)]
        if not names:
            raise LocalError("a difference by key needs at least one key, use `Difference` without any")
        super().__init__(field, _checked_threshold(threshold), names, check_whole("keys_max", keys_max, 1, KEYS_MAX))

    def start(self) -> None:
        """Begin with nothing known."""
        self._value = Reader([self.field])
        self._key = Reader(self.keys)
        self._last: dict[object, float] = {}

    def enqueue(self, event: object) -> None:
        """Pass the event if it is the first of its key, or has changed enough."""
        key, value = self._key(event), self._value(event)
        last = self._last.get(key)
        if last is not None and (value == last or abs(value - last) <= self.threshold):
            return
        self._last.pop(key, None)
        self._last[key] = value  # at the end: the first of a dict is what was written longest ago
        if len(self._last) > self.keys_max:
            del self._last[next(iter(self._last))]
        super().enqueue(event)


def _checked_threshold(threshold: float) -> float:
    return float(check_real("threshold", threshold, low=0))


def _count(cells: Mapping[str, tuple[int, int]]) -> int:
    count = math.prod(high - low + 1 for low, high in cells.values())
    if count > CELLS_MAX:
        raise LocalError(
            f"a grid of {count} cells needs {count * CELL_BYTES} bytes of statics, limit is {STATICS_BYTES_MAX}; "
            f"use `DifferenceByKey`"
        )
    return count


def _step(path: str, low: int, high: int, declared: object | None) -> str:
    check_number(declared, path)
    check_whole(path, low, -CELL_MAX, CELL_MAX)
    check_whole(path, high, low, CELL_MAX)
    return STEP.format(path=path, low=f"({low}L)", high=f"({high}L)", extent=high - low + 1)
