"""Constants computed by the compiler, exactly as they would be at run time.

Integers wrap, float32 is rounded after each operation, division by zero of floats gives what IEEE 754 says. Functions
of `mathematics` are not folded: their last bit is the business of the machine that runs the code.
"""

import math
import operator
from collections.abc import Callable
from typing import Final

from echoic.ecode.numbers import Number, convert, quotient, wrap

__all__ = ["fold_arithmetic", "fold_comparison"]

COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
INTEGER: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
}
FLOATING: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


def fold_comparison(symbol: str, left: float, right: float) -> int:
    """Return 1 if two constants of one type compare so, else 0."""
    return int(COMPARISONS[symbol](left, right))


def fold_arithmetic(symbol: str, left: float, right: float, number: Number) -> int | float:
    """Return what an operation on two constants of type `number` gives.

    The right side of a shift may be of another integer type; an integer divisor is not zero.
    """
    if isinstance(left, int) and isinstance(right, int):
        return wrap(_integer(symbol, left, right, number), number)
    # A float32 operation is one of float64 that is rounded afterwards, as float64 has more than twice its bits.
    return convert(_quotient(left, right) if symbol == "/" else FLOATING[symbol](left, right), number)


def _integer(symbol: str, left: int, right: int, number: Number) -> int:
    match symbol:
        case "/":
            return quotient(left, right)
        case "%":
            return left - right * quotient(left, right)
        case "<<":
            return left << (right & (number.bits - 1))
        case ">>":
            return left >> (right & (number.bits - 1))
        case _:
            return INTEGER[symbol](left, right)


def _quotient(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)
