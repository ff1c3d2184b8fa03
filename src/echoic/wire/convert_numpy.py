"""Conversion by NumPy: the moves of a matching, carried out column by column.

A fixed format is converted for the whole batch at once: each move is one strided copy or cast over all records, so the
cost of Python is paid per move and not per record. Records with a variable part are converted one by one, which is slow
but says exactly what is wrong with a malformed one. It is the twin of `convert_native` and gives the same bytes.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import numpy

from echoic.errors import EncodeError, LimitExceededError, MalformedBatchError
from echoic.formats import (
    Cast,
    Copy,
    Each,
    Fill,
    FillText,
    Format,
    Kind,
    Matching,
    Move,
    Number,
    Sizing,
    Slots,
    Text,
    Vector,
    round_up,
    slot_dtype,
)
from echoic.wire.frames import Buffer
from echoic.wire.slots import Extent, SlotReader, read_integer

__all__ = ["NumpyConversion"]

Bytes: TypeAlias = numpy.ndarray[Any, numpy.dtype[numpy.uint8]]
Shape: TypeAlias = tuple[int, ...]

LETTERS = {Kind.INT: "i", Kind.UINT: "u", Kind.FLOAT: "f", Kind.BOOL: "u"}


@dataclass(frozen=True, slots=True)
class _Side:
    """Where the elements that a move is applied to lie: in which memory, from where, how far apart."""

    memory: Bytes
    at: int
    strides: Shape

    def view(self, offset: int, dtype: Any, shape: Shape, *inner: int) -> Any:  # noqa: ANN401 - NumPy's own types
        """Return an array of what stands `offset` behind the start of every element."""
        return numpy.ndarray(shape, dtype, self.memory, self.at + offset, self.strides + inner)

    def inside(self, offset: int, stride: int) -> "_Side":
        """Return the elements of an array that stands `offset` behind the start of every element."""
        return _Side(self.memory, self.at + offset, (*self.strides, stride))

    def element(self, index: int) -> "_Side":
        """Return one element of the innermost array."""
        return _Side(self.memory, self.at + index * self.strides[-1], self.strides[:-1])


class _Heap:
    """The blocks of the record that is being written."""

    def __init__(self, fixed_bytes: int, bytes_max: int) -> None:
        self.end = round_up(fixed_bytes)
        self.blocks: list[tuple[int, Bytes]] = []
        self._bytes_max = bytes_max

    def add(self, size: int, alignment: int) -> tuple[int, Bytes]:
        """Return offset and memory of a further block."""
        offset = round_up(self.end, alignment)
        if offset + size > self._bytes_max:
            raise LimitExceededError(f"a converted batch has more than {self._bytes_max} bytes, which is the limit")
        block = numpy.zeros(size, numpy.uint8)
        self.end = offset + size
        self.blocks.append((offset, block))
        return offset, block


class NumpyConversion:
    """Converts records of one format to another."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._slots = SlotReader(matching.source)

    def convert_fixed(self, records: Buffer, count: int) -> memoryview:
        """Return converted fixed records."""
        source, target = self._matching.source, self._matching.target
        result = numpy.empty(count * target.size, numpy.uint8)
        if count:
            left = _Side(numpy.frombuffer(records, numpy.uint8), 0, (source.size,))
            self._apply(self._matching.moves, left, _Side(result, 0, (target.size,)), (count,), None)
        return result.data

    def convert_variable(
        self, records: memoryview, bounds: Sequence[int], count: int, bytes_max: int
    ) -> tuple[bytes, Sequence[int] | None]:
        """Return the converted records, and their bounds when the target is variable.

        Raises:
            MalformedBatchError: A record contradicts its format.
            LimitExceededError: The result would have more than `bytes_max` bytes.
        """
        made, ends = bytearray(), array("I", [0])
        for index in range(count):
            try:
                made += self._one(records, bounds[index], bounds[index + 1], bytes_max - len(made))
            except MalformedBatchError as error:
                raise MalformedBatchError(f"{error}, record {index} of {count}") from error
            ends.append(len(made))
        return bytes(made), ends if self._matching.target.variable else None

    def _one(self, records: memoryview, start: int, end: int, bytes_max: int) -> bytes:
        """Convert one record that has a variable part on one of the sides."""
        source, target = self._matching.source, self._matching.target
        record = Extent(records, start, end, source.size)
        heap = _Heap(target.size, bytes_max)
        fixed = numpy.zeros(target.size, numpy.uint8)
        left = _Side(numpy.frombuffer(records, numpy.uint8), start, ())
        self._apply(self._matching.moves, left, _Side(fixed, 0, ()), (), (record, heap))
        if not target.variable:
            return fixed.tobytes()
        made = bytearray(round_up(heap.end))
        for offset, block in ((0, fixed), *heap.blocks):
            made[offset : offset + len(block)] = block.tobytes()
        return bytes(made)

    def _apply(
        self, moves: tuple[Move, ...], left: _Side, right: _Side, shape: Shape, parts: tuple[Extent, _Heap] | None
    ) -> None:
        for move in moves:
            match move:
                case Copy(s, t, size):
                    whole = (*shape, size)
                    right.view(t, "u1", whole, 1)[...] = left.view(s, "u1", whole, 1)
                case Cast(s, t, count, read, write):
                    whole = (*shape, count)
                    values = left.view(s, _dtype(read), whole, read.size)
                    with numpy.errstate(over="ignore", invalid="ignore"):
                        right.view(t, _dtype(write), whole, write.size)[...] = cast(values, read, write)
                case Fill(t, data):
                    right.view(t, "u1", (*shape, len(data)), 1)[...] = numpy.frombuffer(data, "u1")
                case Each(s, t, count, source_stride, target_stride, inner):
                    self._each(
                        inner, left.inside(s, source_stride), right.inside(t, target_stride), (*shape, count), parts
                    )
                case Text() | FillText() | Vector():
                    self._apply_slots(move, left, right, parts)
                case _:
                    assert_never(move)

    def _each(
        self, moves: tuple[Move, ...], left: _Side, right: _Side, shape: Shape, parts: tuple[Extent, _Heap] | None
    ) -> None:
        """Convert the elements of an array: together, or one after the other when they have blocks of their own.

        Invariant: the blocks of an element stand before those of the next, as the native twin writes them.
        """
        if not has_slots(moves):
            self._apply(moves, left, right, shape, parts)
            return
        for index in range(shape[-1]):
            self._apply(moves, left.element(index), right.element(index), (), parts)

    def _apply_slots(
        self, move: Text | FillText | Vector, left: _Side, right: _Side, parts: tuple[Extent, _Heap] | None
    ) -> None:
        if parts is None:
            raise MalformedBatchError("a slot was met in a record without variable part")
        match move:
            case Text():
                self._text(move, left.at, right, *parts)
            case FillText(t, data, terminated):
                here = self._matching.target
                _write_text(here, right, t, data, parts[1], terminated=terminated, path=here.name)
            case Vector():
                self._vector(move, left.at, right, *parts)
            case _:
                assert_never(move)

    def _text(self, move: Text, here: int, target: _Side, record: Extent, heap: _Heap) -> None:
        source_step, target_step = self._matching.source.slots.size, self._matching.target.slots.size
        for index in range(move.count):
            at = here + move.source + index * source_step
            found = self._slots.text(record, at, move.path, terminated=move.source_terminated)
            data = None if found is None else bytes(record.buffer[found[0] : found[1]])
            place = move.target + index * target_step
            _write_text(
                self._matching.target, target, place, data, heap, terminated=move.target_terminated, path=move.path
            )

    def _vector(self, move: Vector, here: int, target: _Side, record: Extent, heap: _Heap) -> None:
        told = _told(record, here, move.source_sizing)
        step = move.source_stride * move.per
        begin, length = self._slots.block(record, here + move.source, told, step, move.source_alignment, move.path)
        if move.target_sizing is not None:
            _write_length(target, move.target_sizing, length, move.path)
        count = length * move.per
        if not count:
            _write_slot(self._matching.target, target, move.target, 0, 0)
            return
        offset, block = heap.add(count * move.target_stride, move.target_alignment)
        _write_slot(self._matching.target, target, move.target, offset, length)
        left = _Side(numpy.frombuffer(record.buffer, numpy.uint8), begin, (move.source_stride,))
        self._each(move.moves, left, _Side(block, 0, (move.target_stride,)), (count,), (record, heap))


