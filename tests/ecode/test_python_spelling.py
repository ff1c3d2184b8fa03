"""Python's spelling: what is refused and where, and that what is accepted means what Python means."""

import contextlib
import functools
import importlib.util
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.ecode.analysis import analyse
from echoic.ecode.compiling import check
from echoic.ecode.program import Program, Signature
from echoic.ecode.python_spelling import parse_python, source_of
from echoic.ecode.syntax.text import SourceText
from echoic.errors import ECodeError
from echoic.formats import Array, Format, char, event, float32, int8, int16, int32, uint8, uint32, uint64


@event
class Cell:
    speed: float
    heat: float32


@event
class Everything:
    flag: bool
    tiny: int8
    small: int16
    number: int32
    large: int
    byte: uint8
    positive: uint32
    huge: uint64
    single: float32
    price: float
    name: str
    symbol: Array[char, 8]
    grid: Array[int32, 2, 3]
    cells: Array[Cell, 4]
    n: int32
    samples: Array[float, "n"]
    tags: Array[str, ...]


@event
class Result:
    number: int32
    large: int
    price: float
    name: str
    grid: Array[int32, 2, 3]
    values: Array[float, ...]


@event
class Limits:
    low: float
    high: float
    lot: int


SIGNATURE = Signature(Format.of(Everything), Format.of(Result), Format.of(Limits))


def checked(source: str, signature: Signature = SIGNATURE) -> Program:
    return check(source, signature, file="f.py", spelling="python")


def body(*lines: str) -> str:
    return "def f(input, output, param):\n" + "".join(f"    {line}\n" for line in lines)


def problems(source: str) -> list[tuple[int, int, str]]:
    with pytest.raises(ECodeError) as caught:
        checked(source)
    return list(caught.value.problems)


def message(*lines: str) -> str:
    found = problems(body(*lines))
    assert len(found) == 1, found
    return found[0][2]


