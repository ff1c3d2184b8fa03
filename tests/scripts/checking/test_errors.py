"""Every static error, to the letter, and under what it stands.

In a process the place is marked in the text: `^` stands before what the message is about.
"""

# ruff: noqa: E501 - a message is one line

import pytest

from echoic.errors import ScriptError
from echoic.scripts.checking import check, require
from echoic.scripts.syntax import load
from tests.scripts.checking.checked import errors, findings, in_process, warnings

DECLARED = "X : int, S : str, B : bool, R : real, L : list, T : term, C : calc, F : f(int)"

IN_PROCESSES = [
    # variables
    ("^XX := 1", "variable `XX` is not declared (did you mean `X`?)"),
    ("snd-msg(f(^Y))", "variable `Y` is not declared"),
    ("X := add(^Y, 1)", "variable `Y` is not declared"),
    ("if ^Y then tau fi", "variable `Y` is not declared"),
    ("tau delay(^Y)", "variable `Y` is not declared"),
    ("snd-msg(^P)", "variable `P` is not declared: it is the name of a process"),
    ("let A : int, ^A : str in tau endlet", "variable `A` is declared twice in one `let`"),
    ("let ^A : 3 in tau endlet", "the type of `A` is none: `3`"),
    # assignments
    ('X := ^"a"', "variable `X` is `int`, got `str`"),
    ("X := ^1.0", "variable `X` is `int`, got `real`"),
    ("S := ^add(1, 2)", "variable `S` is `str`, got `int`"),
    ("L := ^f", "variable `L` is `list`, got `f`"),
    ('F := ^quote(f("a"))', "variable `F` is `f(int)`, got `f(str)`"),
    ("X := ^S?", "a term is evaluated here, nothing can be bound: write `S`, not `S?`"),
    ("T := quote(f(^X?))", "a term is evaluated here, nothing can be bound: write `X`, not `X?`"),
    # functions
    ("T := ^f(1)", "function `f` is not defined: to make a term, write `quote(f(...))`"),
    ("X := ^addd(1, 2)", "function `addd` is not defined (did you mean `add`?)"),
    ("X := ^add(1)", "function `add` has 2 arguments, got 1"),
    ("X := ^size", "function `size` has 1 argument, got 0"),
    ("X := ^process-id(1)", "function `process-id` has 0 arguments, got 1"),
    ('S := concat("a", ^3)', "argument 2 of function `concat` should be `str`, got `int`"),
    ("X := add(^1.5, 2)", "argument 1 of function `add` should be `int`, got `real`"),
    ("X := size(^X)", "argument 1 of function `size` should be `list`, got `int`"),
    # conditions
    ("if ^X then tau fi", "a condition should be `bool`, got `int`"),
    ("if ^add(1, 2) then tau else tau fi", "a condition should be `bool`, got `int`"),
    ("if ^f(1) then tau fi", "function `f` is not defined: to make a term, write `quote(f(...))`"),
    # printf and read
    ("printf(^X)", "the first argument of `printf` should be a string, got `int`"),
    ('printf("%d", ^X?)', "nothing is bound by `printf`: write `X`, not `X?`"),
    ("^printf()", "`printf` has at least 1 argument, got 0"),
    ("read(^X, T?)", "the first argument of `read` should be a string, got `int`"),
    ('^read("a")', "`read` has 2 arguments, got 1"),
    # messages and notes
    ("^snd-msg()", "`snd-msg` has at least 1 argument, got 0"),
    ("^snd-note(a, b)", "`snd-note` has 1 argument, got 2"),
    ("subscribe(f(^X?))", "nothing is bound by `subscribe`: write `X`, not `X?`"),
    ("snd-note(f(^X?))", "nothing is bound by `snd-note`: write `X`, not `X?`"),
    # tools
    ("execute(^cal, C?)", "tool `cal` is not defined (did you mean `calc`?)"),
    ("execute(^X, C?)", "the first argument of `execute` should be a tool"),
    ("execute(calc, ^C)", "the second argument of `execute` should be a variable with `?`"),
    ("execute(calc, ^X?)", "the second argument of `execute` should be `calc`, got `int`"),
    ("^execute(calc)", "`execute` has 2 arguments, got 1"),
    ("execute(^calc(1), C?)", "too many arguments for `calc`: expected 0, got 1"),
    ("let U : ui in execute(^ui, U?) endlet", "too few arguments for `ui`: expected 1, got 0"),
    ("let U : ui in execute(ui(^1), U?) endlet", "argument 1 of `ui` should be `str`, got `int`"),
    ("snd-eval(^X, f(1))", "the first argument of `snd-eval` should be a variable for a tool, got `int`"),
    ("snd-do(^calc, f(1))", "the first argument of `snd-do` should be a variable for a tool"),
    ("let D : clac in snd-do(^D, f(1)) endlet", "the first argument of `snd-do` should be a variable for a tool, got `clac` (did you mean `calc`?)"),
    ("snd-do(^C?, f(1))", "the first argument of `snd-do` is known: write `C`"),
    ("rec-connect(^C)", "the argument of `rec-connect` should have a `?`: write `C?`"),
    ("^snd-eval(C)", "`snd-eval` has 2 arguments, got 1"),
    ("^snd-ack-event(C)", "`snd-ack-event` has 2 to 3 arguments, got 1"),
    ("snd-do(C, ^3)", "the second argument of `snd-do` should be an application, got `int`"),
    ("snd-eval(C, ^S)", "the second argument of `snd-eval` should be an application, got `str`"),
    ("rec-value(C, ^[X?])", "the second argument of `rec-value` should be an application, got `[int]`"),
    # calls
    ("^PP", "process `PP` is not defined (did you mean `P`?)"),
    ("^X", "variable `X` is called, so its type should be `str`, got `int`"),
    ("create(^Q(1), X?)", "process `Q` is not defined"),
    ("create(P, ^X)", "the second argument of `create` should be a variable with `?`"),
    ("create(P, ^S?)", "the second argument of `create` should be `int`, got `str`"),
    ("^P", "recursive call: `P` calls itself; use `*` to repeat, or `create`"),
    # timing
    ('tau delay(^"a")', "argument 1 of `delay` should be a number of seconds, got `str`"),
    ("tau ^timeout(1, 2)", "`timeout` has 1 argument, got 2"),
    ("tau ^abs-delay(1, 2)", "`abs-delay` has 3 to 6 arguments, got 2"),
    ("tau abs-timeout(1, ^1.5, 2)", "argument 2 of `abs-timeout` should be `int`, got `real`"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "message"), IN_PROCESSES)
