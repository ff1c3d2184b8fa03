"""What is wrong is said where it was written, in Python's own lines."""

import inspect
from collections.abc import Callable
from typing import Annotated

import pytest

from echoic.errors import ScriptError
from echoic.scripts import python_spelling as ts
from echoic.scripts.checking import check, require
from echoic.scripts.python_spelling import Behaviour, Result, Var, fn, term
from echoic.scripts.syntax.tree import Script
from echoic.terms import Annotated as AnnotatedTerm
from echoic.terms import Term

X, Y = ts.variables("X Y", int)
R, S, T = ts.var("R", float), ts.var("S", str), ts.var("T")


def one(make: Callable[[], Behaviour]) -> Script:
    return ts.bus(ts.process(name="P")(make)())


def line_of(function: Callable[..., object], part: str) -> int:
    """Return the line in which a part of a function stands."""
    lines, first = inspect.getsourcelines(function)
    return first + next(number for number, line in enumerate(lines) if part in line)


MISTAKES: dict[str, Callable[[], object]] = {
    "nothing is evaluated here, and `add` would stay as it is": lambda: one(lambda: ts.snd_msg(term.f(X + 1))),
    "`+` is not for `int` and `real`: write `fn.int_to_real`": lambda: X + R,
    "`/` is not for `int` and `int`: write `//`": lambda: X / 2,
    "`<` is not for `str` and `str`": lambda: S < "b",
    "`+` does not know the types of its operands: write `fn.add` or `fn.radd`": lambda: T + T,
    "a formula is true or false when the script runs": lambda: 0 < X < 3,
    "a formula is true or false when the script": lambda: X == 1 and Y == 2,
    "a formula is true or false": lambda: X in [Y, 1],
    "what a process does is neither true nor false": lambda: ts.tau() or ts.delta(),
    "function `concat` has 2 arguments, got 1": lambda: fn.concat(S),
    "`F` is not the name of a term": lambda: term.F(1),
    "`is` is a word of the language": lambda: term.is_(1),
    "`x` is not the name of a variable": lambda: ts.var("x", int),
    "`_x` is not the name of a variable": lambda: ts.var("_x", int),
    "`1bad` is not the name of a process": lambda: ts.process(name="1bad")(ts.tau),
    "is not a type of terms: expected int, float": lambda: ts.var("X", dict),
    "`f(` is not a type": lambda: ts.var("X", "f("),
    "a script cannot have this written into it": lambda: ts.snd_msg(b"bytes"),
    "a script cannot have this": lambda: ts.snd_msg(AnnotatedTerm(1, Term("a"))),
    "expected a formula or a value, got `dict`": lambda: ts.snd_msg({}),
    "expected what a process does, got `str`": lambda: ts.tau() >> "x",  # type: ignore[operator]
    "expected what a process does, got `function`: call it": lambda: ts.loop(ts.tau),  # type: ignore[arg-type]
    "expected a process with its arguments, got `Step`": lambda: ts.bus(ts.tau()),
    "expected a process with its arguments, got `Definition`: call it": lambda: ts.bus(
        ts.process(name="P")(ts.tau)  # type: ignore[arg-type]
    ),
    "process `P` has 0 parameters, got 1": lambda: ts.process(name="P")(ts.tau)(1),
    "process `P` should return what it does, got `int`": lambda: one(lambda: 3),  # type: ignore[return-value, arg-type]
    "parameter `x` has no type: write `x: Var[int]`": lambda: ts.process(name="P")(lambda x: ts.tau()),
    "two processes are called `P`": lambda: ts.bus(ts.process(name="P")(ts.tau)(), ts.process(name="P")(ts.delta)()),
    "two tools are called `calc`": lambda: ts.bus(also=[ts.tool("calc"), ts.tool("calc")]),
    "variable `X` is used as `str` here, but declared as `int`": lambda: one(
        lambda: ts.rec_msg(X.q) >> ts.rec_msg(ts.var("X", str).q)
    ),
    "is not the pattern of a note": lambda: ts.bus(notes={"prices": "price("}),
    "this is nested deeper than 200": lambda: one(lambda: deep(1000)),
    "this is nested deeper than": lambda: ts.snd_msg(deep_list(1000)),
}