REFUSED = [
    ("x = [i for i in range(3)]", "list comprehensions are not part of the subset; use a `for` loop"),
    ("x = {i for i in range(3)}", "set comprehensions"),
    ("x = {i: 1 for i in range(3)}", "dictionary comprehensions"),
    ("x = max((i for i in range(3)), 1)", "generator expressions are not part of the subset; use a `for` loop"),
    ("x = sum(input.samples)", "`sum()` is not part of the subset; use a `for` loop"),
    ("x = {1: 2}", "dictionaries are not part of the subset"),
    ("x = {1, 2}", "sets are not part of the subset"),
    ("x = (1, 2)", "tuples are not part of the subset"),
    ("x = [1, 2]", "lists are not part of the subset; declare `x: Array[float64, 10]`"),
    ("x = [0.0] * 3", "lists are not part of the subset; declare an array"),
    ("x = lambda: 1", "`lambda` is not part of the subset"),
    ("x = f'{input.price}'", "f-strings are not part of the subset"),
    ("x = (y := 1)", "`:=` is not part of the subset; assign on a line of its own"),
    ("x = input.samples[1:2]", "slices are not part of the subset"),
    ("x = input.samples[-1]", "an index does not count from the end; write `a[len(a) - 1]` for the last one"),
    ("x = input.name in ('a', 'b')", "`in` is not part of the subset; compare with `==` and `or`"),
    ("x = input.name is None", "`is` is not part of the subset; use `==`"),
    ("x = input.name == None", "`None` is not part of the subset"),
    ("x = input.number @ 2", "`@` is not part of the subset"),
    ("x = 1j", "`1j` is not part of the subset"),
    ("x = ...", "`Ellipsis` is not part of the subset"),
    ("x = 1 << 64", "they can be shifted by 0 to 63"),
    ("x = 18446744073709551616", "this integer does not fit 64 bits"),
    ("x = 1e999", "does not fit `float64`"),
    ("x = 'a' + 'b'", "texts cannot be computed with `+`"),
    ("x = '%d' % input.number", "texts cannot be computed with `%`"),
    ("x = round(input.price)", "use `floor(x + 0.5)`"),
    ("x = math.round(input.price)", "use `floor(x + 0.5)`"),
    ("x = math.factorial(3)", "`math.factorial` cannot be called"),
    ("x = math.sqrt", "`math.sqrt` must be called"),
    ("x = math.inff", "`math.inff` is not part of the subset"),
    ("x = squrt(2.0)", "`squrt` cannot be called (did you mean `sqrt`?)"),
    ("x = os.system('ls')", "only functions can be called here, methods are not part of the subset"),
    ("x = input.name.upper()", "methods are not part of the subset"),
    ("x = open('f')", "`open` cannot be called"),
    ("x = eval('1')", "`eval` cannot be called"),
    ("x = sqrt(2.0, 3.0)", "`sqrt` takes 1 argument, got 2"),
    ("x = sqrt(x=2.0)", "`sqrt` takes no named arguments"),
    ("x = max(1)", "`max` takes two arguments or more"),
    ("x = max(*input.samples)", "`*` is not part of the subset"),
    ("x = int32()", "`int32` takes 1 argument, got 0"),
    ("x = resize(output.values, 3)", "`resize` has no value"),
    ("resize(output.values)", "`resize` takes an array of `output` and its length"),
    ("x = y = 1", "several targets are not part of the subset; assign one at a time"),
    ("x, y = 1, 2", "tuples are not part of the subset; assign one value at a time"),
    ("x, y = input.grid", "several targets are not part of the subset"),
    ("input = 1", "`input` cannot be assigned to, only fields of `output` and `context` can"),
    ("input.number = 1", "`input.number` cannot be assigned to"),
    ("param.low = 1.0", "`param.low` cannot be assigned to"),
    ("x = surrounding", "`surrounding` is not a variable of this function; what surrounds it is not sent along"),
    ("x += 1", "`x` is not a variable of this function"),
    ("input.number", "this expression has no effect"),
    ("sqrt(2.0)", "this expression has no effect"),
    ("print(1)", "`print()` is not part of the subset; assign to fields of `output`"),
    ("assert input.number", "`assert` is not part of the subset; use `if` and `return`"),
    ("raise ValueError", "`raise` is not part of the subset; use `return 0`"),
    ("del output.number", "`del` is not part of the subset"),
    ("global x", "`global` is not part of the subset; use `name: static[int64] = 0`"),
    ("nonlocal x", "`nonlocal` is not part of the subset"),
    ("import os", "`import` inside the function is not part of the subset"),
    ("from os import path", "`import` inside the function"),
    ("yield 1", "`yield` is not part of the subset"),
    ("await input.x", "`await` is not part of the subset"),
    ("def g(): pass", "functions inside the function are not part of the subset"),
    ("class C: pass", "classes are not part of the subset"),
    ("with input: pass", "`with` is not part of the subset"),
    ("x: bool = True", "`bool` is not the type of a variable; use `int`"),
    ("x: str = ''", "texts are fields, not variables"),
    ("x: in32 = 0", "`in32` is not a type of the subset (did you mean `int32`?)"),
    ("x: list[int] = 0", "this is not a type of the subset"),
    ("x: Array[float64]", "an array has elements and sizes"),
    ("x: Array[float64, input.n]", "the size of an array must be a constant integer"),
    ("x: Array[float64, 0]", "the size of an array must be positive, got 0"),
    ("x: Array[str, 3]", "elements of an array are numbers"),
    ("x: Array[float64, 3] = 0", "the values of an array are a list"),
    ("output.number: int32 = 3", "only variables can be annotated"),
    ("x: int32 = 1.5", "`x` is an integer, this is a float; write `int(...)` to cut it off, or make `x` a float"),
    ("x: static[int32] = input.number", "must begin with a constant"),
    ("output.number = input.price", "`output.number` is an integer, this is a float"),
    ("output.number += 0.5", "`output.number` is an integer, this is a float"),
    ("output.number /= 2", "`output.number` is an integer, this is a float"),
    ("output.name = 1", "is a text"),
    ("output.price = input.name", "a text cannot be assigned to it"),
    ("x = input.name", "a text is not a number"),
    ("x = input.price % 2", "`%` is for integers; for floats write `fmod(a, b)`"),
    ("x = input.price & 1", "needs integers"),
    ("x = input.pricee", "did you mean `price`?"),
    ("x = input.number // 0", "an integer is divided by zero"),
    ("for i in input.samples: pass", "write `for i in range(...)` and index with `i`"),
    ("for i, j in range(3): pass", "a `for` loop has one counter"),
    ("for i in range(): pass", "`range` takes 1 to 3 arguments, got 0"),
    ("for i in range(1, 2, 0): pass", "the step of `range` must not be 0"),
    ("for i in range(1, 2, input.n): pass", "the step of `range` must be a constant integer"),
    ("for i in range(input.price): pass", "a bound of `range` must be an integer; write `int(x)`"),
    ("for i in range(input.price + 1): pass", "a bound of `range` must be an integer; write `int(x)`"),
    ("break", "not inside of a loop"),
    ("x = ü", "`ü` is not a variable of this function"),
    ("ü = 1", "use ASCII letters"),
    ("return 'a'", "a text is neither true nor false"),
    ("if input.name: pass", "a text is neither true nor false"),
]


