"""Event types with something of every kind, for programs to read and write."""

import enum
from typing import Any

from echoic.formats import Array, char, event, float32, int8, int16, int32, uint8, uint16, uint64
from tests.ecode.programs import run

__all__ = ["Color", "Count", "Leg", "Limits", "Made", "Order", "Point", "order", "passes"]


class Color(enum.IntEnum):
    RED = 1
    GREEN = 2


@event
class Point:
    x: float
    y: float32


@event
class Leg:
    name: str
    n: uint8
    weights: Array[float32, "n"]


@event
class Order:
    """Something of every kind."""

    flag: bool
    tiny: int8
    small: uint16
    number: int32
    huge: uint64
    single: float32
    price: float
    color: Color
    letter: char
    symbol: Array[char, 8]
    codes: Array[char, 2, 4]
    grid: Array[int32, 2, 3]
    place: Point
    corners: Array[Point, 3]
    name: str
    note: str | None
    blob: bytes
    n: int32
    samples: Array[float, "n"]
    pairs: Array[int16, "n", 2]
    legs: Array[Leg, ...]
    tags: Array[str, ...]
    fixed_tags: Array[str, 2]
    leg: Leg


def order(**changes: Any) -> Order:
    values: dict[str, Any] = {
        "flag": True,
        "tiny": -5,
        "small": 40000,
        "number": 7,
        "huge": (1 << 64) - 2,
        "single": 1.5,
        "price": 74.25,
        "color": Color.GREEN,
        "letter": b"Q",
        "symbol": b"IBM",
        "codes": [b"ab", b"wxyz"],
        "grid": [[1, 2, 3], [4, 5, 6]],
        "place": Point(0.5, 2.5),
        "corners": [Point(1.0, 10.0), Point(2.0, 20.0), Point(3.0, 30.0)],
        "name": "hello",
        "note": None,
        "blob": b"\x00\xff\x7f",
        "n": 3,
        "samples": [0.5, 1.5, 2.5],
        "pairs": [[1, -1], [2, -2], [3, -3]],
        "legs": [Leg("first", 2, [1.0, 2.0]), Leg("second", 0, [])],
        "tags": ["x", "long tag", ""],
        "fixed_tags": ["left", "right"],
        "leg": Leg("own", 1, [9.0]),
    }
    return Order(**{**values, **changes})


@event
class Count:
    value: int32


@event
class Limits:
    low: float
    high: float32
    flags: Array[uint8, 4]
    on: bool
    name: str
    place: Point
    n: int16
    values: Array[int32, "n"]
    words: Array[str, ...]


@event
class Made:
    """Something of every kind to be written."""

    flag: bool
    tiny: int8
    small: uint16
    number: int32
    large: int
    huge: uint64
    single: float32
    price: float
    color: Color
    letter: char
    symbol: Array[char, 4]
    codes: Array[char, 2, 3]
    grid: Array[int16, 2, 3]
    place: Point
    corners: Array[Point, 2]
    name: str
    note: str | None
    blob: bytes
    n: uint8
    samples: Array[float, "n"]
    pairs: Array[int16, "n", 2]
    points: Array[Point, ...]
    bytes_: Array[uint8, ...]
    leg: Leg


def passes(back_end: str, source: str, one: Order | None = None) -> bool:
    """Return whether a filter lets an event pass; it must not fault."""
    ran = run(back_end, source, [one or order()])
    assert not ran.faults, ran.faults
    return ran.selected == [0]
