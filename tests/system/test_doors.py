"""Every door of the product, and strangers at it who say nothing, or begin and do not go on."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from echoic.testing.trials.doors import open_doors
from echoic.testing.trials.knocking import Door

pytestmark = pytest.mark.system
STRANGERS = 80
PATIENCE_SECONDS = 40.0
BEGINNINGS = (b"", b"G", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ", b"\x40\x00\x00\x00\x01\x00\x00\x00")
OTHERS = frozenset({"foxglove", "console"})
"""The server of Foxglove's SDK waits for ever, though it serves others; a console is asked by its own user alone."""


@pytest.fixture(scope="module")
def doors() -> Iterator[list[Door]]:
    with open_doors() as opened:
        yield opened


def crowd(door: Door, stack: ExitStack) -> list[socket.socket]:
    """Have strangers at a door."""
    found = []
    for number in range(STRANGERS):
        stranger = stack.enter_context(door.connect())
        stranger.sendall(BEGINNINGS[number % len(BEGINNINGS)])
        stranger.setblocking(False)
        found.append(stranger)
    return found


def hung_up(stranger: socket.socket) -> bool:
    """Tell whether a connection has ended, whatever was said before."""
    try:
        while True:
            if not stranger.recv(65536):
                return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_strangers_who_wait_keep_no_honest_guest_out_and_are_sent_away(doors: list[Door]) -> None:
    with ExitStack() as stack:
        strangers: dict[socket.socket, str] = {}
        for door in doors:
            if door.name != "console":
                strangers |= dict.fromkeys(crowd(door, stack), door.name)
                door.visit()
        waiting = {each: name for each, name in strangers.items() if name not in OTHERS}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while waiting and time.monotonic() < deadline:
            time.sleep(0.2)
            waiting = {each: name for each, name in waiting.items() if not hung_up(each)}
        assert not waiting, f"still there: {sorted(set(waiting.values()))}"
        for door in doors:
            door.visit()


def test_no_door_is_open_to_other_machines_unless_that_was_said(doors: list[Door]) -> None:
    for door in doors:
        assert door.address.startswith(("127.0.0.1:", "/")), door.name
