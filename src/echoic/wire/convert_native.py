"""Conversion by a native routine generated for one pair of formats.

One call converts a batch. Should a record be malformed, the routine gives up and the NumPy twin, which is asked next,
says what is wrong. How long a variable batch becomes is known only when it is done, so the routine is given a generous
guess, and a larger one when that did not suffice.

Measured for batches of 64 against memcpy of the same bytes: 1.0 to 1.3 with an unexpected field, 1.1 to 1.5 for
big-endian records (`benchmarks/convert.py`).
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy

from echoic.codegen import NativeCode, compile_library, fixed_entry, variable_entry
from echoic.errors import LimitExceededError
from echoic.formats import Format, Matching, Slots
from echoic.formats.moves import Each, Move, Vector
from echoic.wire.conversion_code import fixed_routine, locate_routine, variable_routine
from echoic.wire.frames import Buffer

__all__ = ["FixedRoutine", "NativeConversion", "NativeLocator", "can_generate"]

FixedRoutine: TypeAlias = Callable[[Buffer, int], Buffer]

MOVES_MAX: Final = 512  # beyond it the optimiser takes seconds


def can_generate(matching: Matching) -> bool:
    """Tell whether a routine can be generated: not for C pointers as slots, nor for very many moves."""
    variable = matching.source.variable or matching.target.variable
    spans = matching.source.slots is Slots.SPAN and matching.target.slots is Slots.SPAN
    return (spans or not variable) and _count(matching.moves) <= MOVES_MAX


class NativeConversion:
    """Converts batches of one format to another, in one call per batch.

    For fixed formats `fixed(records, count)` is the routine itself, a builtin; it raises ValueError when the result
    would have too many bytes or the records are fewer than `count`.
    """

    def __init__(self, matching: Matching, bytes_max: int) -> None:
        """Generate and link a routine whose results have at most `bytes_max` bytes.

        Raises:
            CodegenError: The generated code was refused, which is a mistake in this module.
        """
        self._target = matching.target
        variable = matching.source.variable or matching.target.variable
        text = variable_routine(matching) if variable else fixed_routine(matching, bytes_max)
        code = NativeCode.of(compile_library(text, ("convert",)), "convert")
        self.fixed: Final[FixedRoutine | None] = None if variable else fixed_entry(code)
        self._variable = variable_entry(code)
        self._bytes_max = bytes_max

    def convert_variable(
        self, records: memoryview, bounds: Sequence[int], count: int
    ) -> tuple[memoryview, Sequence[int] | None] | None:
        """Return converted variable records and their bounds, None when one is malformed.

        Raises:
            LimitExceededError: The result would have too many bytes.
        """
        bytes_max = self._bytes_max
        starts = numpy.asarray(bounds, numpy.uint32)
        head = -(-4 * (count + 1) // 8) * 8
        capacity = head + count * (self._target.size + 16) + 2 * len(records)
        while True:
            try:
                made = self._variable(records, starts, count, min(capacity, head + bytes_max))
            except ValueError as error:
                if str(error) != "-2":
                    return None
                if capacity >= head + bytes_max:
                    raise LimitExceededError(
                        f"a converted batch has more than {bytes_max} bytes, which is the limit"
                    ) from error
                capacity *= 4
                continue
            ends = numpy.frombuffer(made, numpy.uint32, count + 1).tolist() if self._target.variable else None
            return memoryview(made)[head:], ends


class NativeLocator:
    """Resolves the slots of batches of one variable format, for decoders that then only slice."""

    def __init__(self, format: Format) -> None:
        self._size = format.size
        code = NativeCode.of(compile_library(locate_routine(format), ("convert",)), "convert")
        self._locate = variable_entry(code)

    def locate(self, records: memoryview, bounds: "Sequence[int] | numpy.ndarray[Any, Any]", count: int) -> bytes:
        """Return the fixed parts with resolved slots; see `conversion_code.locate_routine`.

        Raises:
            ValueError: A record is malformed; the walking reader can tell how.
        """
        return self._locate(records, numpy.asarray(bounds, numpy.uint32), count, count * self._size)


def _count(moves: tuple[Move, ...]) -> int:
    return sum(1 + _count(move.moves) if isinstance(move, Each | Vector) else 1 for move in moves)
