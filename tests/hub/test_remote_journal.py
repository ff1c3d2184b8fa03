"""A journal that is read from another hub: the same as on the recorder's own disk."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic import Hub
from echoic.errors import JournalError, LocalError, UnreachableError
from echoic.hub import remote_shelf
from echoic.recorder import Hole, Journal, Retention
from echoic.recorder import Recorded as Found
from tests.hub.parties import Tick, eventually
from tests.hub.recorded import Recorded, submit


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Recorded]:
    recorded = Recorded(tmp_path)
    yield recorded
    recorded.close()


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        yield hub


def numbers(found: Iterator[Found]) -> list[int]:
    return [number for one in found for number in one.batch.array["number"].tolist()]


def test_it_has_what_the_recorder_has_on_its_disk(recorded: Recorded, hub: Hub, tmp_path: Path) -> None:
    for start in range(0, 1000, 100):
        submit(recorded.source, range(start, start + 100))
    remote, local = recorded.open(hub).journal(), Journal(tmp_path, "ticks")
    assert (remote.id, remote.name, remote.partitions) == (local.id, local.name, local.partitions)
    assert (remote.heads, remote.firsts) == (local.heads, local.firsts) == ((1000,), (0,))
    assert [format.token for format in remote.formats] == [format.token for format in local.formats]
    assert numbers(remote.read()) == list(range(1000))
    assert numbers(remote.read(250, 333)) == list(range(250, 333))
    assert [(one.sequence, one.source, one.first, one.time_ns) for one in remote.read()] == [
        (one.sequence, one.source, one.first, one.time_ns) for one in local.read()
    ]


def test_it_gives_columns(recorded: Recorded, hub: Hub, tmp_path: Path) -> None:
    submit(recorded.source, range(1000))
    remote, local = recorded.open(hub).journal(), Journal(tmp_path, "ticks")
    assert remote.arrow(metadata=True).read_all().equals(local.arrow(metadata=True).read_all())
    assert numbers(remote.read(where="input.number >= 990")) == list(range(990, 1000))


def test_a_range_of_time_is_the_same_as_on_the_disk(recorded: Recorded, hub: Hub, tmp_path: Path) -> None:
    for start in range(0, 50, 10):
        submit(recorded.source, range(start, start + 10))
    remote, local = recorded.open(hub).journal(), Journal(tmp_path, "ticks")
    middle = [one.time_ns for one in local.read()][2]
    assert numbers(remote.read(since=middle)) == numbers(local.read(since=middle)) == list(range(20, 50))


def test_it_is_read_while_it_grows(recorded: Recorded, hub: Hub) -> None:
    got: list[int] = []
    journal = recorded.open(hub).journal()

    def read() -> None:
        for one in journal.tail(0, timeout=30):
            got.extend(one.batch.array["number"].tolist())
            if got[-1] == 999:
                return

    thread = threading.Thread(target=read)
    thread.start()
    for start in range(0, 1000, 50):
        submit(recorded.source, range(start, start + 50))
    thread.join(60)
    assert got == list(range(1000))


def test_reading_goes_on_when_the_recorder_is_restarted_elsewhere(recorded: Recorded, hub: Hub) -> None:
    for start in range(0, 200_000, 20_000):
        submit(recorded.source, range(start, start + 20_000))
    journal = recorded.open(hub).journal()
    got: list[int] = []
    for one in journal.read():
        if not got:
            recorded.stop()
            recorded.start()
        got.extend(one.batch.array["number"].tolist())
    assert got == list(range(200_000))
    assert journal.heads == (200_000,)


def test_a_hub_that_has_yet_to_open_the_channel_again_is_waited_for(
    recorded: Recorded, hub: Hub, tmp_path: Path
) -> None:
    submit(recorded.source, range(10))
    journal = recorded.open(hub).journal()
    recorded.stop()
    recorded.recorder = Hub(recorded.recorder.address)
    timer = threading.Timer(0.5, lambda: recorded.recorder.record(recorded.channel.id, tmp_path))
    timer.start()
    assert journal.heads == (10,)
    timer.join()


def test_a_channel_that_nobody_records_has_no_journal(hub: Hub) -> None:
    channel = hub.create("ticks", Tick)
    with pytest.raises(UnreachableError, match="no recorder of `ticks` is there"):
        channel.journal()


def test_a_journal_that_is_not_recorded_any_more_cannot_be_read(
    recorded: Recorded, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_shelf, "PATIENCE_SECONDS", 0.5)
    submit(recorded.source, range(10))
    journal = recorded.open(hub).journal()
    recorded.recording.close()
    with pytest.raises(JournalError, match="the journal of `ticks` cannot be read: no recorder"):
        list(journal.read())
    with recorded.recorder.record(recorded.channel.id, tmp_path / "other"):
        with pytest.raises(JournalError, match="is not recorded in journal"):
            list(journal.read())
        with pytest.raises(JournalError, match="is not recorded in journal"):
            recorded.open(hub).journal("0" * 32)


def test_a_hole_is_told_with_its_reason(tmp_path: Path, hub: Hub) -> None:
    recorded = Recorded(tmp_path, segment_bytes_max=20_000, retention=Retention(bytes_max=60_000))
    for start in range(0, 20_000, 500):
        submit(recorded.source, range(start, start + 500))
    journal = recorded.open(hub).journal()
    (first,) = journal.firsts
    assert first > 0
    holes: list[Hole] = []
    assert numbers(journal.read(0, on_hole=holes.append)) == list(range(first, 20_000))
    assert [(hole.first, hole.last) for hole in holes] == [(0, first - 1)]
    assert "removed" in holes[0].reason
    recorded.close()


def test_damage_on_the_recorders_disk_is_told_to_whoever_reads_from_afar(
    recorded: Recorded, hub: Hub, tmp_path: Path
) -> None:
    for start in range(0, 5000, 500):
        submit(recorded.source, range(start, start + 500))
    (segment,) = (tmp_path / "ticks" / "0").glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    with segment.open("r+b") as file:
        file.write(data)
    journal = recorded.open(hub).journal()
    with pytest.raises(JournalError):
        list(journal.read())
    holes: list[Hole] = []
    got = numbers(journal.read(on_hole=holes.append))
    (hole,) = holes
    assert got == [number for number in range(5000) if not hole.first <= number <= hole.last]


def test_what_named_sinks_have_marked_is_known(recorded: Recorded, hub: Hub) -> None:
    submit(recorded.source, range(10))
    channel = recorded.open(hub)
    with channel.resume(lambda *_: None, name="billing") as sink:
        eventually(lambda: sink.positions == (10,))
    shelf = remote_shelf.RemoteShelf(channel.endpoints.switchboard, remote_shelf.ChannelId.parse(channel.id))
    assert shelf.marked("billing") == (10,)
    assert shelf.marked("other") is None
    with pytest.raises(LocalError, match="there is no partition 1"):
        shelf.chunk(1, 0, 1000)
    assert not shelf.wait((10,), 0.05)
    assert shelf.wait((9,), 0.05)
