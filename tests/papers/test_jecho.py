"""JECho: sections 3, 4 (base system) and 5 as tests. Eager handlers have tests of their own.

Quoted headings are the paper's.
"""

import itertools
import threading

import pytest

import echoic
from echoic import Array, event, int8, int32
from echoic.errors import ChannelExistsError, ClosedError, DeliveryError
from tests.conftest import StartHub
from tests.hub.parties import Collector, Tick, eventually

CHANNELS = 4096


@event
class Null:
    """The object without contents: a record has at least one byte."""

    nothing: int8


@event
class Int100:
    values: Array[int32, 100]


@event
class Byte400:
    values: Array[int8, 400]


@event
class VectorOfIntegers:
    n: int32
    values: Array[int32, "n"]


@event
class Entry:
    key: str
    value: int32


@event
class Composite:
    """A string, two arrays of primitives and a hashtable with two entries."""

    text: str
    integers: Array[int32, 20]
    small: Array[int8, 40]
    entries: int32
    table: Array[Entry, "entries"]


TABLE_1 = {
    "null": (Null, Null(0)),
    "int100": (Int100, Int100(list(range(100)))),
    "byte400": (Byte400, Byte400([number % 100 - 50 for number in range(400)])),
    "Vector of Integers": (VectorOfIntegers, VectorOfIntegers(20, list(range(20)))),
    "Composite Object": (
        Composite,
        Composite(
            "composite", list(range(20)), [number - 20 for number in range(40)], 2, [Entry("a", 1), Entry("b", 2)]
        ),
    ),
}


def plain(item: object) -> object:
    """Return an event as builtin values, so that arrays compare by their elements."""
    if hasattr(item, "tolist"):
        return item.tolist()
    if isinstance(item, list | tuple):
        return [plain(each) for each in item]
    fields = getattr(type(item), "__struct_fields__", None)
    return item if fields is None else {name: plain(getattr(item, name)) for name in fields}


def bytes_to_peers(hub: echoic.Hub) -> int:
    return sum(link.session.sent for link in hub.statistics().links)


# 3. JECho Concepts


def test_an_event_placed_onto_a_channel_is_observed_by_all_attached_consumers(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(4)]
    channel = hubs[0].create("atmosphere", Tick)
    consumers = [Collector() for _ in hubs]
    for hub, consumer in zip(hubs, consumers, strict=True):
        hub.open(channel.id, Tick).subscribe(consumer)
    for number, hub in enumerate(hubs):
        hub.open(channel.id, Tick).source().submit_sync(Tick(number, number), timeout=30)
    for consumer in consumers:
        assert sorted(consumer.numbers) == [0, 1, 2, 3]


def test_a_producer_does_not_know_its_consumers_nor_they_it(start_hub: StartHub) -> None:
    """Anonymous group communication: both know the channel only."""
    manager, producer, consumer = start_hub(), start_hub(), start_hub()
    id = manager.create("atmosphere", Tick).id
    source = producer.open(id, Tick).source()
    source.submit(Tick(1, 0))
    seen = Collector()
    consumer.open(id, Tick).subscribe(seen)
    source.submit_sync(Tick(1, 1), timeout=30)
    assert seen.numbers == [1]


