"""Recorders that leave, come back elsewhere, or begin beside others: nothing that sources have kept is forgotten."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from echoic import Hub
from echoic.errors import DeliveryError, LocalError
from echoic.hub import Channel, Source
from echoic.recorder import Journal
from echoic.testing.kill_roles import Tick, ticks
from echoic.wire import Batch
from tests.conftest import StartHub

PATIENCE_SECONDS = 90.0
BRIEF_SECONDS = 0.2


def numbers(path: Path, channel: str = "ticks") -> list[int]:
    return [int(number) for one in Journal(path, channel).read() for number in one.batch.array["number"]]


def wait_until(fact: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not fact():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.005)


def submit(source: Source, count: int) -> None:
    source.submit_batch(ticks(0, source.position, count))


@pytest.fixture
def channel(start_hub: StartHub) -> Channel:
    return start_hub().create("ticks", Tick)


@pytest.fixture
def away(start_hub: StartHub, channel: Channel, tmp_path: Path) -> Source:
    """A source that has submitted 20 events, of which the second half came after the recorder had left for a while."""
    hub = start_hub()
    recording = hub.record(channel.id, tmp_path)
    source = start_hub().open(channel.id, Tick).source(name="feed")
    submit(source, 10)
    source.drain()
    recording.close(release=False)
    hub.close()
    submit(source, 10)
    return source


def test_whoever_drains_waits_for_a_recorder_that_is_away(
    start_hub: StartHub, channel: Channel, away: Source, tmp_path: Path
) -> None:
    with pytest.raises(DeliveryError, match=r"the recorder of journal .*: not on the disk in time"):
        away.drain(BRIEF_SECONDS)
    with pytest.raises(DeliveryError, match="the recorder of journal"):
        away.submit_sync(Tick(0, 0, 20), BRIEF_SECONDS)
    answered = threading.Event()

    def drain() -> None:
        away.drain(PATIENCE_SECONDS)
        answered.set()

    waiting = threading.Thread(target=drain)
    waiting.start()
    start_hub().record(channel.id, tmp_path)
    waiting.join(PATIENCE_SECONDS)
    assert answered.is_set()
    assert numbers(tmp_path) == list(range(21))


def test_the_last_source_may_end_before_its_recorder_is_back(
    start_hub: StartHub, channel: Channel, away: Source, tmp_path: Path
) -> None:
    away.close()
    start_hub().record(channel.id, tmp_path)
    wait_until(lambda: numbers(tmp_path) == list(range(20)), "the events of a source that has ended")


def test_a_hub_that_ends_waits_a_moment_for_its_recorder(start_hub: StartHub, channel: Channel, tmp_path: Path) -> None:
    start_hub().record(channel.id, tmp_path)
    with Hub() as hub:
        source = hub.open(channel.id, Tick).source()
        for _ in range(100):
            submit(source, 1000)
    assert len(numbers(tmp_path)) == 100_000


def test_a_recorder_that_begins_beside_other_sinks_gets_what_it_lacks_and_they_get_nothing_twice(
    start_hub: StartHub, channel: Channel, away: Source, tmp_path: Path
) -> None:
    hub, seen = start_hub(), list[int]()

    def note(batch: Batch) -> None:
        seen.extend(int(number) for number in batch.array["number"])

    opened = hub.open(channel.id, Tick)
    with opened.subscribe(note, batch=True):
        submit(away, 10)
        recording = hub.record(opened, tmp_path)
        submit(away, 10)
        away.drain()
        recording.close(release=False)
        submit(away, 10)
        hub.record(opened, tmp_path)
        submit(away, 10)
        away.drain()
    assert numbers(tmp_path) == list(range(60))
    assert seen == list(range(20, 60))


def test_other_sinks_that_stay_do_not_make_sources_forget_a_recorder_that_was_held(
    start_hub: StartHub, channel: Channel, tmp_path: Path
) -> None:
    hub, source = start_hub(), channel.source()
    opened = hub.open(channel.id, Tick)
    recording = hub.record(opened, tmp_path)
    with opened.subscribe(lambda _: None, batch=True):
        recording.close(release=False)
        submit(source, 10)
    assert source.statistics().unconfirmed_bytes > 0
    start_hub().record(channel.id, tmp_path)
    source.drain()
    assert numbers(tmp_path) == list(range(10))


def test_a_recorder_that_takes_leave_is_not_waited_for(start_hub: StartHub, channel: Channel, tmp_path: Path) -> None:
    source = channel.source()
    start_hub().record(channel.id, tmp_path).close()
    wait_until(lambda: not source.heard, "the sources know")
    submit(source, 10)
    source.drain(BRIEF_SECONDS)
    assert source.statistics().unconfirmed_bytes == 0


def test_a_journal_may_go_on_in_the_hub_of_the_source(start_hub: StartHub, channel: Channel, tmp_path: Path) -> None:
    recorder, hub = start_hub(), start_hub()
    source = hub.open(channel.id, Tick).source()
    recording = recorder.record(channel.id, tmp_path)
    submit(source, 10)
    source.drain()
    recording.close(release=False)
    submit(source, 10)
    hub.record(channel.id, tmp_path)
    submit(source, 10)
    source.drain()
    assert numbers(tmp_path) == list(range(30))
    assert source.statistics().unconfirmed_bytes == 0


def test_a_name_is_for_one_source_of_a_hub(start_hub: StartHub, channel: Channel, tmp_path: Path) -> None:
    start_hub().record(channel.id, tmp_path)
    first = channel.source(name="feed")
    with pytest.raises(LocalError, match="a source `feed` of `ticks` is open in this hub already"):
        channel.source(name="feed")
    submit(first, 10)
    first.drain()
    first.close()
    assert channel.source(name="feed").position == 10


def test_what_is_derived_is_waited_for_too(start_hub: StartHub, channel: Channel, tmp_path: Path) -> None:
    source = start_hub().open(channel.id, Tick).source()
    for expected in (10, 20):
        hub = start_hub()
        recording = hub.record(hub.open(channel.id, Tick).derive("input.number % 2 == 0"), tmp_path)
        submit(source, 10)
        source.drain()
        assert recording.heads == (expected - 5,)
        recording.close(release=False)
        hub.close()
        submit(source, 10)
        with pytest.raises(DeliveryError, match="the recorder of journal"):
            source.drain(BRIEF_SECONDS)
    (name,) = Journal.channels(tmp_path)
    assert numbers(tmp_path, name) == list(range(0, 30, 2))
