"""Where the records of a variable batch begin and end.

Bounds that came over a wire are a NumPy array and not believed; native routines check them as they go. Whoever wants to
use them in Python asks for `checked_bounds`, and gets a sequence that cuts the bytes into whole records. Bounds in any
other form were made by this program, and are right.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

import numpy

from echoic.errors import MalformedBatchError

__all__ = ["Bounds", "bounds_of", "checked_bounds"]

FEW: Final = 24
"""Up to so many bounds a loop is quicker than NumPy, by ten times for a few."""

Bounds: TypeAlias = Sequence[int] | numpy.ndarray[Any, Any]


def bounds_of(records: Iterable[bytes | memoryview]) -> Sequence[int]:
    """Return where records that stand one behind the other begin, and where the last one ends."""
    return array("I", accumulate(map(len, records), initial=0))


def checked_bounds(bounds: Bounds, record_bytes_min: int, size: int) -> Sequence[int]:
    """Return where records begin and end, once it is known that this cuts `size` bytes into whole records.

    Raises:
        MalformedBatchError: It does not.
    """
    if not isinstance(bounds, numpy.ndarray):
        return bounds
    places = array("I", bounds.astype("=u4", copy=False).tobytes())
    if places[0] != 0 or places[-1] != size:
        raise MalformedBatchError(f"records begin at {places[0]} and end at {places[-1]}, expected 0 and {size}")
    index = _first_bad(places, record_bytes_min) if len(places) <= FEW else _find_bad(bounds, record_bytes_min)
    if index >= 0:
        raise MalformedBatchError(
            f"a record takes bytes {places[index]} to {places[index + 1]}, expected multiples of 8 at least "
            f"{record_bytes_min} apart, record {index} of {len(places) - 1}"
        )
    return places


def _first_bad(places: Sequence[int], record_bytes_min: int) -> int:
    """Return the number of the first record that cannot be one, -1 if there is none."""
    start = places[0]
    for index, end in enumerate(places[1:]):
        if end - start < record_bytes_min or end & 7:
            return index
        start = end
    return -1


def _find_bad(bounds: numpy.ndarray[Any, Any], record_bytes_min: int) -> int:
    """Return the same, where there are many."""
    starts, ends = bounds[:-1].astype(numpy.int64), bounds[1:].astype(numpy.int64)
    bad = (ends - starts < record_bytes_min) | (ends & 7 != 0)
    return int(numpy.argmax(bad)) if bool(bad.any()) else -1
