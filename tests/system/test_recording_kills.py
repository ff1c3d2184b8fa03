"""SIGKILL of recorders, sources and durable sinks, and disks that fill up: what was acknowledged is there, once."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.recorder import Disk, Journal, verify
from echoic.testing.kill_roles import wrong_ticks
from tests.system.processes import Process, Start, processes, wait_until

pytestmark = pytest.mark.system

WORKER = Path(__file__).with_name("recording_worker.py")
MEGABYTE = 1024 * 1024
FILLER_BYTES = 5 * MEGABYTE


@pytest.fixture
def start() -> Iterator[Start]:
    with processes(WORKER) as start:
        yield start


@pytest.fixture
def channel(start: Start) -> str:
    return start("manage").started["id"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB on which little is left."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    try:
        (folder / "filler").write_bytes(bytes(FILLER_BYTES))
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def recorded(path: Path) -> dict[int, int]:
    """Return how many events of each source a journal has; they are there once, in order, as they were submitted."""
    found: dict[int, int] = {}
    for one in Journal(path, "ticks").read():
        producer = int(one.batch.array["producer"][0])
        assert wrong_ticks(one.batch, found.get(producer, 0)) == ""
        found[producer] = found.get(producer, 0) + one.batch.count
    return found


def submit(source: Process, count: int) -> None:
    assert source.ask(f"submit {count}")["problem"] == ""


def drained(source: Process) -> int:
    told = source.ask("drain 30")
    assert told["problem"] == ""
    return told["position"]


def test_a_source_is_killed_while_the_recorder_is_away(start: Start, channel: str, tmp_path: Path) -> None:
    recorder = start("record", channel=channel, path=str(tmp_path))
    assert recorder.started["heads"] == [0]
    source = start("publish", channel=channel, producer=1)
    submit(source, 1000)
    acknowledged = drained(source)
    recorder.kill()
    submit(source, 500)
    source.kill()
    again = start("record", channel=channel, path=str(tmp_path))
    assert again.started["journal"] == recorder.started["journal"]
    assert again.started["heads"] == [acknowledged]
    successor = start("publish", channel=channel, producer=1)
    assert successor.started["position"] == acknowledged == 1000
    submit(successor, 2000)
    assert drained(successor) == 3000
    assert recorded(tmp_path) == {1: 3000}


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same-address", "another-address"])
def test_a_recorder_is_killed_before_it_could_acknowledge(
    start: Start, channel: str, tmp_path: Path, elsewhere: bool
) -> None:
    recorder = start("record", channel=channel, path=str(tmp_path))
    address = recorder.started["address"]
    sources = [start("publish", channel=channel, producer=producer) for producer in (1, 2)]
    assert [source.started["position"] for source in sources] == [0, 0]
    recorder.signal(signal.SIGSTOP)  # what comes into its sockets is not looked at any more
    for source in sources:
        submit(source, 5000)
        assert source.ask()["unconfirmed"] > 0
    recorder.kill()
    again = start("record", channel=channel, path=str(tmp_path), listen="127.0.0.1:0" if elsewhere else address)
    assert again.started["journal"] == recorder.started["journal"]
    for source in sources:
        submit(source, 5000)
        assert drained(source) == 10_000
        assert source.ask()["unconfirmed"] == 0
    assert recorded(tmp_path) == {1: 10_000, 2: 10_000}
    assert verify(Disk(tmp_path), "ticks") == []


def test_a_recorder_that_is_killed_again_and_again_loses_nothing(start: Start, channel: str, tmp_path: Path) -> None:
    recorder = start("record", channel=channel, path=str(tmp_path))
    assert recorder.started["heads"] == [0]
    source = start("publish", channel=channel, producer=1)
    submit(source, 1000)
    for number in range(8):
        recorder.kill()
        submit(source, 1000)
        recorder = start("record", channel=channel, path=str(tmp_path))
        if number % 2:
            wait_until((tmp_path / "ticks" / "lock").exists, "it has begun to begin")
    assert recorder.started["journal"]
    assert drained(source) == 9000
    assert recorded(tmp_path) == {1: 9000}


def test_a_recorder_that_manages_the_channel_too_is_killed(start: Start, tmp_path: Path) -> None:
    recorder = start("record", create=True, path=str(tmp_path))
    source = start("publish", channel=recorder.started["id"], producer=1)
    submit(source, 1000)
    recorder.kill()
    submit(source, 1000)
    again = start("record", create=True, path=str(tmp_path), listen=recorder.started["address"])
    assert again.started["id"] == recorder.started["id"]
    assert drained(source) == 2000
    assert recorded(tmp_path) == {1: 2000}


def test_a_source_that_ends_leaves_its_events_for_a_recorder_that_comes_back(
    start: Start, channel: str, tmp_path: Path
) -> None:
    recorder = start("record", channel=channel, path=str(tmp_path))
    assert recorder.started["heads"] == [0]
    source = start("publish", channel=channel, producer=1)
    submit(source, 1000)
    assert drained(source) == 1000
    recorder.signal(signal.SIGSTOP)
    submit(source, 1000)
    recorder.signal(signal.SIGCONT)
    source.end()
    wait_until(lambda: recorded(tmp_path) == {1: 2000}, "a hub that ends waits for the recorder, for a moment")


def test_a_second_recorder_of_the_same_journal_is_told_who_is_in_the_way(
    start: Start, channel: str, tmp_path: Path
) -> None:
    first = start("record", channel=channel, path=str(tmp_path))
    assert first.started["heads"] == [0]
    second = start("record", channel=channel, path=str(tmp_path))
    assert second.started["kind"] == "JournalError"
    assert "ticks" in second.started["error"]
    source = start("publish", channel=channel, producer=1)
    submit(source, 1000)
    assert drained(source) == 1000, "the first goes on"
    first.kill()
    third = start("record", channel=channel, path=str(tmp_path))
    assert third.started["heads"] == [1000], "who is killed is not in the way any more"


def test_a_recorder_is_killed_while_the_disk_is_full(start: Start, channel: str, small_disk: Path) -> None:
    path = small_disk / "journal"
    recorder = start("record", channel=channel, path=str(path))
    assert recorder.started["heads"] == [0]
    source = start("publish", channel=channel, producer=1)
    submit(source, 10_000)
    acknowledged = drained(source)
    submit(source, 300_000)
    wait_until(lambda: recorder.ask()["trouble"], "the disk is full")
    recorder.kill()
    again = start("record", channel=channel, path=str(path))
    refused = "error" in again.started
    (small_disk / "filler").unlink()
    if refused:  # there was no room to put a torn end aside
        again = start("record", channel=channel, path=str(path))
    assert again.started["heads"][0] >= acknowledged
    assert drained(source) == 310_000
    assert recorded(path) == {1: 310_000}
    assert verify(Disk(path), "ticks") == []
