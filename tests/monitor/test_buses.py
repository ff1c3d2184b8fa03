"""Buses seen from outside: real ones at their desks, and programs that answer anything there."""

import functools
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic.monitor.buses import BUSES_MAX, BusesOverview, bus_load
from echoic.toolbus import Bus
from echoic.toolbus.desk import ConsoleDesk
from echoic.toolbus.history import StepHistory
from echoic.toolbus.state import references_of, state_of
from tests.hub.parties import eventually

SCRIPT = """
process Ping is ( snd-msg(ping("<img src=x>")) . rec-msg(pong) . tau delay(msec(1)) ) * delta
process Pong is let X : str in ( rec-msg(ping(X?)) . snd-msg(pong) ) * delta endlet
process Left is rec-msg(b) . snd-msg(a)
process Right is rec-msg(a) . snd-msg(b)
toolbus(Ping, Pong, Left, Right)
"""
TEXT_MAX = 300


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as runtime:  # the address of a socket must be short
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        yield Path(runtime)


@pytest.fixture
def overview() -> Iterator[BusesOverview]:
    made = BusesOverview()
    yield made
    made.close()


@contextmanager
def running(name: str = "office") -> Iterator[Bus]:
    """Run a bus with a desk, as `echoic bus run` does."""
    with Bus.from_script(SCRIPT, name=name, seed=1) as bus:
        history = StepHistory(bus, 0, traced=False)

        def answer(question: str) -> dict[str, Any]:
            word, _, rest = question.partition(" ")
            if word == "history":
                return history.since(int(rest))
            return references_of(bus, "script") if word == "refs" else state_of(bus, "script", 1.0, ["a check"])

        with ConsoleDesk(name, answer):
            bus.start()
            yield bus


def test_a_running_bus_is_seen_with_who_waits_and_what_happened(overview: BusesOverview) -> None:
    assert overview.look().buses == []
    with running():
        eventually(lambda: len(overview.look().buses[0].steps) > 20)
        (bus,) = overview.look().buses
        assert (bus.bus, bus.trouble, bus.script, bus.seed, bus.checks) == ("office", "", "script", "1", ["a check"])
        assert [each.name for each in bus.processes] == ["Ping", "Pong", "Left", "Right"]
        hopeless = {(each.waiter.name, each.awaited.name) for each in bus.waits if each.hopeless and each.awaited}
        assert hopeless == {("Left", "Right"), ("Right", "Left")}
        met = [each for each in bus.steps if each.atom == "snd-msg"]
        assert {(each.name, each.partner_name) for each in met} == {("Ping", "Pong"), ("Pong", "Ping")}
        assert 'ping("<img src=x>")' in {argument for each in met for argument in each.arguments}
        numbers = [each.number for each in bus.steps]
        assert numbers == sorted(set(numbers))
        eventually(lambda: overview.look().buses[0].steps_per_second > 0)
    assert overview.look().buses == []


def test_each_of_many_buses_is_seen_and_the_rest_are_counted(overview: BusesOverview) -> None:
    desks = [ConsoleDesk(f"bus{number}", lambda question: {"error": question}) for number in range(BUSES_MAX + 2)]
    for desk in desks:
        desk.__enter__()
    load = overview.look()
    assert (len(load.buses), load.more) == (BUSES_MAX, 2)
    assert all("says: state 100" in each.trouble for each in load.buses)
    for desk in desks:
        desk.__exit__(None, None, None)


@functools.cache
def encoded_state() -> bytes:
    with Bus.from_script(SCRIPT, seed=1) as bus:
        bus.step()
        return msgspec.json.encode(state_of(bus, "script", 1.0, []))


def state() -> dict[str, Any]:
    """Return what a bus would answer."""
    return msgspec.json.decode(encoded_state(), type=dict[str, Any])


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_an_answer_that_is_none_is_a_trouble_and_nothing_else(data: st.DataObject) -> None:
    wrong = state()
    for key in data.draw(st.lists(st.sampled_from(sorted(wrong)), min_size=1, unique=True)):
        wrong[key] = data.draw(anything)
    try:
        load = bus_load("odd", wrong, {})
    except (msgspec.ValidationError, AttributeError, TypeError):
        return
    msgspec.json.encode(load)


ANSWERS: dict[str, Callable[[str], dict[str, Any]]] = {
    "nothing": lambda question: {},
    "another thing": lambda question: {"statistics": 7, "processes": "many"},
    "lists in lists": lambda question: {"statistics": {"references": []}, "steps": [[[]]]},
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_desk_that_answers_anything_does_no_harm(overview: BusesOverview, answer: str) -> None:
    with ConsoleDesk("odd", ANSWERS[answer]), running("good"):
        good, odd = overview.look().buses
        assert (good.trouble, len(good.processes)) == ("", 4)
        assert odd.trouble.startswith("it answers what is no answer")


def test_a_desk_that_answers_late_holds_nobody_up(overview: BusesOverview) -> None:
    over = threading.Event()

    def never(question: str) -> dict[str, Any]:
        over.wait()
        return {}

    with ConsoleDesk("late", never), running("good"):
        good, late = overview.look().buses
        assert good.trouble == ""
        assert "does not answer" in late.trouble
        over.set()


def test_much_is_cut_down() -> None:
    large = state()
    large["processes"] = large["processes"][:1] * 1000
    large["processes"][0] = {**large["processes"][0], "name": "x" * 10_000, "notes": ["y" * 10_000] * 100}
    large["waits"] = large["waits"][:1] * 1000
    large["warnings"] = ["z" * 10_000] * 1000
    load = bus_load("large", large, {})
    assert len(msgspec.json.encode(load)) < 300_000
    assert len(load.processes[0].name) == TEXT_MAX
    assert max(map(len, load.warnings)) == TEXT_MAX
