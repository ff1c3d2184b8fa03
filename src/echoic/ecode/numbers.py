"""The numbers of E-Code: C's arithmetic types, and what C does when they meet.

C's rules hold (promotion, the usual conversions, signedness). What C leaves undefined is defined here: integers wrap,
a float becomes the nearest integer of its target's range, NaN becomes 0. `char` is signed, as on most machines.
"""

import math
import struct
from dataclasses import dataclass
from typing import Final

__all__ = [
    "CHAR",
    "FLOAT32",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "NUMBERS",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "Number",
    "convert",
    "promote",
    "quotient",
    "usual",
    "wrap",
]


@dataclass(frozen=True, slots=True)
class Number:
    """One arithmetic type. There is one object for each, so they may be compared by identity."""

    name: str
    size: int
    signed: bool
    floating: bool

    @property
    def bits(self) -> int:
        """How many bits it has."""
        return self.size * 8

    @property
    def smallest(self) -> int:
        """The smallest integer it can hold."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def largest(self) -> int:
        """The largest integer it can hold."""
        return (1 << (self.bits - 1 if self.signed else self.bits)) - 1

    def __repr__(self) -> str:
        return self.name


INT8: Final = Number("int8", 1, signed=True, floating=False)
INT16: Final = Number("int16", 2, signed=True, floating=False)
INT32: Final = Number("int32", 4, signed=True, floating=False)
INT64: Final = Number("int64", 8, signed=True, floating=False)
UINT8: Final = Number("uint8", 1, signed=False, floating=False)
UINT16: Final = Number("uint16", 2, signed=False, floating=False)
UINT32: Final = Number("uint32", 4, signed=False, floating=False)
UINT64: Final = Number("uint64", 8, signed=False, floating=False)
FLOAT32: Final = Number("float32", 4, signed=True, floating=True)
FLOAT64: Final = Number("float64", 8, signed=True, floating=True)
CHAR: Final = INT8

NUMBERS: Final = {
    number.name: number for number in (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64, FLOAT32, FLOAT64)
}


def promote(number: Number) -> Number:
    """Return what an operand becomes before anything is done with it."""
    return INT32 if not number.floating and number.size < INT32.size else number


def usual(left: Number, right: Number) -> Number:
    """Return the type in which two operands are computed."""
    if left.floating or right.floating:
        return FLOAT64 if FLOAT64 in (left, right) else FLOAT32
    left, right = promote(left), promote(right)
    if left.signed == right.signed:
        return left if left.size >= right.size else right
    unsigned, signed = (right, left) if left.signed else (left, right)
    return unsigned if unsigned.size >= signed.size else signed


def wrap(value: int, number: Number) -> int:
    """Return the integer that the low bits of `value` spell."""
    value &= (1 << number.bits) - 1
    return value - (1 << number.bits) if number.signed and value >> (number.bits - 1) else value


def quotient(dividend: int, divisor: int) -> int:
    """Return an integer divided by another that is not 0, rounded towards zero."""
    rounded = abs(dividend) // abs(divisor)
    return rounded if (dividend < 0) == (divisor < 0) else -rounded


def convert(value: float, target: Number) -> int | float:
    """Return a value of any type as one of another; `value` is an int exactly if its type is an integer's."""
    if target is FLOAT64:
        return _nearest_float64(value)
    if target is FLOAT32:
        return _nearest_float32(value)
    if isinstance(value, int):
        return wrap(value, target)
    if math.isnan(value):
        return 0
    if value <= target.smallest:
        return target.smallest
    return target.largest if value >= target.largest else int(value)


def _nearest_float64(value: float) -> float:
    return float(value)


def _nearest_float32(value: float) -> float:
    # An integer is rounded once: by way of a double it would be rounded twice.
    if isinstance(value, int) and abs(value) >= 1 << 53:
        kept = abs(value)
        shift = kept.bit_length() - 26
        kept = (kept >> shift << shift) | (1 << shift if kept & ((1 << shift) - 1) else 0)
        value = float(-kept if value < 0 else kept)
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded
