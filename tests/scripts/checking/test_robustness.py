"""Checks end, and end with an answer, whatever script they get."""

import pytest
from hypothesis import given, settings

from echoic.scripts.checking import check, interface
from echoic.scripts.syntax import load, write_script
from echoic.scripts.syntax.tree import Script
from tests.scripts.syntax.scripts import scripts

DEEP = 95  # brackets; each may be two levels of the tree


@given(scripts)
@settings(max_examples=100, deadline=None)
def test_any_script_can_be_checked(script: Script) -> None:
    found = check(load(write_script(script)))
    assert isinstance(found.text, str)
    for tool in script.tools:
        assert interface(script, tool.name).term.arity == 3


@pytest.mark.parametrize(
    "body",
    [
        "snd-msg(" + "f(" * 190 + "X" + ")" * 190 + ")",
        "rec-msg(" + "[" * 190 + "X?" + "]" * 190 + ")",
        "X := " + "add(1, " * 190 + "X" + ")" * 190,
        "let Y : " + "list(" * 190 + "int" + ")" * 190 + " in Y := undefined endlet",
        'printf("%' + "0" * 300_000 + '")',
        'printf("' + "%1" * 150_000 + '")',
        "tau . (" * DEEP + "tau" + " + delta)" * DEEP,
        "if true then " * 190 + "tau" + " fi" * 190,
        "let X : int in " * 190 + "tau" + " endlet" * 190,
        "tau . " * 5_000 + "tau",
        "tau + " * 5_000 + "tau",
        "snd-msg(a) || " * 5_000 + "rec-msg(a)",
    ],
    ids=lambda body: body[:20],
)
def test_deep_and_long_scripts_are_checked_and_written(body: str) -> None:
    script = load(f"process P is let X : int in {body} endlet toolbus(P)")
    assert check(script).errors == ()
    load(write_script(script))


def test_a_hundred_thousand_processes_can_be_started() -> None:
    script = load("process P(X : int) is tau toolbus(" + ", ".join(f"P({number})" for number in range(100_000)) + ")")
    assert check(script).errors == ()
