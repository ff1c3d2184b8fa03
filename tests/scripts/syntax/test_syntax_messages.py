"""What people read whose text is no script: to the letter, with the line and the caret."""

# ruff: noqa: E501 - a message is one line

import pytest

from echoic.errors import ScriptError
from echoic.scripts.syntax import load
from tests.scripts.syntax.shapes import refusal


def test_a_misspelled_atom_is_shown_with_the_one_that_was_meant() -> None:
    assert refusal("process P is\n  tau . snd-mesg(x) . tau") == (
        "a.tb:2:9: there is no atom `snd-mesg` (did you mean `snd-msg`?)\n      tau . snd-mesg(x) . tau\n            ^"
    )


def test_each_definition_shows_its_own_mistake() -> None:
    assert refusal("process P is tau .\nprocess Q is tau\nprocess R(X int) is tau\ntoolbus(P Q)\n") == (
        "a.tb:1:19: expected a process, got `process`\n"
        "    process P is tau .\n"
        "                      ^\n"
        "a.tb:3:13: expected `:`, got `int`\n"
        "    process R(X int) is tau\n"
        "                ^\n"
        "a.tb:4:11: expected `,`, `(` or `)`, got `Q`\n"
        "    toolbus(P Q)\n"
        "              ^"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("proces P is tau", "1:1: expected a definition (`process`, `tool`, `toolbus`), got `proces` (did you mean `process`?)"),
        ("process p is tau", "1:9: expected a name that begins with a capital, got `p`"),
        ("process P(X : Y) is tau", "1:15: expected a type, got `Y`"),
        ("process P is (tau + tau\ntoolbus(P)", "1:24: expected `)`, a delay or timeout or an operator, got `toolbus` (the `(` of line 1 is open)"),
        ("process P is if true then tau", "1:30: expected `else`, `fi`, a delay or timeout or an operator, got the end of the script (the `if` of line 1 is open)"),
        ("process P is snd-msg(f(,))", "1:24: expected a term or `)`, got `,`"),
        ("process P is snd-msg(f(1)", "1:26: expected `,` or `)`, got the end of the script (the `(` of line 1 is open)"),
        ("process P is snd-msg f", "1:22: the atom `snd-msg` has its arguments in parentheses, got `f`"),
        ("process P is snd-msg(read(x))", "1:22: `read` is an atom and cannot be the name of a term"),
        ("process P is X = 3", "1:16: expected a definition (`process`, `tool`, `toolbus`), `:=`, `(` or an operator, got `=`"),
        ("process P is tau dealy(1)", "1:18: expected a definition (`process`, `tool`, `toolbus`), a delay or timeout or an operator, got `dealy` (did you mean `delay`?)"),
        ('tool t is { comand = "x" }', "1:13: there is no feature `comand` (did you mean `command`?)"),
        ("tool t is { command = x }", "1:23: expected a string, got `x`"),
        ("process P is tau ' tau", "1:18: `'` is not part of a T-script"),
        ("process P is \N{GREEK SMALL LETTER TAU}", "1:14: `\N{GREEK SMALL LETTER TAU}` is not part of a T-script (character U+03C4; only comments and strings may have others than ASCII)"),
        (r'process P is printf("a\qb")', r"1:23: there is no escape `\q`, there are \n \t \r \b \f \v \" \\"),
        ('process P is printf("a', '1:21: this string has no end: the second `"` is missing'),
        ('process P is printf("a)\nprocess Q is printf("b")', '2:23: this string has no end: the second `"` is missing (or the one from line 1 to line 2 should have ended before)'),
        ('process P is printf("a) .\n tau . b " . tau', "2:12: expected `,` or `)`, got `.` (a string goes from line 1 to line 2)"),
        ("/* process P is tau", "1:1: this comment has no end: `*/` is missing"),
        ("tool t is { details = << a }", "1:23: this text has no end: `>>` is missing"),
        ("note chanel \"a\" as f", "1:6: expected `channel`, got `chanel` (did you mean `channel`?)"),
    ],
)  # fmt: skip
def test_mistakes_are_said_in_words(text: str, message: str) -> None:
    line_number, column, _ = message.split(":", 2)
    line, margin = text.split("\n")[int(line_number) - 1], " " * (int(column) - 1)
    assert refusal(text) == f"a.tb:{message}\n    {line}\n    {margin}^"


def test_an_error_has_its_problems_for_programs_too() -> None:
    with pytest.raises(ScriptError) as caught:
        load("process P is\n", "p.tb")
    assert caught.value.problems == (("p.tb", 1, 13, "expected a process, got the end of the script"),)


def test_at_most_twenty_problems_are_shown() -> None:
    with pytest.raises(ScriptError) as caught:
        load("process P is tau tau\n" * 100)
    assert len(caught.value.problems) == 20
