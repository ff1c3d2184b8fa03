"""Walking a record field by field, believing nothing.

`RecordReader` reads any format: nested records, arrays of records, arrays of strings, C pointers as slots, either
byte order. It follows a slot only after `slots` has checked it and says exactly what is wrong with a malformed record.
The faster functions that `decode` generates defer to it whenever something looks wrong, and are tested against it.
"""

import struct
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy

from echoic.errors import MalformedBatchError
from echoic.formats import Binding, Field, Kind, block_alignment, element_dtype, number_letters
from echoic.wire.slots import ORDERS, Extent, SlotReader, read_integer

__all__ = ["RecordReader", "utf8"]

FieldReader: TypeAlias = Callable[[Extent, int], object]
ElementsReader: TypeAlias = Callable[[Extent, int, int, tuple[int, ...]], object]

NUL: Final = b"\0"


class RecordReader:
    """Reads records of one format field by field, believing nothing."""

    def __init__(self, binding: Binding, *, path: str = "") -> None:
        self._format = binding.format
        self._make = binding.make
        self._slots = SlotReader(binding.format)
        self._readers = [
            (field.offset, self._field_reader(field, binding, f"{path or binding.format.name}.{field.name}"))
            for field in binding.format.fields
        ]

    def read(self, buffer: memoryview, start: int, end: int) -> object:
        """Return the record that takes the bytes `start` to `end`.

        Raises:
            MalformedBatchError: A slot contradicts the format, or a string is not UTF-8.
        """
        return self.read_at(Extent(buffer, start, end, self._format.size), start)

    def read_at(self, record: Extent, at: int) -> object:
        """Return the record whose fixed part stands at `at` inside `record`."""
        return self._make(*[read(record, at + offset) for offset, read in self._readers])

    def _field_reader(self, field: Field, binding: Binding, path: str) -> FieldReader:
        if field.dynamic:
            return self._vector(field, self._elements(field, binding, path), path)
        if not field.dimensions:
            return self._single(field, binding, path)
        elements, count = self._elements(field, binding, path), field.count
        return lambda record, at: elements(record, at, count, field.fixed_dimensions)

    def _single(self, field: Field, binding: Binding, path: str) -> FieldReader:
        member = binding.members.get(field.name)
        if isinstance(member, Binding):
            return RecordReader(member, path=path).read_at
        if field.text:
            return self._text(field, path)
        if field.kind is Kind.CHAR:
            return lambda record, at: bytes(record.buffer[at : at + 1])
        order = self._format.byte_order
        unpack = struct.Struct(ORDERS[order] + number_letters(field, order)).unpack_from
        if member is None:
            return lambda record, at: unpack(record.buffer, at)[0]
        return lambda record, at: member(unpack(record.buffer, at)[0])

    def _text(self, field: Field, path: str) -> FieldReader:
        locate, terminated = self._slots.text, field.kind is Kind.STRING
        null: object = None if field.optional else "" if terminated else b""

        def read(record: Extent, at: int) -> object:
            found = locate(record, at, path, terminated=terminated)
            if found is None:
                return null
            data = bytes(record.buffer[found[0] : found[1]])
            return utf8(data, path) if terminated else data

        return read

    def _elements(self, field: Field, binding: Binding, path: str) -> ElementsReader:
        """Return a function that reads `count` neighbouring elements and gives them a shape."""
        if field.record is not None or field.text:
            single, size = self._single(field, binding, path), field.size
            return lambda record, at, count, shape: nest(
                [single(record, at + index * size) for index in range(count)], shape
            )
        if field.kind is Kind.CHAR and field.fixed_dimensions:
            return _char_arrays
        dtype = element_dtype(field, self._format)

        def read(record: Extent, at: int, count: int, shape: tuple[int, ...]) -> object:
            if not count:
                return numpy.empty(shape, dtype)
            return numpy.frombuffer(record.buffer, dtype, count, at).reshape(shape)

        return read

    def _vector(self, field: Field, elements: ElementsReader, path: str) -> FieldReader:
        step_bytes, alignment = field.size * field.count, block_alignment(field, self._format)
        sizing = self._format.field(field.sizing) if field.sizing else None
        order, rest = self._format.byte_order, field.fixed_dimensions

        def read(record: Extent, at: int) -> object:
            length = None
            if sizing is not None:
                place = at - field.offset + sizing.offset
                length = read_integer(record.buffer, place, sizing.size, order, signed=sizing.kind is Kind.INT)
            begin, length = self._slots.block(record, at, length, step_bytes, alignment, path)
            return elements(record, begin, length * field.count, (length, *rest))

        return read


def utf8(data: bytes, path: str) -> str:
    """Return text.

    Raises:
        MalformedBatchError: The bytes are not UTF-8.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MalformedBatchError(f"byte {error.start} of a string is not UTF-8 - at `{path}`") from error


def nest(values: list[object], shape: tuple[int, ...]) -> list[object]:
    """Return a flat list as nested lists of the given shape."""
    for size in reversed(shape[1:]):
        values = [values[start : start + size] for start in range(0, len(values), size)]
    return values


def _char_arrays(record: Extent, at: int, count: int, shape: tuple[int, ...]) -> object:
    """Read a char array as C and NumPy do: the last dimension is a text that ends at the padding."""
    width = shape[-1]
    if len(shape) == 1:
        return bytes(record.buffer[at : at + width]).rstrip(NUL)
    if not count:
        return numpy.empty(shape[:-1], f"S{width}")
    return numpy.frombuffer(record.buffer, f"S{width}", count // width, at).reshape(shape[:-1])
