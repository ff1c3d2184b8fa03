"""The language, construct by construct, in both back ends: numbers, operators, statements, functions.

What programs do with records, texts and arrays is in `test_language_records`.
"""

import math
import struct
from typing import Any

import numpy
import pytest
from numpy import float32 as f32
from numpy import float64 as f64
from numpy import int8 as i8
from numpy import int16 as i16
from numpy import int32 as i32
from numpy import int64 as i64
from numpy import uint8 as u8
from numpy import uint16 as u16
from numpy import uint32 as u32
from numpy import uint64 as u64

from tests.ecode.programs import BACK_ENDS, evaluate, run

pytestmark = pytest.mark.parametrize("back_end", BACK_ENDS)

INT_MIN, INT_MAX = -(1 << 31), (1 << 31) - 1
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize(
    ("expression", "values", "result", "expected"),
    [
        ("input.a + input.b", {"a": i32(7), "b": i32(-3)}, "int64", 4),
        ("input.a - input.b", {"a": i32(7), "b": i32(-3)}, "int64", 10),
        ("input.a * input.b", {"a": i32(7), "b": i32(-3)}, "int64", -21),
        ("input.a / input.b", {"a": i32(7), "b": i32(-3)}, "int64", -2),
        ("input.a % input.b", {"a": i32(7), "b": i32(-3)}, "int64", 1),
        ("input.a / input.b", {"a": i32(-7), "b": i32(3)}, "int64", -2),
        ("input.a % input.b", {"a": i32(-7), "b": i32(3)}, "int64", -1),
        ("input.a % input.b", {"a": i32(-7), "b": i32(-3)}, "int64", -1),
        ("input.a / input.b", {"a": i64(LONG_MAX), "b": i64(10)}, "int64", LONG_MAX // 10),
        ("input.a / input.b", {"a": u64((1 << 64) - 1), "b": u64(10)}, "uint64", ((1 << 64) - 1) // 10),
        ("input.a & input.b", {"a": i32(12), "b": i32(10)}, "int64", 8),
        ("input.a | input.b", {"a": i32(12), "b": i32(10)}, "int64", 14),
        ("input.a ^ input.b", {"a": i32(12), "b": i32(-1)}, "int64", -13),
        ("input.a << 3", {"a": i32(5)}, "int64", 40),
        ("input.a >> 1", {"a": i32(-5)}, "int64", -3),
        ("input.a >> 1", {"a": u32(0xFFFFFFFB)}, "int64", 0x7FFFFFFD),
        ("-input.a", {"a": i32(5)}, "int64", -5),
        ("+input.a", {"a": i8(-5)}, "int64", -5),
        ("~input.a", {"a": i32(5)}, "int64", -6),
        ("~input.a", {"a": u32(5)}, "int64", 0xFFFFFFFA),
        ("!input.a", {"a": i32(5)}, "int64", 0),
        ("!input.a", {"a": f64(0.0)}, "int64", 1),
        ("!!input.a", {"a": f64(0.25)}, "int64", 1),
        ("input.a + input.b", {"a": f64(0.1), "b": f64(0.2)}, "float64", 0.1 + 0.2),
        ("input.a / input.b", {"a": f64(1.0), "b": f64(3.0)}, "float64", 1.0 / 3.0),
        ("input.a - input.b * 2", {"a": f64(1.0), "b": f64(3.0)}, "float64", -5.0),
    ],
)
def test_operators_compute(
    back_end: str, expression: str, values: dict[str, Any], result: str, expected: float
) -> None:
    assert evaluate(back_end, expression, result, **values) == expected


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("input.a + 1", {"a": i32(INT_MAX)}, INT_MIN),
        ("input.a - 1", {"a": i32(INT_MIN)}, INT_MAX),
        ("input.a * 2", {"a": i32(INT_MAX)}, -2),
        ("-input.a", {"a": i32(INT_MIN)}, INT_MIN),
        ("input.a / -1", {"a": i32(INT_MIN)}, INT_MIN),
        ("input.a / input.b", {"a": i32(INT_MIN), "b": i32(-1)}, INT_MIN),
        ("input.a % input.b", {"a": i32(INT_MIN), "b": i32(-1)}, 0),
        ("input.a + 1", {"a": i64(LONG_MAX)}, LONG_MIN),
        ("input.a * input.a", {"a": i64(LONG_MAX)}, 1),
        ("input.a / input.b", {"a": i64(LONG_MIN), "b": i64(-1)}, LONG_MIN),
        ("input.a - 1", {"a": u32(0)}, 0xFFFFFFFF),
        ("-input.a", {"a": u32(1)}, 0xFFFFFFFF),
        ("input.a << 31", {"a": i32(1)}, INT_MIN),
        ("input.a << 32", {"a": i32(3)}, 3),
        ("input.a << 33", {"a": i32(3)}, 6),
        ("input.a << -1", {"a": i32(1)}, INT_MIN),
        ("input.a << input.b", {"a": i64(1), "b": i32(63)}, LONG_MIN),
        ("input.a << input.b", {"a": i64(1), "b": i32(64)}, 1),
        ("input.a >> input.b", {"a": i32(-8), "b": u64(34)}, -2),
        ("input.a << input.b", {"a": i8(1), "b": i32(20)}, 1 << 20),
    ],
)
def test_what_c_leaves_undefined_is_defined(
    back_end: str, expression: str, values: dict[str, Any], expected: int
) -> None:
    assert evaluate(back_end, expression, "int64", **values) == expected


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("input.a + input.b", {"a": i8(127), "b": i8(127)}, 254),
        ("input.a * input.b", {"a": u8(255), "b": u8(255)}, 65025),
        ("input.a - input.b", {"a": u8(1), "b": u8(2)}, -1),
        ("input.a - input.b", {"a": u16(1), "b": u16(2)}, -1),
        ("input.a - input.b", {"a": u32(1), "b": i32(2)}, 0xFFFFFFFF),
        ("input.a - input.b", {"a": u32(1), "b": i64(2)}, -1),
        ("input.a < input.b", {"a": i32(-1), "b": u32(1)}, 0),
        ("input.a < input.b", {"a": i32(-1), "b": u8(1)}, 1),
        ("input.a < input.b", {"a": i64(-1), "b": u32(1)}, 1),
        ("input.a < input.b", {"a": i64(-1), "b": u64(1)}, 0),
        ("input.a == input.b", {"a": i32(-1), "b": u32(0xFFFFFFFF)}, 1),
        ("~input.a", {"a": u8(255)}, -256),
        ("-input.a", {"a": u16(5)}, -5),
        ("input.a + 4000000000", {"a": i32(1)}, 4000000001),
        ("input.a + 2147483648u", {"a": i32(-1)}, 2147483647),
        ("input.a > 0x7fffffff", {"a": u32(0x80000000)}, 1),
        ("'A' + 1", {}, 66),
        ("07 + 0x10", {}, 23),
        ("1 ? -1 : input.a", {"a": u32(1)}, 0xFFFFFFFF),
    ],
)
def test_operands_are_promoted_as_in_c(back_end: str, expression: str, values: dict[str, Any], expected: int) -> None:
    assert evaluate(back_end, expression, "int64", **values) == expected


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("(char) input.a", {"a": i32(200)}, -56),
        ("(unsigned char) input.a", {"a": i32(-1)}, 255),
        ("(short) input.a", {"a": i32(40000)}, -25536),
        ("(int) input.a", {"a": i64(1 << 40)}, 0),
        ("(unsigned) input.a", {"a": i8(-1)}, 0xFFFFFFFF),
        ("(long) input.a", {"a": u32(0xFFFFFFFF)}, 0xFFFFFFFF),
        ("(int) input.a", {"a": f64(3.99)}, 3),
        ("(int) input.a", {"a": f64(-3.99)}, -3),
        ("(int) input.a", {"a": f64(1e30)}, INT_MAX),
        ("(int) input.a", {"a": f64(-1e30)}, INT_MIN),
        ("(int) input.a", {"a": f64(math.inf)}, INT_MAX),
        ("(int) input.a", {"a": f64(math.nan)}, 0),
        ("(unsigned) input.a", {"a": f64(-5.0)}, 0),
        ("(unsigned) input.a", {"a": f64(4294967295.0)}, 4294967295),
        ("(unsigned) input.a", {"a": f64(4294967296.0)}, 4294967295),
        ("(char) input.a", {"a": f64(1000.0)}, 127),
        ("(unsigned char) input.a", {"a": f32(255.5)}, 255),
        ("(long) input.a", {"a": f64(9.3e18)}, LONG_MAX),
        ("(long) input.a", {"a": f64(-9.3e18)}, LONG_MIN),
        ("(long) input.a", {"a": f64(1e18)}, 10**18),
    ],
)
def test_conversions_wrap_integers_and_saturate_floats(
    back_end: str, expression: str, values: dict[str, Any], expected: int
) -> None:
    assert evaluate(back_end, expression, "int64", **values) == expected


