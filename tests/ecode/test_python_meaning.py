"""Functions in Python's spelling are run by Python itself and by both back ends: all three must agree."""

import math
from typing import Any

import numpy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echoic.errors import ECodeError
from echoic.formats import Array, event, float32, int8, int16, int32, uint8, uint32, uint64
from tests.ecode.by_python import run_by_python
from tests.ecode.programs import Ran, run_everywhere


@event
class Pair:
    a: int
    b: int


@event
class Floats:
    x: float
    y: float


@event
class Narrow:
    tiny: int8
    small: int16
    number: int32
    byte: uint8
    positive: uint32
    single: float32


@event
class Answers:
    first: int
    second: int
    third: int
    x: float


@event
class Cell:
    speed: float
    rank: int16


@event
class Reading:
    name: str
    n: int32
    samples: Array[float, "n"]
    grid: Array[int32, 2, 3]
    cells: Array[Cell, 2]
    tags: Array[str, ...]


@event
class Summary:
    name: str
    total: float
    count: int
    grid: Array[int32, 2, 3]
    values: Array[float, ...]


@event
class Limits:
    low: float
    high: float


READINGS = [
    Reading("first", 3, [1.0, -2.5, 4.0], [[1, 2, 3], [4, 5, 6]], [Cell(1.5, 3), Cell(-1.0, -7)], ["a", "b"]),
    Reading("second", 0, [], [[0, 0, 0], [0, 0, 0]], [Cell(0.0, 0), Cell(0.0, 0)], []),
    Reading("ähnlich", 1, [7.5], [[-1, 9, 8], [7, -6, 5]], [Cell(2.0, 1), Cell(3.0, 2)], ["ähnlich"]),
    Reading("", 5, [5.0, 4.0, 3.0, 2.0, 1.0], [[9, 9, 9], [9, 9, 8]], [Cell(9.0, 9), Cell(8.0, 8)], ["", "x", ""]),
]
LIMITS = Limits(0.5, 6.0)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
edges = st.sampled_from([0, 1, -1, 2, -2, 3, 7, -7, 10, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63) + 1, 1 << 62])
whole = edges | INT64 | st.integers(-100, 100)


def agree(source: str, events: list[Any], output: type | None, params: object = None) -> Ran:
    """Run a function in all three ways and return what it did."""
    ran = run_everywhere(source, events, output, spelling="python", params=params)
    selected, made = run_by_python(source, events, output, params)
    assert ran.faults == []
    assert ran.selected == selected
    assert repr(ran.events) == repr(made)
    return ran


def kinds(ran: Ran) -> list[tuple[int, str]]:
    return [(number, kind) for number, kind, _, _ in ran.faults]


def fits(*values: int) -> bool:
    return all(-(1 << 63) <= value < 1 << 63 for value in values)


DIVISION = """
def f(input, output):
    output.first = input.a // input.b
    output.second = input.a % input.b
    output.third = (input.a | 0) // (input.b | 0) * 0 + (input.a | 0) % (input.b | 0)
    return True
"""


@given(st.lists(st.tuples(whole, whole.filter(bool)), min_size=1, max_size=20))
@example([(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (6, -3), (0, -5), (-1, (1 << 63) - 1)])
def test_floor_division_and_remainder_mean_what_python_means(pairs: list[tuple[int, int]]) -> None:
    events = [Pair(a, b) for a, b in pairs if fits(a // b)]
    if events:
        agree(DIVISION, events, Answers)


@pytest.mark.parametrize("divisor", [1, 2, 3, 7, 8, 10, 1000, 1 << 62, (1 << 63) - 1, -1, -2, -3, -8, -(1 << 62)])
def test_division_by_constants_means_what_python_means(divisor: int) -> None:
    source = f"""
def f(input, output):
    output.first = input.a // {divisor}
    output.second = input.a % {divisor}
    output.third = (input.a ^ input.b) % {divisor} + (input.a ^ input.b) // {divisor} * 0
    return 1
"""
    numbers = [0, 1, -1, 5, -5, 8, -8, 999, -1001, (1 << 63) - 1, -(1 << 63) + 1, 1 << 62, -(1 << 62)]
    agree(source, [Pair(a, b) for a in numbers for b in (0, -1, 77)], Answers)


def test_division_of_an_integer_by_zero_gives_the_event_up() -> None:
    for line in ("input.a // input.b", "input.a % input.b", "(input.a + 1) // (input.b * 2)"):
        source = f"def f(input, output):\n    output.first = {line}\n    return 1\n"
        ran = run_everywhere(source, [Pair(1, 0), Pair(4, 2)], Answers, spelling="python")
        assert kinds(ran) == [(0, "DIVISION")]
        assert ran.selected == [1]


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(finite, finite.filter(bool)), min_size=1, max_size=20))
def test_division_of_floats_keeps_the_fraction(pairs: list[tuple[float, float]]) -> None:
    source = "def f(input, output):\n    output.x = input.x / input.y\n    return input.x < input.y\n"
    agree(source, [Floats(x, y) for x, y in pairs], Answers)


@given(st.lists(st.tuples(st.integers(-(1 << 53), 1 << 53), whole.filter(bool)), min_size=1, max_size=20))
def test_division_of_integers_keeps_the_fraction(pairs: list[tuple[int, int]]) -> None:
    source = "def f(input, output):\n    output.x = input.a / input.b\n    return input.a != input.b\n"
    agree(source, [Pair(a, b) for a, b in pairs if abs(b) <= 1 << 53] or [Pair(1, 3)], Answers)


@given(st.lists(st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000).filter(bool)), min_size=1, max_size=20))
def test_floor_division_of_floats_is_the_floor_of_their_quotient(pairs: list[tuple[int, int]]) -> None:
    source = "def f(input, output):\n    output.x = input.x // input.y\n    return 1\n"
    events = [Floats(x / 4, y / 4) for x, y in pairs]
    ran = run_everywhere(source, events, Answers, spelling="python")
    assert [record.x for record in ran.events] == [math.floor(each.x / each.y) for each in events]


