"""Random programs without loops, over one type, and events of that type at the borders of arithmetic.

The expressions are those of the fuzzer of E-Code (`echoic.testing`), effects, conversions and all. Statements are the
ones that a translation to SQL can follow. Every program works on `EVENT`, so that hundreds of them are columns of one
frame: starting a job costs Spark more than computing them.
"""

import math
import struct
from random import Random
from typing import Any

import pyarrow

from echoic.ecode import Program, Signature, check
from echoic.errors import ECodeError
from echoic.formats import NATIVE, Enumeration, Field, Format, Kind
from echoic.testing.ecode_fuzz_expressions import FLOATING_TYPES, INTEGER_TYPES, Expressions
from echoic.testing.ecode_fuzz_places import Scopes, Variable, places_of
from echoic.testing.ecode_fuzz_types import FLOATS, draw_integer
from echoic.wire import Batch

__all__ = ["EVENT", "MADE", "PARAMS", "bits", "draw_events", "draw_programs", "table_of"]

INNER = Format.place("Inner", [Field("deep", Kind.FLOAT, 8), Field("low", Kind.INT, 2)], NATIVE)
SIDE = Enumeration("Side", signed=True, members=(("BUY", 0), ("SELL", 1)))
EVENT = Format.place(
    "Event",
    [
        Field("i8", Kind.INT, 1),
        Field("i16", Kind.INT, 2),
        Field("i32", Kind.INT, 4),
        Field("i64", Kind.INT, 8),
        Field("j64", Kind.INT, 8),
        Field("u8", Kind.UINT, 1),
        Field("u16", Kind.UINT, 2),
        Field("u32", Kind.UINT, 4),
        Field("f32", Kind.FLOAT, 4),
        Field("g32", Kind.FLOAT, 4),
        Field("f64", Kind.FLOAT, 8),
        Field("g64", Kind.FLOAT, 8),
        Field("flag", Kind.BOOL, 1),
        Field("side", Kind.ENUM, 1, enumeration=SIDE),
        Field("name", Kind.STRING, 8),
        Field("other", Kind.STRING, 8),
        Field("data", Kind.BYTES, 8),
        Field("inner", Kind.RECORD, INNER.size, record=INNER),
        Field("three", Kind.FLOAT, 8, dimensions=(3,)),
    ],
    NATIVE,
)
MADE = Format.place(
    "Made",
    [
        Field("i8", Kind.INT, 1),
        Field("i32", Kind.INT, 4),
        Field("i64", Kind.INT, 8),
        Field("u16", Kind.UINT, 2),
        Field("u32", Kind.UINT, 4),
        Field("u64", Kind.UINT, 8),
        Field("f32", Kind.FLOAT, 4),
        Field("f64", Kind.FLOAT, 8),
        Field("flag", Kind.BOOL, 1),
        Field("name", Kind.STRING, 8),
        Field("maybe", Kind.STRING, 8, optional=True),
        Field("data", Kind.BYTES, 8),
        Field("code", Kind.CHAR, 1, dimensions=(8,)),
        Field("inner", Kind.RECORD, INNER.size, record=INNER),
        Field("two", Kind.INT, 4, dimensions=(2,)),
    ],
    NATIVE,
)
PARAMS = {"low": 2.5, "lot": 3, "symbol": "IBM"}
TEXTS = ("", "a", "IBM", "SUNW", "é", "a\tb", "IB", "exactly8", "🎉", "$", "a'b\\", "${x}", "x" * 300)


def draw_events(random: Random, count: int) -> list[dict[str, Any]]:
    """Return events, most of whose values are at some border."""
    return [_draw_record(random, EVENT) for _ in range(count)]


def _draw_record(random: Random, format: Format) -> dict[str, Any]:
    return {field.name: _draw_field(random, field) for field in format.fields}


def _draw_field(random: Random, field: Field) -> Any:
    if field.dimensions:
        return [_draw_float(random, field.size) for _ in range(field.count)]
    if field.record is not None:
        return _draw_record(random, field.record)
    if field.kind is Kind.STRING:
        return random.choice(TEXTS)
    if field.kind is Kind.BYTES:
        return random.choice((b"", b"a", b"IBM", b"\xff\xfe", b"\0", b"a\0b"))
    if field.kind is Kind.BOOL:
        return random.random() < 0.5
    if field.kind is Kind.FLOAT:
        return _draw_float(random, field.size)
    return draw_integer(random, field.size, signed=field.kind is not Kind.UINT)