def test_a_float_beyond_an_unsigned_long_becomes_the_largest(back_end: str) -> None:
    assert evaluate(back_end, "(unsigned long) input.a", "uint64", a=f64(2e19)) == (1 << 64) - 1
    assert evaluate(back_end, "(unsigned long) input.a", "uint64", a=f64(1e19)) == 10**19


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("input.a + input.b", {"a": f32(0.1), "b": f32(0.2)}, float(f32(0.1) + f32(0.2))),
        ("input.a * input.b", {"a": f32(16777217.0), "b": f32(3.0)}, 50331648.0),
        ("input.a + 1.0f", {"a": f32(16777216.0)}, 16777216.0),
        ("input.a + 1.0", {"a": f32(16777216.0)}, 16777217.0),
        ("input.a * input.a", {"a": f32(1e30)}, math.inf),
        ("input.a / input.b", {"a": f32(1.0), "b": f32(3.0)}, float(f32(1.0) / f32(3.0))),
        ("(float) input.a", {"a": f64(0.1)}, float(f32(0.1))),
        ("(float) input.a", {"a": f64(1e300)}, math.inf),
        ("(float) input.a", {"a": i32(16777217)}, 16777216.0),
        ("(float) input.a", {"a": i64((1 << 61) + (1 << 37) + 1)}, float((1 << 61) + (1 << 38))),
        ("(float) input.a", {"a": u64((1 << 64) - 1)}, float(1 << 64)),
        ("(double) input.a", {"a": i64((1 << 53) + 1)}, float(1 << 53)),
        ("(double) input.a", {"a": u64((1 << 64) - 1)}, float(1 << 64)),
        ("input.a + input.b", {"a": f32(1.5), "b": i32(1)}, 2.5),
        ("input.a * 0.5", {"a": i32(3)}, 1.5),
        ("input.a * 0", {"a": f64(-1.0)}, -0.0),
        ("-input.a", {"a": f64(0.0)}, -0.0),
    ],
)
def test_floats_are_computed_in_their_own_precision(
    back_end: str, expression: str, values: dict[str, Any], expected: float
) -> None:
    found = evaluate(back_end, expression, "float64", **values)
    assert struct.pack("d", found) == struct.pack("d", expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 / input.zero", math.inf),
        ("-1 / input.zero", -math.inf),
        ("1 / -input.zero", -math.inf),
        ("input.zero / input.zero", math.nan),
        ("input.nan + 1", math.nan),
        ("input.large * 10", math.inf),
        ("input.large * 10 - input.large * 10", math.nan),
        ("(float) input.large / 0.0f", math.inf),
    ],
)
def test_floats_never_fault(back_end: str, expression: str, expected: float) -> None:
    found = evaluate(back_end, expression, "float64", zero=f64(0.0), nan=f64(math.nan), large=f64(1e308))
    assert repr(found).lstrip("-") == "nan" if math.isnan(expected) else found == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("input.nan == input.nan", 0),
        ("input.nan != input.nan", 1),
        ("input.nan < 1", 0),
        ("input.nan > 1", 0),
        ("input.nan <= input.nan", 0),
        ("1 >= input.nan", 0),
        ("!(input.nan < 1)", 1),
        ("input.nan ? 3 : 4", 3),
        ("input.nan && 1", 1),
        ("!input.nan", 0),
        ("input.zero == -input.zero", 1),
        ("input.zero || -input.zero", 0),
    ],
)
def test_nan_compares_as_in_c(back_end: str, expression: str, expected: int) -> None:
    assert evaluate(back_end, expression, zero=f64(0.0), nan=f64(math.nan)) == expected
    assert evaluate(back_end, expression, zero=f32(0.0), nan=f32(math.nan)) == expected


