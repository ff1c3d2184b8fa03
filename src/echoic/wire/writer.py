"""Writing a record field by field, with an exact complaint for every value that does not fit.

`RecordWriter` writes any format. Large arrays are not copied: the record becomes a list of pieces, and the array's own
memory is one of them (the papers' encoding "does not vary with data size"). Smaller things are gathered, because a
piece costs more than a kilobyte of copying.

    runs of the fixed part, with holes for large fixed arrays | padding | blocks in the order of the fields
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy

from echoic.errors import EncodeError
from echoic.formats import Field, Format, Kind, Slots, block_alignment, element_dtype, extent, number_letters, round_up
from echoic.wire.frames import Buffer
from echoic.wire.slots import ORDERS

__all__ = ["RecordWriter"]

FieldWriter: TypeAlias = Callable[[object, bytearray, int, "_Heap"], None]

PIECE_BYTES_MIN: Final = 1024  # what is worth a piece of its own
OFFSET_MAX: Final = 0xFFFF_FFFF
ITEMS_FIRST: Final = (Mapping, numpy.void)  # their attributes, such as `values` or `size`, are not fields


class _Heap:
    """The variable part of one record as it grows.

    Invariant: `end` is where the next block may start, counted from the start of the record.
    """

    __slots__ = ("end", "pieces")

    def __init__(self, fixed_bytes: int) -> None:
        self.end = round_up(fixed_bytes)
        self.pieces: list[Buffer] = []

    def add(self, block: Buffer, alignment: int, path: str) -> int:
        """Append a block and return its offset."""
        padding = -self.end % alignment
        if padding:
            self.pieces.append(bytes(padding))
        offset = self.end + padding
        self.end = offset + len(block)
        if self.end > OFFSET_MAX:
            raise EncodeError(f"the record has more than {OFFSET_MAX} bytes - at `{path}`")
        self.pieces.append(block)
        return offset


class RecordWriter:
    """Writes objects as records of one format.

    The objects may be of any class that has the fields as attributes, or mappings that have them as keys.
    """

    def __init__(self, format: Format, *, path: str = "", holes: bool = True) -> None:
        self._format = format
        self._slot = struct.Struct(ORDERS[format.byte_order] + {0: "II", 1: "I", 2: "Q"}[format.slots])
        self._path = path or format.name
        arrays = [field for field in format.fields if holes and _large(field)]
        self._holes = sorted(((field.offset, field) for field in arrays), key=lambda hole: hole[0])
        self._fields = [
            (field, self._moved(field.offset), self._field_writer(field, f"{self._path}.{field.name}"))
            for field in format.fields
            if field not in arrays
        ]
        self._run_bytes = format.size - sum(extent(field, format.slots) for field in arrays)

    def write(self, value: object) -> tuple[list[Buffer], int]:
        """Return the pieces of a record and how many bytes they have together.

        Raises:
            EncodeError: A value is missing or does not fit its field.
        """
        heap = _Heap(self._format.size)
        runs = bytearray(self._run_bytes)
        self.write_fields(value, runs, 0, heap)
        pieces = self._with_arrays(value, runs)
        if not self._format.variable:
            return pieces, self._format.size
        padding = -self._format.size % 8
        tail = -heap.end % 8
        pieces += [bytes(padding), *heap.pieces, bytes(tail)]
        return _gathered(pieces), heap.end + tail

    def write_fields(self, value: object, target: bytearray, at: int, heap: _Heap) -> None:
        """Write the fields of one object behind `at`; blocks go to the heap."""
        for field, offset, write in self._fields:
            write(field_of(value, field.name, self._path), target, at + offset, heap)
        for field in self._format.fields:
            if field.sizing:
                self._check_sizing(value, field)

    def _moved(self, offset: int) -> int:
        """Return where a byte of the fixed part stands when the holes are left out."""
        return offset - sum(extent(hole, self._format.slots) for start, hole in self._holes if start < offset)

    def _with_arrays(self, value: object, runs: bytearray) -> list[Buffer]:
        """Put the large arrays into the holes of the fixed part."""
        pieces: list[Buffer] = []
        done = 0
        for start, field in self._holes:
            at = self._moved(start)
            path = f"{self._path}.{field.name}"
            given = field_of(value, field.name, self._path)
            array = array_of(given, element_dtype(field, self._format), field.fixed_dimensions, path)
            pieces += [memoryview(runs)[done:at], bytes_of(array)]
            done = at
        return [*pieces, memoryview(runs)[done:]]

    def _check_sizing(self, value: object, field: Field) -> None:
        told = field_of(value, field.sizing, self._path)
        array: Any = field_of(value, field.name, self._path)
        if told != len(array):
            raise EncodeError(
                f"`{field.sizing}` says {told!r} elements, there are {len(array)} - at `{self._path}.{field.name}`"
            )

    def _field_writer(self, field: Field, path: str) -> FieldWriter:
        if field.dynamic:
            return self._vector(field, path)
        element = self._element_writer(field, path)
        if not field.dimensions or (field.kind is Kind.CHAR and len(field.dimensions) == 1):
            return element
        if field.record is None and not field.text:
            return self._numbers(field, path)
        size, shape = field.size, field.fixed_dimensions

        def write(value: object, target: bytearray, at: int, heap: _Heap) -> None:
            for index, item in enumerate(flat(value, shape, path)):
                element(item, target, at + index * size, heap)

        return write

    def _element_writer(self, field: Field, path: str) -> FieldWriter:
        if field.record is not None:
            return RecordWriter(field.record, path=path, holes=False).write_fields
        if field.text:
            return self._text(field, path)
        if field.kind is Kind.CHAR:
            width, least = (field.fixed_dimensions[-1], 0) if field.fixed_dimensions else (1, 1)
            return lambda value, target, at, _heap: _put(target, at, characters(value, least, width, path))
        if field.kind is Kind.BOOL:
            return lambda value, target, at, _heap: _put(target, at, truth(value, path))
        pack_into = struct.Struct(
            ORDERS[self._format.byte_order] + number_letters(field, self._format.byte_order)
        ).pack_into

        def write(value: object, target: bytearray, at: int, _heap: _Heap) -> None:
            try:
                pack_into(target, at, value)
            except (struct.error, OverflowError, TypeError) as error:
                raise EncodeError(f"expected `{field.spelling}`, got {_shown(value)} - at `{path}`") from error

        return write

    def _numbers(self, field: Field, path: str) -> FieldWriter:
        dtype, shape = element_dtype(field, self._format), field.fixed_dimensions
        if field.kind is Kind.CHAR:
            dtype, shape = numpy.dtype(f"S{shape[-1]}"), shape[:-1]
        return lambda value, target, at, _heap: _put(target, at, bytes_of(array_of(value, dtype, shape, path)))

    def _text(self, field: Field, path: str) -> FieldWriter:
        pack_into, terminated = self._slot.pack_into, field.kind is Kind.STRING
        span = self._format.slots is Slots.SPAN
        word = "str" if terminated else "bytes"

        def write(value: object, target: bytearray, at: int, heap: _Heap) -> None:
            if value is None and field.optional:
                return
            if terminated and isinstance(value, str):
                data = utf8_bytes(value, path) + b"\0"
            elif not terminated and isinstance(value, bytes | bytearray | memoryview):
                data = bytes(value)
            else:
                raise EncodeError(f"expected {word}, got {_shown(value)} - at `{path}`")
            length = len(data) - terminated
            if not span and data.find(0) < length:
                raise EncodeError(f"a text behind a C pointer cannot contain NUL, got {_shown(value)} - at `{path}`")
            offset = heap.add(data, 1, path)
            if span:
                pack_into(target, at, offset, length)
            else:
                pack_into(target, at, offset)

        return write

    def _vector(self, field: Field, path: str) -> FieldWriter:
        pack_into, span = self._slot.pack_into, self._format.slots is Slots.SPAN
        block_of = self._block_writer(field, path)
        alignment = block_alignment(field, self._format)

        def write(value: object, target: bytearray, at: int, heap: _Heap) -> None:
            block, length, fill = block_of(value)
            if not length:
                return
            offset = heap.add(block, alignment, path)
            if span:
                pack_into(target, at, offset, length)
            else:
                pack_into(target, at, offset)
            fill(heap)

        return write

    def _block_writer(self, field: Field, path: str) -> Callable[[object], tuple[Buffer, int, Callable[[_Heap], None]]]:
        """Return a function that makes the block of a dynamic array: its bytes, its length, and what to write later."""
        rest = field.fixed_dimensions
        if field.record is None and not field.text:
            dtype, shape = element_dtype(field, self._format), (-1, *rest)
            if field.kind is Kind.CHAR and rest:
                dtype, shape = numpy.dtype(f"S{rest[-1]}"), shape[:-1]

            def numbers(value: object) -> tuple[Buffer, int, Callable[[_Heap], None]]:
                array = array_of(value, dtype, shape, path)
                return bytes_of(array), len(array), lambda _heap: None

            return numbers
        element, size = self._element_writer(field, path), field.size

        def elements(value: object) -> tuple[Buffer, int, Callable[[_Heap], None]]:
            if not isinstance(value, Sequence | numpy.ndarray) or isinstance(value, str | bytes):
                raise EncodeError(f"expected a sequence, got {_shown(value)} - at `{path}`")
            items = flat(value, (len(value), *rest), path)
            block = bytearray(len(items) * size)

            def fill(heap: _Heap) -> None:
                for index, item in enumerate(items):
                    element(item, block, index * size, heap)

            return block, len(value), fill

        return elements


def field_of(value: object, name: str, path: str) -> object:
    """Return a field of an event: an attribute, or an item of a mapping or NumPy record.

    Raises:
        EncodeError: The event has no such field.
    """
    try:
        return value[name] if isinstance(value, ITEMS_FIRST) else getattr(value, name)
    except (KeyError, AttributeError, ValueError, IndexError) as error:
        raise EncodeError(f"{_shown(value)} has no field `{name}` - at `{path}.{name}`") from error


def utf8_bytes(value: str, path: str) -> bytes:
    """Return the bytes of a text.

    Raises:
        EncodeError: It has a lone surrogate, which UTF-8 cannot say.
    """
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"character {error.start} of the text cannot be written as UTF-8 - at `{path}`") from error


def truth(value: object, path: str) -> bytes:
    """Return the byte of a bool.

    Raises:
        EncodeError: It is something else, however true.
    """
    if not isinstance(value, bool | numpy.bool_):
        raise EncodeError(f"expected `bool`, got {_shown(value)} - at `{path}`")
    return b"\1" if value else b"\0"


def characters(value: object, least: int, width: int, path: str) -> bytes:
    """Return the bytes of a char array, padded with NUL.

    Raises:
        EncodeError: It is not bytes, or longer than the array.
    """
    if not isinstance(value, bytes | bytearray) or not least <= len(value) <= width:
        expected = f"at most {width} bytes" if width > least else "one byte"
        raise EncodeError(f"expected {expected}, got {_shown(value)} - at `{path}`")
    return bytes(value).ljust(width, b"\0")


def flat(value: object, shape: tuple[int, ...], path: str) -> list[object]:
    """Return the elements of nested sequences of the given shape in row-major order.

    Raises:
        EncodeError: The shape is another; an empty sequence stands for nothing only where nothing is expected.
    """
    items: list[object] = [value]
    for size in shape:
        following: list[object] = []
        for item in items:
            if not isinstance(item, Sequence | numpy.ndarray) or isinstance(item, str | bytes) or len(item) != size:
                raise EncodeError(f"expected {size} elements, got {_shown(item)} - at `{path}`")
            following.extend(item)
        items = following
    return items


def array_of(value: object, dtype: "numpy.dtype[Any]", shape: tuple[int, ...], path: str) -> "numpy.ndarray[Any, Any]":
    """Return a value as a contiguous array of the given type, without a copy when it is one already.

    An empty sequence stands for zeros, so that a fixed array can have a default.

    Raises:
        EncodeError: The shape differs, or a number does not fit the type.
    """
    given = _given(value, dtype, shape, path)
    if given.shape == (0,):
        return numpy.zeros((0, *shape[1:]) if -1 in shape else shape, dtype)
    if given.shape[1:] != shape[1:] or (
        shape[0] not in (-1, len(given)) if given.ndim and shape else given.shape != shape
    ):
        raise EncodeError(f"expected an array of shape {_shape(shape)}, got {_shape(given.shape)} - at `{path}`")
    if given.dtype != dtype:
        given = _cast(given, dtype, path)
    return numpy.ascontiguousarray(given)


def _given(value: object, dtype: "numpy.dtype[Any]", shape: tuple[int, ...], path: str) -> "numpy.ndarray[Any, Any]":
    """Return a value as NumPy sees it; integers that it would take for floats or objects stay integers."""
    try:
        given = numpy.asarray(value)
        if dtype.kind in "iu" and given.dtype.kind in "fO" and not isinstance(value, numpy.ndarray):
            exact = numpy.asarray(value, object)
            if all(isinstance(item, int) and not isinstance(item, bool) for item in exact.flat):
                return _integers(exact, dtype, path)
    except ValueError as error:
        raise EncodeError(f"expected an array of shape {_shape(shape)}, got {_shown(value)} - at `{path}`") from error
    return given


def _integers(exact: "numpy.ndarray[Any, Any]", dtype: "numpy.dtype[Any]", path: str) -> "numpy.ndarray[Any, Any]":
    limits = numpy.iinfo(dtype)
    worst = next((item for item in exact.flat if not limits.min <= item <= limits.max), None)
    if worst is not None:
        raise EncodeError(f"element {worst} does not fit {dtype.name} ({limits.min} to {limits.max}) - at `{path}`")
    return exact.astype(dtype)


def _cast(given: "numpy.ndarray[Any, Any]", dtype: "numpy.dtype[Any]", path: str) -> "numpy.ndarray[Any, Any]":
    if dtype.kind == "S":
        fits = given.dtype.kind == "S" and given.dtype.itemsize <= dtype.itemsize
    else:
        fits = numpy.can_cast(given.dtype, dtype, "same_kind") or (dtype.kind == "u" and given.dtype.kind in "iu")
    if not fits:
        raise EncodeError(f"expected elements of type {dtype.name}, got {given.dtype.name} - at `{path}`")
    if dtype.kind in "iu" and given.dtype.kind in "iu":
        limits = numpy.iinfo(dtype)
        least, greatest = int(given.min()), int(given.max())
        if least < limits.min or greatest > limits.max:
            worst = least if least < limits.min else greatest
            raise EncodeError(f"element {worst} does not fit {dtype.name} ({limits.min} to {limits.max}) - at `{path}`")
    with numpy.errstate(over="ignore"):
        made = given.astype(dtype)
    lost = numpy.isinf(made) & numpy.isfinite(given) if dtype.kind == "f" else numpy.zeros(0, bool)
    if bool(lost.any()):
        raise EncodeError(f"element {given[lost][0]} does not fit {dtype.name} - at `{path}`")
    return made


def bytes_of(array: "numpy.ndarray[Any, Any]") -> memoryview:
    """Return the memory of a contiguous array, not a copy of it."""
    return array.reshape(-1).view(numpy.uint8).data if array.size else memoryview(b"")


def _large(field: Field) -> bool:
    """Tell whether a fixed array of numbers is worth a piece of its own."""
    plain = field.record is None and not field.text and field.kind is not Kind.CHAR
    return bool(field.dimensions) and not field.dynamic and plain and field.size * field.count >= PIECE_BYTES_MIN


def _gathered(pieces: list[Buffer]) -> list[Buffer]:
    """Join small neighbours."""
    gathered: list[Buffer] = []
    small: list[Buffer] = []
    for piece in pieces:
        if len(piece) < PIECE_BYTES_MIN:
            small.append(piece)
            continue
        if small:
            gathered.append(b"".join(small))
            small = []
        gathered.append(piece)
    return [*gathered, b"".join(small)] if small else gathered


def _put(target: bytearray, at: int, data: Buffer) -> None:
    target[at : at + len(data)] = data


def _shape(shape: tuple[int, ...]) -> str:
    return "".join(f"[{'n' if size < 0 else size}]" for size in shape) or "a single value"


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
