"""Event types with all that can go wrong in them, and the way of a batch over the wire."""

import enum
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy
from hypothesis import HealthCheck, settings

from echoic.formats import (
    ARCHITECTURES,
    Architecture,
    Array,
    Field,
    Format,
    Kind,
    Registry,
    char,
    event,
    float32,
    float64,
    int16,
    int32,
    uint8,
    uint16,
    uint64,
)
from echoic.wire import Batch, parse_batch

__all__ = [
    "BIG",
    "Cell",
    "Color",
    "Grid",
    "Mesh",
    "Point",
    "Report",
    "Trade",
    "cells_of",
    "format_of",
    "joined",
    "parsed",
    "plain",
    "received",
    "reports",
    "stripped",
    "thorough",
]

BIG: Architecture = ARCHITECTURES["sparc64"]


class Color(enum.IntEnum):
    RED = 1
    GREEN = 2


@event
class Point:
    """Numbers only: the fixed part is all there is."""

    x: float
    y: float32
    n: int32
    m: uint16 = 7
    up: bool = True


@event
class Trade:
    symbol: str
    price: float
    volume: int
    venue: uint16 = 0


@event
class Grid:
    """Fixed arrays of every sort."""

    at: float
    wind: Array[float64, 4, 64]
    marks: Array[uint8, 3]
    name: Array[char, 8]
    letter: char
    color: Color
    point: Point


@event
class Report:
    """One slot of each sort, which the fast functions understand."""

    at: float
    n: int32
    samples: Array[float32, "n"]
    name: str
    note: str | None
    blob: bytes
    tail: Array[uint16, ...]
    color: Color
    place: Point


@event
class Cell:
    label: str
    k: uint8
    weights: Array[float64, "k"]


@event
class Mesh:
    """Slots inside blocks, which only the careful functions understand."""

    n: int16
    cells: Array[Cell, "n"]
    tags: Array[str, ...]
    pair: Array[str, 2]
    corner: Cell
    total: uint64


def reports(count: int) -> list[Any]:
    return [
        Report(
            at=index / 2,
            n=index % 4,
            samples=numpy.arange(index % 4, dtype=numpy.float32) - 1,
            name="née " * (index % 3),
            note=None if index % 2 else "note",
            blob=bytes(range(index % 5)),
            tail=numpy.arange(index % 3, dtype=numpy.uint16),
            color=Color.GREEN,
            place=Point(x=float(index), y=-0.0, n=-index),
        )
        for index in range(count)
    ]


def cells_of(count: int) -> list[Any]:
    def cell(number: int) -> Cell:
        return Cell(label=f"cell {number}", k=number % 3, weights=[float(number)] * (number % 3))

    return [
        Mesh(
            n=index % 3 + 1,
            cells=[cell(index + each) for each in range(index % 3 + 1)],
            tags=["tag"] * (index % 4),
            pair=["left", ""],
            corner=cell(index),
            total=1 << 63,
        )
        for index in range(count)
    ]


def format_of(*fields: Field, architecture: Architecture | None = None, name: str = "Sample") -> Format:
    """Lay fields out as this machine does, unless another is named."""
    return Format.place(name, fields, architecture or ARCHITECTURES["x86_64"])


def joined(buffers: Sequence[Any]) -> bytes:
    return b"".join(buffers)


def parsed(payload: Any, format: Format) -> Batch:
    registry = Registry()
    registry.add(format)
    return parse_batch(payload, registry)


def received(batch: Batch) -> Batch:
    """Return a batch as its receiver has it, who knows no class for it."""
    return parsed(joined(batch.buffers()), batch.format)


def plain(value: Any) -> Any:
    """Return a value as dicts, lists and numbers, in which NaN equals NaN and -0.0 differs from 0.0."""
    if isinstance(value, numpy.ndarray):
        value = value.tolist()
    elif isinstance(value, numpy.generic):
        value = value.item()
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, int):
        return int(value)
    return repr(value) if isinstance(value, float) else value


def stripped(value: Any, format: Format) -> Any:
    """Return a plain event whose chars have no NULs at their end: that is padding, and Arrow has it."""
    return {field.name: _stripped(value[field.name], field) for field in format.fields}


def _stripped(value: Any, field: Field) -> Any:
    if isinstance(value, list):
        return [_stripped(item, field) for item in value]
    if field.record is not None:
        return stripped(value, field.record)
    return value.rstrip(b"\0") if field.kind is Kind.CHAR else value


def thorough(examples: int) -> settings:
    """So many examples, and no clock: this machine has other things to do."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=examples, deadline=None, suppress_health_check=slow)
