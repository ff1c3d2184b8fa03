"""Leases: a tool whose connection breaks comes back, and nobody notices; one that does not is lost."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest

from echoic.errors import RefusedError
from echoic.terms import Term, Value
from echoic.toolbus import Bus, BusLimits, Tool, eval_
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


FED = """
tool feeder is { }
tool calc is { }
process P is let F : feeder, T : calc, X : str, Y : str in
  rec-connect(T?) . rec-connect(F?) .
  ( rec-event(F, data(X?, Y?)) . snd-response(T, take(X, Y)) ) * rec-disconnect(T) . shutdown("lost")
endlet
toolbus(P)
"""


class Taker(Tool, name="calc"):
    """Is told answers that it has not asked for."""


@contextlib.contextmanager
def away(**limits: int) -> Iterator[tuple[Bus, list[Value], threading.Event]]:
    """A bus that is fed while a tool is away, and what that is told; it comes back when the event is set."""
    with Bus.from_script(FED, lease_seconds=60, threshold_bytes=1 << 30, limits=BusLimits(**limits)) as bus:
        bus.start()
        taker, told, back = Taker(), list[Value](), threading.Event()
        taker.connect(bus.address)
        taker.start()
        eventually(lambda: bus.statistics().tools, "it is here")
        speaker = taker._service._speaker  # noqa: SLF001 - a network that is away
        dial_again = speaker._dial_again  # noqa: SLF001 - likewise
        speaker._dial_again = lambda *said: (back.wait(60), dial_again(*said))[1]  # noqa: SLF001 - likewise
        hear = speaker._hear  # noqa: SLF001 - likewise
        speaker._hear = lambda message, act: (told.extend(message.values), hear(message, act))  # noqa: SLF001 - likewise
        speaker._connection.close()  # noqa: SLF001 - likewise
        eventually(lambda: bus._leases._suspended, "the bus waits for it")  # noqa: SLF001 - nothing else tells
        bus.stub("feeder")
        eventually(lambda: len(bus.statistics().tools) == 2, "there is somebody to feed it")
        yield bus, told, back
        back.set()


def test_who_comes_back_is_told_all_that_was_kept_also_if_it_is_more_than_may_wait() -> None:
    with away(queue_bytes_max=100_000) as (bus, told, back):
        texts = [f"{number:04d}" * 5_000 for number in range(200)]
        for text in texts:
            bus.inject_event("feeder", Term("data", text, text.upper()))
        back.set()
        wanted = [Term("take", text, text.upper()) for text in texts]
        eventually(lambda: told[-1:] == wanted[-1:], "it has heard everything")
        assert [each for each in told if isinstance(each, Term)] == wanted
        assert not bus.warnings()


def test_what_is_kept_for_a_tool_that_is_away_has_its_limit() -> None:
    with away(kept_bytes_max=1_000_000) as (bus, _, _):
        for _ in range(100):
            bus.inject_event("feeder", Term("data", "x" * 20_000, "y"))
        assert bus.wait(30), "it is lost"
        assert any("more was said to it than is kept" in each for each in bus.warnings())


def test_a_tool_that_cannot_be_told_something_while_it_is_away_is_lost() -> None:
    with away(message_bytes_max=100_000) as (bus, _, _):
        bus.inject_event("feeder", Term("data", "x" * 60_000, "y" * 60_000))
        assert bus.wait(30), "it is lost"
        assert any("with too much in it" in each for each in bus.warnings())


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