def deep(levels: int) -> Behaviour:
    made: Behaviour = ts.tau()
    for _ in range(levels):
        made = ts.loop(made)
    return made


def deep_list(levels: int) -> list[object]:
    made: list[object] = []
    for _ in range(levels):
        made = [made]
    return made


@pytest.mark.parametrize(("message", "make"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_refused_and_shown(message: str, make: Callable[[], object]) -> None:
    with pytest.raises(ScriptError) as caught:
        make()
    assert message in str(caught.value)
    (problem,) = caught.value.problems
    assert problem[0] == __file__


def test_the_line_and_a_caret_are_shown() -> None:
    def body() -> Behaviour:
        return ts.printf("a") >> ts.snd_msg(term.f(X + 1))

    with pytest.raises(ScriptError) as caught:
        one(body)
    where, line, caret, *_ = str(caught.value).splitlines()
    assert where.startswith(f"{__file__}:{line_of(body, 'printf')}:")
    assert line.strip() == 'return ts.printf("a") >> ts.snd_msg(term.f(X + 1))'
    assert line[caret.index("^") :].startswith("X + 1")


def test_checks_of_the_script_show_lines_of_python() -> None:
    def body() -> Behaviour:
        return ts.when(
            X + 1,
        ).then(ts.execute(ts.tool("calc")(), X.q))

    findings = check(one(body))
    assert [(each.line, each.message) for each in findings.errors] == [
        (line_of(body, "X + 1"), "a condition should be `bool`, got `int`"),
        (line_of(body, "execute"), "the second argument of `execute` should be `calc`, got `int`"),
    ]
    with pytest.raises(ScriptError, match=r"X \+ 1,"):
        require(one(body))


def test_an_unknown_function_has_a_suggestion() -> None:
    with pytest.raises(AttributeError, match=r"no function `is-emty` \(did you mean `is-empty`\?\)"):
        fn.is_emty([])


def test_a_parameter_may_be_of_a_tool_or_of_any_type() -> None:
    calc = ts.tool("calc")

    @ts.process
    def user(tool: Annotated[Var[object], calc], bids: Annotated[Result[object], "list(bid(str,int))"]) -> Behaviour:
        return ts.snd_do(tool, term.show(bids))

    tool, bids = user.parameters
    assert (tool.name, str(tool.type), bids.name, str(bids.type)) == ("Tool", "calc", "Bids", "list(bid(str,int))")


def test_a_process_may_mention_one_that_comes_later_and_itself() -> None:
    pid = ts.var("Pid", int)

    @ts.process
    def first() -> Behaviour:
        return ts.create(second(), pid.q)

    @ts.process
    def second() -> Behaviour:
        return ts.create(first(), pid.q)

    script = ts.bus(first())
    assert [each.name for each in script.processes] == ["FIRST", "SECOND"]
    assert not check(script).errors


def test_processes_nobody_mentions_are_there_if_they_are_said_to_be() -> None:
    @ts.process
    def hidden() -> Behaviour:
        return ts.printf("found")

    @ts.process
    def finder(name: Var[str]) -> Behaviour:
        return ts.call(name)

    script = ts.bus(finder("HIDDEN"), also=[hidden, ts.tool("spare", command="none")], notes={"n": "news(<int>)"})
    assert [each.name for each in script.processes] == ["FINDER", "HIDDEN"]
    assert [each.name for each in script.tools] == ["spare"]
    assert str(script.channel_notes[0].pattern) == "news(<int>)"


def test_a_delayed_step_leaves_the_one_it_was_made_of_alone() -> None:
    step = X.set(1)
    later = step.delay(2).timeout(5)
    assert (len(step.timing), len(later.timing)) == (0, 2)


def test_long_sequences_and_choices_are_no_deep_ones() -> None:
    long = ts.sequence(*(ts.printf(str(number)) for number in range(3000)))
    wide: Behaviour = ts.tau()
    for number in range(500):
        wide = wide | ts.printf(str(number))
    require(one(lambda: long >> wide))
