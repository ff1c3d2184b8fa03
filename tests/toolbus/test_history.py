"""The last steps of a bus: kept while somebody asks, and plain."""

import itertools
from collections.abc import Iterator

import pytest

from echoic.toolbus import Bus
from echoic.toolbus.history import ASKED_SECONDS, SHORT_CHARACTERS_MAX, StepHistory

SCRIPT = """
process Ping is ( snd-msg(ping) . rec-msg(pong) . printf("") ) * delta
process Pong is ( rec-msg(ping) . snd-msg(pong) ) * delta
process Mother is let P : int in create(Pong, P?) endlet
toolbus(Ping, Mother)
"""


class Clock:
    """Time that goes on when a test wants."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def bus() -> Iterator[Bus]:
    with Bus.from_script(SCRIPT, seed=1, output=lambda text: None) as made:
        yield made


def do(bus: Bus, steps: int) -> None:
    for _ in range(steps):
        assert bus.step()


def test_nothing_is_kept_before_somebody_asks(bus: Bus) -> None:
    history = StepHistory(bus, 0, traced=False)
    do(bus, 5)
    assert not bus.machine.traced
    assert history.since(0) == {"name": "bus", "steps": []}
    do(bus, 5)
    steps = history.since(0)["steps"]
    assert [each["number"] for each in steps] == [6, 7, 8, 9, 10]
    met = [each for each in steps if each["atom"] == "snd-msg"]
    assert {(each["name"], each["partner_name"]) for each in met} == {("Ping", "Pong"), ("Pong", "Ping")}
    assert [each["number"] for each in history.since(8)["steps"]] == [9, 10]


def test_a_few_steps_are_kept_and_no_more(bus: Bus) -> None:
    history = StepHistory(bus, 0, traced=False, kept=10)
    history.since(0)
    do(bus, 100)
    assert [each["number"] for each in history.since(0)["steps"]] == list(range(91, 101))


def test_nothing_is_kept_when_nobody_has_asked_for_a_while(bus: Bus) -> None:
    clock = Clock()
    history = StepHistory(bus, 0, traced=False, now=clock)
    history.since(0)
    do(bus, 5)
    clock.now += ASKED_SECONDS - 1
    assert len(history.since(0)["steps"]) == 5
    clock.now += ASKED_SECONDS + 1
    do(bus, 5)
    assert not bus.machine.traced
    assert not history.keeping
    history.since(0)
    do(bus, 1)
    assert [each["number"] for each in history.since(0)["steps"]] == [11]


def test_others_who_listen_to_steps_go_on_listening(bus: Bus) -> None:
    clock, heard = Clock(), []
    bus.trace(on=True)
    bus.on_step(heard.append)
    history = StepHistory(bus, 0, traced=True, now=clock)
    history.since(0)
    clock.now += ASKED_SECONDS + 1
    do(bus, 5)
    assert len(heard) == 5


def test_what_is_long_is_cut_off_and_kept_by_nobody() -> None:
    script = 'process P(X : str) is snd-msg(X) process Q is let X : str in rec-msg(X?) endlet toolbus(P("TEXT"), Q)'
    with Bus.from_script(script.replace("TEXT", "x" * 100_000) + "\n", seed=1) as bus:
        history = StepHistory(bus, 0, traced=False)
        history.since(0)
        assert bus.step()
        (text,) = history.since(0)["steps"][0]["arguments"]
    assert len(text) == SHORT_CHARACTERS_MAX
    assert text.startswith('"xxx')


def test_steps_can_be_asked_for_while_the_bus_runs(bus: Bus) -> None:
    history = StepHistory(bus, 0, traced=False)
    bus.start()
    last = 0
    for _ in range(50):
        steps = history.since(last)["steps"]
        numbers = [each["number"] for each in steps]
        assert all(one + 1 == other for one, other in itertools.pairwise(numbers))
        last = numbers[-1] if numbers else last
    while not history.since(0)["steps"]:
        pass  # it runs as fast as it can
