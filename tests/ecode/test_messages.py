"""What people read who made a mistake: to the letter, with the line and the caret."""

import pytest

from echoic.ecode import Signature, check
from echoic.ecode.syntax.text import PROBLEMS_MAX, Problem, Problems, SourceText, mistake, quoted
from echoic.errors import ECodeError
from tests.ecode.spelled import FILTER, TRANSFORM, problems

FIGURE_4 = """{
    if ((input.trade_pricee < 75.5) || (input.trade_price > 78.5)) {
        return 1; /* submit event into derived channel */
    }
    return 0 /* do not submit event into derived channel */
}
"""


def text_of(source: str, signature: Signature = TRANSFORM, file: str = "<ecode>") -> str:
    with pytest.raises(ECodeError) as caught:
        check(source, signature, file=file)
    return str(caught.value)


def test_a_missing_semicolon_is_shown_where_it_belongs() -> None:
    assert text_of(FIGURE_4, FILTER, "range.ec") == (
        "range.ec:5:13: expected `;` after the value of `return`, got `}`\n"
        "        return 0 /* do not submit event into derived channel */\n"
        "                ^"
    )


def test_a_misspelled_field_is_shown_with_the_one_that_was_meant() -> None:
    assert text_of(FIGURE_4.replace("return 0", "return 0;"), FILTER, "range.ec") == (
        "range.ec:2:16: record `Trade` has no field `trade_pricee` (did you mean `trade_price`?)\n"
        "        if ((input.trade_pricee < 75.5) || (input.trade_price > 78.5)) {\n"
        "                   ^"
    )


def test_several_problems_are_shown_in_the_order_of_the_text() -> None:
    assert text_of("int i = valume;\nreturn i / 0;\n") == (
        "<ecode>:1:9: there is no variable `valume`\n"
        "    int i = valume;\n"
        "            ^\n"
        "<ecode>:2:10: an integer is divided by zero\n"
        "    return i / 0;\n"
        "             ^"
    )


def test_an_error_has_its_problems_for_programs_too() -> None:
    with pytest.raises(ECodeError) as caught:
        check("return x;\n", FILTER)
    assert caught.value.problems == ((1, 8, "there is no variable `x`"),)


def test_tabs_stay_tabs_so_that_the_caret_stands_right() -> None:
    assert text_of("\tif (1)\n\t\treturn\tx;\n\treturn 1;") == (
        "<ecode>:2:10: there is no variable `x`\n    \t\treturn\tx;\n    \t\t      \t^"
    )


def test_of_a_long_line_only_the_surroundings_are_shown() -> None:
    shown = text_of("return " + " " * 5000 + "x" + " + 1" * 50 + ";").splitlines()
    assert shown[0] == "<ecode>:1:5008: there is no variable `x`"
    assert len(shown[1]) <= 4 + 100 + 1 + 60
    assert shown[1][len(shown[2]) - 1] == "x"


def test_characters_that_would_disturb_a_terminal_are_replaced() -> None:
    shown = text_of("return x; /* \x1b[31m \x07 \u202e */")
    assert shown.splitlines()[1] == "    return x; /* \ufffd[31m \ufffd \ufffd */"


def test_a_problem_behind_the_text_is_shown_at_its_end() -> None:
    assert SourceText("ab").render(Problem(1, 5, "here")) == "<ecode>:1:5: here\n    ab\n        ^"
    assert SourceText("ab").render(Problem(7, 1, "here")) == "<ecode>:7:1: here"


def test_problems_beyond_the_limit_are_not_kept() -> None:
    found = Problems(SourceText(""))
    for line in range(PROBLEMS_MAX + 5):
        found.report((line + 1, 1), "wrong")
    assert found.full
    assert len(found.found) == PROBLEMS_MAX


def test_a_message_is_short() -> None:
    assert len(problems("return " + "f" * 60000 + "(1);")[0]) < 500
    assert len(str(mistake((1, 1), "x" * 60000))) < 500


