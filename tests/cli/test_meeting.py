"""Two terminals, and nothing else: who publishes and who listens find each other, whoever is first or dies."""

import json
import signal
from collections.abc import Iterator

import pytest

from tests.cli.terminals import TRADE, Desk, desk, poll

pytestmark = pytest.mark.system

EVENT = "{symbol: IBM, price: 75.5}"
BLOCK = "symbol: IBM\nprice: 75.5\nvolume: 0\n---\n"


@pytest.fixture
def room() -> Iterator[Desk]:
    with desk() as made:
        yield made


def test_who_listens_first_hears_the_first_event(room: Desk) -> None:
    echo = room.start("echo", "trades", "--once").says("waiting for channel 'trades'")
    pub = room.run("pub", "trades", TRADE, EVENT)
    assert (echo.ends(), echo.out, pub.process.returncode) == (0, BLOCK, 0)
    assert "published 1 event to echoic://127.0.0.1:" in pub.err
    assert "nobody" not in pub.err


def test_who_publishes_first_waits_for_who_listens(room: Desk) -> None:
    pub = room.start("pub", "trades", TRADE, EVENT, "-w").says("waiting for 1 subscriber of 'trades'")
    echo = room.start("echo", "trades", "--once")
    assert (pub.ends(), echo.ends(), echo.out) == (0, 0, BLOCK)


def test_a_listener_stays_when_publishers_come_and_go(room: Desk) -> None:
    echo = room.start("echo", "trades", "-n", "2").says("waiting for channel")
    room.run("pub", "trades", TRADE, EVENT)
    echo.shows("IBM")
    room.run("pub", "trades", TRADE, "symbol=ECHO", "price=1", "-w")
    assert echo.ends() == 0
    assert "symbol: ECHO\nprice: 1.0\n" in echo.out


def test_names_survive_the_killing_of_who_serves_them(room: Desk) -> None:
    server = room.start("echo", "trades").says("waiting for channel")
    pub = room.start("pub", "trades", TRADE, EVENT, "-r", "20")
    server.shows("IBM")
    server.kill()
    late = room.start("echo", "trades", "-n", "3")
    assert late.ends() == 0
    assert late.out == BLOCK * 3
    assert pub.interrupt() == 0


def test_a_publisher_goes_on_with_the_channel_of_one_that_was_killed(room: Desk) -> None:
    first = room.start("pub", "trades", TRADE, EVENT, "-r", "10")
    poll(lambda: json.loads(room.run("ls", "--json").out or "[]"), "the channel")
    second = room.start("pub", "trades", TRADE, "{symbol: ECHO, price: 1}", "-r", "30")
    echo = room.start("echo", "trades", "--field", "symbol").shows("ECHO")
    first.kill()
    poll(lambda: echo.out.rpartition("IBM")[2].count("ECHO") > 30, "the second publisher to go on")
    assert second.interrupt() == 0
    assert echo.interrupt() == 0


def test_a_server_that_is_told_to_end_takes_leave(room: Desk) -> None:
    server = room.start("names", "serve").says(f"serving names at {room.names}")
    assert "perhaps names are served there already" in room.run("names", "serve").err
    assert server.interrupt(signal.SIGTERM) == 0


def test_who_only_looks_starts_nothing(room: Desk) -> None:
    looked = room.run("ls")
    assert looked.process.returncode == 1
    assert f"nobody serves names at {room.names}; start `echoic up`" in looked.err
