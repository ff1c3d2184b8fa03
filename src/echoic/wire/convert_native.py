"""Conversion by a native routine generated for one pair of formats.

One call converts a batch. Should a record be malformed, the routine gives up and the NumPy twin, which is asked next,
says what is wrong. How long a variable batch becomes is known only when it is done, so the routine is given a generous
guess, and a larger one when that did not suffice.

Measured for batches of 64 against memcpy of the same bytes: 0.99 to 1.02 with an unexpected field, 0.93 to 1.02 for
big-endian records (`benchmarks/convert.py`).
"""

import struct
from array import array
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy

from echoic.codegen import NativeCode, compile_library, fixed_entry, variable_entry
from echoic.errors import LimitExceededError
from echoic.formats import Each, FillText, Format, Matching, Move, Slots, Text, Vector, round_up
from echoic.wire.bounds import Bounds
from echoic.wire.conversion_code import fixed_routine, locate_routine, variable_routine
from echoic.wire.frames import Buffer

__all__ = ["FixedRoutine", "NativeConversion", "NativeLocator", "can_generate", "can_locate"]

WIDE_POINTERS: Final = struct.calcsize("P") == 8  # what the entry points and offsets are written for
FixedRoutine: TypeAlias = Callable[[Buffer, int], Buffer]

MOVES_MAX: Final = 512  # beyond it the optimiser takes seconds
SLOT_WEIGHT: Final = 16  # a slot takes as long to compile as so many plain moves


def can_generate(matching: Matching) -> bool:
    """Tell whether a routine can be generated: not for C pointers as slots, nor for very many moves."""
    variable = matching.source.variable or matching.target.variable
    spans = matching.source.slots is Slots.SPAN and matching.target.slots is Slots.SPAN
    return (spans or not variable) and WIDE_POINTERS and _weight(matching.moves) <= MOVES_MAX


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
        self, records: memoryview, bounds: Bounds, count: int
    ) -> tuple[memoryview, Bounds | None] | None:
        """Return converted variable records and their bounds, None when one is malformed.

        Raises:
            LimitExceededError: The result would have too many bytes.
        """
        bytes_max = self._bytes_max
        starts = numpy.asarray(bounds, numpy.uint32)
        head = round_up(4 * (count + 1))
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
            if not self._target.variable:
                return memoryview(made)[head:], None
            ends = array("I")
            ends.frombytes(memoryview(made)[: 4 * (count + 1)])
            return memoryview(made)[head:], ends


def can_locate(format: Format) -> bool:
    """Tell whether a locator can be generated: for not too many slots."""
    slots = sum(field.text or field.dynamic for _, field in format.walk())
    return WIDE_POINTERS and slots * SLOT_WEIGHT <= MOVES_MAX


class NativeLocator:
    """Resolves the slots of batches of one variable format, for decoders that then only slice."""

    def __init__(self, format: Format) -> None:
        self._size = format.size
        code = NativeCode.of(compile_library(locate_routine(format), ("convert",)), "convert")
        self._locate = variable_entry(code)

    def locate(self, records: memoryview, bounds: Bounds, count: int) -> bytes:
        """Return the fixed parts with resolved slots; see `conversion_code.locate_routine`.

        Raises:
            ValueError: A record is malformed; the walking reader can tell how.
        """
        if count * self._size > len(records):
            raise ValueError("fewer bytes than fixed parts")
        return self._locate(records, numpy.asarray(bounds, numpy.uint32), count, count * self._size)


def _weight(moves: tuple[Move, ...]) -> int:
    """Return how much there is to compile."""
    total = 0
    for move in moves:
        match move:
            case Each():
                total += 1 + _weight(move.moves)
            case Vector():
                total += SLOT_WEIGHT + _weight(move.moves)
            case Text() | FillText():
                total += SLOT_WEIGHT
            case _:
                total += 1
    return total
