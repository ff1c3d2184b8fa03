"""Following the slots of a record in generated Python: the letters of `struct`, and the checks of `slots`."""

import struct
from typing import TYPE_CHECKING, Final, TypeAlias

from echoic.ecode.generated_python.source import Stop
from echoic.ecode.numbers import Number
from echoic.formats import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from echoic.ecode.analysis.slots import SlotShape
    from echoic.ecode.kernel import Buffer
    from echoic.formats import Field, Format

__all__ = ["ORDERS", "SPAN", "Follow", "follower", "integer_letter", "letter_of"]

LETTERS: Final = {
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}
ORDERS: Final = {"little": "<", "big": ">"}
SPAN: Final = "II"

Follow: TypeAlias = "Callable[[Buffer, int, int, int, int], tuple[int, int]]"


def letter_of(number: Number, *, boolean: bool) -> str:
    """Return how `struct` knows a number."""
    return "?" if boolean else LETTERS[number.name]


def integer_letter(field: "Field") -> str:
    """Return how `struct` knows a sizing field."""
    letter = {1: "b", 2: "h", 4: "i", 8: "q"}[field.size]
    return letter if field.kind is Kind.INT else letter.upper()


def follower(format: "Format", shape: "SlotShape") -> Follow:
    """Return a function that follows a slot: `follow(buffer, place, record start, record end, fault number)`.

    It returns where the block begins in the buffer, and its length.
    """
    order, fixed_bytes, step = ORDERS[format.byte_order], format.size, shape.step
    unpack = struct.Struct(order + SPAN).unpack_from
    sizing = struct.Struct(order + integer_letter(shape.sizing)).unpack_from if shape.sizing else None
    distance, alignment, terminated = shape.sizing_distance, shape.alignment, shape.terminated

    def follow(buffer: "Buffer", place: int, start: int, end: int, fault: int) -> tuple[int, int]:
        offset, length = unpack(buffer, place)
        if offset:
            close = offset + length * step
            if offset < fixed_bytes or close + terminated > end - start or offset % alignment:
                raise Stop(fault)
            if terminated and buffer[start + close]:
                raise Stop(fault)
        elif length:
            raise Stop(fault)
        if sizing is not None and sizing(buffer, place + distance)[0] != length:
            raise Stop(fault)
        return start + offset, length

    return follow