EXTREMES = """
def f(input, output):
    output.first = min(input.a, input.b, 5)
    output.second = max(input.a + 0, input.b - 0)
    output.third = abs(input.a) - abs(input.b - 1)
    output.x = max(input.a, 0.5) + abs(input.a / 2)
    return not (input.a < 0 and input.b) or input.a == input.b
"""


@given(st.lists(st.tuples(st.integers(-(1 << 50), 1 << 50), st.integers(-9, 9)), min_size=1, max_size=20))
def test_extremes_and_absolute_values_mean_what_python_means(pairs: list[tuple[int, int]]) -> None:
    agree(EXTREMES, [Pair(a, b) for a, b in pairs], Answers)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=40))
def test_chained_comparisons_mean_what_python_means(pairs: list[tuple[int, int]]) -> None:
    source = """
def f(input, output):
    output.first = -3 < input.a <= input.b < 5
    output.second = input.a == input.b == 0
    output.third = (0 < input.a + input.b < 9 != input.a) + 1
    output.x = 1.5 if input.a < 0 > input.b else 2
    return input.a < input.b + 1 < input.a * 2
"""
    agree(source, [Pair(a, b) for a, b in pairs], Answers)


narrow = st.builds(
    Narrow,
    tiny=st.integers(-128, 127),
    small=st.integers(-(1 << 15), (1 << 15) - 1),
    number=st.integers(-(1 << 31), (1 << 31) - 1),
    byte=st.integers(0, 255),
    positive=st.integers(0, (1 << 32) - 1),
    single=st.floats(-1e6, 1e6, width=32),
)


@given(st.lists(narrow, min_size=1, max_size=10))
def test_narrow_fields_are_computed_with_at_full_width(events: list[Narrow]) -> None:
    source = """
def f(input, output):
    output.first = input.positive - input.byte - input.positive * 2
    output.second = input.number * input.number + input.tiny * input.small
    output.third = -input.positive + (input.byte << 40) + (~input.positive & 0xFF) + ((input.tiny < 0) << 33)
    output.x = input.single * input.single / 3 + input.number / input.positive if input.positive else input.single
    if input.number < input.positive:
        return input.tiny == input.byte or input.number != input.positive
    return input.tiny > input.byte
"""
    agree(source, events, Answers)


@event
class Huge:
    huge: uint64


def test_unsigned_fields_of_64_bits_stay_unsigned() -> None:
    source = """
def f(input, output):
    copy = input.huge
    if input.huge > 9:
        other = input.huge
    else:
        other = 3
    output.first = copy % 10
    output.second = copy // 10 == input.huge // 10
    output.third = other >> 60
    return copy > 5
"""
    agree(source, [Huge(0), Huge(7), Huge(12345), Huge((1 << 64) - 1), Huge(1 << 63)], Answers)


