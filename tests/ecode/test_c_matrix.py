"""C's arithmetic, as the C compiler of this machine has it: every operator between every two types.

For each pair of types there is one function, with the same statements in C and in E-Code, over values at the borders of
both types. Each result is stored as an `int64` and as a `double`, which together show its value and its type. Where C
leaves a result undefined and E-Code defines it, the C side spells out E-Code's rule: shift amounts are masked, the
smallest integer divided by -1 wraps, a floating number that an integer cannot hold becomes the nearest that it can.
"""

import ctypes
import itertools
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy
import pytest

from echoic.ecode.numbers import FLOAT32, FLOAT64, INT32, INT64, NUMBERS, UINT32, UINT64, Number, promote, usual
from echoic.ecode.program import Signature
from echoic.formats import NATIVE, Field, Format, Kind
from tests.ecode.compilers import BACK_ENDS, c_compiler, run_all

SPELLED = {
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint8": "unsigned char",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long",
    "float32": "float",
    "float64": "double",
}
FLAGS = ("-O1", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-w")
SMALL = (0, 1, 2, 3, 7, 100)
FLOATS = (
    0.0,
    -0.0,
    0.5,
    -1.0,
    2.5,
    3e9,
    -3e9,
    1e19,
    -1e19,
    1e38,
    float("inf"),
    float("-inf"),
    float("nan"),
    127.9,
    -128.9,
)
ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>")
COMPARISONS = ("==", "!=", "<", ">", "<=", ">=")
SATURATING = """
static {spelled} to_{name}(double value) {{
    if (value != value) return 0;
    if (value <= (double){low}) return {low};
    if (value >= (double){high}) return {high};
    return ({spelled})value;
}}
"""
LITERALS = (
    "2147483647 + 1u > 0",
    "2147483648 - 1",
    "-2147483648 < 0",
    "0xffffffff + 1",
    "0x7fffffff + 0x1L",
    "4294967295 == -1",
    "0xffffffff == -1",
    "-1 < 0u",
    "-1L < 0u",
    "-1 < 0ul",
    "1 ? -1 : 0u",
    "0 ? 0u : -1L",
    "18446744073709551615u",
    "0xffffffffffffffff",
    "01777",
    "'a' + 1",
    "'\\xff' < 0",
    "'\\377'",
    "'\\n'",
    "~0u >> 1",
    "~0 >> 1",
    "-7 / 2",
    "-7 % 2",
    "7 / -2",
    "7 % -2",
    "10 / 3 * 2.0",
    "10 / 4.0f",
    "1e10f",
    "0.1f == 0.1",
    "0.1f + 0.2f",
    "0.1 + 0.2",
    "16777217 * 1.0f",
    "3 - 2 - 1",
    "2 + 3 * 4 % 5 - 6 / 2",
    "1 << 2 + 3",
    "5 & 3 == 3",
    "1 | 6 ^ 3 & 2",
    "!0 + !5 * 2",
    "-1 >> 1",
    "~5 + 1",
    "1 ? 2 : 0 ? 3 : 4",
    "(1, 2, 3)",
    "1 < 2 < 3",
    "3 > 2 > 1",
    "0 || 1 && 0",
    "- -3",
    "+-+3",
    "(char) 200",
    "(unsigned char) -1",
    "(short) 70000 * 2",
    "(long) 2147483647 * 2",
    "(int) 2147483647L + 0L",
    "(float) 1 / 3",
    "(double) 1 / 3",
    ".5 + 1. + 1e-1",
)


@dataclass(frozen=True)
class Result:
    """One expression in both languages, with the statements that come before it."""

    ecode: str
    c: str
    floating: bool
    """Whether it is stored as a `double` only: its type is floating, or it must not be evaluated twice."""
    before_ecode: str = ""
    before_c: str = ""


def matrix() -> Iterator[tuple[str, Number, Number, list[Result]]]:
    """Yield a name, the types of `input.a` and `input.b` and what is computed, for each function."""
    for left, right in itertools.product(NUMBERS.values(), repeat=2):
        yield f"{left.name}_{right.name}", left, right, list(pair_results(left, right))


def pair_results(left: Number, right: Number) -> Iterator[Result]:
    both = usual(left, right)
    for operator in ARITHMETIC:
        found = arithmetic(operator, left, right)
        if found is not None:
            yield found
            yield assigned(operator, left, right, found)
    for operator in COMPARISONS:
        text = f"input.a {operator} input.b"
        yield Result(text, text, floating=False)
    for text in ("input.a && input.b", "input.a || input.b", "!input.b"):
        yield Result(text, text, floating=False)
    yield Result("(input.a ? input.a : input.b)", "(input.a ? input.a : input.b)", both.floating)
    yield Result("(input.b, input.a)", "(input.b, input.a)", left.floating)
    yield converted("input.a", left, right)
    yield assigned_plainly(left, right)
    if left is right:
        yield from unary_results(left)


def arithmetic(operator: str, left: Number, right: Number) -> Result | None:
    both = usual(left, right)
    text = f"input.a {operator} input.b"
    if operator in ("+", "-", "*") or (operator == "/" and both.floating):
        return Result(text, text, both.floating)
    if left.floating or right.floating:
        return None
    if operator in ("<<", ">>"):
        return Result(text, f"input.a {operator} (input.b & {promote(left).bits - 1})", floating=False)
    if operator in ("/", "%"):
        ecode = f"(input.b ? {text} : 0)"
        wrapped = "-(input.a + input.b * 0)" if operator == "/" else "0"
        c = f"(input.b == -1 ? {wrapped} : {text})" if both.signed and right.signed else text
        return Result(ecode, f"(input.b ? {c} : 0)", floating=False)
    return Result(text, text, floating=False)


def assigned(operator: str, left: Number, right: Number, found: Result) -> Result:
    """Return `a op= b` for an `a` of the left type."""
    place = f"v{operator_name(operator)}"
    guard = "if (input.b) " if operator in ("/", "%") and not usual(left, right).floating else ""
    computed = promote(left) if operator in ("<<", ">>") else usual(left, right)
    value = found.c.replace("(input.b ? ", "(", 1).removesuffix(" : 0)") + ")" if guard else found.c
    value = f"to_{left.name}({value})" if computed.floating and not left.floating else value
    declared = f"{SPELLED[left.name]} {place} = input.a;"
    return Result(
        place,
        place,
        left.floating,
        f"{declared} {guard}{place} {operator}= input.b;",
        f"{declared} {guard}{place} = {value};",
    )


def assigned_plainly(left: Number, right: Number) -> Result:
    """Return what is stored when a value of the left type is assigned to a variable of the right type."""
    c = f"to_{right.name}(input.a)" if left.floating and not right.floating else "input.a"
    declared = f"{SPELLED[right.name]} assigned;"
    return Result(
        "assigned", "assigned", right.floating, f"{declared} assigned = input.a;", f"{declared} assigned = {c};"
    )


def converted(text: str, source: Number, target: Number) -> Result:
    cast = f"({SPELLED[target.name]}) {text}"
    c = f"to_{target.name}({text})" if source.floating and not target.floating else cast
    return Result(cast, c, target.floating)


def unary_results(number: Number) -> Iterator[Result]:
    for text in ("-input.a", "+input.a", "!input.a", *(() if number.floating else ("~input.a",))):
        yield Result(text, text, number.floating and "!" not in text)
    for name, text in (("before", "++w"), ("after", "w++"), ("less", "--w"), ("least", "w--")):
        place = f"w{name}"
        text = text.replace("w", place)
        declared = f"{SPELLED[number.name]} {place} = input.a;"
        yield Result(text, text, True, declared, declared)
        yield Result(place, place, number.floating)


def operator_name(operator: str) -> str:
    names = ("add", "subtract", "multiply", "divide", "modulo", "and", "or", "xor", "left", "right")
    return names[ARITHMETIC.index(operator)]


def ecode_source(results: list[Result]) -> str:
    return "{\n" + "\n".join(statements(results, "ecode")) + "\nreturn 1;\n}"


def c_source(name: str, left: str, right: str, results: list[Result]) -> str:
    fields = "".join(f"double d{number}; long i{number}; " for number in range(len(results)))
    body = "\n".join(statements(results, "c"))
    return f"""
struct input_{name} {{ {left} a; {right} b; }};
struct output_{name} {{ {fields} }};
void run_{name}(struct input_{name} *inputs, struct output_{name} *outputs, long count) {{
    for (long number = 0; number < count; number++) {{
        struct input_{name} input = inputs[number];
        struct output_{name} output = {{0}};
        {body}
        outputs[number] = output;
    }}
}}
"""


def statements(results: list[Result], language: str) -> Iterator[str]:
    for number, result in enumerate(results):
        before = result.before_ecode if language == "ecode" else result.before_c
        yield f"{before} output.d{number} = {getattr(result, language)};"
        if not result.floating:
            yield f"output.i{number} = {getattr(result, language)};"


def output_format(count: int) -> Format:
    fields = [
        field
        for number in range(count)
        for field in (Field(f"d{number}", Kind.FLOAT, 8), Field(f"i{number}", Kind.INT, 8))
    ]
    return Format.place("Output", fields, NATIVE)


def input_format(left: Number, right: Number) -> Format:
    return Format.place("Input", [field_of("a", left), field_of("b", right)], NATIVE)


def field_of(name: str, number: Number) -> Field:
    kind = Kind.FLOAT if number.floating else Kind.INT if number.signed else Kind.UINT
    return Field(name, kind, number.size)


def values_of(number: Number) -> list[float]:
    if number.floating:
        return list(FLOATS)
    borders = (
        number.smallest,
        number.smallest + 1,
        -1,
        -2,
        number.largest - 1,
        number.largest,
        number.largest // 2 + 1,
    )
    return sorted({*SMALL, *(border for border in borders if number.smallest <= border <= number.largest)})


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """All functions of the matrix, compiled by the C compiler."""
    preamble = "".join(
        SATURATING.format(
            spelled=SPELLED[name], name=name, low=limit(number, number.smallest), high=limit(number, number.largest)
        )
        for name, number in NUMBERS.items()
        if not number.floating
    )
    functions = [
        c_source(name, SPELLED[left.name], SPELLED[right.name], results) for name, left, right, results in matrix()
    ]
    folder = tmp_path_factory.mktemp("matrix")
    return build(folder, preamble + "".join(functions) + c_source("literals", "int", "int", literal_results()))


def limit(number: Number, value: int) -> str:
    if value < 0:
        return f"({SPELLED[number.name]})(-{-(value + 1)}L - 1)"
    return f"({SPELLED[number.name]}){value}{'' if number.signed else 'u'}L"


def literal_results() -> list[Result]:
    found = []
    for text in LITERALS:
        floating = any(mark in text.replace("0x", "") for mark in (".", "e1", "float", "double"))
        found.append(Result(f"({text})", f"({text})", floating))
    return found


def build(folder: Path, source: str) -> ctypes.CDLL:
    path = folder / "matrix.c"
    path.write_text(source)
    made = folder / "matrix.so"
    subprocess.run([c_compiler(), *FLAGS, "-o", str(made), str(path)], check=True, timeout=120)
    return ctypes.CDLL(str(made))


def expected(library: ctypes.CDLL, name: str, inputs: numpy.ndarray, output: Format) -> numpy.ndarray:
    outputs = numpy.zeros(len(inputs), output.dtype)
    function = getattr(library, f"run_{name}")
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
    function.restype = None
    function(inputs.ctypes.data, outputs.ctypes.data, len(inputs))
    return outputs


def compare(results: list[Result], inputs: numpy.ndarray, wanted: numpy.ndarray, found: numpy.ndarray) -> None:
    for field in wanted.dtype.names:
        left, right = wanted[field], found[field]
        same = left.view("i8") == right.view("i8")
        if left.dtype.kind == "f":
            same |= numpy.isnan(left) & numpy.isnan(right)
        if not same.all():
            first = int(numpy.argmin(same))
            result = results[int(field[1:])]
            raise AssertionError(
                f"{result.before_ecode} {result.ecode} with {inputs[first]} is {right[first]} as {field}, "
                f"C says {left[first]}"
            )


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_every_operator_between_every_two_types_does_what_c_does(library: ctypes.CDLL, back_end: str) -> None:
    checked = 0
    for name, left, right, results in matrix():
        given, output = input_format(left, right), output_format(len(results))
        pairs = list(itertools.product(values_of(left), values_of(right)))
        inputs = numpy.zeros(len(pairs), given.dtype)
        inputs["a"], inputs["b"] = zip(*pairs, strict=True)
        wanted = expected(library, name, inputs, output)
        found = run_all(back_end, ecode_source(results), Signature(given, output), inputs)
        compare(results, inputs, wanted, found)
        checked += len(results) * len(pairs)
    assert checked > 200_000


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_literals_and_precedence_are_those_of_c(library: ctypes.CDLL, back_end: str) -> None:
    results = literal_results()
    given, output = input_format(INT32, INT32), output_format(len(results))
    inputs = numpy.zeros(1, given.dtype)
    wanted = expected(library, "literals", inputs, output)
    found = run_all(back_end, ecode_source(results), Signature(given, output), inputs)
    compare(results, inputs, wanted, found)


def test_the_types_of_the_matrix_are_all_there_are() -> None:
    assert {FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64} <= set(NUMBERS.values())
    assert set(SPELLED) == set(NUMBERS)
