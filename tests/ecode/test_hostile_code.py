"""Texts that were written to harm: whatever comes in, what comes out is a program or an ECodeError, and soon."""

import inspect
import random
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.ecode import Program, Signature, check
from echoic.ecode.syntax.text import PROBLEMS_MAX
from echoic.errors import ECodeError
from tests.ecode.spelled import FILTER, TRANSFORM

SECONDS_MAX = 2.0
REPORT_BYTES_MAX = 50_000


def attempt(source: str, signature: Signature = TRANSFORM) -> Program | ECodeError:
    """Check a program in bounded time with a bounded report."""
    started = time.process_time()  # of a processor: what else the machine does is not the program's doing
    found: Program | ECodeError
    try:
        found = check(source, signature)
    except ECodeError as error:
        found = error
    assert time.process_time() - started < SECONDS_MAX
    if isinstance(found, ECodeError):
        assert 1 <= len(found.problems) <= PROBLEMS_MAX
        assert len(set(found.problems)) == len(found.problems)
        assert all(line >= 1 and column >= 1 for line, column, _ in found.problems)
        assert len(str(found).encode()) < REPORT_BYTES_MAX
    return found


NESTED = {
    "round brackets": ("(", "1", ")"),
    "square brackets": ("input.grid[0][", "0", "]"),
    "indexes of variables": ("a[", "0", "]"),
    "blocks": ("{", "return 1;", "}"),
    "conditions": ("if (1) ", "return 1;", ""),
    "alternatives": ("if (input.n) return 1; else ", "return 1;", ""),
    "loops": ("while (1) ", "return 1;", ""),
    "for loops": ("for (;;) {", "return 1;", "}"),
    "do loops": ("do ", "return 1;", " while (1);"),
    "choices": ("input.n ? ", "1", " : 2"),
    "choices to the right": ("input.n ? 1 : ", "1", ""),
    "negations": ("- ", "1", ""),
    "inversions": ("!", "1", ""),
    "casts": ("(int) ", "1", ""),
    "calls": ("sqrt(", "1", ")"),
    "assignments": ("output.mean = ", "1", ""),
    "steps": ("++", "output.n", ""),
    "additions": ("1 + ", "input.n", ""),
    "additions in brackets": ("(input.n + ", "1", ")"),
    "every level of operators": ("0 || 1 && 1 | 1 ^ 1 & 1 == 1 < 1 << 1 + 1 * (", "input.n", ")"),
    "alternatives of a filter": ("input.n == 1 || ", "1", ""),
    "commas": ("1, ", "1", ""),
    "braces": ("int a[] = {", "1", "};"),
    "inner braces": ("{", "1", "}"),
    "members": ("input.leg.", "price", ""),
    "comparisons": ("1 < ", "input.n", ""),
    "text bytes": ("input.symbol[", "0", "]"),
}


@pytest.mark.parametrize("name", NESTED)
@pytest.mark.parametrize("levels", [30, 97, 98, 99, 100, 101, 6000])
def test_deep_nesting_never_exhausts_the_stack(name: str, levels: int) -> None:
    opening, middle, closing = NESTED[name]
    nested = opening * levels + middle + closing * levels
    for source in (nested, f"{{ int a[9]; return {nested}; }}", f"int a[4]; {nested}; return 1;"):
        attempt(source)


@pytest.mark.parametrize("name", NESTED)
def test_unclosed_nesting_never_exhausts_the_stack(name: str) -> None:
    opening, middle, closing = NESTED[name]
    for levels in (50, 5000):
        attempt(opening * levels)
        attempt(opening * levels + middle)
        attempt(middle + (closing or ")") * levels)


def test_what_can_be_nested_can_be_checked_with_little_stack_left() -> None:
    def deeper(levels: int) -> Program | ECodeError:
        return deeper(levels - 1) if levels else attempt("int a[9]; return " + "a[" * 95 + "0" + "]" * 95 + ";")

    used = len(inspect.stack(0))
    assert isinstance(deeper(sys.getrecursionlimit() - used - 620), Program)


