"""Numbers given to ready-made modulators, checked where they are given.

They come from programs without types, from the command line and from forms, so they are looked at as objects: a text or
a truth value is told apart from a number here, and not by an error inside a source.
"""

import math

from echoic.errors import LocalError

__all__ = ["check_real", "check_whole"]


def check_whole(what: str, value: object, low: int, high: int) -> int:
    """Return a whole number within bounds.

    Raises:
        LocalError: It is not one.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise LocalError(f"expected a whole number from {low} to {high}, got {value!r} - at `{what}`")
    return value


def check_real(what: str, value: object, *, low: float = -math.inf, exclusive: bool = False) -> float:
    """Return a number, of Python's type that it has, which is not NaN and not below a bound, or not equal to it either.

    Raises:
        LocalError: It is not one.
    """
    fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= low
    if not fits or (exclusive and value == low):
        limit = "" if low == -math.inf else f" {'above' if exclusive else 'from'} {low:g}"
        raise LocalError(f"expected a number{limit}, got {value!r} - at `{what}`")
    return value  # type: ignore[return-value] # see `fits`
