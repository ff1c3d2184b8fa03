"""Embedded members as processes, with their logs on disks, and what really happens to them: they are killed, stopped,
their disks are full or gone. Whatever happens, what they were given is one order, and nothing of it is lost.

How they are parted is tried in `tests/reliability/test_05_partitions.py`; `python -m tests.engines.fault_campaign` does
all of it for longer, and for every engine.
"""

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.errors import ClosedError
from tests.engines.trios import NAMES, ProcessTrio, namespaces

pytestmark = pytest.mark.system
PAUSE = 0.001
SMALL_DISK_BYTES = 6 * 1024 * 1024


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessTrio]:
    folder = tmp_path_factory.mktemp("faults")
    with namespaces(folder / "nodes") as nodes:
        made = ProcessTrio("embedded", folder, nodes, durability="disk")
        yield made
        made.close()


@pytest.fixture
def trio(place: ProcessTrio) -> Iterator[ProcessTrio]:
    yield place
    place.end()


def test_a_leader_that_stands_still_is_replaced_and_goes_on_as_a_follower(trio: ProcessTrio) -> None:
    trio.join()
    trio.ask_all("load", pause=PAUSE)
    trio.advance(0.1)
    leader = trio.leader()
    trio.stop(leader)
    others = {name: life for name, life in trio.present.items() if name != leader}
    try:
        trio.until(lambda: all(trio.ask(name, "statistics")["view"]["members"] == sorted(others) for name in others))
        given = trio.stories.latest()[leader].last
        delivered = trio.ask(min(others), "statistics")["delivered"]
        trio.until(lambda: trio.ask(min(others), "statistics")["delivered"] > delivered + 50)
        assert trio.stories.latest()[leader].last == given
    finally:
        trio.resume(leader)
    trio.wait_for_view()
    trio.ask_all("unload")
    trio.settle()


def test_nothing_that_was_delivered_is_lost_when_all_are_killed_at_once(trio: ProcessTrio) -> None:
    trio.join()
    trio.ask_all("load", pause=PAUSE)
    trio.advance(0.4)
    for name in NAMES:
        trio.kill(name)
    given = max(story.last for story in trio.stories.read())
    assert given > 0
    trio.join()
    trio.ask_all("submit", count=10, text="after")
    history = trio.settle()
    assert len(history) >= given + 30


def test_a_member_whose_log_is_gone_comes_back_as_another_one(trio: ProcessTrio) -> None:
    trio.join()
    trio.ask_all("submit", count=50, text="before")
    trio.settle()
    gone = trio.leader()
    trio.kill(gone)
    shutil.rmtree(trio.logs[gone])
    trio.wait_for_view()
    trio.ask_all("submit", count=50, text="without it")
    trio.join(gone)
    trio.ask_all("submit", count=50, text="with it again")
    history = trio.settle()
    assert len(history) == 150 + 100 + 150
    assert len(trio.stories.latest()[gone].events) == len(history)


def test_a_member_whose_disk_is_full_ends_with_the_reason_and_comes_back_after_mending(
    trio: ProcessTrio, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK_BYTES}", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no small disk can be made: {mounted.stderr.decode().strip()}")
    try:
        fill_one_disk(trio, disk)
    finally:
        for name in list(trio.processes):
            trio.end_process(name)
        subprocess.run(["umount", disk], check=False)


def fill_one_disk(trio: ProcessTrio, disk: Path) -> None:
    for name in list(trio.processes):  # the disk is to be seen by processes that start from here on
        trio.end_process(name)
    ballast = disk / "ballast"
    trio.logs["n2"] = disk / "log"
    trio.join()
    trio.ask_all("submit", count=10, text="while there is room")
    trio.settle()
    ballast.write_bytes(b"x" * (SMALL_DISK_BYTES - 1_500_000))
    for _ in range(40):
        trio.ask("n1", "submit", count=10, text="fill the disk ", size=800)
        trio.advance(0.05)
        reason = trio.ask("n2", "statistics")["reason"]
        if reason:
            break
    trio.until(lambda: "cannot be kept" in trio.ask("n2", "statistics")["reason"])
    with pytest.raises(ClosedError, match="log of this member cannot be kept"):
        trio.ask("n2", "submit")
    trio.leave("n2")
    trio.wait_for_view()
    trio.ask_all("submit", count=10, text="the others go on")
    trio.settle()
    ballast.unlink()
    trio.join("n2")
    trio.ask_all("submit", count=10, text="mended")
    trio.settle()
    assert trio.stories.latest()["n2"].events


def test_tables_of_three_databases_are_equal_and_complete_after_kills(trio: ProcessTrio) -> None:
    chance = random.Random(7)
    urls = {name: f"sqlite:{trio.place}/{name}.db" for name in NAMES}
    for name in NAMES:
        trio.join(name, wait=False, state=urls[name])
    trio.wait_for_view()
    for _ in range(3):
        trio.ask_all("load", pause=PAUSE)
        trio.advance(chance.uniform(0.1, 0.3))
        killed = chance.choice(NAMES)
        trio.kill(killed)
        trio.wait_for_view()
        trio.join(killed, state=urls[killed])
        trio.ask_all("unload")
    trio.settle()
    tables = trio.ask_all("table")
    assert tables["n1"] == tables["n2"] == tables["n3"]
    assert [row[0] for row in tables["n1"]] == list(range(1, len(tables["n1"]) + 1))
    given = {event[0]: event[1:2] for story in trio.stories.read() for event in story.history}
    assert max(given) == len(tables["n1"])
    numbers = [(row[1], row[2]) for row in tables["n1"]]
    assert len(set(numbers)) == len(numbers), "each event once"


def test_the_clocks_of_machines_are_of_no_importance(trio: ProcessTrio) -> None:
    trio.start(*(name for name in NAMES if name not in trio.processes))
    trio.present = dict.fromkeys(NAMES, 0)
    for name, seconds in (("n1", -(10.0**9)), ("n2", 10.0**9)):
        trio.ask(name, "set_clock", seconds=seconds)
    trio.join()
    trio.ask_all("submit", count=50, text="in which year?")
    trio.settle()
    killed = trio.leader()
    trio.kill(killed)
    trio.wait_for_view()
    trio.start(killed)
    trio.present[killed] = 0
    trio.ask(killed, "set_clock", seconds=-(10.0**8))
    trio.join(killed)
    trio.ask_all("submit", count=50, text="in another one")
    assert len(trio.settle()) == 300
    for name in NAMES:
        trio.end_process(name)
