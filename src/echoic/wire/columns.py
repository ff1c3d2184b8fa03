"""A variable batch seen as columns.

The fixed parts of the records are gathered into one structured array, so that numbers become NumPy columns and slots
become two columns of integers, checked all at once. Text and dynamic arrays of numbers are then cut out with slices. It
is what Arrow and `Batch.array` are made from; formats with arrays of records or of text go through objects instead.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy

from echoic.errors import MalformedBatchError
from echoic.formats import Field, Format, Slots, block_alignment
from echoic.wire.decode import decoder_of

__all__ = ["Columns", "object_array"]

Array: TypeAlias = numpy.ndarray[Any, Any]
Buffer: TypeAlias = bytes | memoryview

WORD: Final = 8
SHORT_BYTES: Final = 32


class Columns:
    """The columns of a batch whose format has slots only for text and dynamic arrays of numbers."""

    def __init__(self, format: Format, records: memoryview, bounds: Sequence[int]) -> None:
        """Gather the fixed parts and check every slot.

        Raises:
            MalformedBatchError: A slot contradicts the format.
        """
        self.starts: Array = numpy.asarray(bounds[:-1], numpy.int64)
        self.data = bytes(records)
        self._sizes = numpy.diff(numpy.asarray(bounds, numpy.int64))
        self._format = format
        self.fixed = self._gather()
        self._remaining = self._sizes - format.size

    @staticmethod
    def suits(format: Format) -> bool:
        """Tell whether a format can be seen as columns."""
        return format.slots is Slots.SPAN and all(
            (field.record is None or (not field.dimensions and Columns.suits(field.record)))
            and not (field.text and field.dimensions)
            for field in format.fields
        )

    def texts(self, slots: Array, path: str, *, terminated: bool) -> tuple[Buffer, Array, Array]:
        """Return the texts of all records one behind the other, their lengths, and whether each is there.

        One that is not has length 0.
        """
        begins, lengths = self._claim(slots, 1, 1, path, tail=int(terminated))
        present = slots["offset"] != 0
        if terminated:
            self._check_ends(begins + lengths, present, path)
        return self._cut(begins, lengths), lengths, present

    def vectors(self, field: Field, slots: Array, sizing: Array | None, path: str) -> tuple[list[bytes], Array]:
        """Return the bytes of each record's dynamic array, and their lengths."""
        if sizing is not None and bool((sizing != slots["length"]).any()):
            at = int(numpy.argmax(sizing != slots["length"]))
            raise MalformedBatchError(
                f"the slot has {slots['length'][at]} elements, the sizing field says {sizing[at]} - at `{path}`, "
                f"record {at} of {len(slots)}"
            )
        step = field.size * field.count
        begins, lengths = self._claim(slots, step, block_alignment(field, self._format), path)
        ends = (begins + lengths * step).tolist()
        return [self.data[begin:end] for begin, end in zip(begins.tolist(), ends, strict=True)], lengths

    def _gather(self) -> Array:
        """Copy the fixed parts next to each other, word by word: records begin and end at words."""
        if not len(self.starts):
            return numpy.empty(0, self._format.dtype)
        words = numpy.frombuffer(self.data, numpy.uint64)
        places = (self.starts // WORD)[:, None] + numpy.arange(-(-self._format.size // WORD))
        fixed = words[places].view(numpy.uint8)[:, : self._format.size]
        return numpy.ascontiguousarray(fixed).view(self._format.dtype).reshape(-1)

    def _cut(self, begins: Array, lengths: Array) -> Buffer:
        """Copy blocks next to each other: byte by byte if they are short, for which NumPy is faster than slices."""
        total = int(lengths.sum())
        if total > SHORT_BYTES * len(lengths):
            data = self.data
            ends = (begins + lengths).tolist()
            return b"".join([data[begin:end] for begin, end in zip(begins.tolist(), ends, strict=True)])
        shifts = begins - (numpy.cumsum(lengths) - lengths)
        places = numpy.repeat(shifts, lengths) + numpy.arange(total)
        return numpy.frombuffer(self.data, numpy.uint8)[places].data

    def _claim(self, slots: Array, step: int, alignment: int, path: str, *, tail: int = 0) -> tuple[Array, Array]:
        """Check one slot of every record, as `slots.SlotReader` does; return where blocks begin and their lengths."""
        offsets, lengths = slots["offset"].astype(numpy.int64), slots["length"].astype(numpy.int64)
        present = offsets != 0
        self._remaining = self._remaining - lengths * step
        bad = (~present & (lengths != 0)) | (self._remaining < 0)
        bad |= present & (
            (offsets < self._format.size) | (offsets + lengths * step + tail > self._sizes) | (offsets % alignment != 0)
        )
        if bool(bad.any()):
            self._refuse(int(numpy.argmax(bad)), path, offsets, lengths)
        return self.starts + offsets, lengths

    def _check_ends(self, ends: Array, present: Array, path: str) -> None:
        last = numpy.frombuffer(self.data, numpy.uint8)[numpy.where(present, ends, 0)]
        bad = present & (last != 0)
        if bool(bad.any()):
            at = int(numpy.argmax(bad))
            raise MalformedBatchError(f"a string does not end with NUL - at `{path}`, record {at} of {len(ends)}")

    def _refuse(self, at: int, path: str, offsets: Array, lengths: Array) -> None:
        raise MalformedBatchError(
            f"a slot has offset {offsets[at]} and length {lengths[at]}, which is not a block of a record with "
            f"{self._format.size} fixed of {self._sizes[at]} bytes - at `{path}`, record {at} of {len(offsets)}"
        )


def object_array(format: Format, records: memoryview, bounds: Sequence[int]) -> Array:
    """Return a variable batch as a structured array with Python objects for text and dynamic arrays.

    Raises:
        MalformedBatchError: A record contradicts the format.
    """
    events = decoder_of(format).decode(records, bounds)
    dtype = numpy.dtype([(field.name, *_column_type(field, format)) for field in format.fields])
    result = numpy.empty(len(events), dtype)
    for field in format.fields:
        column = result[field.name]
        for index, event in enumerate(events):
            column[index] = getattr(event, field.name)
    return result


def _column_type(field: Field, format: Format) -> tuple[Any, ...]:
    if field.variable or field.record is not None:
        return ("O",)
    column = format.dtype[field.name]
    return (column.base.newbyteorder("="), column.shape)
