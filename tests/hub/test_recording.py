"""Channels that are recorded: what is acknowledged, what is kept for a recorder that is away, who goes on where."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from echoic import Hub
from echoic.errors import JournalError, LocalError, UnreachableError
from echoic.hub import Channel, Recording, Source
from echoic.recorder import Disk, JournalWriter
from echoic.testing.journal_contents import events_of
from echoic.testing.samples import Trade


def trade(number: int) -> Trade:
    return Trade("IBM", 75.5, number)


def volumes(path: Path, channel: str = "trades") -> list[int]:
    return [event.volume for events in events_of(Disk(path), channel).values() for event in events]


def wait_for(fact: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.002)


def kept_bytes(source: Source) -> int:
    return source.statistics().unconfirmed_bytes


@pytest.fixture
def trades() -> Iterator[Channel]:
    with Hub() as hub:
        yield hub.create("trades", Trade)


def test_what_a_source_has_drained_is_in_the_journal(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub, hub.record(trades.id, tmp_path) as recording, trades.source() as source:
        for number in range(1000):
            source.submit(trade(number))
        source.drain()
        assert recording.heads == (1000,)
        assert volumes(tmp_path) == list(range(1000))
        wait_for(lambda: kept_bytes(source) == 0)


def test_a_synchronous_event_is_answered_when_it_is_on_the_disk(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub, hub.record(trades.id, tmp_path) as recording, trades.source() as source:
        for number in range(5):
            source.submit_sync(trade(number))
            assert recording.heads == (number + 1,)


def test_a_source_in_the_recorders_own_hub_is_recorded_too(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub, hub.record(trades.id, tmp_path):
        channel = hub.open(trades.id, Trade)
        with channel.source() as source:
            source.submit_batch([trade(number) for number in range(100)])
            source.drain()
        assert volumes(tmp_path) == list(range(100))
        assert channel.endpoints.member.keepings == (), "it ends with the recorder, so there is nothing to keep"


def test_a_channel_that_is_recorded_by_two_hubs_is_in_both_journals(trades: Channel, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    with Hub() as first, Hub() as second, first.record(trades.id, one), second.record(trades.id, other):
        source = trades.source()
        source.submit(trade(1))
        source.drain()
        assert volumes(one) == volumes(other) == [1]
        assert len(trades.endpoints.member.keepings) == 2


def test_events_are_kept_while_the_recorder_is_away_and_sent_when_it_comes_back(
    trades: Channel, tmp_path: Path
) -> None:
    with trades.source() as source:
        with Hub() as hub:
            recording = hub.record(trades.id, tmp_path)
            source.submit_batch([trade(number) for number in range(10)])
            source.drain()
            recording.close(release=False)
        for number in range(10, 50):
            source.submit(trade(number))
        source.flush()
        assert kept_bytes(source) > 0
        with Hub() as hub, hub.record(trades.id, tmp_path) as again:
            assert again.journal == recording.journal
            source.submit(trade(50))
            source.drain()
            assert volumes(tmp_path) == list(range(51))
            wait_for(lambda: kept_bytes(source) == 0)


def test_a_source_that_comes_while_the_recorder_is_away_is_recorded_from_its_first_event_on(
    trades: Channel, tmp_path: Path
) -> None:
    with Hub() as hub:
        hub.record(trades.id, tmp_path).close(release=False)
    with Hub() as other, other.open(trades.id).source(Trade) as source:
        source.submit_batch([trade(number) for number in range(5)])
        with Hub() as hub, hub.record(trades.id, tmp_path):
            source.drain()
            assert volumes(tmp_path) == list(range(5))


def test_nothing_is_kept_once_the_recording_has_ended(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub, trades.source() as source:
        recording = hub.record(trades.id, tmp_path)
        source.submit(trade(0))
        source.drain()
        recording.close()
        recording.close()
        assert recording.closed
        source.submit(trade(1))
        source.drain()
        assert trades.endpoints.member.keepings == ()
        assert volumes(tmp_path) == [0]


def test_a_source_waits_when_too_much_is_not_confirmed_and_goes_on_when_it_is(
    trades: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("echoic.channels.keeping.KEPT_BYTES_MAX", 100_000)
    with trades.source() as source:
        with Hub() as hub:
            hub.record(trades.id, tmp_path).close(release=False)
        submitted: list[int] = []

        def submit() -> None:
            for number in range(40):
                source.submit_batch([trade(number)] * 200)
                submitted.append(number)

        thread = threading.Thread(target=submit)
        thread.start()
        wait_for(source.would_wait)
        assert len(submitted) < 40
        with Hub() as hub, hub.record(trades.id, tmp_path) as recording:
            thread.join(60)
            source.drain(60)
            assert len(submitted) == 40
            assert recording.heads == (8000,)


def test_a_hub_that_is_closed_waits_for_its_recorder(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub, hub.record(trades.id, tmp_path):
        with Hub() as producer:
            source = producer.open(trades.id).source(Trade)
            source.submit_batch([trade(number) for number in range(5000)])
        assert volumes(tmp_path) == list(range(5000))


def test_a_source_with_a_name_goes_on_after_the_last_recorded_event(trades: Channel, tmp_path: Path) -> None:
    with Hub() as recorder, recorder.record(trades.id, tmp_path):
        for run in range(3):
            with Hub() as hub:
                source = hub.open(trades.id).source(Trade, name="feed")
                assert source.position == 100 * run
                for number in range(source.position, source.position + 100):
                    source.submit(trade(number))
                assert source.position == 100 * (run + 1)
        other = trades.source(name="another feed")
        assert other.position == 0
        assert volumes(tmp_path) == list(range(300))


def test_a_source_with_a_name_needs_a_recorder(trades: Channel) -> None:
    with pytest.raises(UnreachableError, match=r"no recorder of `trades` is there.*record the channel first"):
        trades.source(name="feed")


def test_events_that_a_source_sends_again_in_other_batches_are_recorded_once(trades: Channel, tmp_path: Path) -> None:
    """A source that was killed begins again where the journal is, which may be behind what has arrived."""
    with Hub() as recorder, recorder.record(trades.id, tmp_path):
        source = trades.source(name="feed")
        source.submit_batch([trade(number) for number in range(10)])
        source.drain()
        trades.endpoints.member.sources[source.id] = 4  # as if it had not heard that ten were there
        source.submit_batch([trade(number) for number in range(4, 9)])
        source.submit_batch([trade(number) for number in range(9, 15)])
        source.drain()
        assert volumes(tmp_path) == list(range(15))


def test_a_channel_is_recorded_once_by_a_hub(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub:
        hub.record(trades.id, tmp_path)
        with pytest.raises(LocalError, match="`trades` is recorded by this hub already"):
            hub.record(trades.id, tmp_path / "other")


def test_a_journal_has_one_writer(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub, Hub() as other, hub.record(trades.id, tmp_path):
        with pytest.raises(JournalError, match="trades"):
            other.record(trades.id, tmp_path)
        with pytest.raises(JournalError):
            other.record(trades.id, tmp_path)


def test_a_derived_channel_is_recorded_as_it_is_derived_at_the_source(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub, trades.source() as source:
        cheap = hub.open(trades.id).derive("input.volume % 2 == 0")
        with hub.record(cheap, tmp_path):
            source.submit_batch([trade(number) for number in range(20)])
            source.drain()
            assert volumes(tmp_path, cheap.name) == list(range(0, 20, 2))


def test_a_channel_that_is_derived_at_the_sink_is_not_recorded(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub:
        cheap = hub.open(trades.id).derive("input.volume % 2 == 0", placement="sink")
        with pytest.raises(LocalError, match="record what it is derived from"):
            hub.record(cheap, tmp_path)


def test_handlers_beside_a_recorder_hear_what_it_records(trades: Channel, tmp_path: Path) -> None:
    heard: list[int] = []
    with Hub() as hub, trades.source() as source:
        channel = hub.open(trades.id)
        channel.subscribe(lambda event: heard.append(event.volume))
        with hub.record(channel, tmp_path):
            source.submit_batch([trade(number) for number in range(10)])
            source.drain()
        source.submit(trade(10))
        source.drain()
        assert heard == list(range(11))
        assert volumes(tmp_path) == list(range(10))
        assert trades.endpoints.member.keepings == ()


def test_a_recording_tells_what_it_does(trades: Channel, tmp_path: Path) -> None:
    with Hub() as hub, hub.record(trades.id, tmp_path) as recording, trades.source() as source:
        source.submit_batch([trade(number) for number in range(10)])
        source.drain()
        assert isinstance(recording, Recording)
        assert recording.statistics().events == 10
        assert recording.statistics().commits >= 1
        assert recording.trouble == ""
        assert recording.channel == "trades"
        assert recording.journal[:8] in repr(recording)


def test_a_recorder_that_fails_for_a_reason_nobody_thought_of_says_so(
    trades: Channel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake")

    with Hub() as hub, trades.source() as source:
        recording = hub.record(trades.id, tmp_path)
        monkeypatch.setattr(JournalWriter, "commit", fail)
        source.submit(trade(0))
        wait_for(lambda: source.trouble)
        monkeypatch.undo()
        assert source.trouble == recording.trouble == "the recorder has stopped: RuntimeError: a mistake"
        assert kept_bytes(source) > 0
        assert "the recorder of trades has stopped" in caplog.text