@pytest.mark.parametrize(("line", "expected"), REFUSED)
def test_what_is_not_part_of_the_subset_is_refused_by_its_name(line: str, expected: str) -> None:
    assert expected in message(line)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["for i in range(3):", "    i = 5"], "`i` counts a loop and cannot be assigned to inside of it"),
        (["for i in range(3):", "    i += 5"], "`i` counts a loop"),
        (["for i in range(3):", "    for i in range(2): pass"], "`i` counts a loop"),
        (["i = 0", "for i in range(3): pass"], "`i` is a variable already"),
        (["for i in range(3): pass", "return i"], "`i` may have no value here"),
        (["for i in range(3): pass", "else: pass"], "`else` of a loop is not part of the subset"),
        (["while input.n: pass", "else: pass"], "`else` of a loop is not part of the subset"),
        (["try: pass", "except ValueError: pass"], "`try` is not part of the subset"),
        (["match input.n:", "    case 1: pass"], "`match` is not part of the subset; use `if` and `elif`"),
        (["if input.n: x = 1", "return x"], "`x` may have no value here; give it one before"),
        (["while input.n:", "    x = 1", "return x"], "`x` may have no value here"),
        (["if input.n: y = x; x = 1", "else: x = 2", "return x"], "`x` may have no value here"),
        (["if input.n: x = 1", "else: x = 2.5", "return x"], "`x` is an integer, this is a float"),
        (["total = 0", "total += input.price"], "`total` is an integer, this is a float"),
        (["total = 0", "total = input.price"], "`total` is an integer, this is a float"),
        (["n = 4", "n /= 2"], "`n` is an integer, this is a float"),
        (
            ["if input.n:", "    y = input.n", "    x = y", "else:", "    z = 1", "    x = z", "return x"],
            "the type of `x` is not known before this `if`; declare it there, as in `x: float64`",
        ),
        (["if input.n: x: int32 = 1", "else: x: int16 = 2", "return x"], "`x` has another type in the other branch"),
        (["x = 1", "x: int32 = 2"], "`x` has a type already"),
        (["xs: Array[int32, 3]", "xs = 5"], "`xs` is an array; assign its elements"),
        (["xs: Array[int32, 3]", "return xs"], "name one of its elements"),
        (["xs: Array[int32, 2] = [1, 2, 3]"], "has 2 elements here, 3 are given"),
        (["if input.n:", "    c: static[int32] = 0"], "declare the static `c` at the top of the function"),
    ],
)
def test_variables_and_loops_keep_rules_that_python_finds_out_at_run_time(lines: list[str], expected: str) -> None:
    assert expected in message(*lines)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", "there is no function; expected one function, such as `def f(input): ...`"),
        ("import math\n", "there is no function"),
        ("input.price > 3", "expected one function"),
        ("def f(input): return 1\ndef g(input): return 1", "this is a second function"),
        ("async def f(input): return 1", "`async def` is not part of the subset; write a plain `def`"),
        ("@cached\ndef f(input): return 1", "decorators are not part of the subset"),
        ("def f(event): return 1", "the parameters are called `input`, `output`, `param` and `context`, not `event`"),
        ("def f(self, input): return 1", "not `self`"),
        ("def f(): return 1", "the parameters are `input`, and then perhaps `output`, `param` and `context`"),
        ("def f(output, input): return 1", "the parameters are `input`, and then"),
        ("def f(input, input): return 1", "the parameters are `input`, and then"),
        ("def f(input=3): return 1", "without `*` or `=`"),
        ("def f(*input): return 1", "without `*` or `=`"),
        ("def f(input, *, param): return 1", "without `*` or `=`"),
        ("def f(input, /): return 1", "without `*` or `=`"),
        (
            "def f(input): return output.price",
            "`output` is not a parameter of the function; write `def f(input, output)`",
        ),
        ("def f(input): return param.low", "write `def f(input, param)`"),
        ("def f(input) return 1", "this is not Python: expected ':'"),
        ("def f(input):\nreturn 1", "this is not Python: expected an indented block"),
        ("def f(input):\n    return 1\r    return 0", "the code contains a carriage return without a line feed"),
        ("def f(input):\n    return '\0'", "the code contains a NUL"),
        ("def f(input):\n    return '\ud800'", "cannot be written in UTF-8"),
        ("def f(input):\n    return input.name == '\\ud800'", "this text cannot be written in UTF-8"),
        ("#" * 70000, "the code has 70000 bytes, limit is 65536"),
    ],
)
def test_what_is_not_one_function_of_the_right_shape_is_refused(source: str, expected: str) -> None:
    found = problems(source)
    assert expected in found[0][2]
    assert len(found) == 1


