"""The short way of lone synchronous events, and the long one: twins that nobody can tell apart by what they do."""

# ruff: noqa: SLF001 - a lane is closed by hand
from typing import Any

import pytest

from echoic import Hub
from echoic.errors import DeliveryError
from tests.hub.parties import Collector, Note, Quote, StartHub, Tick, Trade, eventually, trade

EVENTS = {
    "fixed": (Tick, [Tick(number, number * 3) for number in range(40)]),
    "text": (Trade, [trade(number) for number in range(40)]),
    "large": (Note, [Note(number, "x" * 7000 * number) for number in range(20)]),
    "unpadded": (Note, [Note(number, "x" * number) for number in range(40)]),
}


def close_lanes(*hubs: Hub) -> None:
    for hub in hubs:
        for source in hub._sources:
            source._lane = None
        for link in hub._switchboard.links():
            link.lanes.clear()


def outcome(start_hub: StartHub, kind: type, events: list[Any], *, express: bool, declared: Any) -> tuple[Any, ...]:
    """Submit events, some of which the handler does not like, in every way, and return all that can be seen of it."""
    there, here = start_hub(), start_hub()
    channel = there.create("twins", kind)
    got = Collector()

    def handler(item: Any) -> None:
        got(item)
        if item.number % 9 == 4:
            raise ValueError(f"not {item.number}")

    sink = channel.subscribe(handler, declared)
    opened = here.open(channel.id, kind)
    told: list[str] = []
    with opened.source() as source:
        for place, item in enumerate(events):
            if not express:
                close_lanes(there, here)
            if place % 7 == 5:
                source.submit(item)
                continue
            try:
                source.submit_sync(item)
            except DeliveryError as error:
                told.append(str(error).replace(sink.name, "it").replace(there.address, "there"))
        used = source._lane is not None and any(link.lanes for link in there._switchboard.links())
        assert used or not express or declared is Quote
        source.flush()
        got.has(len(events))
        eventually(lambda: sink.statistics().events == len(events))
        positions = list(channel.endpoints.member.positions.values())
        counts = [vars_of(side.statistics()) for side in (channel, opened)]
        assert not here._switchboard.core.calls
    return [repr(item) for item in got.events], told, positions, counts, vars_of(sink.statistics())


def vars_of(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__ if name not in ("id", "batches")}


@pytest.mark.parametrize("sort", EVENTS)
def test_the_short_way_and_the_long_one_are_twins(start_hub: StartHub, any_link: str, sort: str) -> None:
    kind, events = EVENTS[sort]
    short = outcome(start_hub, kind, events, express=True, declared=None)
    assert short == outcome(start_hub, kind, events, express=False, declared=None)
    assert short[2] == [len(events)]


def test_a_sink_that_wants_less_takes_the_long_way_and_gets_the_same(start_hub: StartHub, any_link: str) -> None:
    kind, events = EVENTS["text"]
    short = outcome(start_hub, kind, events, express=True, declared=Quote)
    assert short == outcome(start_hub, kind, events, express=False, declared=Quote)


def test_a_lane_ends_when_another_sink_comes_and_begins_again_when_it_goes(start_hub: StartHub) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    first, second = Collector(), Collector()
    channel.subscribe(first)
    source = here.open(channel.id, Tick).source()
    expected: list[int] = []
    for number in range(60):
        if number % 20 == 5:
            guest = channel.subscribe(second)
        source.submit_sync(Tick(0, number))
        if 5 <= number % 20 < 15:
            expected.append(number)
        if number % 20 == 14:
            guest.close()
    assert first.numbers == list(range(60))
    assert second.numbers == expected


def test_a_lane_survives_a_connection_that_breaks(start_hub: StartHub, any_link: str) -> None:
    there, here = start_hub(), start_hub()
    channel = there.create("ticks", Tick)
    got = Collector()
    channel.subscribe(got)
    source = here.open(channel.id, Tick).source()
    for number in range(100):
        source.submit_sync(Tick(0, number), 30)
        if number % 25 == 24:
            for link in here._switchboard.links():
                link.connection.close()
    assert got.numbers == list(range(100))


def test_channels_by_turns_all_take_the_short_way(start_hub: StartHub) -> None:
    """One way for a link was not enough: the next channel's event closed it, and each took three times as long."""
    here, there = start_hub(), start_hub()
    seen = Collector()
    sources = []
    for number in range(8):
        channel = here.create(f"ticks-{number}", Tick)
        there.open(channel.id, Tick).subscribe(seen)
        sources.append(channel.source())
    for number in range(4):
        for source in sources:
            source.submit_sync(Tick(1, number), timeout=30)
    (link,) = there._switchboard.links()
    assert len(link.lanes) == len(sources)
    assert len(seen.numbers) == 4 * len(sources)
