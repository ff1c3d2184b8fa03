"""The arithmetic that generated Python calls, against the C library and NumPy."""

import ctypes
import ctypes.util
import itertools
import math
import struct
from random import Random

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.ecode.generated_python.arithmetic import (
    MATHEMATICS,
    divided,
    nearest_single,
    quotient,
    remainder,
    saturated,
    single,
)
from echoic.ecode.mathematics import FUNCTIONS
from echoic.ecode.numbers import NUMBERS, Number, convert, wrap

SPECIAL = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0, -2.0, 3.0, -3.0, 10.0, 1e-300, -1e-300, 5e-324),
    *(1e15, -1e15, 4503599627370495.5, 9007199254740993.0, 1e300, -1e300, 1e308, math.inf, -math.inf, math.nan),
    *(0.49999999999999994, 709.9, -745.2, 1024.0, -1075.0, math.pi, 1e22),
)
PREDICATES = ("isfinite", "isinf", "isnan")  # macros in C
library = ctypes.CDLL(ctypes.util.find_library("m"))


def alike(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or struct.pack("d", one) == struct.pack("d", other)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in PREDICATES])
def test_each_function_is_the_c_librarys(name: str) -> None:
    function = getattr(library, name)
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * FUNCTIONS[name]
    random = Random(name)
    values = [*SPECIAL, *(random.gauss(0, 10 ** random.randint(-3, 4)) for _ in range(60))]
    for arguments in itertools.product(values, repeat=FUNCTIONS[name]):
        if name in ("fmin", "fmax") and not any(arguments):
            continue  # C does not say which zero it is
        assert alike(MATHEMATICS[name](*arguments), function(*arguments)), arguments


def test_there_is_every_function_and_no_other() -> None:
    assert set(MATHEMATICS) == set(FUNCTIONS)


@pytest.mark.parametrize(
    ("name", "yes", "no"),
    [
        ("isfinite", (0.0, 1e308), (math.inf, -math.inf, math.nan)),
        ("isinf", (math.inf, -math.inf), (0.0, math.nan)),
        ("isnan", (math.nan,), (0.0, math.inf)),
    ],
)
def test_the_predicates(name: str, yes: tuple[float, ...], no: tuple[float, ...]) -> None:
    assert [MATHEMATICS[name](value) for value in yes] == [1.0] * len(yes)
    assert [MATHEMATICS[name](value) for value in no] == [0.0] * len(no)


def test_of_two_zeros_the_first_is_the_least_and_the_greatest() -> None:
    assert alike(MATHEMATICS["fmin"](0.0, -0.0), 0.0)
    assert alike(MATHEMATICS["fmax"](-0.0, 0.0), -0.0)


@given(st.integers(-(1 << 63), (1 << 64) - 1), st.integers(-(1 << 63), (1 << 64) - 1).filter(bool))
def test_integers_divide_towards_zero(dividend: int, divisor: int) -> None:
    whole, left = quotient(dividend, divisor), remainder(dividend, divisor)
    assert whole * divisor + left == dividend
    assert abs(left) < abs(divisor)
    assert left == 0 or (left < 0) == (dividend < 0)


@given(st.floats(), st.floats())
def test_floats_divide_as_the_hardware_does(dividend: float, divisor: float) -> None:
    with numpy.errstate(all="ignore"):
        assert alike(divided(dividend, divisor), float(numpy.float64(dividend) / numpy.float64(divisor)))


@given(st.floats())
def test_a_double_is_rounded_as_the_hardware_does(value: float) -> None:
    with numpy.errstate(all="ignore"):
        assert alike(single(value), float(numpy.float32(value)))


@given(st.integers(-(1 << 63), (1 << 64) - 1))
def test_an_integer_is_rounded_to_single_precision_once(value: int) -> None:
    found = nearest_single(value)
    assert single(found) == found
    below, above = (float(numpy.nextafter(numpy.float32(found), numpy.float32(end))) for end in (-math.inf, math.inf))
    distance = abs(int(found) - value)
    assert distance <= abs(int(below) - value)
    assert distance <= abs(int(above) - value)


@pytest.mark.parametrize("number", [number for number in NUMBERS.values() if not number.floating])
@given(st.floats() | st.integers(-(1 << 65), 1 << 65).map(float))
def test_a_float_becomes_the_nearest_integer_of_the_range(number: Number, value: float) -> None:
    low, high = number.smallest, number.largest
    found = saturated(value, low, high)
    assert found == convert(value, number)
    assert low <= found <= high
    if math.isfinite(value) and low <= math.trunc(value) <= high:
        assert found == math.trunc(value)


@given(st.integers(), st.sampled_from([number for number in NUMBERS.values() if not number.floating]))
def test_wrapping_keeps_the_low_bits(value: int, number: Number) -> None:
    found = wrap(value, number)
    assert number.smallest <= found <= number.largest
    assert (found - value) % (1 << number.bits) == 0
