"""Threads that dial: few of them for many addresses, none twice, and none left when all is done."""

import threading
import time

from echoic.hub.diallers import Diallers
from tests.hub.parties import eventually


class Line:
    """Notes who is dialled, and how many at a time; each call takes until it is let through."""

    def __init__(self) -> None:
        self.dialled: list[str] = []
        self.busy = self.most = 0
        self.through = threading.Event()
        self._lock = threading.Lock()

    def dial(self, address: str) -> None:
        with self._lock:
            self.dialled.append(address)
            self.busy += 1
            self.most = max(self.most, self.busy)
        self.through.wait(10)
        with self._lock:
            self.busy -= 1


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "echoic-dial"}


def test_thousands_of_hubs_are_dialled_by_a_few_threads_and_none_waits_twice() -> None:
    line, before = Line(), _threads()
    diallers = Diallers(line.dial, threads_max=8)
    addresses = [f"h{number}" for number in range(5000)]
    for address in addresses:
        diallers.add(address)
    eventually(lambda: line.busy == 8, "all threads dial")
    assert len(_threads() - before) == 8
    for address in addresses[8:]:
        diallers.add(address)
    line.through.set()
    eventually(lambda: len(line.dialled) == 5000, "all were dialled")
    eventually(lambda: not _threads() - before, "the threads have ended")  # those of others may have ended too
    assert line.most == 8
    assert sorted(line.dialled) == sorted(addresses)


def test_an_address_can_be_dialled_again_when_it_was() -> None:
    line = Line()
    line.through.set()
    diallers = Diallers(line.dial)
    for times in range(1, 4):
        diallers.add("h")
        eventually(lambda times=times: len(line.dialled) == times, "it was dialled")  # type: ignore[misc]
        time.sleep(0.01)


def test_who_hears_how_it_went_may_have_it_tried_again() -> None:
    tried: list[int] = []

    def dial(address: str) -> None:
        tried.append(1)
        if len(tried) < 4:
            diallers.add(address)

    diallers = Diallers(dial)
    diallers.add("h")
    eventually(lambda: len(tried) == 4, "it was tried again, and again")


def test_one_that_does_not_answer_holds_up_nobody() -> None:
    deaf, heard = threading.Event(), list[str]()

    def dial(address: str) -> None:
        if address == "deaf":
            deaf.wait(10)
        heard.append(address)

    diallers = Diallers(dial)
    diallers.add("deaf")
    diallers.add("honest")
    eventually(lambda: heard == ["honest"], "the other is dialled")
    deaf.set()
    eventually(lambda: heard == ["honest", "deaf"], "and so is this")
