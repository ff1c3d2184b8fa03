"""Every construct, written in T-script and in Python, is the same script and makes the same run."""

import random
from collections.abc import Callable

import pytest

from echoic.scripts.checking import check, interface
from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.scripts.running import Machine
from echoic.scripts.running.messages import Connected, Effect, FromTool, Lost, Print, Said, Start, Step, Tell, ToTool
from echoic.scripts.syntax import load
from echoic.scripts.syntax.tree import Script
from echoic.scripts.syntax.writing import write_script
from echoic.terms import parse_text
from tests.scripts.python_spelling.twins import TWINS

TURNS_MAX = 2000
MOMENTS_MAX = 50


def run(script: Script, seed: int) -> tuple[str, list[tuple[object, ...]]]:
    """Return what a script prints, and its steps without their places."""
    machine = Machine(compile(script), chance=random.Random(seed), now_ns=0, traced=True)
    machine.start()
    effects: list[Effect] = []
    now_ns = 0
    for _ in range(MOMENTS_MAX):
        machine.run(TURNS_MAX, now_ns)
        made = machine.take_effects()
        effects += made
        for each in made:
            match each:
                case Start(tool, name):
                    machine.receive(Connected(name, tool), now_ns)
                    machine.receive(Said(tool, FromTool.EVENT, (parse_text('button("ok")'),)), now_ns)
                    machine.receive(Said(tool, FromTool.REQUEST, (parse_text('price("x")'),)), now_ns)
                case Tell(tool, ToTool.EVAL, (question,)) if str(question) == 'expr("1")':
                    machine.receive(Lost(tool, "gone"), now_ns)
                case Tell(tool, ToTool.EVAL):
                    machine.receive(Said(tool, FromTool.VALUE, (parse_text("val(3)"),)), now_ns)
                case Tell(tool, ToTool.DO):
                    machine.receive(Said(tool, FromTool.VOID), now_ns)
                case _:
                    pass
        due_ns = machine.deadline_ns()
        if machine.halted or (not made and due_ns is None):
            break
        now_ns = max(now_ns, due_ns or 0) if not made else now_ns
    text = "".join(each.text for each in effects if isinstance(each, Print))
    return text, [(each.process, each.atom, each.arguments, each.partner) for each in effects if isinstance(each, Step)]


@pytest.mark.parametrize(("text", "make"), TWINS.values(), ids=TWINS)
def test_both_are_the_same_script(text: str, make: Callable[[], Script]) -> None:
    assert write_script(make()) == write_script(load(text))


@pytest.mark.parametrize(("text", "make"), TWINS.values(), ids=TWINS)
def test_both_pass_the_same_checks(text: str, make: Callable[[], Script]) -> None:
    ours, theirs = check(make()), check(load(text))
    assert not ours.errors, ours.text
    assert [each.message for each in ours.warnings] == [each.message for each in theirs.warnings]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("text", "make"), TWINS.values(), ids=TWINS)
def test_both_make_the_same_run(text: str, make: Callable[[], Script], seed: int) -> None:
    ours, theirs = run(make(), seed), run(load(text), seed)
    assert ours == theirs
    assert ours[1]


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("hello", {"ann 42\nsaid\n", "said\nann 42\n"}),
        ("loops", {"012...end"}),
        ("conditions", {"yes 50.000000", "yes 50.0"}),
        ("asked", {"2:4 3:9 ", "3:9 2:4 "}),
        ("ready", {"heard 5"}),
        ("notes", {"IBM 74.500000", "IBM 74.5"}),
        ("disconnected", {"lost"}),
    ],
)
def test_they_do_what_they_say(name: str, printed: set[str]) -> None:
    for seed in range(5):
        assert run(TWINS[name][1](), seed)[0] in printed


def test_both_want_the_same_of_their_tools() -> None:
    text, make = TWINS["tools"]
    assert interface(make(), "calc") == interface(load(text), "calc")


def test_what_python_writes_can_be_read_as_a_script() -> None:
    for _, make in TWINS.values():
        written = write_script(make())
        assert write_script(load(written)) == written
