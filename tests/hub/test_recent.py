"""The last events of a channel: from its journal, or from a ring that the first question begins."""

from pathlib import Path
from typing import Any

import numpy
import pytest

from echoic import Batch, Format, Hub, event, float64, int64
from echoic.errors import EchoicError, LocalError
from echoic.hub import recent
from echoic.hub.recent import Ring, joined
from tests.conftest import StartHub
from tests.system.processes import wait_until


@event
class Tick:
    number: int64
    price: float64


@event
class Note:
    number: int64
    text: str


def ticks(start: int, end: int) -> list[Tick]:
    return [Tick(number, number / 2) for number in range(start, end)]


def numbers(batch: Batch) -> list[int]:
    return [each.number for each in batch]  # type: ignore[attr-defined]


def test_without_a_journal_it_is_what_came_since_the_first_question(start_hub: StartHub, any_link: str) -> None:
    maker, looker = start_hub(), start_hub()
    source = maker.create("ticks", Tick).source()
    channel = looker.open(f"echoic://{maker.address}/ticks")
    source.submit_batch(ticks(0, 10))
    source.flush()
    assert channel.recent(5, seconds=0).count == 0  # nobody has kept them
    source.submit_batch(ticks(10, 20))
    source.submit_batch(ticks(20, 23))
    source.flush()
    assert numbers(channel.recent(13, seconds=60)) == list(range(10, 23))
    assert numbers(channel.recent(5)) == [18, 19, 20, 21, 22]


def test_it_returns_as_soon_as_there_are_enough(start_hub: StartHub) -> None:
    hub = start_hub()
    channel = hub.create("ticks", Tick)
    channel.recent(1, seconds=0)
    source = channel.source()
    source.submit_batch(ticks(0, 3))
    source.flush()
    assert numbers(channel.recent(3, seconds=3600)) == [0, 1, 2]


def test_events_of_variable_size_are_joined(start_hub: StartHub) -> None:
    hub = start_hub()
    channel = hub.create("notes", Note)
    channel.recent(1, seconds=0)
    source = channel.source()
    for number in range(4):
        source.submit_sync(Note(number, "x" * number))
    batch = channel.recent(3)
    assert [(each.number, each.text) for each in batch] == [(1, "x"), (2, "xx"), (3, "xxx")]  # type: ignore[attr-defined]
    assert batch.arrow["text"].to_pylist() == ["x", "xx", "xxx"]


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("far", [False, True])
def test_of_a_recorded_channel_it_is_the_end_of_the_journal(
    start_hub: StartHub, tmp_path: Path, partitions: int, far: bool
) -> None:
    hub = start_hub()
    channel = hub.create("ticks", Tick)
    with hub.record(channel, tmp_path, partitions=partitions):
        for start in range(0, 100, 10):
            source = channel.source()
            source.submit_batch(ticks(start, start + 10))
            source.flush()
            wait_until(lambda start=start: sum(channel.journal().heads) == start + 10, "they are on the disk")
        looker: Hub = start_hub() if far else hub
        found = looker.open(channel.id).recent(25)
        assert numbers(found) == list(range(75, 100))
        assert numbers(looker.open(channel.id).recent(1000, seconds=0)) == list(range(100))


def test_a_type_with_fewer_fields_can_be_asked_for(start_hub: StartHub, tmp_path: Path) -> None:
    @event
    class Short:
        price: float64

    hub = start_hub()
    channel = hub.create("ticks", Tick)
    with hub.record(channel, tmp_path):
        source = channel.source()
        source.submit_batch(ticks(0, 4))
        source.flush()
        found = hub.open(channel.id, Short).recent(4, seconds=60)
    assert [each.price for each in found] == [0.0, 0.5, 1.0, 1.5]  # type: ignore[attr-defined]
    assert found.format.name == "Short"


def test_on_a_channel_without_a_type_they_have_that_of_the_last(start_hub: StartHub) -> None:
    hub = start_hub()
    channel = hub.create("anything")
    with pytest.raises(LocalError, match="has no type"):
        channel.recent(1, seconds=0)
    channel.source(Note).submit_sync(Note(1, "one"))
    channel.source(Tick).submit_sync(Tick(2, 2.0))
    channel.source(Tick).submit_sync(Tick(3, 3.0))
    assert numbers(channel.recent(10, seconds=0)) == [2, 3]


def test_a_ring_has_no_more_bytes_than_it_may_but_always_one_event() -> None:
    ring = Ring(160)
    for start in range(0, 100, 4):
        ring.add(Batch.of(ticks(start, start + 4)))
        assert ring.bytes <= 160
    assert [numbers(each) for each in ring.last(1000, 0)] == [[92, 93, 94, 95], [96, 97, 98, 99]]
    ring.add(Batch.of(ticks(0, 1000)))
    assert [len(each) for each in ring.last(1000, 0)] == [10]
    ring.add(Batch.of([Note(7, "x" * 500)]))
    assert [numbers(each) for each in ring.last(1000, 0)] == [[7]]


def test_a_journal_gives_no_more_bytes_than_a_ring(
    start_hub: StartHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "BYTES_MAX", 16 * 30)
    hub = start_hub()
    channel = hub.create("ticks", Tick)
    with hub.record(channel, tmp_path):
        source = channel.source()
        for start in range(0, 100, 20):
            source.submit_batch(ticks(start, start + 20))
            source.flush()
        wait_until(lambda: channel.journal().heads == (100,), "they are on the disk")
        assert numbers(channel.recent(100)) == list(range(70, 100))


@pytest.mark.parametrize(("n", "seconds"), [(0, 1.0), (-1, 1.0), (10**7, 1.0), (1, -1.0), (1, float("nan"))])
def test_a_number_out_of_its_range_is_refused(start_hub: StartHub, n: int, seconds: float) -> None:
    with pytest.raises(LocalError):
        start_hub().create("ticks", Tick).recent(n, seconds=seconds)


def test_a_journal_that_is_named_must_be_there(start_hub: StartHub) -> None:
    with pytest.raises(EchoicError, match="no recorder"):
        start_hub().create("ticks", Tick).recent(1, seconds=0, journal="0123")


def test_nothing_joined_is_an_empty_batch_of_its_type() -> None:
    batch = joined([], Tick, "ticks")
    assert (batch.count, batch.format) == (0, Format.of(Tick))
    assert batch.array.shape == (0,)
    assert joined([], Note, "notes").arrow.num_rows == 0
    assert numpy.array_equal(
        joined([Batch.of(ticks(0, 2)), Batch.of(ticks(2, 3))], None, "").array["number"], [0, 1, 2]
    )


@pytest.mark.parametrize("count", [0, -1, 1_000_001, 1.5, 2.0, float("nan"), None])
def test_a_number_of_events_is_a_whole_one(count: Any) -> None:
    with Hub() as hub, pytest.raises(LocalError, match="the number of recent events is 1 to"):
        hub.create("ticks", Tick).recent(count)