def test_problems_are_shown_with_line_and_caret_and_several_at_once() -> None:
    with pytest.raises(ECodeError) as caught:
        checked(
            "# für alle\ndef f(input):\n    größe = 1\n    x = 'äöü' == input.name\n    return x + input.pric * y\n"
        )
    assert str(caught.value) == (
        "f.py:3:5: `größe` is not a name of a variable; use ASCII letters, digits and `_`\n"
        "        größe = 1\n"
        "        ^\n"
        "f.py:5:29: `y` is not a variable of this function; what surrounds it is not sent along\n"
        "        return x + input.pric * y\n"
        "                                ^"
    )


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [
        ("x = 'ä' == input.name and input.pric", 37, "has no field"),
        ("x = (input.price)  %  (2)", 24, "`%` is for integers"),
        ("x = input.grid [0][-1]", 24, "an index does not count from the end"),
        ("x = input.number + input.name", 22, "`+` takes numbers"),
        ("output.number = 2.5 * input.price", 25, "is an integer, this is a float"),
    ],
)
def test_columns_count_characters_and_point_at_operators(line: str, column: int, expected: str) -> None:
    ((found_line, found_column, text),) = problems(body(line))
    assert (found_line, found_column) == (2, column)
    assert expected in text


def test_at_most_twenty_problems_are_reported() -> None:
    assert len(problems(body(*(f"x{number} = unknown{number}" for number in range(50))))) == 20


def test_a_variable_whose_value_is_wrong_is_not_reported_at_each_use() -> None:
    assert len(problems(body("x = [1 for i in y]", "z = x + 1", "return z + x"))) == 1
    assert len(problems(body("x = input.pricee", "z = x + 1", "return z + x"))) == 1


def test_a_mistake_inside_of_an_operand_with_a_name_leaves_the_names_around_it_alone() -> None:
    lines = ["for i in range(3):", "    x = max(input.n + 1, input.nothing)", "i = 5", "return i"]
    assert "no field `nothing`" in message(*lines)


DEEP = [
    "x = " + "(" * 300 + "1" + ")" * 300,
    "x = " + "-" * 60000 + "1",
    "x = " + "not " * 150 + "1",
    "x = " + "1 + (" * 120 + "1" + ")" * 120,
    "x = " + "input.n + " * 5000 + "1",
    "x = " + "input.n ** " * 5000 + "1",
    "x = " + "1 if input.n else " * 500 + "1",
    "x = input" + ".a" * 20000,
    "x = input.grid" + "[0]" * 20000,
    "x = input.n" + " < input.n" * 5000,
    "x = input.n" + " < (input.n + 1)" * 1000,
    "x = max(" * 150 + "1, 2" + ")" * 150,
    "x = max(" + "input.n + 1, " * 3000 + "2)",
    "x = " + "input.n // " * 5000 + "2",
    "x = " + "(input.n + 1) // (" * 90 + "2" + ")" * 90,
    "x = " + "abs(" * 95 + "input.n" + ")" * 95,
    "x = " + "lambda: " * 5000 + "1",
    "x = 0x" + "f" * 60000,
    "x = " + "9" * 60000,
    "x: Array[int32" + ", 1" * 10000 + "]",
    "x: Array[int32, 3] = " + "[" * 150 + "]" * 150,
    "x = 'a" + "\\x00" * 10000 + "'",
]


@pytest.mark.parametrize("line", DEEP)
def test_deep_and_large_code_is_refused_and_not_followed(line: str) -> None:
    outcome: list[BaseException | None] = []

    def compile_in_thread() -> None:
        try:
            checked(body(line))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is looked at below
            outcome.append(error)

    thread = threading.Thread(target=compile_in_thread)
    thread.start()
    thread.join(20)
    assert [type(error) for error in outcome] == [ECodeError]


