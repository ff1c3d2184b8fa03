"""The examples run as they say, with their tools as programs of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from echoic.scripts.checking import check
from echoic.scripts.exploring import FindingKind, explore
from echoic.scripts.graph import compile  # noqa: A004 - the word for it
from echoic.terms import Term, TermList
from echoic.toolbus.script_source import load_script
from tests.toolbus.conftest import MakeBus

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "toolbus"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.tb"))
SECONDS = 60


@pytest.fixture(autouse=True)
def _in_the_folder_of_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of tools are `python calculator.py`, as for somebody who stands there with an environment activated."""
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


def run_program(name: str) -> str:
    """Run an example that is a program, and return what it prints."""
    done = subprocess.run([sys.executable, name], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_is_in_order(name: str) -> None:
    findings = check(load_script(EXAMPLES / name, defines={}, include=[]))
    assert not findings.errors, findings.text
    assert not findings.warnings, findings.text


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_says_how_to_run_it(name: str) -> None:
    text = (EXAMPLES / name).read_text("utf-8")
    told = re.findall(r"^%% +(?:echoic bus \w+|python) (\S+)", text, re.MULTILINE)
    assert told
    assert all((EXAMPLES / Path(each).name).exists() for each in told)


def test_hello(make_bus: MakeBus, printed: list[str]) -> None:
    assert make_bus("hello.tb").run(SECONDS) == "hello is over"
    assert "".join(printed) == "Hello, world!\n"


def test_hello_from_the_command_line() -> None:
    command = [str(Path(sys.executable).with_name("echoic")), "bus", "run", "hello.tb"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    assert "Hello, world!" in done.stdout


def test_calculator(make_bus: MakeBus, printed: list[str]) -> None:
    log = make_bus("calculator.tb").run(SECONDS)
    assert log == TermList(
        ["1 + 2", 3],
        ["2 ** 10 - 24", 1000],
        ["(3 + 4) * 6", 42],
        ["22 / 7", 22 / 7],
        ["1 / 0", Term("error", "division by zero")],
        ["-8 * -8", 64],
    )
    assert "user(2) >> (3 + 4) * 6 = 42\n" in printed or "user(1) >> (3 + 4) * 6 = 42\n" in printed


def test_auction(make_bus: MakeBus, printed: list[str]) -> None:
    result = make_bus("auction.tb", defines={"PATIENCE": "1200"}).run(SECONDS)
    text = "".join(printed)
    sales = re.findall(r"Going, going, gone: (.+) to (\w+) for (\d+)\n", text)
    assert result == Term("taken", sum(int(price) for _, _, price in sales))
    assert len(sales) + text.count("Nobody wants") == 4
    buyers = [buyer for _, buyer, _ in sales]
    assert len(buyers) == len(set(buyers)) >= 1  # who has bought leaves
    for name in buyers:
        assert f"{name} takes a seat" in text
    for name in buyers[:-2]:
        assert f"{name} leaves" in text
    for sale in text.split("For sale: ")[1:]:
        start = int(re.match(r".+, from (\d+)", sale)[1])  # type: ignore[index]
        bids = [int(amount) for amount in re.findall(r"\w+ bids (\d+)", sale)]
        assert [start, *bids] == sorted({start, *bids})


def test_wave(make_bus: MakeBus, printed: list[str]) -> None:
    result = make_bus("wave.tb").run(SECONDS)
    assert isinstance(result, Term)
    assert result.name == "difference"
    assert 0 < result.args[0] < 1e-9  # type: ignore[operator] # a number
    pictures = [line for line in printed if line.startswith("display(1) >> ")]
    assert len(pictures) == 16
    assert "█" in pictures[0]


def test_a_longer_wave(make_bus: MakeBus) -> None:
    result = make_bus("wave.tb", defines={"PIECES": "50", "STEPS": "20"}).run(SECONDS)
    assert 0 < result.args[0] < 1e-9


@pytest.mark.parametrize("seed", [1, 2])
def test_producers_and_consumers(make_bus: MakeBus, printed: list[str], seed: int) -> None:
    eaten = make_bus("producers.tb", seed=seed).run(SECONDS)
    assert isinstance(eaten, TermList)
    plates = [f"{dish} {number}" for dish in ("cake", "soup") for number in range(1, 9)]
    assert sorted(eaten) == plates  # each once, and none is lost
    assert sum(int(count) for count in re.findall(r"had (\d+) plates", "".join(printed))) == len(plates)


@pytest.mark.parametrize("seed", range(5))
def test_philosophers(make_bus: MakeBus, printed: list[str], seed: int) -> None:
    assert make_bus("philosophers.tb", seed=seed).run(SECONDS) is None
    assert sum(" eats " in line for line in printed) == 10
    assert printed[-1] == "The table is empty\n"


def test_the_checker_tells_philosophers_from_those_who_starve() -> None:
    for name, deadlocks in (("philosophers.tb", 0), ("philosophers_deadlock.tb", 1)):
        script = load_script(EXAMPLES / name, defines={"MEALS": "1"}, include=[])
        found = explore(compile(script))
        assert found.complete
        assert len(found.of_kind(FindingKind.DEADLOCK)) == deadlocks


def test_prices() -> None:
    *alarms, last = run_program("prices.py").splitlines()
    assert last.startswith(f"{len(alarms)} alarms; the lowest prices: [[")
    assert len(alarms) > 3
    lowest: dict[str, float] = {}
    for share, price in (re.fullmatch(r"(\w+) is at ([\d.]+)", line).groups() for line in alarms):  # type: ignore[union-attr]
        assert float(price) <= lowest.get(share, 75.0)
        lowest[share] = float(price)


def test_questions() -> None:
    text = run_program("questions.py")
    for line in ("Ann learns that the capital of Peru is Lima", "Cleo learns that the capital of Norway is Oslo"):
        assert line in text
    assert text.startswith("tool atlas is {}")
    assert text.endswith("all know\n")