def has_slots(moves: tuple[Move, ...]) -> bool:
    """Tell whether moves touch the variable part."""
    return any(
        isinstance(move, Text | FillText | Vector) or (isinstance(move, Each) and has_slots(move.moves))
        for move in moves
    )


def cast(values: Any, read: Number, write: Number) -> Any:  # noqa: ANN401 - NumPy's own types
    """Return numbers of one kind as another: integers saturate, fractions are cut off, NaN becomes 0."""
    if read.kind is Kind.BOOL:
        return values != 0
    if write.kind is Kind.FLOAT or (read.kind, read.size) == (write.kind, write.size):
        return values  # the assignment that follows converts
    low, high = write.limits
    if read.kind is not Kind.FLOAT:
        least, greatest = read.limits
        return numpy.clip(values, max(low, least), min(high, greatest))
    inside = (values >= low) & (values < float(high + 1))
    whole = numpy.where(inside, values, 0).astype(_dtype(write))
    return numpy.where(values >= float(high + 1), high, numpy.where(values < low, low, whole))


def _dtype(number: Number) -> str:
    return f"{'>' if number.byte_order == 'big' else '<'}{LETTERS[number.kind]}{number.size}"


def _told(record: Extent, here: int, sizing: Sizing | None) -> int | None:
    if sizing is None:
        return None
    number = sizing.number
    signed = number.kind is Kind.INT
    return read_integer(record.buffer, here + sizing.offset, number.size, number.byte_order, signed=signed)


def _write_length(target: _Side, sizing: Sizing, length: int, path: str) -> None:
    if length > sizing.number.limits[1]:
        raise MalformedBatchError(
            f"an array has {length} elements, its sizing field can say {sizing.number.limits[1]} - at `{path}`"
        )
    target.view(sizing.offset, _dtype(sizing.number), ())[...] = length


def _write_slot(format: Format, target: _Side, at: int, offset: int, length: int) -> None:
    value = (offset, length) if format.slots is Slots.SPAN else offset
    target.view(at, slot_dtype(format), ())[...] = value


def _write_text(
    format: Format, target: _Side, at: int, data: bytes | None, heap: _Heap, *, terminated: bool, path: str
) -> None:
    if data is None:
        _write_slot(format, target, at, 0, 0)
        return
    if format.slots is not Slots.SPAN and 0 in data:
        raise EncodeError(f"a text that contains NUL cannot stand behind a C pointer - at `{path}`")
    offset, block = heap.add(len(data) + terminated, 1)
    block[: len(data)] = numpy.frombuffer(data, numpy.uint8)
    _write_slot(format, target, at, offset, len(data))