PROGRAMS = {
    "a loop over a dynamic array": """
def average(input, output):
    '''The mean of what was measured.'''
    total = 0.0
    for i in range(len(input.samples)):
        total += input.samples[i]
    output.total = total / max(len(input.samples), 1)
    output.count = len(input.samples)
    return output.count
""",
    "an array made, backwards": """
def f(input, output):
    resize(output.values, len(input.samples))
    for i in range(len(input.samples) - 1, -1, -1):
        output.values[len(input.samples) - 1 - i] = input.samples[i]
    return True
""",
    "two dimensions and both ways to index": """
def f(input, output):
    for i in range(2):
        for j in range(0, 3, 1):
            output.grid[i][j] = input.grid[i][j] * 2 - i
            output.count += input.grid[1 - i][2 - j] if i else -input.grid[i][j]
    return output.count % 2 == 0
""",
    "a bound that the body changes": """
def f(input, output):
    n = input.n
    for i in range(n):
        n += 1
        output.count += i
    for j in range(1, n - 1, 2):
        n -= 1
        output.total += j
    return n >= 0
""",
    "branches that give a variable its first value": """
def f(input, output):
    if input.n > 3:
        x = 1.5
        y = x * 2
    elif input.n == 1:
        y = 7
        x = y / 2
    else:
        x = 0.25
        y = input.n
    if input.name == "first":
        z = len(input.name)
    else:
        return None
    output.total = x + y
    output.count = z
    return x > 0
""",
    "a variable of another type": """
def f(input, output):
    if input.n:
        kept: float64 = 1
    else:
        kept: float64 = 2.5
    total: float64 = 0
    total += kept / 2
    output.total = total
    return 1
""",
    "leaving loops": """
def f(input, output):
    i = 0
    while True:
        i += 1
        if i == 3:
            continue
        if i > input.n:
            break
        output.count += i
    for k in range(10):
        if k == input.n:
            break
        output.total -= k
    return output.count - 1
""",
    "texts": """
def f(input, output):
    output.name = input.name
    if input.name != "first" and len(input.tags) > 0:
        if input.tags[0] == input.name:
            output.count = 7
        output.name = "found"
    output.total = len(input.name) == 0 or input.name == "second"
    return not input.name == "ähnlich" or input.name == 'ähnlich'
""",
    "records in arrays": """
def f(input, output):
    fastest = input.cells[0].speed
    for i in range(1, 2):
        fastest = max(fastest, input.cells[i].speed)
        output.count += input.cells[i].rank ** 2 > 5
    output.total = fastest
    return input.cells[0].rank - input.cells[1].rank
""",
    "parameters": """
def f(input, output, param):
    for i in range(len(input.samples)):
        if param.low <= input.samples[i] <= param.high:
            output.count += 1
    return output.count
""",
    "nothing returned": """
def f(input, output):
    if input.n == 3:
        output.count = 1
        return 0.5
    if input.n == 1:
        return
    pass
""",
    "mathematics": """
import math
def f(input, output):
    import math
    x = input.n + 0.75
    output.total = math.sqrt(x) + math.pi + x ** 2 - 2 ** 3 + fabs(-x) + atan2(x, math.e) + fmod(x, 2)
    output.count = math.floor(-x) + ceil(x) * 100 + math.trunc(x) * 10 + int(-x) + int(float(7)) + bool(x) + abs(-2)
    output.count += isnan(x) + 1 + math.isfinite(x)
    return bool(0.25)
""",
    "augmented assignments": """
def f(input, output):
    a = 100 + input.n
    a -= 3
    a *= 7
    a //= 2
    a %= 50
    a <<= 3
    a >>= 1
    a |= 5
    a &= 0xFFFE
    a ^= 3
    x = a / 2
    x /= 3
    x **= 2
    x //= 1.5
    output.count = a
    output.total = x
    output.grid[1][2] += a
    output.grid[1][2] //= 3
    return True
""",
    "casts": """
def f(input, output):
    output.count = int8(input.n * 100) + uint8(-input.n) * 1000 + int16(70000 + input.n) + uint32(-1) // 3
    output.total = float32(0.1) + float64(input.n)
    return True
""",
    "constants": """
def f(input, output):
    output.count = -9223372036854775808 + 0xFF + 0b101 + 1_000 + True + (7 // -2) + (-7 % 3) + (2 ** 10) + (1 << 5)
    output.total = 1e-3 + -2.5 + .5 + 1e300 * 0
    return not False
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_mean_what_python_means(name: str) -> None:
    source = PROGRAMS[name]
    agree(source, READINGS, Summary, LIMITS if "param" in source else None)


def made_by(*lines: str) -> list[Any]:
    source = "def f(input, output):\n" + "".join(f"    {line}\n" for line in lines)
    return run_everywhere(source, READINGS, Summary, spelling="python").events


def test_statics_are_kept_between_events() -> None:
    made = made_by(
        "count: static[int32] = 10",
        "window: static[Array[float64, 2]]",
        "weights: static[Array[float64, 2]] = [0.5, 0.25]",
        "count += 1",
        "window[count % 2] = count",
        "output.count = count",
        "output.total = window[0] * weights[0] + window[1] * weights[1]",
        "return 1",
    )
    assert [(each.count, each.total) for each in made] == [(11, 2.75), (12, 8.75), (13, 9.25), (14, 10.25)]


def test_local_arrays_begin_at_zero_in_each_event_and_each_turn() -> None:
    made = made_by(
        "sums: Array[int64, 3]",
        "table: Array[float64, 2, 2] = [[1, 2.5], [3]]",
        "for i in range(2):",
        "    fresh: Array[int32, 2]",
        "    for j in range(len(sums)):",
        "        sums[j] += input.grid[i, j]",
        "        fresh[i] += 1",
        "    output.total += fresh[0] + fresh[1] * 10",
        "output.count = sums[0] + sums[1] * 100 + sums[2] * 10000",
        "output.total += table[0][1] + table[1, 1] + table[1][0] + len(table[0])",
        "return 1",
    )
    assert [each.count for each in made] == [5 + 700 + 90000, 0, 6 + 300 + 130000, 18 + 1800 + 170000]
    assert {each.total for each in made} == {33 + 2.5 + 3 + 2}


def test_indexes_do_not_count_from_the_end() -> None:
    source = "def f(input):\n    i = -1\n    return input.samples[i]\n"
    ran = run_everywhere(source, READINGS, spelling="python")
    assert kinds(ran) == [(number, "INDEX") for number in range(4)]


def test_an_endless_loop_runs_out_of_fuel() -> None:
    source = "def f(input):\n    while True:\n        pass\n"
    assert run_everywhere(source, READINGS[:1], spelling="python").faults == [(0, "FUEL", 2, 5)]


def test_a_router_returns_the_port_and_nothing_returned_is_the_first() -> None:
    source = """
def f(input):
    if input.n == 5:
        return -1
    if input.n:
        return input.n
"""
    ran = run_everywhere(source, READINGS, spelling="python", ports=4)
    assert (ran.selected, ran.ports) == ([0, 1, 2], [3, 0, 1])


def test_what_is_returned_is_true_as_python_has_it() -> None:
    source = "def f(input):\n    return input.x\n"
    events = [Floats(0.25, 0), Floats(0.0, 0), Floats(-0.0, 0), Floats(1e300, 0), Floats(numpy.nan, 0)]
    assert agree(source, events, None).selected == [0, 3, 4]
    pairs = [Pair(1 << 32, 0), Pair(0, 0), Pair(-(1 << 63), 0)]
    assert agree("def f(input):\n    return input.a\n", pairs, None).selected == [0, 2]


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    binary = st.sampled_from("+ - * // % & | ^ < <= == != > >=".split())  # noqa: SIM905 - a list of signs
    return st.one_of(
        st.builds("({} {} {})".format, inner, binary, inner),
        st.builds("({} {} {} {} {})".format, inner, st.sampled_from(["<", ">=", "!="]), inner, st.just("<="), inner),
        st.builds("bool({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner),  # others are 1 or 0 too
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("{}({}, {})".format, st.sampled_from(["min", "max"]), inner, inner),
        st.builds("{}({})".format, st.sampled_from(["abs", "-", "~", "not ", "int", "bool"]), inner).map("({})".format),
    )


leaves = st.sampled_from(["input.a", "input.b", "x", "y"]) | st.integers(-5, 9).map("({})".format)
expressions = st.recursive(leaves, compound, max_leaves=8)
small = st.tuples(st.integers(-9, 9), st.integers(-9, 9))


@given(expressions, st.lists(small, min_size=1, max_size=8, unique=True))
def test_any_expression_of_integers_means_what_python_means(expression: str, pairs: list[tuple[int, int]]) -> None:
    source = f"""
def f(input, output):
    x = input.a * 3 - 1
    y = x % 7 if input.b else 2
    output.first = {expression}
    return True
"""
    events = [Pair(a, b) for a, b in pairs]
    try:
        ran = run_everywhere(source, events, Answers, spelling="python")
    except ECodeError as error:
        assert "an integer is divided by zero" in str(error)  # noqa: PT017 - most programs are right
        return
    divided = [number for number, pair in enumerate(events) if divides_by_zero(source, pair)]
    assert kinds(ran) == [(number, "DIVISION") for number in divided]
    rest = [pair for number, pair in enumerate(events) if number not in divided]
    assert repr(ran.events) == repr(run_by_python(source, rest, Answers)[1])


def divides_by_zero(source: str, pair: Pair) -> bool:
    try:
        run_by_python(source, [pair], Answers)
    except ZeroDivisionError:
        return True
    return False