def test_chains_of_blocks_are_refused_when_too_deep() -> None:
    for count in (150, 800, 1500):
        chain = "".join(f"    elif input.n == {number}:\n        x = 1\n" for number in range(count))
        assert "nested deeper than 100" in problems("def f(input):\n    if input.n:\n        pass\n" + chain)[0][2]
    nested = "".join("    " * (level + 1) + "while input.n:\n" for level in range(98)) + "    " * 99 + "pass\n"
    assert "nested" in problems("def f(input):\n" + nested)[0][2]


@pytest.mark.parametrize(
    ("lines", "bounded"),
    [
        (["for i in range(37):", "    for j in range(253): output.large += 1"], True),
        (["for i in range(37):", "    for j in range(36 - i): output.large += j"], True),
        (["for i in range(input.byte): output.large += 1"], True),
        (["for i in range(10, 0, -3): output.large += i"], True),
        (["n = 3", "for i in range(n): output.large += 1"], False),
        (["for i in range(len(input.samples)): output.large += 1"], False),
        (["while input.n: pass"], False),
    ],
)
def test_loops_that_count_to_what_is_known_need_no_fuel(lines: list[str], bounded: bool) -> None:
    assert analyse(checked(body(*lines))).bounded is bounded


WORDS = """
    return if else elif for i in range while break continue pass def f lambda yield await async try import
    = += //= == < > + - * / // % ** & ~ << . , [ ] ( ) { } : ; @ -> := ... $ ? ! None True not and or
    0 1 2.5 1e9 'a' b'b' x y z int32 static Array math sqrt len max abs input output param ü
    input.n input.samples[i] input.tags[0] output.number output.name param.low
"""
BLANKS = ("\n", "\n    ", "\n        ", "\n            ", "\0", "\r", "\ud800", "\N{LATIN SMALL LIGATURE FI}")
PIECES = (*WORDS.split(), *BLANKS)


@given(st.lists(st.sampled_from(PIECES), max_size=40))
def test_scrambled_code_raises_nothing_but_its_own_error(pieces: list[str]) -> None:
    with contextlib.suppress(ECodeError):
        checked("def f(input, output, param):\n    " + " ".join(pieces))


@given(st.text(max_size=200))
def test_any_text_raises_nothing_but_its_own_error(text: str) -> None:
    with pytest.raises(ECodeError):
        parse_python(SourceText(text))


MODULE = """
import functools

def some_filter(input, param) -> bool:
    '''Select trades.'''
    return input.price > param.low  # a comment

def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper

def surrounding():
    @decorated
    @functools.lru_cache(maxsize=3)
    def inner(input) -> bool:
        if input.n:
    # a comment that is not indented
            return True

        return False
    return inner
"""


@pytest.fixture
def module(tmp_path: Path) -> Any:
    path = tmp_path / "filters.py"
    path.write_text(MODULE)
    spec = importlib.util.spec_from_file_location("filters", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_source_of_a_function_is_its_text(module: Any) -> None:
    text = source_of(module.some_filter)
    assert text == (
        "def some_filter(input, param) -> bool:\n"
        "    '''Select trades.'''\n"
        "    return input.price > param.low  # a comment\n"
    )
    assert checked(text).spelling == "python"


def test_the_source_of_an_inner_function_has_neither_margin_nor_decorators(module: Any) -> None:
    assert source_of(module.surrounding()) == (
        "def inner(input) -> bool:\n"
        "    if input.n:\n"
        "# a comment that is not indented\n"
        "        return True\n"
        "\n"
        "    return False\n"
    )


def test_what_has_no_source_is_refused(module: Any) -> None:
    namespace: dict[str, Any] = {}
    exec("def f(input): return 1", namespace)
    with pytest.raises(ECodeError, match="the text of `f` cannot be found"):
        source_of(namespace["f"])
    with pytest.raises(ECodeError, match="`lambda` cannot be told from what surrounds it; write a `def`"):
        source_of(lambda event: event)
    for other in (len, 5, Everything, functools.partial(module.some_filter, 1)):
        with pytest.raises(ECodeError, match="expected a function that was written with `def`"):
            source_of(other)  # type: ignore[arg-type]
