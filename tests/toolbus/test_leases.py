"""Leases: a tool whose connection breaks comes back, and nobody notices; one that does not is lost."""

import threading
from pathlib import Path
from typing import Annotated

import pytest

from echoic.errors import RefusedError
from echoic.terms import Term
from echoic.toolbus import Bus, Tool, eval_
from echoic.toolbus.leases import Leases
from echoic.toolbus.protocol import Hello, Resumption
from tests.hub.parties import eventually

COUNTING = """
tool counter is { command = "" }
process P is
let C : counter, N : int in
  rec-connect(C?) .
  ( snd-eval(C, next) . rec-value(C, count(N?)) .
    if less(N, ROUNDS) then tau else printf("%d\\n", N) . shutdown("all") fi ) * delta
endlet
toolbus(P)
"""


class Counter(Tool, name="counter"):
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.halfway = threading.Event()

    @eval_
    def next(self) -> Annotated[Term, "count(int)"]:
        """Return how often."""
        self.asked += 1
        if self.asked % 10 == 0:
            self.halfway.set()
        return Term("count", self.asked)


def test_a_tool_whose_connection_breaks_again_and_again_is_asked_everything_once() -> None:
    printed: list[str] = []
    rounds = 200
    script = COUNTING.replace("ROUNDS", str(rounds))
    with Bus.from_script(script, lease_seconds=20, output=printed.append) as bus:
        bus.start()
        counter = Counter()
        counter.connect(bus.address)
        counter.start()
        for _ in range(12):
            counter.halfway.wait(10)
            counter.halfway.clear()
            counter._service._speaker._connection.close()  # noqa: SLF001 - a network that breaks
        assert bus.wait(60)
    assert printed == [f"{rounds}\n"]
    assert counter.asked == rounds


def test_a_tool_that_does_not_come_back_is_lost_when_its_lease_is_over() -> None:
    script = """
tool counter is { command = "" }
process P is let C : counter in rec-connect(C?) . rec-disconnect(C) . shutdown("gone") endlet
toolbus(P)
"""
    with Bus.from_script(script, lease_seconds=0.3) as bus:
        bus.start()
        counter = Counter()
        counter.connect(bus.address)
        counter.start()
        eventually(lambda: bus.statistics().tools, "the tool is there")
        speaker = counter._service._speaker  # noqa: SLF001 - a process that is gone
        speaker._closed = True  # noqa: SLF001
        speaker._connection.close()  # noqa: SLF001
        assert bus.run(30) == "gone"
        assert any("did not come back within 0.3 seconds" in each for each in bus.warnings())


def test_a_tool_that_is_killed_while_it_works_is_started_again_and_asked_again(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(
        "import os, pathlib, signal\n"
        "from echoic.toolbus import Tool, eval_\n"
        "class Worker(Tool, name='worker'):\n"
        "    @eval_\n"
        "    def work(self, text: str) -> str:\n"
        "        mark = pathlib.Path('killed')\n"
        "        if not mark.exists():\n"
        "            mark.touch()\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
        "        return text.upper()\n"
        "Worker.run()\n"
    )
    script = tmp_path / "work.tb"
    script.write_text(
        'tool worker is { command = "python worker.py" }\n'
        "process P is let W : worker, S : str in\n"
        '  execute(worker, W?) . snd-eval(W, work("done")) . rec-value(W, value(S?)) . printf("%t %s\\n", W, S) .\n'
        '  shutdown("")\n'
        "endlet\n"
        "toolbus(P)\n"
    )
    printed: list[str] = []
    with Bus.from_script(script, lease_seconds=60, output=printed.append) as bus:
        bus.run(60)
    assert printed == ["worker(1) DONE\n"]


class Line:
    """A line whose tool was cut off."""

    epoch = 7
    resumption_token = "right"

    def __init__(self) -> None:
        self.expired: list[str] = []

    def expire(self, reason: str) -> None:
        self.expired.append(reason)


@pytest.mark.parametrize(
    ("hello", "message"),
    [
        (Hello("a", token="right", resumption=Resumption(2, 7, 0)), "too late, or was never here"),
        (Hello("a", token="right", resumption=Resumption(1, 8, 0)), "too late, or was never here"),
        (Hello("a", token="wrong", resumption=Resumption(1, 7, 0)), "a token that is not its own"),
    ],
)
def test_somebody_else_does_not_come_back(hello: Hello, message: str) -> None:
    leases = Leases(60)
    leases.cut_off(1, Line(), "its connection broke")

    with pytest.raises(RefusedError, match=message):
        leases.check(hello)
    leases.close()


def test_who_comes_back_in_time_is_not_lost() -> None:
    leases, line = Leases(60), Line()
    leases.cut_off(1, line, "its connection broke")
    leases.check(Hello("a", token="right", resumption=Resumption(1, 7, 0)))

    assert leases.take(1) is line
    assert leases.take(1) is None
    assert line.expired == []
