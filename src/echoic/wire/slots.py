"""Slots: the pointers of a record, and why following one is safe.

    fixed part                     variable part
    | ... {offset, length} ... | 0 | block | block | ...
            |                        ^
            +------------------------+   offset counts from the start of the record

A slot comes from a stranger. Before a block is touched it must lie behind the fixed part and inside the record, be
aligned as its elements are, have the length its sizing field tells, end with NUL if it is a string, and all blocks of
a record together must not be longer than the record, so that a short record cannot unfold into a large object by
pointing at one block many times. (Python objects are larger than bytes all the same: a record full of one-byte records
takes about 40 times its size as objects, as an array nothing.)
"""

import struct
from typing import TYPE_CHECKING, Final

from echoic.errors import MalformedBatchError
from echoic.formats import Slots

if TYPE_CHECKING:
    from echoic.formats import ByteOrder, Format
    from echoic.wire.frames import Buffer

__all__ = ["Extent", "SlotReader", "read_integer"]

ORDERS: Final = {"little": "<", "big": ">"}


class Extent:
    """One record inside a buffer, and how many of its bytes blocks may still claim."""

    __slots__ = ("buffer", "end", "fixed_bytes", "remaining", "start")

    def __init__(self, buffer: "Buffer", start: int, end: int, fixed_bytes: int) -> None:
        """Check that the fixed part is there.

        Raises:
            MalformedBatchError: The record is shorter than its fixed part.
        """
        if end - start < fixed_bytes:
            raise MalformedBatchError(f"a record has {end - start} bytes, its fixed part needs {fixed_bytes}")
        self.buffer = buffer
        self.start = start
        self.end = end
        self.fixed_bytes = fixed_bytes
        self.remaining = end - start - fixed_bytes


def read_integer(buffer: "Buffer", at: int, size: int, byte_order: "ByteOrder", *, signed: bool) -> int:
    """Return the integer that stands at `at`."""
    return int.from_bytes(buffer[at : at + size], byte_order, signed=signed)


class SlotReader:
    """Follows the slots of records of one format."""

    def __init__(self, format: "Format") -> None:
        self._span = struct.Struct(ORDERS[format.byte_order] + "II")
        self._order: ByteOrder = format.byte_order
        self._slots = format.slots

    def text(self, record: Extent, at: int, path: str, *, terminated: bool) -> tuple[int, int] | None:
        """Return where in the buffer the text of the slot at `at` begins and ends, None for a null slot.

        Raises:
            MalformedBatchError: The slot points where no text can be.
        """
        if self._slots is not Slots.SPAN:
            return self._pointed_text(record, at, path)
        offset, length = self._span.unpack_from(record.buffer, at)
        if not offset:
            if length:
                raise MalformedBatchError(f"a null slot has length {length} - at `{path}`")
            return None
        begin = self._claim(record, offset, length, 1, path, tail=1 if terminated else 0)
        if terminated and record.buffer[begin + length]:
            raise MalformedBatchError(f"a string of {length} bytes does not end with NUL - at `{path}`")
        return begin, begin + length

    def block(
        self, record: Extent, at: int, sizing: int | None, step_bytes: int, alignment: int, path: str
    ) -> tuple[int, int]:
        """Return where in the buffer a dynamic array begins, and its length.

        Args:
            record: The record the slot belongs to.
            at: Where the slot stands in the buffer.
            sizing: The value of the sizing field, None when the slot alone tells the length.
            step_bytes: The bytes of one step of the dynamic dimension.
            alignment: What the block must be aligned to.
            path: The field, for messages.

        Raises:
            MalformedBatchError: The slot points where no such array can be, or the lengths contradict each other.
        """
        if self._slots is Slots.SPAN:
            offset, length = self._span.unpack_from(record.buffer, at)
            if sizing is not None and sizing != length:
                raise MalformedBatchError(
                    f"the slot has {length} elements, the sizing field says {sizing} - at `{path}`"
                )
        else:
            offset, length, alignment = self._pointer(record, at), sizing or 0, 1
        if length < 0:
            raise MalformedBatchError(f"the sizing field says {length} elements - at `{path}`")
        if not offset:
            if length:
                raise MalformedBatchError(f"a null slot has length {length} - at `{path}`")
            return record.start, 0
        return self._claim(record, offset, length * step_bytes, alignment, path), length

    def _claim(self, record: Extent, offset: int, size: int, alignment: int, path: str, *, tail: int = 0) -> int:
        """Return where a block begins, having checked that it lies in the variable part and was not claimed before."""
        total = record.end - record.start
        if offset < record.fixed_bytes:
            raise MalformedBatchError(
                f"a slot points at byte {offset}, inside the fixed part of {record.fixed_bytes} bytes - at `{path}`"
            )
        if offset + size + tail > total:
            raise MalformedBatchError(
                f"a block takes bytes {offset} to {offset + size + tail}, the record has {total} - at `{path}`"
            )
        if offset % alignment:
            raise MalformedBatchError(f"a block starts at byte {offset}, not a multiple of {alignment} - at `{path}`")
        record.remaining -= size
        if record.remaining < 0:
            raise MalformedBatchError(
                f"blocks overlap: together they are longer than the record's {total} bytes - at `{path}`"
            )
        return record.start + offset

    def _pointer(self, record: Extent, at: int) -> int:
        return read_integer(record.buffer, at, self._slots.size, self._order, signed=False)

    def _pointed_text(self, record: Extent, at: int, path: str) -> tuple[int, int] | None:
        """Follow a C pointer: the text ends at its NUL."""
        offset = self._pointer(record, at)
        if not offset:
            return None
        begin = record.start + offset
        if offset < record.fixed_bytes or begin >= record.end:
            self._claim(record, offset, 1, 1, path)
        end = _find_nul(record.buffer, begin, record.end)
        if end < 0:
            raise MalformedBatchError(
                f"a string at byte {offset} does not end with NUL inside the record - at `{path}`"
            )
        self._claim(record, offset, end + 1 - begin, 1, path)
        return begin, end


def _find_nul(buffer: "Buffer", begin: int, end: int) -> int:
    """Return where the next NUL stands, -1 if there is none; a short text costs no copy of the whole record."""
    size = 64
    while begin < end:
        found = bytes(buffer[begin : min(begin + size, end)]).find(0)
        if found >= 0:
            return begin + found
        begin += size
        size *= 4
    return -1
