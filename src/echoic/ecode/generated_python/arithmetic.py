"""What generated Python calls where Python's arithmetic is not C's.

Python's integers do not wrap and its division rounds down; its floats are doubles only, division by zero raises, and so
do most functions of `math` where C returns an infinity or NaN. The functions here return what C does, to the bit. Only
the bits of a NaN are not defined: hardware, C libraries and Python make different ones.

`hypot` is NumPy's, since that is the C library's; Python computes it in a way of its own.
"""

import math
import struct
from collections.abc import Callable
from typing import Final

import numpy

from echoic.ecode.numbers import FLOAT32, convert

__all__ = ["MATHEMATICS", "divided", "nearest_single", "quotient", "remainder", "saturated", "single"]

_pack_single: Final = struct.Struct("<f").pack
_unpack_single: Final = struct.Struct("<f").unpack


def single(value: float) -> float:
    """Round a double, or an integer that a double holds, to single precision."""
    try:
        rounded: float = _unpack_single(_pack_single(value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded


def nearest_single(value: int) -> float:
    """Round any integer to single precision, once."""
    return convert(value, FLOAT32)


def quotient(dividend: int, divisor: int) -> int:
    """Divide integers, truncating towards zero; the divisor is not zero."""
    if (dividend < 0) == (divisor < 0):
        return dividend // divisor
    return -(-dividend // divisor)


def remainder(dividend: int, divisor: int) -> int:
    """Return what truncating division leaves: it has the sign of the dividend."""
    return dividend % abs(divisor) if dividend >= 0 else -(-dividend % abs(divisor))


def divided(dividend: float, divisor: float) -> float:
    """Divide floats, by zero too."""
    if divisor:
        return dividend / divisor
    if not dividend or math.isnan(dividend):
        return math.nan
    return math.copysign(math.inf, dividend) * math.copysign(1.0, divisor)


def saturated(value: float, smallest: int, largest: int) -> int:
    """Make a float an integer of a range; NaN becomes 0."""
    if math.isnan(value):
        return 0
    if value <= smallest:
        return smallest
    return largest if value >= largest else int(value)


def _quiet(function: Callable[..., float]) -> Callable[..., float]:
    """Return a function of `math` with NaN where its argument is outside of its domain."""

    def call(*arguments: float) -> float:
        try:
            return function(*arguments)
        except ValueError:
            return math.nan

    return call


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def call(value: float) -> float:
        if value > 0.0 or math.isnan(value):
            return function(value)
        return math.nan if value else -math.inf

    return call


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0.0 and math.fmod(exponent, 2.0) in (1.0, -1.0) else math.inf
    except ValueError:
        if base:
            return math.nan
        odd = math.fmod(exponent, 2.0) in (1.0, -1.0)
        return math.copysign(math.inf, base) if odd else math.inf


def _floor(value: float) -> float:
    return math.copysign(float(math.floor(value)), value) if math.isfinite(value) else value


def _ceiling(value: float) -> float:
    return math.copysign(float(math.ceil(value)), value) if math.isfinite(value) else value


def _truncated(value: float) -> float:
    return math.copysign(float(math.trunc(value)), value) if math.isfinite(value) else value


def _rounded(value: float) -> float:
    """Round to the nearest integer, halves away from zero."""
    if not math.isfinite(value):
        return value
    whole = math.trunc(value)
    if abs(value - whole) >= 0.5:
        whole += 1 if value > 0.0 else -1
    return math.copysign(float(whole), value)


def _hypotenuse(one: float, other: float) -> float:
    with numpy.errstate(all="ignore"):
        return float(numpy.hypot(one, other))


def _least(one: float, other: float) -> float:
    return one if one <= other or math.isnan(other) else other


def _greatest(one: float, other: float) -> float:
    return one if one >= other or math.isnan(other) else other


MATHEMATICS: Final[dict[str, Callable[..., float]]] = {
    "acos": _quiet(math.acos),
    "asin": _quiet(math.asin),
    "atan": math.atan,
    "atan2": math.atan2,
    "ceil": _ceiling,
    "cos": _quiet(math.cos),
    "exp": _exponential,
    "fabs": math.fabs,
    "floor": _floor,
    "fmax": _greatest,
    "fmin": _least,
    "fmod": _quiet(math.fmod),
    "hypot": _hypotenuse,
    "isfinite": lambda value: 1.0 if math.isfinite(value) else 0.0,
    "isinf": lambda value: 1.0 if math.isinf(value) else 0.0,
    "isnan": lambda value: 1.0 if math.isnan(value) else 0.0,
    "log": _logarithm(math.log),
    "log10": _logarithm(math.log10),
    "log2": _logarithm(math.log2),
    "pow": _power,
    "round": _rounded,
    "sin": _quiet(math.sin),
    "sqrt": _quiet(math.sqrt),
    "tan": _quiet(math.tan),
    "trunc": _truncated,
}