def test_a_quotation_is_short() -> None:
    assert quoted("a" * 61) == "`" + "a" * 60 + "...`"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("return volum;", "1:8: there is no variable `volum`"),
        ("int volume = 1; return volum;", "1:24: there is no variable `volum` (did you mean `volume`?)"),
        ("return inputt.n;", "1:8: there is no variable `inputt` (did you mean `input`?)"),
        ("return true;", "1:8: there is no variable `true`: E-Code writes 1"),
        ("return sqrtt(2);", "1:8: there is no function `sqrtt` (did you mean `sqrt`?)"),
        ("return abs(2);", "1:8: there is no function `abs`: `fabs` is for floats, `x < 0 ? -x : x` for integers"),
        ('return strcmp("a", "b");', "1:8: there is no function `strcmp`: texts are compared by `==` and `!=`"),
        ("return pow(1);", "1:8: `pow` takes 2 arguments, got 1"),
        ("return sqrt();", "1:8: `sqrt` takes 1 argument, got 0"),
        ("return input.leg.prize;", "1:18: record `Leg` has no field `prize` (did you mean `price`?)"),
        ("return input.n.x;", "1:16: `input.n` is `int32` and has no fields"),
        ("return input.legs.price;", "1:19: `input.legs` is an array, index it before `.price`"),
        ("return input.legs[3].price;", "1:19: index 3 is outside of `input.legs`, length is 3"),
        ("return input.grid[1][-1];", "1:22: index -1 of `input.grid` is negative"),
        ("return input.grid[1];", "1:14: `input.grid` is an array (`float64[5]`), name one of its elements"),
        ("return input.grid[1][2][3];", "1:24: `input.grid` has 2 dimensions (`float64[4][5]`), not more"),
        ("return input.n[1];", "1:15: `input.n` is `int32`, not an array"),
        ("return input.grid[1.5][0];", "1:19: an index must be an integer, this is `float64`"),
        ("return input.samples;", "1:14: `input.samples` is an array (`float32[n]`), name one of its elements"),
        ("return input.samples[-1];", "1:22: index -1 of `input.samples` is negative"),
        ("return input.leg;", "1:14: `input.leg` is a record (`Leg`), name one of its fields"),
        ("return input;", "1:8: `input` is a record, name one of its fields"),
        ("return input[1];", "1:13: `input` is a record, not an array"),
        ("int a[3]; return a[3];", "1:20: index 3 is outside of `a`, length is 3"),
        ("int a[3]; return a;", "1:18: `a` is an array (`int32[3]`), name one of its elements"),
        ("int a[3]; return a[1][2];", "1:22: `a` has 1 dimension, not more"),
        ("int a; return a[1];", "1:16: `a` is not an array"),
        ("int a; return a.b;", "1:17: `a` is a variable and has no fields"),
        ("return (1 + 2).x;", "1:16: `.x` goes with a variable or a field only"),
        ("return (1 + 2)[0];", "1:15: an index goes with a variable or a field only"),
        ("input.n = 1; return 1;", "1:9: `input.n` cannot be assigned to: the input event is read-only"),
        ("param.low++; return 1;", "1:10: `param.low` cannot be assigned to: parameters are read-only"),
        ("const int x = 1; x = 2; return 1;", "1:20: `x` cannot be assigned to: it is `const`"),
        ("const int x = input.n; x += 2; return 1;", "1:26: `x` cannot be assigned to: it is `const`"),
        ("1 = 2; return 1;", "1:3: only a variable or a field of `output` can be assigned to"),
        ("input.symbol[1] = 'a'; return 1;", "1:17: single bytes of a text cannot be assigned to"),
        ("output.leg = 1; return 1;", "1:8: record `Summary` has no field `leg` (did you mean `legs`?)"),
        ("output.inner = input.leg; return 1;", "1:14: `output.inner` is a record (`Inner`), name one of its fields"),
        (
            "output.samples = 1; return 1;",
            "1:16: `output.samples` is an array (`float32[n]`), name one of its elements",
        ),
        ("output.flag++; return 1;", "1:12: `++` cannot be applied to `output.flag`, which is `bool`"),
        (
            "int i; output.flags[i++] |= 1; return 1;",
            "1:26: `output.flags` is `bool`: its index and the value must have no effects here",
        ),
        (
            "int i; output.flags[i & 3] |= (i = 9); return 1;",
            "1:28: `output.flags` is `bool`: its index and the value must have no effects here",
        ),
        ("return 1 / 0;", "1:10: an integer is divided by zero"),
        ("return input.n % (3 - 3);", "1:16: an integer is divided by zero"),
        ("output.count /= 0; return 1;", "1:14: an integer is divided by zero"),
        ("return 1.5 % 2;", "1:12: `%` needs integers, got `float64` (`fmod` is the remainder of floats)"),
        ("return 1 << 1.5f;", "1:10: `<<` needs integers, got `float32`"),
        ("output.mean |= 1; return 1;", "1:13: `|` needs integers, got `float64`"),
        ("return ~1.5;", "1:8: `~` needs integers, got `float64`"),
    ],
)
def test_a_mistake_with_numbers_and_places_is_named(source: str, message: str) -> None:
    assert problems(source) == [message]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('return input.symbol < "a";', "1:21: texts can only be compared by `==` and `!=`"),
        ('return input.symbol + "a";', "1:21: `+` takes numbers, not texts"),
        ("return input.symbol == 3;", "1:21: a text can only be compared with a text"),
        (
            'return input.symbol[0] == "A";',
            "1:24: a text can only be compared with a text (a character is written 'A')",
        ),
        ("return input.symbol;", "1:14: a text is not a number"),
        ("return -input.code;", "1:15: a text is not a number"),
        ("if (input.symbol) return 1;", "1:11: a text is neither true nor false: compare it, or its `strlen`"),
        ("return !input.symbol;", "1:15: a text is not a number"),
        ("return input.symbol && 1;", "1:14: a text is neither true nor false: compare it, or its `strlen`"),
        ("return input.symbol[-1];", "1:21: index -1 of `input.symbol` is negative"),
        ("return input.symbol[1][2];", "1:23: a byte of `input.symbol` is a number, nothing can follow it"),
        ("return strlen(input.n);", "1:21: `strlen` takes a text, this is `int32`"),
        ("return strlen(input.samples);", "1:21: `input.samples` is an array (`float32[n]`), name one of its elements"),
        ("return length(input.n);", "1:21: `length` takes an array, `input.n` is none"),
        (
            "return length(input.symbol);",
            "1:21: `length` takes an array, `input.symbol` is none (the length of a text is its `strlen`)",
        ),
        ("return length(1 + 2);", "1:17: `length` takes an array"),
        ('output.mean = "x"; return 1;', "1:13: `output.mean` is `float64`, a text cannot be assigned to it"),
        ("output.name = 3; return 1;", "1:13: `output.name` is a text, `int32` cannot be assigned to it"),
        (
            'output.name += "x"; return 1;',
            "1:13: `output.name` is a text, which is assigned by a statement of its own only",
        ),
        (
            'return (output.name = "x", 1);',
            "1:21: `output.name` is a text, which is assigned by a statement of its own only",
        ),
        ('output.code = "fives"; return 1;', "1:15: the text has 5 bytes, `output.code` has room for 4"),
        (
            'output.codes[1] = "x"; return 1;',
            "1:17: `output.codes` is a text inside of an array and cannot be assigned to",
        ),
        (
            'output.legs[0].label = "x"; return 1;',
            "1:16: `output.legs.label` is a text inside of an array, which a program cannot write or read",
        ),
        (
            'output.tags[0] = "x"; return 1;',
            "1:8: `output.tags` is an array of texts, which a program cannot write or read",
        ),
        (
            "output.cells[0].speed = 1; return 1;",
            "1:8: elements of `output.cells` have texts or dynamic arrays of their own, which a program cannot write",
        ),
        ('input.symbol = "x"; return 1;', "1:14: `input.symbol` cannot be assigned to: the input event is read-only"),
        ("output.samples[8] = 1; return 1;", "1:16: index 8 is outside of `output.samples`, capacity is 8"),
        ("output.values[1024] = 1; return 1;", "1:15: index 1024 is outside of `output.values`, capacity is 1024"),
        ("resize(output.samples, 3); return 1;", "1:1: `output.samples` is as long as `output.n` says: assign to that"),
        ("resize(output.points, 101); return 1;", "1:23: length 101 is outside 0 to 100, the capacity"),
        ("resize(output.points, -1); return 1;", "1:23: length -1 is outside 0 to 100, the capacity"),
        ("resize(output.points, 1.5); return 1;", "1:23: a length must be an integer, this is `float64`"),
        (
            "resize(input.samples, 3); return 1;",
            "1:14: `resize` takes a dynamic array of `output`, not `input.samples`",
        ),
        ("resize(output.flags, 3); return 1;", "1:15: `resize` takes a dynamic array of `output`, not `output.flags`"),
        ("return resize(output.values, 3);", "1:8: `resize` gives no value: it is a statement of its own"),
        ("resize(output.values); return 1;", "1:1: `resize` takes 2 arguments, got 1"),
        ('char s[4] = "abc"; return 1;', "1:13: a variable cannot hold a text"),
    ],
)
def test_a_mistake_with_texts_and_arrays_is_named(source: str, message: str) -> None:
    assert problems(source) == [message]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int x; int x; return 1;", "1:12: `x` is declared twice in this block, first on line 1"),
        ("int input; return 1;", "1:5: `input` is the name of a record, a variable needs another one"),
        ("int param; return 1;", "1:5: `param` is the name of a record, a variable needs another one"),
        ("int __x; return 1;", "1:5: `__x` begins with `__`, which no name of a variable may"),
        (
            f"int {'x' * 101}; return 1;",
            f"1:5: `{'x' * 60}...` has 101 characters, limit is 100",
        ),
        ("const int x; return 1;", "1:11: `x` is `const` and needs a value"),
        ("static int x = input.n; return 1;", "1:22: `x` is static and must begin with a constant"),
        ("int a[input.n]; return 1;", "1:13: the length of `a` must be a constant integer"),
        ("int a[1.5]; return 1;", "1:7: the length of `a` must be a constant integer"),
        ("int a[0]; return 1;", "1:7: the length of `a` is 0, expected 1 at least"),
        ("int a[]; return 1;", "1:5: `a` needs a length or some values in braces"),
        ("int a[2][] = {1}; return 1;", "1:5: only the first dimension of `a` can go without a length"),
        ("int a[2] = {1, 2, 3}; return 1;", "1:12: `a` has 2 elements here, 3 are given"),
        ("int a[1][2] = {{1}, {2}}; return 1;", "1:15: `a` has 1 row here, 2 are given"),
        ("int a[2] = {{1}}; return 1;", "1:13: these braces do not fit the 1 dimension of `a`"),
        ("int a[2] = 1; return 1;", "1:12: `a` is an array, its values stand in braces"),
        ("int a = {1}; return 1;", "1:9: `a` is not an array, its value stands without braces"),
        ("int a[1][1][1][1][1][1][1][1][1]; return 1;", "1:5: `a` has 9 dimensions, limit is 8"),
        ("break; return 1;", "1:1: `break` is not inside of a loop"),
        ("if (1) continue; return 1;", "1:8: `continue` is not inside of a loop"),
        (
            "{\n  input.n;\n}",
            "3:1: control reaches the end without `return` (an expression alone is a program if no `;` follows)",
        ),
        ("{\n  output.n = 1;\n}", "3:1: control reaches the end without `return`"),
    ],
)
def test_a_mistake_with_variables_and_flow_is_named(source: str, message: str) -> None:
    assert problems(source) == [message]


def test_a_filter_has_neither_output_nor_parameters() -> None:
    assert problems("output.x = 1; return param.y;", FILTER) == [
        "1:1: there is no `output`: this program selects events, it does not make others",
        "1:22: there is no `param`: this program was given no parameters",
    ]


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("int x = y; x = x + 1; return x;", ["1:9"]),
        ("int a[b]; a[1] = a[2]; return a[0];", ["1:7"]),
        ("if (a) { b; } else { c; } while (d) { e; } return f;", ["1:5", "1:10", "1:22", "1:34", "1:39", "1:51"]),
        ("for (int i = a; b; c) { d; } return e;", ["1:14", "1:17", "1:20", "1:25", "1:37"]),
        ("do { a; } while (b); return c;", ["1:6", "1:18", "1:29"]),
        ("static int s = q; s++; const int c = r; return s + c;", ["1:16", "1:38"]),
    ],
)
def test_one_check_finds_many_mistakes_and_reports_none_that_only_follows(source: str, places: list[str]) -> None:
    assert [":".join(problem.split(":")[:2]) for problem in problems(source)] == places


def test_no_more_than_twenty_mistakes_are_reported() -> None:
    assert len(problems("x;\n" * 50)) == PROBLEMS_MAX