@pytest.mark.parametrize(
    "source",
    [
        *["/*", "//", "/", "*/", '"', "'", "\\", "#", '"\\', "'\\", '"\\"', "/* \n" * 1000, '"' * 1001, "'" * 1001],
        *["\0", "\0" * 60000, "\x1a", "\ufeff return 1;", "\u2028", "\r\n" * 1000, "\ud800", "a\udfff"],
        *[";" * 19999, "}" * 20000, "{" * 20000, "(" * 20000, ")" * 20000, "else " * 9000, ", " * 9000, "." * 60000],
        *["a" * 65536, "1" * 65536, "0x" + "f" * 65000, "1." + "0" * 65000, "1e" + "9" * 65000, "." + "9" * 65000],
        *[
            "a " * 19999,
            "a." * 9999,
            "a[" * 9999,
            "a(" * 9999,
            "1+" * 9999,
            "x;" * 9999,
            "int a;" * 6000,
            "a,a;" * 4999,
        ],
        *["-" * 65000, "+" * 65000, "<" * 65000, "&" * 65000, '""' * 19999, "''" * 19999, "'a'" * 15000],
        *["int a[" + "9" * 5000 + "];", "int a[1]" + "[1]" * 6000 + ";", "int a[60000][60000];", "int a[-1];"],
        *["if(1)" * 4999, "for(;;)" * 3333, "do " * 19999, "while" * 13000, "return " * 9000, "case 1:" * 6000],
        "input." + "x" * 60000 + " == 1",
        "input." + ".".join(["leg"] * 9000),
        "".join(f"x{number};" for number in range(9000)),
        "int " + ",".join(f"x{number}" for number in range(9000)) + ";return 1;",
        "return " + "||".join(f"input.n=={number}" for number in range(2500)) + ";",
        "return " + "||".join(f"input.n=={number}" for number in range(330)) + ";",
        "static char a[65536] = {" + "1," * 9000 + "}; return 1;",
        "char a[256][256] = {" + "{1}," * 256 + "}; return 1;",
        "return " + 'strlen("' + "a" * 60000 + '");',
        'output.name = "' + "\\x" + "4" * 60000 + '"; return 1;',
    ],
    ids=lambda source: f"{source[:8]!r}-{len(source)}",
)
def test_junk_is_refused_in_time(source: str) -> None:
    attempt(source)
    attempt(source, FILTER)


def test_names_that_are_nearly_right_cost_no_more_than_others() -> None:
    declared = "".join(f"int variable_number_{number};" for number in range(150))
    attempt(declared + "".join(f"variable_numbre_{number};" for number in range(3000)))


WORDS = (
    "{ } ( ) [ ] ; , . ? : = == != < > <= >= + - * / % & | ^ ~ ! && || ++ -- += <<= -> int double char static const "
    "unsigned long if else for while do return break continue goto switch sizeof struct void string bool input "
    "output param n grid legs leg price symbol code samples cells name mean flag flags values points strlen length "
    'resize sqrt pow isnan 0 1 2 3 1.5 0x1F \'a\' "IBM" "" x y i a /* */ // \n'
)


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(WORDS.split(" ")), max_size=60))
def test_any_words_make_a_program_or_an_error(words: list[str]) -> None:
    attempt(" ".join(words))


@settings(max_examples=400, deadline=None)
@given(st.text(max_size=200))
def test_any_text_makes_a_program_or_an_error(source: str) -> None:
    attempt(source)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_make_a_program_or_an_error(data: bytes) -> None:
    attempt(data.decode("latin-1"))
    attempt(data.decode("utf-8", "surrogateescape"))


VALID = """
int i, total = 0; double sum = 0.0, window[4] = {1, 2.5}; static int seen; const int n = 4;
for (i = 0; i < n; i++) { sum += input.grid[i][i] * window[i & 3]; if (sum > 1e9) break; else continue; }
while (total < length(input.samples)) { sum = sum + input.samples[total]; total++; }
do { seen = seen + 1; } while (seen % 7 != 0 && seen < 100);
output.mean = total ? sum / total : 0.0; output.name = input.symbol; output.flag |= input.legs[i % 3].count > 2;
if (input.symbol == "IBM" || strlen(input.code) < 3) { output.n = 2; output.samples[i & 1] = (float) sqrt(sum); }
resize(output.values, 3); output.values[2] = param.high; return (sum > param.low) != (input.code[2] == 'x');
"""


def test_the_program_that_is_damaged_below_is_right() -> None:
    assert isinstance(attempt(VALID), Program)


@settings(max_examples=600, deadline=None)
@given(st.integers(0, 2**32))
def test_a_damaged_program_is_a_program_or_an_error(seed: int) -> None:
    chance = random.Random(seed)
    source = list(VALID)
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(source) + 1)
        end = start + chance.randint(0, 4)
        match chance.randrange(4):
            case 0:
                del source[start:end]
            case 1:
                source[start:start] = source[end : end + chance.randint(1, 30)]
            case 2:
                source[start:end] = chance.choice("(){}[];,.\"'=+-*/&|<>!?:0123456789azAZ_\n\t é\0")
            case _:
                del source[end:]
                source.append(" ")
    attempt("".join(source))
