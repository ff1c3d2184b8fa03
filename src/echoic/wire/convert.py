"""Conversion: the receiver makes it right.

One `Conversion` stands for one pair of formats. It starts with NumPy, which costs nothing to prepare, and asks for a
native routine generated for exactly this pair (ECho paper, section 3.2) once enough has been converted to repay the
10 to 100 ms of compiling it. Both give the same bytes; the native one is about as fast as copying.
"""

import contextlib
import sys
from functools import lru_cache
from typing import Final

import msgspec

from echoic.errors import CodegenError, LimitExceededError
from echoic.formats import Format, match
from echoic.wire.bounds import Bounds, checked_bounds
from echoic.wire.convert_native import FixedRoutine, NativeConversion, can_generate
from echoic.wire.convert_numpy import NumpyConversion
from echoic.wire.frames import PAYLOAD_BYTES_MAX, Buffer

__all__ = ["CONVERTED_BYTES_MAX", "Conversion", "ConversionStatistics", "conversion_of"]

CONVERTED_BYTES_MAX: Final = 16 * PAYLOAD_BYTES_MAX
HOT_RECORDS: Final = 2500
HOT_VARIABLE_RECORDS: Final = 250  # NumPy converts these one by one, 40 times slower


class ConversionStatistics(msgspec.Struct, frozen=True):
    """What a conversion has done so far."""

    native: bool
    records_by_numpy: int


class Conversion:
    """Turns records of one format into records of another."""

    def __init__(self, source: Format, target: Format, *, narrow: bool = False) -> None:
        """Plan the conversion.

        Raises:
            IncompatibleTypesError: The types do not match.
        """
        self.matching: Final = match(source, target, narrow=narrow)
        self.identical: Final = self.matching.identical
        self.variable: Final = source.variable or target.variable
        self.convert_fixed: FixedRoutine = self._fixed_by_numpy
        """Convert fixed records: `convert_fixed(records, count)`. Becomes the native routine itself when hot."""
        self._numpy = NumpyConversion(self.matching)
        self._native: NativeConversion | None = None
        self._records = 0
        hot = HOT_VARIABLE_RECORDS if self.variable else HOT_RECORDS
        self._hot_records = hot if sys.byteorder == "little" and can_generate(self.matching) else sys.maxsize

    def convert(self, records: memoryview, bounds: Bounds, count: int) -> tuple[Buffer, Bounds | None]:
        """Return the converted records, and their bounds when the target format is variable.

        Raises:
            MalformedBatchError: A record contradicts its format.
            LimitExceededError: The result would have more than `CONVERTED_BYTES_MAX` bytes.
        """
        self._check_size(count)
        if not self.variable:
            return self.convert_fixed(records, count), None
        if self._native is not None:
            made = self._native.convert_variable(records, bounds, count)
            if made is not None:
                return made
        else:
            self._warm(count)
        places = checked_bounds(bounds, self.matching.source.size, len(records))
        return self._numpy.convert_variable(records, places, count, CONVERTED_BYTES_MAX)

    def compile(self) -> None:
        """Generate the native routine; the next batch uses it.

        Raises:
            CodegenError: This pair needs NumPy (C pointers as slots, or very many fields).
        """
        if not can_generate(self.matching):
            raise CodegenError(f"no native routine for `{self.matching.source.name}` to `{self.matching.target.name}`")
        self._native = NativeConversion(self.matching, CONVERTED_BYTES_MAX)
        if self._native.fixed is not None:
            self.convert_fixed = self._native.fixed

    def statistics(self) -> ConversionStatistics:
        """Return what was converted so far and how."""
        return ConversionStatistics(self._native is not None, self._records)

    def _check_size(self, count: int) -> None:
        size = self.matching.target.size
        if count * size > CONVERTED_BYTES_MAX:
            raise LimitExceededError(
                f"{count} records of {size} bytes are more than a converted batch may have, {CONVERTED_BYTES_MAX} "
                f"- at `{self.matching.target.name}`"
            )

    def _fixed_by_numpy(self, records: Buffer, count: int) -> Buffer:
        self._check_size(count)
        self._warm(count)
        return self._numpy.convert_fixed(records, count)

    def _warm(self, count: int) -> None:
        """Count what NumPy converts, and ask for the native routine when it is enough to repay the compiling."""
        self._records += count
        if self._records > self._hot_records:
            self._hot_records = sys.maxsize  # asked for once; should it be refused, NumPy goes on
            with contextlib.suppress(CodegenError):
                self.compile()


def conversion_of(source: Format, target: Format, *, narrow: bool = False) -> Conversion:
    """Return the conversion for a pair of formats; the same one every time, so that it can grow hot.

    Raises:
        IncompatibleTypesError: The types do not match.
    """
    return _known_conversion(source, target, narrow)


@lru_cache(maxsize=1024)
def _known_conversion(source: Format, target: Format, narrow: bool) -> Conversion:
    return Conversion(source, target, narrow=narrow)