def test_a_handler_at_a_consumer_is_applied_to_each_event_it_receives(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    channel = here.create("atmosphere", Tick)
    doubled: list[int] = []
    there.open(channel.id, Tick).subscribe(lambda tick: doubled.append(2 * tick.number))
    source = channel.source()
    for number in range(10):
        source.submit_sync(Tick(1, number), timeout=30)
    assert doubled == [2 * number for number in range(10)]


def test_an_endpoint_that_was_closed_observes_and_raises_no_more(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    channel = here.create("atmosphere", Tick)
    seen = Collector()
    sink, source = there.open(channel.id, Tick).subscribe(seen), channel.source()
    source.submit_sync(Tick(1, 1), timeout=30)
    sink.close()
    source.submit_sync(Tick(1, 2), timeout=30)
    source.close()
    with pytest.raises(ClosedError):
        source.submit(Tick(1, 3))
    assert seen.numbers == [1]


# 4. "Scalability with Respect to Numbers of Channels and Clients"


def test_the_concentrator_multiplexes_all_channels_onto_one_link(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    for number in range(50):
        channel = (here, there)[number % 2].create(f"channel-{number}", Tick)
        for hub in (here, there):
            hub.open(channel.id, Tick).subscribe(Collector())
            hub.open(channel.id, Tick).source().submit_sync(Tick(1, number), timeout=30)
    assert len(here.statistics().links) == len(there.statistics().links) == 1


def test_local_events_are_dispatched_without_any_remote_entity(start_hub: StartHub) -> None:
    """The handler gets the very object, in the very thread, though the manager is gone."""
    manager, hub = start_hub(), start_hub()
    channel = hub.open(manager.create("atmosphere", Tick).id, Tick)
    seen = Collector()
    channel.subscribe(seen)
    source = channel.source()
    manager.close()
    sent = Tick(1, 1)
    source.submit(sent)
    source.submit_sync(sent)
    assert all(item is sent for item in seen.events)
    assert seen.threads == {threading.get_ident()}
    assert channel.statistics().bytes_out == 0


def test_several_consumers_in_one_concentrator_cost_one_copy(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    channel = here.create("atmosphere", Tick)
    opened = there.open(channel.id, Tick)
    consumers = [Collector() for _ in range(10)]
    opened.subscribe(consumers[0])
    source = channel.source()
    source.submit_sync(Tick(1, 0), timeout=30)
    before = channel.statistics().bytes_out
    source.submit_sync(Tick(1, 1), timeout=30)
    alone = channel.statistics().bytes_out - before
    for consumer in consumers[1:]:
        opened.subscribe(consumer)
    before, frames = channel.statistics().bytes_out, bytes_to_peers(here)
    source.submit_sync(Tick(1, 2), timeout=30)
    assert channel.statistics().bytes_out - before == alone
    assert bytes_to_peers(here) - frames == 1
    assert all(consumer.numbers[-1] == 2 for consumer in consumers)


def test_bookkeeping_is_distributed_over_managers(start_hub: StartHub) -> None:
    """Each channel is known by the hub that made it, and by it alone."""
    managers = [start_hub() for _ in range(3)]
    channels = [hub.create("atmosphere", Tick) for hub in managers]
    user = start_hub()
    for channel in channels:
        user.open(channel.id, Tick).subscribe(Collector())
    for hub, channel in zip(managers, channels, strict=True):
        assert [entry.id for entry in hub.channels()] == [channel.id]
        assert [sink.address for sink in hub.describe("atmosphere").sinks] == [user.address]
    managers[0].close()
    channels[1].source().submit_sync(Tick(1, 1), timeout=30)


def test_a_channel_is_named_by_its_name_server_and_its_name(start_hub: StartHub) -> None:
    """<name server address, channel name>: the same name at another server is another channel."""
    east, west = start_hub(), start_hub()
    here = start_hub(names=east.address)
    here.create("atmosphere", Tick)
    with pytest.raises(ChannelExistsError):
        here.create("atmosphere", Tick)
    there = start_hub(names=west.address)
    there.create("atmosphere", Tick)
    opened = {start_hub(names=server.address).open("atmosphere").id for server in (east, west)}
    assert len(opened) == 2


# 4. "Optimizing/Customizing Object Serialization"


def test_group_serialization_encodes_an_event_once(start_hub: StartHub) -> None:
    """Every hub gets the same bytes: as many as one hub would, whatever the number of hubs."""
    here = start_hub()
    channel = here.create("atmosphere", Composite)
    source = channel.source()
    sizes: list[int] = []
    for _ in range(4):
        start_hub().open(channel.id).subscribe(Collector())
        source.submit_sync(TABLE_1["Composite Object"][1], timeout=30)
        before = channel.statistics().bytes_out
        source.submit_sync(TABLE_1["Composite Object"][1], timeout=30)
        sizes.append(channel.statistics().bytes_out - before)
    assert len(set(sizes)) == 1


# 4. "Flexible Event Delivery"


def test_an_asynchronous_submit_does_not_wait_for_the_consumers(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    channel = here.create("atmosphere", Tick)
    seen = Collector()
    seen.gate.clear()
    there.open(channel.id, Tick).subscribe(seen)
    source = channel.source()
    for number in range(1000):
        source.submit(Tick(1, number))
    assert seen.events == []
    seen.gate.set()
    seen.has(1000)
    assert seen.numbers == list(range(1000))


def test_a_synchronous_submit_returns_when_all_consumers_have_processed(start_hub: StartHub) -> None:
    here = start_hub()
    channel = here.create("atmosphere", Tick)
    consumers = [Collector(pause=0.02) for _ in range(3)]
    for consumer in consumers:
        start_hub().open(channel.id, Tick).subscribe(consumer)
    source = channel.source()
    for number in range(5):
        source.submit_sync(Tick(1, number), timeout=30)
        assert all(len(consumer.events) == number + 1 for consumer in consumers)


def test_a_synchronous_submit_fails_when_one_consumer_does(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    channel = here.create("atmosphere", Tick)

    def refuse(tick: Tick) -> None:
        raise LookupError("no such grid")

    there.open(channel.id, Tick).subscribe(refuse)
    with pytest.raises(DeliveryError, match=r"refuse#\d+ at .*LookupError: no such grid"):
        channel.source().submit_sync(Tick(1, 1), timeout=30)


def test_delivery_is_partially_ordered(start_hub: StartHub) -> None:
    """All consumers observe events in the same order in which any one producer generates them."""
    hubs = [start_hub() for _ in range(3)]
    channel = hubs[0].create("atmosphere", Tick)
    consumers = [Collector() for _ in hubs]
    for hub, consumer in zip(hubs, consumers, strict=True):
        hub.open(channel.id, Tick).subscribe(consumer)

    def produce(producer: int) -> None:
        source = hubs[producer].open(channel.id, Tick).source()
        for number in range(300):
            if number % 50:
                source.submit(Tick(producer, number))
            else:
                source.submit_sync(Tick(producer, number), timeout=30)
        source.flush()

    threads = [threading.Thread(target=produce, args=(producer,)) for producer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for consumer in consumers:
        consumer.has(900)
        assert [consumer.of(producer) for producer in range(3)] == [list(range(300))] * 3


def test_event_batching_saves_operations(start_hub: StartHub) -> None:
    """Many small events for one concentrator travel in few frames."""
    here, there = start_hub(), start_hub()
    channel = here.create("atmosphere", Tick)
    seen = Collector()
    there.open(channel.id, Tick).subscribe(seen)
    source = channel.source()
    frames = bytes_to_peers(here)
    for number in range(20_000):
        source.submit(Tick(1, number))
    source.flush()
    seen.has(20_000)
    assert bytes_to_peers(here) - frames < 2_000


# 5. "Simple Case Latency and Throughput"


@pytest.mark.parametrize("name", TABLE_1)
def test_the_objects_of_table_1_arrive_as_they_were_sent(start_hub: StartHub, any_link: str, name: str) -> None:
    kind, sent = TABLE_1[name]
    here, there = start_hub(), start_hub()
    there_and, back = here.create("there", kind), there.create("back", kind)
    returned = there.open(back.id, kind).source()
    there.open(there_and.id, kind).subscribe(returned.submit)
    seen, local = Collector(), Collector()
    here.open(back.id, kind).subscribe(seen)
    there_and.subscribe(local)
    source = there_and.source()
    source.submit(sent)
    source.submit_sync(sent, timeout=30)
    source.submit_batch([sent, sent])
    seen.has(4)
    assert [plain(item) for item in seen.events] == [plain(sent)] * 4
    assert [plain(item) for item in local.events] == [plain(sent)] * 4


def test_express_mode_handles_and_answers_in_one_thread(start_hub: StartHub) -> None:
    """A single thread reads the event, processes it and sends the answer; the caller itself reads that."""
    here, there = start_hub(), start_hub()
    channel = here.create("atmosphere", Tick)
    seen = Collector()
    there.open(channel.id, Tick).subscribe(seen)
    source = channel.source()
    for number in range(200):
        source.submit_sync(Tick(1, number), timeout=30)
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    assert {names[ident] for ident in seen.threads} == {f"echoic-link-{here.address}"}
    assert seen.numbers == list(range(200))


def test_the_caller_serves_its_own_sinks_while_it_waits(start_hub: StartHub) -> None:
    """Whoever waits for an answer reads the link, and so runs the handlers of what else arrives on it."""
    here, there = start_hub(), start_hub()
    ping, pong = here.create("ping", Tick), here.create("pong", Tick)
    seen = Collector()
    pong.subscribe(seen)
    answers = there.open(pong.id, Tick).source()
    there.open(ping.id, Tick).subscribe(lambda tick: answers.submit_batch([tick]))
    source = ping.source()
    for number in range(200):
        source.submit_sync(Tick(1, number), timeout=30)
    seen.has(200)
    assert seen.numbers == list(range(200))


# 5. "Multi-sink Throughput and Latency"


@pytest.mark.parametrize("sinks", [1, 2, 4, 8])
def test_sends_and_answers_of_several_sinks_overlap(start_hub: StartHub, sinks: int) -> None:
    """All sinks hold the event at the same time: had it been sent to one after the other, none would go on."""
    here = start_hub()
    channel = here.create("atmosphere", Tick)
    together = threading.Barrier(sinks)
    for _ in range(sinks):
        start_hub().open(channel.id, Tick).subscribe(lambda _: together.wait(30))
    channel.source().submit_sync(Tick(1, 1), timeout=30)


# 5. "Pipeline Throughput"


@pytest.mark.parametrize("length", [1, 2, 5])
def test_events_travel_through_a_pipeline_in_order(start_hub: StartHub, length: int) -> None:
    hubs = [start_hub() for _ in range(length + 1)]
    stages = [hub.create("stage", Tick) for hub in hubs[:-1]]
    seen = Collector()
    hubs[-1].open(stages[-1].id, Tick).subscribe(seen)
    for before, after in itertools.pairwise(stages):
        hub = next(hub for hub in hubs if after.id.startswith(f"echoic://{hub.address}/"))
        hub.open(before.id, Tick).subscribe(after.source().submit)
    source = stages[0].source()
    for number in range(2000):
        source.submit(Tick(1, number))
    seen.has(2000)
    assert seen.numbers == list(range(2000))


# 5. "Multi-channel Throughput"


def test_4096_channels_are_used_in_turn(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    seen = Collector()
    sources = []
    for number in range(CHANNELS):
        channel = here.create(f"channel-{number}", Tick)
        there.open(channel.id, Tick).subscribe(seen)
        sources.append(channel.source())
    for turn in range(3):
        for source in sources:
            source.submit(Tick(1, turn))
    seen.has(3 * CHANNELS)
    eventually(lambda: len(seen.events) == 3 * CHANNELS)
    assert len(here.statistics().links) == 1
