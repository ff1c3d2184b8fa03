"""Tools themselves: where their bus is, what they count, what they do when they are cancelled or left alone."""

import asyncio
import threading
import time

import pytest

from echoic.errors import ClosedError, LimitExceededError, LocalError, UnreachableError
from echoic.terms import Term, TermList
from echoic.toolbus import Tool, errands, eval_
from echoic.toolbus.errands import Errands
from echoic.toolbus.protocol import NO_INSTANCE, Message, MessageKind
from echoic.toolbus.tool import Whereabouts
from tests.toolbus.conftest import MakeBus
from tests.toolbus.workshop import Calc, script


def test_a_tool_is_told_where_its_bus_is_by_command_line_or_environment() -> None:
    words = ["-x", "-TB_TOOL_NAME", "calc", "-TB_TOOL_ID", "3", "-TB_HOST", "::1", "-TB_PORT", "4711"]
    told = Whereabouts(words, {"TB_TOOL_NAME": "other", "TB_TOKEN": "secret"})
    assert (told.name, told.instance, told.address, told.token) == ("calc", 3, "[::1]:4711", "secret")
    told = Whereabouts([], {"TB_TOOL_NAME": "calc", "TB_PORT": "4711"})
    assert (told.name, told.instance, told.address, told.identity) == ("calc", NO_INSTANCE, "127.0.0.1:4711", None)
    with pytest.raises(LocalError, match="where is the bus"):
        assert Whereabouts([], {}).address
    with pytest.raises(LocalError, match="TB_TOOL_ID"):
        assert Whereabouts(["-TB_TOOL_ID", "x"], {}).instance


def test_of_one_name_one_event_is_under_way_at_a_time() -> None:
    said: list[Message] = []
    desk = Errands(said.append)
    first, second = (desk.send(MessageKind.EVENT, "e", (Term("e", number),)) for number in (1, 2))
    other = desk.send(MessageKind.EVENT, "f", (Term("f"),))
    assert [str(message.values[0]) for message in said] == ["e(1)", "f"]
    desk.answered(Message(MessageKind.ACK_EVENT, said[0].transaction, (Term("e", 1), Term("data"))))
    assert first.wait(0) is Term("data")
    assert str(said[-1].values[0]) == "e(2)"
    desk.answered(Message(MessageKind.ACK_EVENT, 0, (Term("e", 2),)))
    assert second.wait(0) is None
    with pytest.raises(UnreachableError, match="not answered within 0"):
        other.wait(0.01)
    desk.close("the bus is gone")
    with pytest.raises(ClosedError, match="the bus is gone"):
        other.wait(0)
    with pytest.raises(ClosedError, match="cannot be sent"):
        desk.send(MessageKind.EVENT, "e", ())


def test_events_that_nobody_acknowledges_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errands, "WAITING_MAX", 3)
    desk = Errands(lambda message: None)
    for _ in range(3):
        desk.send(MessageKind.EVENT, "e", ())
    with pytest.raises(LimitExceededError, match="limit is 3"):
        desk.send(MessageKind.EVENT, "e", ())


def test_a_tool_tells_what_it_did(make_bus: MakeBus) -> None:
    bus = make_bus(
        script(
            """execute(calc, T?) . snd-eval(T, expr("1")) . rec-value(T, val(V?)) . snd-eval(T, expr("2"))
            . rec-value(T, val(V?)) . get-perf-stats(T) . rec-perf-stats(T, perf-stats(L?)) . shutdown(L)""",
            variables="V: int, L: list",
        )
    )
    bus.attach(Calc)
    told = bus.run(10)
    assert isinstance(told, TermList)
    assert told[0].args[:2] == ("expr", 2)


def test_a_coroutine_is_cancelled_with_its_eval(make_bus: MakeBus) -> None:
    seen: list[str] = []

    class Slow(Tool, name="calc"):
        @eval_
        async def ask(self, seconds: float) -> int:
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise
            return 7

        def on_cancel(self) -> None:
            seen.append("told")

    bus = make_bus(
        script(
            """execute(calc, T?) . snd-eval(T, ask(30.0)) . tau delay(msec(100)) . snd-cancel(T)
            . snd-eval(T, ask(0.0)) . rec-value(T, value(V?)) . shutdown(V)"""
        )
    )
    bus.attach(Slow)
    begun = time.monotonic()
    assert bus.run(10) == 7
    assert time.monotonic() - begun < 5
    assert sorted(seen) == ["cancelled", "told"]


def test_a_main_that_fails_is_told_and_the_tool_leaves(make_bus: MakeBus) -> None:
    class Broken(Tool, name="calc"):
        def main(self) -> None:
            raise ValueError("oh dear")

    bus = make_bus(script("rec-connect(T?) . rec-disconnect(T) . shutdown(left)"))
    bus.attach(Broken())
    assert bus.run(10) is Term("left")
    assert any("main: ValueError: oh dear" in text for text in bus.warnings())


def test_whoever_waits_for_a_bus_that_ends_learns_of_it(make_bus: MakeBus) -> None:
    failed: list[str] = []
    done = threading.Event()

    class Waiting(Tool, name="calc"):
        async def main(self) -> None:
            try:
                await self.event("never-acknowledged")
            except ClosedError as error:
                failed.append(str(error))
                done.set()

    bus = make_bus(script("rec-connect(T?) . rec-event(T, never-acknowledged) . shutdown(done)"))
    bus.attach(Waiting())
    bus.run(10)
    assert done.wait(60)
    assert "never-acknowledged" in failed[0]


def test_a_tool_is_at_one_bus_at_a_time(make_bus: MakeBus) -> None:
    bus = make_bus(script("rec-connect(T?) . rec-connect(T?)"))
    tool = Calc()
    bus.attach(tool)
    bus.start()
    with pytest.raises(LocalError, match="connected already"):
        bus.attach(tool)