@pytest.mark.parametrize("operator", ["==", "!=", "<", ">", "<=", ">="])
@pytest.mark.parametrize("kind", [i8, u8, i16, u16, i32, u32, i64, u64, f32, f64])
def test_comparisons_of_each_type(back_end: str, kind: Any, operator: str) -> None:
    values = (-3, 0, 5) if kind(0).dtype.kind != "u" else (0, 5, 200)
    for left in values:
        for right in values:
            expected = {
                "==": left == right,
                "!=": left != right,
                "<": left < right,
                ">": left > right,
                "<=": left <= right,
                ">=": left >= right,
            }[operator]
            assert evaluate(back_end, f"input.a {operator} input.b", a=kind(left), b=kind(right)) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("int i = 1; output.value = i + (i = 5);", 6),
        ("int i = 1; output.value = (i = 5) + i;", 10),
        ("int i = 1; output.value = i++ + i++;", 3),
        ("int i = 1; output.value = ++i + i;", 4),
        ("int i = 1; output.value = i - i--;", 0),
        ("int i = 3; output.value = i * 10 + (i += 2) + i;", 40),
        ("int a[3] = {10, 20, 30}; int i = 0; a[i] = i++; output.value = a[1] * 100 + a[0];", 10),
        ("int a[3] = {10, 20, 30}; int i = 0; a[i++] += i; output.value = a[0] * 10 + i;", 111),
        ("int a[3] = {10, 20, 30}; int i = 0; a[i++] += a[i++]; output.value = a[0] * 10 + i;", 302),
        ("int i = 0; output.value = (i++, i++, i * 10);", 20),
        ("int i = 0, j = 0; output.value = (i && j++) * 10 + j;", 0),
        ("int i = 1, j = 0; output.value = (i && ++j) * 10 + j;", 11),
        ("int i = 1, j = 0; output.value = (i || j++) * 10 + j;", 10),
        ("int i = 0, j = 5; output.value = (i || j--) * 10 + j;", 14),
        ("int i = 2, j = 0; output.value = i > 1 ? (j = 4) + j : (j = 9);", 8),
        ("int i = 0, j = 0; output.value = i > 1 ? (j = 4) : (j += 9) + j;", 18),
        ("int i, j; i = j = 7; output.value = i * 10 + j;", 77),
        ("char c; int i = c = 300; output.value = i;", 44),
        ("unsigned char c = 255; output.value = c++ * 1000 + c;", 255000),
        ("unsigned char c = 255; output.value = ++c;", 0),
        ("short s = 32767; s += 1; output.value = s;", -32768),
        ("int i = 7; i -= 10; i *= 3; i /= 2; i %= 3; output.value = i;", -1),
        ("int i = 12; i &= 10; i |= 1; i ^= 3; i <<= 4; i >>= 1; output.value = i;", 80),
        ("int i = 7; i *= 1.5; output.value = i;", 10),
        ("int i = 7; i += 0.9; output.value = i;", 7),
        ("float f = 1; f += 0.1; output.value = f == 1.1f;", 1),
        ("char c = 100; c *= 2; output.value = c;", -56),
        ("unsigned u = 1; u -= 2; output.value = u > 5;", 1),
        ("int i = 5; output.value = i-- - --i;", 2),
        ("int x = 1; { int x = 2; x++; } output.value = x;", 1),
        ("int x = 3; output.value = x << 1 + 1;", 12),
        ("output.value = 2 + 3 * 4 - 10 / 3 % 2;", 13),
        ("output.value = 1 < 2 == 1 != 0 & 3 | 4 ^ 1;", 5),
        ("output.value = 5 > 3 > 1;", 0),
        ("output.value = !1 + 1;", 1),
        ("output.value = -3 - -3;", 0),
        ("output.value = 1 ? 2 : 0 ? 3 : 4;", 2),
        ("output.value = 0 ? 2 : 0 ? 3 : 4;", 4),
    ],
)
def test_values_are_evaluated_from_left_to_right(back_end: str, code: str, expected: int) -> None:
    assert value_of(back_end, code) == expected