def test_an_error_is_shown_where_it_is(marked: str, message: str) -> None:
    column = len(f"process P is let {DECLARED} in ") + marked.index("^") + 1
    assert errors(in_process(marked.replace("^", ""), DECLARED)) == [f"3:{column}: {message}"]


IN_SCRIPTS = [
    ("process P is tau", ["1:1: nothing is started: `toolbus(...)` is missing"]),
    ("toolbus(P)", ["1:9: process `P` is not defined"]),
    ("process P is tau\nprocess P is tau toolbus(P)", ["2:9: process `P` is defined twice, first in line 1"]),
    ("tool t is {} tool t is {}\nprocess P is tau toolbus(P)", ["1:19: tool `t` is defined twice, first in line 1"]),
    ("process P(A : int, A : str) is tau toolbus(P(1, 2))", ["1:20: formal `A` is declared twice of process `P`", "1:49: argument 2 of `P` should be `str`, got `int`"]),
    ("tool t(A : int, A : int) is {}\nprocess P is tau toolbus(P)", ["1:17: formal `A` is declared twice of tool `t`"]),
    ('tool t is { host = "a" host = "b" }\nprocess P is tau toolbus(P)', ["1:6: tool `t` has two features `host`"]),
    ('tool t is { kind = "channel" }\nprocess P is tau toolbus(P)', ["1:6: tool `t` is of the kind `channel`: its feature `channel` is missing"]),
    ('tool t is { derive = "return 1;" }\nprocess P is tau toolbus(P)', ['1:6: tool `t` has a feature `derive`, so its `kind` should be "channel"']),
    ('note channel "" as f\nprocess P is tau toolbus(P)', ["1:14: a channel has a name"]),
    ("process P(A : int) is tau toolbus(P, P(1), P(1, 2))", ["1:35: too few arguments for `P`: expected 1, got 0", "1:44: too many arguments for `P`: expected 1, got 2"]),
    ('process P(A : int) is tau toolbus(P("a"), P(X))', ["1:37: argument 1 of `P` should be `int`, got `str`", "1:45: variable `X` is not declared"]),
    ("process P(A : int ?) is tau toolbus(P(1))", ["1:39: argument 1 of `P` is a result: expected a variable with `?`"]),
    ("process Q(A : int ?) is tau\nprocess P is let X : int in Q(X) endlet toolbus(P)", ["2:31: argument 1 of `Q` is a result: expected a variable with `?`"]),
    ("process Q(A : int) is tau\nprocess P is let X : int in Q(X?) endlet toolbus(P)", ["2:31: argument 1 of `Q` is a value: expected no `?`, as `A` has none where it is declared"]),
    ("process Q(A : int ?) is tau\nprocess P is let X : str in Q(X?) endlet toolbus(P)", ["2:31: argument 1 of `Q` should be `int`, got `str`"]),
    ("process P is let X : int in create(Q(f(1)), X?) endlet\nprocess Q(A : term) is tau toolbus(P)", ["1:38: function `f` is not defined: to make a term, write `quote(f(...))`"]),
    ("process P is let X : int in create(Q(add(1, 2)), X?) endlet\nprocess Q(A : str) is tau toolbus(P)", ["1:38: argument 1 of `Q` should be `str`, got `int`"]),
    ("process P is Q\nprocess Q is R\nprocess R is tau . P\ntoolbus(P)", ["3:20: recursive call: `P` calls `Q` calls `R` calls `P`"]),
    ("process P is Q || R\nprocess Q is R\nprocess R is tau . Q + R\ntoolbus(P)", ["3:20: recursive call: `Q` calls `R` calls `Q`", "3:24: recursive call: `R` calls itself; use `*` to repeat, or `create`"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), IN_SCRIPTS)
def test_errors_of_definitions_are_shown(text: str, expected: list[str]) -> None:
    assert errors(findings(text)) == expected


FINE = [
    "T := quote(f(X))",
    "T := f",
    "T := [1, f, X]",
    "F := quote(f(X))",
    "X := undefined",
    "X := T",
    "X := first(L)",
    "if T then tau fi",
    "if and(B, not(equal(X, S))) then tau fi",
    "B := is-var(X?)",
    "S . tau",
    "S(1, X?)",
    "create(P, X?)",
    "L := [1, [2]]",
    "L := []",
    "X := process-id",
    "S := process-name",
    "tau delay(sec(3)) timeout(X)",
    "tau delay(0.5)",
    "tau abs-delay(X, 2, 3, 4, 5, 6)",
    "rec-disconnect(C?)",
    "rec-disconnect(C)",
    "snd-do(C, T)",
    "snd-do(C, F)",
    'printf("%d %5.2f%%\\n", X, R)',
]


@pytest.mark.parametrize("body", FINE)
def test_what_is_in_order_has_no_errors(body: str) -> None:
    found = in_process(body, DECLARED)
    assert errors(found) == []
    assert warnings(found) == []


def test_one_check_finds_everything_and_shows_it() -> None:
    script = load('process P is let X : int in\n  X := "a" .\n  Y := 1 . rec-msg(a)\nendlet', "p.tb")
    found = check(script)
    assert found.text == (
        "p.tb:1:1: nothing is started: `toolbus(...)` is missing\n"
        "    process P is let X : int in\n"
        "    ^\n"
        "p.tb:2:8: variable `X` is `int`, got `str`\n"
        '      X := "a" .\n'
        "           ^\n"
        "p.tb:3:3: variable `Y` is not declared\n"
        "      Y := 1 . rec-msg(a)\n"
        "      ^\n"
        "p.tb:3:12: warning: no `snd-msg` sends anything like this\n"
        "      Y := 1 . rec-msg(a)\n"
        "               ^"
    )
    with pytest.raises(ScriptError) as caught:
        require(script)
    assert str(caught.value) == found.text.partition("\np.tb:3:12:")[0]
    assert [problem[1:3] for problem in caught.value.problems] == [(1, 1), (2, 8), (3, 3)]


def test_a_script_in_order_may_have_warnings() -> None:
    found = require(load("process P is rec-msg(a) toolbus(P)"))
    assert warnings(found) == ["1:14: no `snd-msg` sends anything like this"]


def test_a_long_chain_of_calls_is_followed() -> None:
    lines = [f"process P{number} is P{number + 1}" for number in range(5000)]
    text = "\n".join([*lines, "process P5000 is P0", "toolbus(P0)"])
    assert errors(findings(text))[0].startswith("5001:18: recursive call: `P0` calls `P1` calls `P2`")
