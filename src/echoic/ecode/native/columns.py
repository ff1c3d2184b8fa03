"""Input that lies in columns: a base address and a stride for each field that the code names.

Instead of records the routine gets a table of the columns, five numbers of 64 bits for each:

    values | bytes of values | stride | offsets | bytes of offsets

Numbers, fixed arrays and char arrays lie at `values + stride * event`. A text or a dynamic array lies between two
neighbouring offsets (int32, counted in steps, as Arrow has them) of `values`. Columns are this machine's, so nothing is
turned. The table is checked once for a batch, the offsets for each event: those that contradict it fault as a record
does that contradicts its type.

Only the top level has columns: records in records are spread out, but an array of records, or of texts, is refused.
"""

import struct
from dataclasses import dataclass
from typing import Any, Final

import numpy

from echoic.ecode.kernel import Buffer, FaultKind
from echoic.ecode.native.routine import NOWHERE, Routine
from echoic.ecode.typed import Location
from echoic.errors import CodegenError
from echoic.formats import Field

__all__ = ["COLUMN_BYTES", "Column", "Columns", "packed_columns"]

TABLE_ROW: Final = struct.Struct("=5q")
COLUMN_BYTES: Final = TABLE_ROW.size


@dataclass(frozen=True, slots=True)
class Column:
    """The memory of one field: `offsets` for texts and dynamic arrays, else a stride."""

    values: Buffer
    stride: int = 0
    offsets: Buffer | None = None


def packed_columns(columns: list[Column]) -> tuple[bytes, list[object]]:
    """Return the table of columns, and what keeps their memory where it is."""
    rows: list[bytes] = []
    kept: list[object] = []
    for column in columns:
        values, offsets = _memory(column.values), _memory(column.offsets or b"")
        kept += [values, offsets]
        rows.append(TABLE_ROW.pack(values.ctypes.data, values.size, column.stride, offsets.ctypes.data, offsets.size))
    return b"".join(rows), kept


def _memory(buffer: Buffer) -> "numpy.ndarray[Any, Any]":
    return numpy.frombuffer(buffer, numpy.uint8) if len(buffer) else numpy.zeros(0, numpy.uint8)


class Columns:
    """Writes how the fields of `input` are found in their columns."""

    def __init__(self, routine: Routine) -> None:
        self._routine = routine
        self._emit = routine.emit
        self.paths: dict[tuple[str, ...], int] = {}
        """The columns in the order of the table."""
        self.spans: list[tuple[str, str]] = []
        """The blocks of texts and arrays, by pointer and length."""
        self._rows: dict[tuple[str, ...], str] = {}

    def address(self, location: Location) -> str:
        """Return where the field of this event lies; constant indexes are counted in."""
        field, begin = self._field(location.path)
        if location.path not in self._rows:
            number = self._number(location.path)
            with self._emit.inside(self._routine.entering):
                values, stride = self._checked(number, field)
            with self._emit.inside(self._routine.opening):
                distance = self._emit.value(f"mul i64 %index, {stride}")
                self._rows[location.path] = self._emit.at(values, distance)
        return self._emit.at(self._rows[location.path], location.offset - begin)

    def span(self, location: Location) -> tuple[str, str]:
        """Return the block of a text or dynamic array of this event, and how many steps it has."""
        emit = self._emit
        field, _ = self._field(location.path)
        if field.record is not None or (field.text and field.dimensions):
            raise CodegenError(f"`{'.'.join(location.path)}` is `{field.spelling}`, which cannot be read from a column")
        step = field.size * field.count if field.dynamic else 1
        number = self._number(location.path)
        with emit.inside(self._routine.entering):
            values, limit = self._entry(number, 0, "ptr"), self._entry(number, 1, "i64")
            offsets, offset_bytes = self._entry(number, 3, "ptr"), self._entry(number, 4, "i64")
            needed = emit.value("mul i64 %beyond, 4")
            emit.require(emit.value(f"icmp uge i64 {offset_bytes}, {needed}"), "unusable")
        with emit.inside(self._routine.opening):
            place = emit.at(offsets, emit.value("mul i64 %index, 4"))
            begin, end = (
                emit.value(f"sext i32 {emit.load('i32', where)} to i64") for where in (place, emit.at(place, 4))
            )
            length = emit.value(f"sub i64 {end}, {begin}")
            behind = emit.value(f"mul i64 {end}, {step}")
            emit.require(emit.value(f"icmp sge i64 {begin}, 0"), self._routine.fault(FaultKind.RECORD, NOWHERE))
            emit.require(emit.value(f"icmp sge i64 {length}, 0"), self._routine.fault(FaultKind.RECORD, NOWHERE))
            emit.require(emit.value(f"icmp sle i64 {behind}, {limit}"), self._routine.fault(FaultKind.RECORD, NOWHERE))
            pointer = emit.at(values, emit.value(f"mul i64 {begin}, {step}"))
        self.spans.append((pointer, length))
        return pointer, length

    def _number(self, path: tuple[str, ...]) -> int:
        return self.paths.setdefault(path, len(self.paths))

    def _field(self, path: tuple[str, ...]) -> tuple[Field, int]:
        """Return a field, and where it begins in a record."""
        format, begin = self._routine.format("input"), 0
        *outer, last = path
        for name in outer:
            holder = format.by_name[name]
            if holder.dimensions or holder.record is None:
                raise CodegenError(f"`{'.'.join(path)}` lies in an array of records, which has no columns")
            format, begin = holder.record, begin + holder.offset
        field = format.by_name[last]
        return field, begin + field.offset

    def _entry(self, number: int, part: int, kind: str) -> str:
        """Return an entry of the table of columns."""
        return self._emit.load(kind, self._emit.at("%records", number * COLUMN_BYTES + part * 8))

    def _checked(self, number: int, field: Field) -> tuple[str, str]:
        """Return base and stride of a column that is long enough for all events."""
        emit = self._emit
        values, size, stride = (
            self._entry(number, 0, "ptr"),
            self._entry(number, 1, "i64"),
            self._entry(number, 2, "i64"),
        )
        emit.require(emit.value(f"icmp ult i64 {stride}, 2147483648"), "unusable")
        begin = emit.value(f"mul i64 {stride}, %last")
        end = emit.value(f"add i64 {begin}, {field.size * field.count}")
        emit.require(emit.value(f"icmp sle i64 {end}, {size}"), "unusable")
        return values, stride
