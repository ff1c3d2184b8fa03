"""Random event types and random events, for programs that run on anything.

A type has every kind of field that a format can have: numbers of all sizes, enumerations, bools, char arrays, texts,
arrays with fixed and dynamic lengths, records in records and arrays of them, laid out for machines of both byte orders.
Its records are written here byte by byte and not by `wire`, so that they are a second opinion of the layout and can
say what no encoder would: a `bool` of 255, a NaN with a payload, a string without its NUL, a slot that points anywhere.

Values are drawn near the borders where arithmetic goes wrong; small ones are frequent too, because programs use them as
indexes.
"""

import math
import struct
from dataclasses import dataclass
from random import Random
from typing import Final

from echoic.formats import (
    ARCHITECTURES,
    NATIVE,
    Architecture,
    Enumeration,
    Field,
    Format,
    Kind,
    block_alignment,
    round_up,
)

__all__ = ["FLOATS", "Events", "RecordMaker", "TypeMaker", "draw_integer"]

LAYOUTS: Final = ("x86_64", "x86_64", "sparc64", "sparc32", "i386", "m68k", "packed")
FLOATS: Final = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.0,
    1e-310,
    5e-324,
    -1e-45,
    16777217.0,
    2147483647.0,
    2147483648.0,
    -2147483649.0,
    4294967295.5,
    4294967296.0,
    9007199254740993.0,
    9223372036854775808.0,
    -9223372036854775808.0,
    18446744073709551616.0,
    3.4028234663852886e38,
    1e39,
    1.7976931348623157e308,
    -1e300,
    math.inf,
    -math.inf,
    math.nan,
)
WORDS: Final = (b"", b"a", b"IBM", b"SUNW", b"a\0b", b"\xff\xfe", b"exactly8", b"somewhat longer than the others")
LONG_WORDS: Final = (b"x" * 256, b"x" * 1000, b"y" * 1000, b"x" * 9000)  # enough to burn fuel when they are compared
BOUNDARIES: Final = (0, 1, 2, 7, 8, 16, 255, 4096, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFF8, 0xFFFFFFFF)


def draw_integer(random: Random, size: int, *, signed: bool) -> int:
    """Return an integer of `size` bytes: small, near a border, or any."""
    low, high = (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) if signed else (0, (1 << (8 * size)) - 1)
    way = random.random()
    if way < 0.5:
        small = random.choice((0, 0, 1, 1, 2, 3, 4, 5, 7))
        return -small if signed and random.random() < 0.25 else small
    if way < 0.8:
        near = random.choice((low, high, 0, 1 << random.randrange(8 * size - 1)))
        return min(high, max(low, near + random.choice((-1, 0, 0, 1))))
    return random.randint(low, high)


