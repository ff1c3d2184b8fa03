"""Events get there, whatever way they are submitted and whatever way they are taken."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

import numpy
import pyarrow
import pytest

from echoic import Batch, Hub, Source
from echoic.errors import EncodeError, IncompatibleTypesError
from tests.hub.parties import Collector, Quote, StartHub, Tick, Trade, eventually, trade

TICKS = [Tick(1, number) for number in range(50)]
RECORDS = numpy.array([(tick.producer, tick.number) for tick in TICKS], [("producer", "i8"), ("number", "i8")])


def one_by_one(source: Source) -> None:
    for tick in TICKS:
        source.submit(tick)


def synchronously(source: Source) -> None:
    for tick in TICKS:
        source.submit_sync(tick, timeout=30)


WAYS: dict[str, Callable[[Source], object]] = {
    "submit": one_by_one,
    "submit_sync": synchronously,
    "list": lambda source: source.submit_batch(TICKS),
    "tuple": lambda source: source.submit_batch(tuple(TICKS)),
    "numpy": lambda source: source.submit_batch(RECORDS),
    "numpy view": lambda source: source.submit_batch(numpy.repeat(RECORDS, 2)[::2]),
    "numpy big-endian": lambda source: source.submit_batch(RECORDS.astype([("producer", ">i8"), ("number", ">i8")])),
    "arrow": lambda source: source.submit_batch(
        pyarrow.RecordBatch.from_pydict({name: RECORDS[name] for name in ("producer", "number")})
    ),
    "batch": lambda source: source.submit_batch(Batch.of(TICKS)),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_submitting_reaches_every_kind_of_sink(start_hub: StartHub, any_link: str, way: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    collectors = [Collector() for _ in range(6)]
    for channel, (plain, batched, threaded) in (
        (created, collectors[:3]),
        (there.open(created.id, Tick), collectors[3:]),
    ):
        channel.subscribe(plain)
        channel.subscribe(batched.batch, batch=True)
        channel.subscribe(threaded, thread=True)
    WAYS[way](created.source())
    for seen in collectors:
        seen.has(len(TICKS))
        assert seen.events == TICKS


def test_a_received_batch_is_passed_on_as_it_is(start_hub: StartHub) -> None:
    first, second, third = start_hub(), start_hub(), start_hub()
    raw, relayed = first.create("raw", Tick), second.create("relayed", Tick)
    onward = relayed.source()
    seen = Collector()
    third.open(relayed.id, Tick).subscribe(seen)
    second.open(raw.id, Tick).subscribe(onward.submit_batch, batch=True)
    raw.source().submit_batch(TICKS)
    seen.has(len(TICKS))
    assert seen.events == TICKS


def test_a_received_batch_of_a_wider_type_is_narrowed_when_passed_on(start_hub: StartHub) -> None:
    first, second, third = start_hub(), start_hub(), start_hub()
    trades, quotes = first.create("trades", Trade), second.create("quotes", Quote)
    onward = quotes.source()
    seen = Collector()
    third.open(quotes.id, Quote).subscribe(seen)
    second.open(trades.id).subscribe(onward.submit_batch, batch=True)
    trades.source().submit_batch([trade(number) for number in range(10)])
    seen.has(10)
    assert seen.events == [Quote(number / 2, number) for number in range(10)]


def test_batches_of_another_type_are_refused_and_the_source_goes_on(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("trades", Trade)
    seen = Collector()
    there.open(created.id, Trade).subscribe(seen)
    source = created.source()
    with pytest.raises(IncompatibleTypesError):
        source.submit_batch(RECORDS)
    with pytest.raises(IncompatibleTypesError):
        source.submit_batch(Batch.of(TICKS))
    for wrong in ("text", 7, None, {"number": 1}):
        with pytest.raises(EncodeError):
            source.submit_batch(wrong)
    with pytest.raises(EncodeError):
        source.submit(Trade("one", 1.0, "A"))
    with pytest.raises(EncodeError):
        source.submit_sync(Trade(2**70, 1.0, "A"))
    source.submit_batch([])
    source.submit_sync(trade(1))
    assert seen.numbers == [1]
    assert source.statistics().events == 1


def test_a_value_that_does_not_fit_is_refused_by_local_delivery_too(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    seen = Collector()
    channel.subscribe(seen, Quote)
    source = channel.source()
    with pytest.raises(EncodeError):
        source.submit(Trade("one", 1.0, "A"))
    source.submit(trade(2))
    assert seen.numbers == [2]


def test_an_iterator_gives_events_and_ends_when_nothing_comes(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    with there.open(created.id, Tick).events(timeout=0.3) as events:
        created.source().submit_batch(TICKS)
        eventually(lambda: events.sink.statistics().waiting_bytes, "events wait for the loop")
        assert list(events) == TICKS
    eventually(lambda: not here.describe("ticks").sinks, "the iterator took leave")


def test_an_iterator_gives_batches(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    with there.open(created.id, Tick).events(batch=True) as batches:
        created.source().submit_batch(RECORDS)
        assert (next(batches).array["number"] == RECORDS["number"]).all()


def test_a_synchronous_submitter_waits_for_the_body_of_the_loop(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    events = there.open(created.id, Tick).events()
    done: list[str] = []

    def submit() -> None:
        created.source().submit_sync(Tick(1, 1), timeout=30)
        done.append("submit")

    thread = threading.Thread(target=submit)
    thread.start()
    assert next(events).number == 1
    thread.join(0.2)
    assert not done
    events.close()
    thread.join(30)
    assert done == ["submit"]


def test_several_iterators_and_handlers_in_one_hub_see_all(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    opened = there.open(created.id, Tick)
    seen = Collector()
    opened.subscribe(seen)
    iterators = [opened.events() for _ in range(3)]
    created.source().submit_batch(TICKS)
    assert [list(islice(events, len(TICKS))) for events in iterators] == [TICKS] * 3
    seen.has(len(TICKS))
    assert seen.events == TICKS


def open_others(me: int, hubs: list[Hub], ids: list[str], problems: list[Exception]) -> list[Collector]:
    """Subscribe in one hub to the channels of all others."""
    collectors = [Collector() for id in ids if id != ids[me]]
    try:
        for id, seen in zip((id for id in ids if id != ids[me]), collectors, strict=True):
            hubs[me].open(id, Tick).subscribe(seen)
    except Exception as problem:  # noqa: BLE001 - the test tells
        problems.append(problem)
    return collectors


def test_events_of_hubs_that_open_each_others_channels_at_once_cross(start_hub: StartHub) -> None:
    for _ in range(10):
        hubs = [start_hub() for _ in range(3)]
        channels = [hub.create("ticks", Tick) for hub in hubs]
        ids = [channel.id for channel in channels]
        problems: list[Exception] = []
        with ThreadPoolExecutor(3) as threads:
            opened = list(threads.map(partial(open_others, hubs=hubs, ids=ids, problems=problems), range(3)))
        assert not problems
        for me, channel in enumerate(channels):
            channel.source().submit_sync(Tick(me, 1), timeout=30)
        assert all(seen.numbers == [1] for collectors in opened for seen in collectors)
        assert all(len(hub.statistics().links) == 2 for hub in hubs)
        for hub in hubs:
            hub.close()


def test_what_was_counted_is_what_went_through(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    opened = there.open(created.id, Tick)
    seen = Collector()
    sink = opened.subscribe(seen)
    source = created.source()
    for tick in TICKS:
        source.submit(tick)
    source.submit_batch(RECORDS)
    source.submit_sync(Tick(1, 100))
    assert source.statistics().events == 101
    assert sink.statistics().events == 101
    assert sink.statistics().failures == sink.statistics().missed == sink.statistics().waiting_bytes == 0
    out, arrived = created.statistics(), opened.statistics()
    assert (out.events_out, out.sources, out.targets, out.dropped) == (101, 1, 1, 0)
    assert (arrived.events_in, arrived.sinks, arrived.missed) == (101, 1, 0)
    assert arrived.bytes_in > 101 * 16


def test_without_sinks_events_are_counted_and_cost_no_bytes(start_hub: StartHub) -> None:
    channel = start_hub().create("ticks", Tick)
    source = channel.source()
    one_by_one(source)
    source.submit_batch(RECORDS)
    source.submit_sync(Tick(1, 1))
    assert (channel.statistics().events_out, channel.statistics().bytes_out) == (101, 0)
