"""The functions that E-Code may call: C's `math.h`, as far as it has no effects, by name and number of arguments."""

from typing import Final

__all__ = ["FUNCTIONS"]

FUNCTIONS: Final = {
    "acos": 1,
    "asin": 1,
    "atan": 1,
    "atan2": 2,
    "ceil": 1,
    "cos": 1,
    "exp": 1,
    "fabs": 1,
    "floor": 1,
    "fmax": 2,
    "fmin": 2,
    "fmod": 2,
    "hypot": 2,
    "isfinite": 1,
    "isinf": 1,
    "isnan": 1,
    "log": 1,
    "log10": 1,
    "log2": 1,
    "pow": 2,
    "round": 1,
    "sin": 1,
    "sqrt": 1,
    "tan": 1,
    "trunc": 1,
}