class TypeMaker:
    """Draws event types."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0

    def input(self) -> Format:
        """Return the type of what arrives, laid out for any machine."""
        architecture = ARCHITECTURES[self._random.choice(LAYOUTS)]
        return self._format("Input", architecture, nesting=2, variable=self._random.random() < 0.6)

    def output(self) -> Format:
        """Return the type of what is sent on, laid out for this machine."""
        return self._format("Output", NATIVE, nesting=1, variable=self._random.random() < 0.5, written=True)

    def params(self) -> Format:
        """Return the type of a parameter block."""
        return self._format("Params", NATIVE, nesting=1, variable=self._random.random() < 0.3)

    def context(self) -> Format:
        """Return the type of a context: numbers, and fixed arrays and records of them."""
        fields = [self._plain_number() for _ in range(self._random.randint(1, 4))]
        if self._random.random() < 0.4:
            record = Format.place("Inner", [self._plain_number() for _ in range(2)], NATIVE)
            dimensions = self._dimensions()[:1] if self._random.random() < 0.5 else ()
            fields.append(Field(self._name(), Kind.RECORD, record.size, dimensions=dimensions, record=record))
        return Format.place("Context", fields, NATIVE)

    def _plain_number(self) -> Field:
        """Return a field that a context may have: a char array would be a text."""
        name = self._name()
        dimensions = self._dimensions()[:2] if self._random.random() < 0.4 else ()
        field = self._number(name, dimensions)
        return self._number(name) if field.kind is Kind.CHAR else field

    def _format(
        self, name: str, architecture: Architecture, *, nesting: int, variable: bool, written: bool = False
    ) -> Format:
        fields = [self._number(self._name())]
        for _ in range(self._random.randint(1, 6)):
            fields += self._draw_fields(architecture, nesting, variable=variable, written=written)
        self._random.shuffle(fields)
        return Format.place(name, fields, architecture)

    def _draw_fields(
        self, architecture: Architecture, nesting: int, *, variable: bool, written: bool, dynamic: bool = True
    ) -> list[Field]:
        """Return a field, with the one that holds its length if it has one.

        Args:
            architecture: For which machine nested records are laid out.
            nesting: How deep further records may stand in it.
            variable: Whether it may have slots.
            written: Whether it is one of `output`, where dynamic arrays are plainer.
            dynamic: Whether it may be a dynamic array.
        """
        random, name = self._random, self._name()
        way = random.random()
        if way < 0.4:
            return [self._number(name)]
        if way < 0.58:
            return [self._number(name, self._dimensions())]
        if way < 0.66:
            outer = self._dimensions()[:1] if random.random() < 0.3 else ()
            return [Field(name, Kind.CHAR, 1, dimensions=(*outer, random.choice((1, 3, 4, 8))))]
        if way < 0.78 and nesting:
            return self._record_fields(name, architecture, nesting, variable=variable, written=written, dynamic=dynamic)
        if variable and way < 0.9:
            kind = random.choice((Kind.STRING, Kind.STRING, Kind.BYTES))
            dimensions = self._dimensions()[:1] if random.random() < 0.2 and not written else ()
            return [Field(name, kind, 8, dimensions=dimensions, optional=not dimensions and random.random() < 0.3)]
        if variable and dynamic:
            return self._dynamic_fields(name, architecture, nesting, written=written)
        return [self._number(name)]

    def _record_fields(
        self, name: str, architecture: Architecture, nesting: int, *, variable: bool, written: bool, dynamic: bool
    ) -> list[Field]:
        dimensions = self._dimensions()[:2] if self._random.random() < 0.5 else ()
        dynamic = dynamic and not (written and dimensions)
        record = self._nested(architecture, nesting - 1, variable=variable, written=written, dynamic=dynamic)
        return [Field(name, Kind.RECORD, record.size, dimensions=dimensions, record=record)]

    def _dynamic_fields(self, name: str, architecture: Architecture, nesting: int, *, written: bool) -> list[Field]:
        random = self._random
        sizing = [self._length(self._name())] if random.random() < 0.7 else []
        inner = self._dimensions()[:1] if random.random() < 0.3 else ()
        dimensions: tuple[int | str, ...] = (sizing[0].name if sizing else "", *inner)
        if nesting and random.random() < 0.3:
            record = self._nested(architecture, nesting - 1, variable=not written, written=written, dynamic=not written)
            return [*sizing, Field(name, Kind.RECORD, record.size, dimensions=dimensions, record=record)]
        if not written and random.random() < 0.15:
            return [*sizing, Field(name, Kind.STRING, 8, dimensions=dimensions)]
        fellow = [self._number(self._name(), dimensions)] if random.random() < 0.2 else []
        return [*sizing, self._number(name, dimensions), *fellow]

    def _nested(
        self, architecture: Architecture, nesting: int, *, variable: bool, written: bool, dynamic: bool
    ) -> Format:
        fields = [self._number(self._name())]
        for _ in range(self._random.randint(0, 3)):
            fields += self._draw_fields(architecture, nesting, variable=variable, written=written, dynamic=dynamic)
        return Format.place(f"Nested{self._names}", fields, architecture)

    def _number(self, name: str, dimensions: tuple[int | str, ...] = ()) -> Field:
        random = self._random
        kind = random.choice((Kind.INT, Kind.INT, Kind.UINT, Kind.FLOAT, Kind.FLOAT, Kind.BOOL, Kind.CHAR, Kind.ENUM))
        if kind is Kind.FLOAT:
            return Field(name, kind, random.choice((4, 8)), dimensions=dimensions)
        if kind in (Kind.BOOL, Kind.CHAR):
            return Field(name, kind, 1, dimensions=dimensions)
        size = random.choice((1, 2, 4, 8))
        if kind is Kind.ENUM:
            enumeration = Enumeration(f"Enumeration{self._names}", random.random() < 0.5, (("NONE", 0), ("ONE", 1)))
            return Field(name, kind, size, dimensions=dimensions, enumeration=enumeration)
        return Field(name, kind, size, dimensions=dimensions)

    def _length(self, name: str) -> Field:
        return Field(name, self._random.choice((Kind.INT, Kind.UINT)), self._random.choice((1, 2, 4, 8)))

    def _dimensions(self) -> tuple[int, ...]:
        return tuple(self._random.randint(1, 5) for _ in range(self._random.choice((1, 1, 1, 2, 3))))

    def _name(self) -> str:
        self._names += 1
        return f"f{self._names}"


@dataclass(frozen=True, slots=True)
class Events:
    """Records one after the other, and where they begin and end if their type is variable."""

    records: bytes
    bounds: bytes | None
    count: int


class RecordMaker:
    """Draws records of one type."""

    def __init__(self, random: Random, format: Format) -> None:
        self._random = random
        self._format = format
        self._data = bytearray()
        self._slots: list[int] = []
        self._lengths: list[tuple[int, Field]] = []

    def events(self, count: int, *, damaged: bool) -> Events:
        """Return some records; if `damaged`, with slots, lengths and bounds that lie."""
        pieces = []
        for _ in range(count):
            record = self.record()
            if damaged and self._random.random() < 0.4:
                self._damage(record)
            pieces.append(bytes(record))
        bounds = [0]
        for piece in pieces:
            bounds.append(bounds[-1] + len(piece))
        if not self._format.variable:
            cut = self._random.randrange(1, self._format.size + 1) if damaged and self._random.random() < 0.2 else 0
            return Events(b"".join(pieces)[: bounds[-1] - cut], None, count)
        if damaged and self._random.random() < 0.3:
            bounds[self._random.randrange(count + 1)] = self._random.choice((*BOUNDARIES, *bounds))
        return Events(b"".join(pieces), struct.pack(f"={count + 1}I", *bounds), count)

    def record(self) -> bytearray:
        """Return one record that is as its type says."""
        self._slots, self._lengths = [], []
        self._data = bytearray(self._format.size)
        if self._format.variable:
            self._data += bytes(round_up(self._format.size) - self._format.size)
        self._fill(self._format, 0)
        if self._format.variable:
            self._data += bytes(-len(self._data) % 8)
        return self._data

    def _fill(self, format: Format, start: int) -> None:
        """Write the fields of a record that begins at `start`."""
        lengths = {field.sizing: self._draw_length() for field in format.fields if field.sizing}
        for field in format.fields:
            at = start + field.offset
            if field.dynamic:
                length = lengths[field.sizing] if field.sizing else self._draw_length()
                self._add_block(field, format, at, length)
            elif field.name in lengths:
                self._lengths.append((at, field))
                self._data[at : at + field.size] = lengths[field.name].to_bytes(field.size, format.byte_order)
            else:
                self._fill_elements(field, format, at, field.count)

    def _draw_length(self) -> int:
        return self._random.choice((0, 1, 2, 3, 3, 4, 5))

    def _add_block(self, field: Field, format: Format, at: int, length: int) -> None:
        self._slots.append(at)
        if not length and self._random.random() < 0.5:
            return
        self._data += bytes(-len(self._data) % block_alignment(field, format))
        begin = len(self._data)
        self._set_slot(at, begin, length)
        self._data += bytes(length * field.count * field.size)
        self._fill_elements(field, format, begin, length * field.count)

    def _set_slot(self, at: int, offset: int, length: int) -> None:
        order = "<" if self._format.byte_order == "little" else ">"
        struct.pack_into(order + "II", self._data, at, offset, length)

    def _fill_elements(self, field: Field, format: Format, at: int, count: int) -> None:
        for number in range(count):
            place = at + number * field.size
            if field.record is not None:
                self._fill(field.record, place)
            elif field.text:
                self._add_text(field, place)
            else:
                self._data[place : place + field.size] = self._scalar(field, format)

    def _add_text(self, field: Field, at: int) -> None:
        self._slots.append(at)
        if self._random.random() < 0.15:
            return
        text = self._random.choice(WORDS if self._random.random() < 0.97 else LONG_WORDS)
        self._set_slot(at, len(self._data), len(text))
        self._data += text + (b"\0" if field.kind is Kind.STRING else b"")

    def _scalar(self, field: Field, format: Format) -> bytes:
        random = self._random
        order = "<" if format.byte_order == "little" else ">"
        if field.kind is Kind.BOOL:
            return bytes([random.choice((0, 0, 1, 1, 1, 2, 128, 255))])
        if field.kind is Kind.CHAR:
            return bytes([random.choice((0, 0, 65, 66, 97, 127, 128, 255))])
        if field.kind is not Kind.FLOAT:
            signed = field.enumeration.signed if field.enumeration else field.kind is Kind.INT
            value = draw_integer(random, field.size, signed=signed)
            return value.to_bytes(field.size, format.byte_order, signed=signed)
        if random.random() < 0.05:
            return random.randbytes(field.size)
        number = random.choice(FLOATS) if random.random() < 0.4 else random.choice((0.0, 1.0, 2.5, random.gauss(0, 9)))
        if field.size == 4 and math.isfinite(number) and abs(number) > 3e38:
            number = math.copysign(math.inf, number)
        return struct.pack(order + ("f" if field.size == 4 else "d"), number)

    def _damage(self, record: bytearray) -> None:
        """Let one thing of a record lie: a slot, a length, a byte."""
        random = self._random
        way = random.random()
        if self._slots and way < 0.6:
            at = random.choice(self._slots) + random.choice((0, 4))
            order = "<" if self._format.byte_order == "little" else ">"
            near = (len(record), len(record) - 8, len(record) - 1, self._format.size, self._format.size - 1)
            value = random.choice((*BOUNDARIES, *near)) if random.random() < 0.7 else random.randrange(len(record) + 9)
            struct.pack_into(order + "I", record, at, value & 0xFFFFFFFF)
        elif self._lengths and way < 0.85:
            at, field = random.choice(self._lengths)
            record[at : at + field.size] = random.choice((bytes, random.randbytes))(field.size)
        elif record:
            record[random.randrange(len(record))] = random.randrange(256)
