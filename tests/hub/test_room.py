"""Who waits for room, or for a link on which nothing happens, costs others nothing."""

import threading
import time
from pathlib import Path

import pytest

from echoic.hub.room import ROOM_SECONDS, Room
from tests.hub.parties import Collector, StartHub, Tick, eventually


def waited(full: bool) -> float:
    """How long a thread waits that is looked after all the time, and has room or not."""
    lock = threading.Lock()
    room, entered = Room(lock), threading.Event()
    seconds: list[float] = []

    def wait() -> None:
        with lock:
            entered.set()
            began = time.monotonic()
            room.wait(lambda: full)
            seconds.append(time.monotonic() - began)

    waiting = threading.Thread(target=wait)
    waiting.start()
    entered.wait()
    while waiting.is_alive():
        with lock:
            room.look()
        time.sleep(0.001)
    return seconds[0]


def test_nobody_is_woken_for_whom_there_is_no_room() -> None:
    assert waited(full=True) >= ROOM_SECONDS * 0.9


def test_whoever_has_room_is_woken_at_once() -> None:
    assert min(waited(full=False) for _ in range(3)) < ROOM_SECONDS / 2


def test_a_link_on_which_nothing_happens_is_left_alone(start_hub: StartHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ECHOIC_LINKS", "tcp")
    here, there = start_hub(), start_hub()
    seen = Collector()
    created = here.create("ticks", Tick)
    there.open(created.id, Tick).subscribe(seen)
    created.source().submit(Tick(1, 1))
    seen.has(1)
    readers = [thread for thread in threading.enumerate() if thread.name.startswith("echoic-link-")]
    assert readers
    time.sleep(0.5)
    before = sum(map(switches, readers))
    time.sleep(2)
    assert sum(map(switches, readers)) - before <= 6 * len(readers)  # ten a second each, if it looked at the clock
    created.source().submit(Tick(1, 2))
    eventually(lambda: len(seen.numbers) == 2, "it is heard nevertheless")


def switches(thread: threading.Thread) -> int:
    status = Path(f"/proc/self/task/{thread.native_id}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