def value_of(back_end: str, code: str, **values: Any) -> Any:
    """Return what a piece of code leaves in `output.value`, a long."""
    dtype = numpy.dtype([(name, value.dtype) for name, value in values.items()] or [("unused", "i4")], align=True)
    record = numpy.array([tuple(values.values()) or (0,)], dtype)
    ran = run(back_end, f"{code} return 1;", record, numpy.dtype([("value", "i8")]))
    assert not ran.faults, ran.faults
    return ran.events[0].value


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("if (input.a > 2) output.value = 1; else output.value = 2;", 1),
        ("if (input.a > 3) output.value = 1; else if (input.a > 2) output.value = 2; else output.value = 3;", 2),
        ("if (0) ; else output.value = 4;", 4),
        ("if (input.a) { if (!input.a) output.value = 1; else output.value = 2; }", 2),
        ("int j; if ((j = input.a) > 5) output.value = 1; else if ((j += 3) == 6) output.value = j;", 6),
        ("int i = 0; while (i < 10) { i++; if (i == 3) continue; if (i == 6) break; output.value += i; }", 12),
        ("int i = 0; do { output.value += ++i; } while (i < 4);", 10),
        ("int i = 0; do { i++; if (i == 2) continue; output.value += i; } while (i < 4);", 8),
        ("int i = 5; do output.value++; while (i++ < 7);", 3),
        ("int i = 0; do { if (i) break; i = 1; } while (1); output.value = i;", 1),
        ("int i; for (i = 0; i < 5; i++) { if (i == 1) continue; output.value += i; } output.value += i * 100;", 509),
        ("int i = 0; for (;;) { if (++i > 5) break; } output.value = i;", 6),
        ("int i = 0; for (; i < input.a; ) output.value += i++;", 3),
        ("int i; for (i = 0; i < input.a; i++) { if (i == 1) continue; output.value += 10 + i; }", 22),
        ("for (int i = 0, j = 10; i < j; i++, j--) output.value = i * 100 + j;", 406),
        (
            "int i, j; for (i = 0; i < 3; i++) for (j = 0; j < 3; j++) { if (j > i) break; output.value += 1 + j; }",
            10,
        ),
        (
            """int i = 0, j;
            while (i < 3) {
                i++; j = 0;
                while (1) { if (++j > i) break; if (j == 2) continue; output.value += j; }
            }""",
            6,
        ),
        ("int i = 10; while (i--) { int fresh; fresh++; output.value += fresh; }", 10),
        ("int i = 3; while (i) { int kept[2]; kept[1] += i--; output.value += kept[1]; }", 6),
        ("const int three = 3; const double half = 0.5; output.value = three * half * 10;", 15),
        ("int grid[2][3] = {{1, 2, 3}, {4, 5}}; output.value = grid[1][1] * 10 + grid[1][2];", 50),
        ("int grid[2][3] = {{1, 2, 3}, {4, 5}}; output.value = grid[input.a - 2][input.a - 3];", 4),
        ("int list[] = {4, 5, 6}; output.value = list[0] + list[input.a - 1];", 10),
        ("double sums[4]; sums[input.a] = 2.5; sums[3] *= 2; output.value = sums[3] + sums[0];", 5),
        ("{ { output.value = 3; } ; }", 3),
        ("/* a comment */ output.value = 1; // and another", 1),
        ("unsigned char i; for (i = 250; i > 5; i++) output.value++;", 6),
        ("char i; for (i = 120; i > 0; i++) output.value++;", 8),
    ],
)
def test_statements_run_as_in_c(back_end: str, code: str, expected: int) -> None:
    assert value_of(back_end, code + "\n", a=i32(3)) == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("fabs(-2.5)", 2.5),
        ("sqrt(2.0)", math.sqrt(2.0)),
        ("sqrt(input.minus)", math.nan),
        ("floor(-2.5)", -3.0),
        ("ceil(-2.5)", -2.0),
        ("ceil(-0.5)", -0.0),
        ("floor(input.zero * -1)", -0.0),
        ("trunc(-2.9)", -2.0),
        ("round(2.5)", 3.0),
        ("round(-2.5)", -3.0),
        ("round(0.49999999999999994)", 0.0),
        ("round(-0.3)", -0.0),
        ("round(4503599627370497.0)", 4503599627370497.0),
        ("fmod(7.5, -2.0)", 1.5),
        ("fmod(-7.5, 2.0)", -1.5),
        ("fmod(1.0, input.zero)", math.nan),
        ("pow(2.0, 10.0)", 1024.0),
        ("pow(input.zero, -1.0)", math.inf),
        ("pow(-input.zero, -1.0)", -math.inf),
        ("pow(-input.zero, -2.0)", math.inf),
        ("pow(input.minus, 0.5)", math.nan),
        ("pow(-10.0, 309.0)", -math.inf),
        ("pow(10.0, 309.0)", math.inf),
        ("exp(1.0)", math.exp(1.0)),
        ("exp(1000.0)", math.inf),
        ("exp(-1000.0)", 0.0),
        ("log(10.0)", math.log(10.0)),
        ("log(input.zero)", -math.inf),
        ("log2(input.minus)", math.nan),
        ("log10(1000.0)", 3.0),
        ("sin(input.infinite)", math.nan),
        ("cos(1.0)", math.cos(1.0)),
        ("tan(1.0)", math.tan(1.0)),
        ("asin(2.0)", math.nan),
        ("acos(0.5)", math.acos(0.5)),
        ("atan(input.infinite)", math.atan(math.inf)),
        ("atan2(-0.0, -1.0)", -math.pi),
        ("hypot(3.0, 4.0)", 5.0),
        ("hypot(input.nan, input.infinite)", math.inf),
        ("fmin(1.0, 2.0)", 1.0),
        ("fmax(1.0, 2.0)", 2.0),
        ("fmin(input.nan, 2.0)", 2.0),
        ("fmax(1.0, input.nan)", 1.0),
        ("fmin(input.nan, input.nan)", math.nan),
        ("isnan(input.nan) * 4 + isinf(-input.infinite) * 2 + isfinite(input.minus)", 7.0),
        ("isnan(1.0) + isinf(1.0) + isfinite(input.nan)", 0.0),
        ("sqrt(9)", 3.0),
        ("fabs(input.single)", 1.25),
    ],
)
def test_functions_do_what_the_c_library_does(back_end: str, call: str, expected: float) -> None:
    values = {"zero": f64(0.0), "minus": f64(-1.0), "infinite": f64(math.inf), "nan": f64(math.nan)}
    found = evaluate(back_end, call, "float64", **values, single=f32(-1.25))
    if math.isnan(expected):
        assert math.isnan(found)
    else:
        assert struct.pack("d", found) == struct.pack("d", expected)
