"""The events that are moved: as echoic declares them, and as a user of msgpack would.

`100 B` is a record of twelve numbers, 96 bytes in memory; the larger ones are a block of bytes, a number and a time.
The other five stand for the objects of JECho's table 1. An event has at least one field, so `null` is one byte; the
hashtable with two entries is a list of two records.

The plain twins are msgspec Structs packed as arrays, the fastest codec for small Python objects that we know. Arrays of
primitives are ready-made bytes there, so that no conversion is held against a rival.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy
from numpy.typing import NDArray

from echoic.formats import Array, Format, event, float64, int32, int64, uint8

__all__ = ["OBJECTS", "PAYLOADS", "RING", "SIZES", "Payload", "Reading", "Records", "Sample", "touch"]

Numbers: TypeAlias = NDArray[Any]
Records: TypeAlias = NDArray[Any]

# So many different events take turns, so that nothing is gained from sending the same one again.
RING = 1024
SIZES: Mapping[str, int] = {"1 KB": 1_000, "10 KB": 10_000, "100 KB": 100_000, "1 MB": 1_000_000, "10 MB": 10_000_000}
RING_BYTES_MAX = 20_000_000
PAGE_BYTES = 4096


@event
class Reading:
    """Twelve numbers: 96 bytes."""

    sequence: int64
    station: int64
    at: float64
    pressure: float64
    temperature: float64
    humidity: float64
    east: float64
    north: float64
    up: float64
    rain: float64
    light: float64
    battery: float64


class PlainReading(msgspec.Struct, array_like=True, gc=False):
    """The same for msgpack."""

    sequence: int
    station: int
    at: float
    pressure: float
    temperature: float
    humidity: float
    east: float
    north: float
    up: float
    rain: float
    light: float
    battery: float


@event
class Sample:
    """A block of bytes."""

    sequence: int64
    at: float64
    data: bytes


class PlainSample(msgspec.Struct, array_like=True, gc=False):
    """The same for msgpack."""

    sequence: int
    at: float
    data: bytes


@event
class Null:
    """As good as nothing."""

    nothing: uint8


class PlainNull(msgspec.Struct, array_like=True, gc=False):
    """The same for msgpack."""

    nothing: int


@event
class Int100:
    """An array of 100 integers."""

    values: Annotated[Numbers, Array[int32, 100]]


@event
class Byte400:
    """An array of 400 bytes."""

    values: Annotated[Numbers, Array[uint8, 400]]


class PlainArray(msgspec.Struct, array_like=True, gc=False):
    """An array of primitives for msgpack, as bytes."""

    values: bytes


@event
class Integers:
    """A list of integers."""

    n: int32
    values: Annotated[list[int], Array[int64, "n"]]


class PlainIntegers(msgspec.Struct, array_like=True, gc=False):
    """The same for msgpack."""

    values: list[int]


@event
class Entry:
    """One entry of a hashtable."""

    key: str
    value: float


class PlainEntry(msgspec.Struct, array_like=True, gc=False):
    """The same for msgpack."""

    key: str
    value: float


@event
class Composite:
    """A string, two arrays of primitives and a hashtable of two entries."""

    name: str
    counts: Annotated[Numbers, Array[int32, 25]]
    values: Annotated[Numbers, Array[float64, 25]]
    entries: Annotated[list[Entry], Array[Entry, 2]]


class PlainComposite(msgspec.Struct, array_like=True, gc=False):
    """The same for msgpack."""

    name: str
    counts: bytes
    values: bytes
    entries: list[PlainEntry]


@dataclass(frozen=True, slots=True)
class Payload:
    """One kind of event, in every form that a contender may want.

    Attributes:
        declared: The event class.
        make: Makes the event with this number.
        plain: The class for msgpack.
        make_plain: Makes the same event for msgpack.
        dtype: The record for batches, or None.
    """

    declared: type
    make: Callable[[int], object]
    plain: type[msgspec.Struct]
    make_plain: Callable[[int], msgspec.Struct]
    dtype: numpy.dtype[Any] | None = None

    @property
    def size_bytes(self) -> int:
        """How many bytes an event has on the wire, about: those of msgpack."""
        return len(msgspec.msgpack.encode(self.make_plain(1)))

    @property
    def ring(self) -> int:
        """How many different events take turns."""
        return max(1, min(RING, RING_BYTES_MAX // self.size_bytes))

    def events(self) -> list[object]:
        """Return the events that take turns."""
        return [self.make(number) for number in range(self.ring)]

    def plain_events(self) -> list[msgspec.Struct]:
        """Return the same events for msgpack."""
        return [self.make_plain(number) for number in range(self.ring)]

    def records(self, count: int) -> Records:
        """Return so many records for `submit_batch`.

        Raises:
            ValueError: If this kind of event is not for batches.
        """
        if self.dtype is None:
            raise ValueError(f"{self.declared.__name__} has no records of fixed size")
        # Memory that nobody has written to is one page of zeros, again and again, which reads faster than any other.
        made = numpy.full(count, 1, self.dtype)
        made["sequence"] = numpy.arange(count)
        return made


def touch(block: memoryview | bytes) -> None:
    """Read one byte of every page, so that a block that merely could be read is not taken for one that was."""
    numpy.frombuffer(block, numpy.uint8)[::PAGE_BYTES].sum()


def _reading_values(number: int) -> tuple[int, int, float]:
    return 1_000_000 + number, 70_000 + number % 100, 1.7e9 + number


def _block(size_bytes: int) -> Payload:
    data = bytes(range(256)) * (size_bytes // 256 + 1)
    content = data[: size_bytes - 24]  # a number, a time, and where the bytes are
    fields = [("sequence", numpy.int64), ("at", numpy.float64), ("data", numpy.uint8, (size_bytes - 16,))]
    return Payload(
        Sample,
        lambda number: Sample(number, 1.7e9 + number, content),
        PlainSample,
        lambda number: PlainSample(number, 1.7e9 + number, content),
        numpy.dtype(fields, align=True),
    )


WEATHER = (1013.25, 17.5, 0.61, 3.25, -1.5, 0.125, 0.3, 811.7, 3.71)
INT100 = numpy.arange(100, dtype=numpy.int32)
BYTE400 = (numpy.arange(400) % 256).astype(numpy.uint8)
LIST20 = list(range(1000, 1020))
COUNTS, VALUES = numpy.arange(25, dtype=numpy.int32), numpy.linspace(0.0, 1.0, 25)

READING = Payload(
    Reading,
    lambda number: Reading(*_reading_values(number), *WEATHER),
    PlainReading,
    lambda number: PlainReading(*_reading_values(number), *WEATHER),
    Format.of(Reading).dtype,
)

# JECho, table 1.
OBJECTS: Mapping[str, Payload] = {
    "null": Payload(Null, lambda _: Null(0), PlainNull, lambda _: PlainNull(0)),
    "int100": Payload(Int100, lambda _: Int100(INT100), PlainArray, lambda _: PlainArray(INT100.tobytes())),
    "byte400": Payload(Byte400, lambda _: Byte400(BYTE400), PlainArray, lambda _: PlainArray(BYTE400.tobytes())),
    "list of integers": Payload(
        Integers, lambda _: Integers(len(LIST20), LIST20), PlainIntegers, lambda _: PlainIntegers(LIST20)
    ),
    "composite": Payload(
        Composite,
        lambda number: Composite(f"object {number}", COUNTS, VALUES, [Entry("height", 1.5), Entry("depth", 2.5)]),
        PlainComposite,
        lambda number: PlainComposite(
            f"object {number}",
            COUNTS.tobytes(),
            VALUES.tobytes(),
            [PlainEntry("height", 1.5), PlainEntry("depth", 2.5)],
        ),
    ),
}

PAYLOADS: Mapping[str, Payload] = {
    "100 B": READING,
    **{name: _block(size_bytes) for name, size_bytes in SIZES.items()},
    **OBJECTS,
}