def _draw_float(random: Random, size: int) -> float:
    number = random.choice(FLOATS) if random.random() < 0.6 else random.gauss(0, 9)
    if size == 8:
        return number
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)


def table_of(events: list[dict[str, Any]]) -> pyarrow.Table:
    """Return events as Spark's types, with their numbers in column `number`."""
    from echoic.spark.schema import arrow_schema_of, fitted, struct_of

    batch = fitted(Batch.of(events, EVENT).arrow, arrow_schema_of(struct_of(EVENT, metadata=False)))
    return pyarrow.Table.from_batches([batch]).append_column(
        "number", pyarrow.array(range(len(events)), pyarrow.int32())
    )


def draw_programs(seed: int, signature: Signature, count: int) -> list[Program]:
    """Return programs that compile."""
    found: list[Program] = []
    random = Random(seed)
    while len(found) < count:
        try:
            found.append(check(_Maker(random, signature).source(), signature))
        except ECodeError:
            continue  # a constant that no array has as its index, and the like
    return found


class _Maker:
    """Writes one program."""

    def __init__(self, random: Random, signature: Signature) -> None:
        self._random = random
        self._scopes = Scopes()
        self._places = places_of(signature)
        self._expressions = Expressions(random, self._places, self._scopes)
        self._lines: list[str] = []

    def source(self) -> str:
        """Return its text."""
        for _ in range(self._random.choice((0, 0, 1, 2, 3, 4))):
            self._statement(1)
        self._lines.append(f" return {self._value(2)};")
        return "\n".join(["{", *self._lines, "}"])

    def _value(self, depth: int) -> str:
        return self._expressions.number(self._random.randint(0, depth))

    def _statement(self, level: int) -> None:
        way = self._random.random()
        if way < 0.25:
            self._declare(level)
        elif way < 0.6 or level > 2:
            self._assign(level)
        elif way < 0.7:
            self._lines.append(f"{' ' * level}if ({self._value(1)}) return {self._value(1)};")
        elif way < 0.8:
            self._divide(level)
        else:
            self._block(level, f"if ({self._value(2)})")
            if self._random.random() < 0.5:
                self._block(level, "else")

    def _declare(self, level: int) -> None:
        floating = self._random.random() < 0.4
        kind, name = self._random.choice(FLOATING_TYPES if floating else INTEGER_TYPES), self._scopes.name()
        self._lines.append(f"{' ' * level}{kind} {name} = {self._value(2)};")
        self._scopes.blocks[-1].append(Variable(name, floating))

    def _divide(self, level: int) -> None:
        """Divide by what was looked at before, as careful code does."""
        divisor, name = self._expressions.varying(0), self._scopes.name()
        test = self._random.choice((f"{divisor} != 0", f"{divisor} > 0", f"{divisor} < 0", divisor))
        quotient = f"{self._expressions.integer(1)} {self._random.choice('/%')} {divisor}"
        self._lines.append(f"{' ' * level}long {name} = {test} ? {quotient} : {self._random.randrange(9)};")
        self._scopes.blocks[-1].append(Variable(name, floating=False))

    def _assign(self, level: int) -> None:
        texts = [place for place in self._places if place.written and place.meaning == "text"]
        if texts and self._random.random() < 0.25:
            place = self._random.choice(texts)
            self._lines.append(
                f"{' ' * level}{self._expressions.spell(place)} = {self._expressions.text(room=place.room)};"
            )
            return
        found = self._expressions.assignment(self._random.choice(("integer", "floating")), self._random.randint(0, 2))
        if found is None:
            self._declare(level)
        else:
            self._lines.append(f"{' ' * level}{found};")

    def _block(self, level: int, head: str) -> None:
        self._lines.append(f"{' ' * level}{head} {{")
        self._scopes.open()
        for _ in range(self._random.randint(1, 2)):
            self._statement(level + 1)
        self._scopes.close()
        self._lines.append(f"{' ' * level}}}")


def bits(value: Any) -> Any:
    """Return a value such that equal ones have equal bits; all NaNs are the same."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, dict):
        return {name: bits(each) for name, each in value.items()}
    return [bits(each) for each in value] if isinstance(value, list) else value
