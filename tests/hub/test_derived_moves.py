"""Derivations that move between source and sink, sources and sinks that move with derivations, links that break."""

# ruff: noqa: SLF001 - links are cut and derivations moved at moments that a test chooses

import threading
import time
from collections.abc import Callable, Iterator
from random import Random

import pytest

from echoic import Channel, Hub, Source, event, float32, float64, int16, int32, int64
from echoic.channels import Derivation, Policy
from echoic.hub import SourceState
from tests.hub.parties import Collector, Quote, StartHub, Tick, Trade, WideTrade, eventually, trade


@event
class Marked:
    producer: int64
    number: int64
    twice: int64


@event
class NarrowTrade:
    """A trade whose numbers need less room, in another order."""

    symbol: str
    price: float32
    number: int32
    venue: int16


@event
class Bulk:
    number: int64
    payload: bytes


PAYLOAD = bytes(2000)
EVEN = """{
    output.producer = input.producer;
    output.number = input.number;
    output.twice = 2 * input.number;
    return input.number % 2 == 0;
}"""
COUNTED = "{ static long n; n++; output.producer = input.producer; output.number = n; return 1; }"


def listen(channel: Channel) -> Collector:
    seen = Collector()
    channel.subscribe(seen, on_gap=seen.gaps.append)
    return seen


def derivations(hub: Hub) -> list[Derivation]:
    return list(hub._switchboard.core.derivations.values())


def move(hub: Hub, *, here: bool) -> None:
    """Move the derivations of a hub, as `auto` would."""

    def moved(core: object) -> None:
        for derivation in core.derivations.values():
            derivation.move(here=here)

    hub._switchboard.do(moved)


def cut_links(hub: Hub) -> None:
    for link in hub._switchboard.links():
        if link.connection is not None:
            link.connection.close()


def submit(source: Source, producer: int, number: int) -> None:
    """Submit in one way or another."""
    if number % 17 == 3:
        source.submit_sync(Tick(producer, number), timeout=30)
    elif number % 17 == 9:
        source.submit_batch([Tick(producer, number)])
    else:
        source.submit(Tick(producer, number))


@pytest.fixture
def traffic() -> Iterator[Callable[[Source, int], dict[int, int]]]:
    """Publish from threads until the test ends or `finish` is called; what is returned counts the events."""
    stop, threads, counts = threading.Event(), [], {}

    def run(source: Source, producer: int) -> None:
        while not stop.is_set():
            submit(source, producer, counts[producer])
            counts[producer] += 1
            if counts[producer] % 50 == 0:
                time.sleep(0.001)
        source.flush()

    def start(source: Source, producer: int) -> Callable[[], dict[int, int]]:
        counts[producer] = 0
        threads.append(threading.Thread(target=run, args=(source, producer)))
        threads[-1].start()

        def finish() -> dict[int, int]:
            stop.set()
            for thread in threads:
                thread.join()
            return counts

        return finish

    yield start
    stop.set()
    for thread in threads:
        thread.join()


# Placement


@pytest.mark.parametrize("placement", ["sink", "auto"])
def test_placement_changes_where_the_code_runs_and_nothing_else(start_hub: StartHub, placement: str) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("ticks", Tick)
    sources = [created.source(), hubs[2].open(created.id, Tick).source()]
    twins: list[tuple[Collector, Collector]] = []
    for hub in hubs:
        channel = hub.open(created.id, Tick)
        for code, output in (("input.number % 3 == 0", None), (EVEN, Marked), (COUNTED, Marked)):
            pair = [listen(channel.derive(code, output, placement=where)) for where in ("source", placement)]
            twins.append((pair[0], pair[1]))
        ports = [channel.route("input.number % 2", 2, placement=where) for where in ("source", placement)]
        twins += [(listen(one), listen(other)) for one, other in zip(*ports, strict=True)]
    for number in range(100):
        for producer, source in enumerate(sources):
            submit(source, producer, number)
    for source in sources:
        source.drain(30)
    for at_source, elsewhere in twins:
        assert len(at_source.events) > 30
        for producer in (0, 1):
            assert at_source.of(producer) == elsewhere.of(producer)


def test_at_the_sink_events_arrive_as_they_were_submitted(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    source = created.source()
    derived = there.open(created.id, Tick).derive("input.number % 100 == 0", placement="sink")
    seen = listen(derived)
    for number in range(1000):
        source.submit(Tick(1, number))
    source.drain()
    assert seen.numbers == list(range(0, 1000, 100))
    assert derived.statistics().events_in == 1000
    [counts] = derived.derivation.counts().values()
    assert (counts.placement, counts.events_in) == ("sink", 0)
    assert derived.derivation.placement == "sink"


@pytest.mark.parametrize("code", [EVEN, "input.number % 2 == 0"], ids=["transform", "filter"])
def test_moves_lose_repeat_and_reorder_nothing(
    start_hub: StartHub, traffic: Callable[..., Callable[[], dict[int, int]]], code: str
) -> None:
    here, *others = [start_hub() for _ in range(3)]
    created = here.create("ticks", Tick)
    output = Marked if code is EVEN else None
    channels = [hub.open(created.id, Tick).derive(code, output, placement="auto") for hub in (here, *others)]
    collectors = [listen(channel) for channel in channels]
    finish = [traffic(created.source(), producer) for producer in range(2)][-1]
    for turn in range(60):
        move(here, here=turn % 2 == 1)
        time.sleep(0.005)
    counts = finish()
    for seen in collectors:
        for producer, count in counts.items():
            wanted = list(range(0, count, 2))
            eventually(lambda seen=seen, one=producer, due=wanted: len(seen.of(one)) >= len(due), "all have arrived")
            assert seen.of(producer) == wanted
        assert not seen.gaps
        assert all(item.twice == 2 * item.number for item in seen.events if isinstance(item, Marked))


@pytest.mark.parametrize("kind", ["transform", "router"])
def test_a_move_back_is_told_even_if_the_first_events_after_it_are_rejected(start_hub: StartHub, kind: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    source = created.source()
    channel = there.open(created.id, Tick)
    code = "{ output.number = input.number + 1000; return input.number % 5 == 0 ? 0 : -1; }"
    if kind == "transform":
        code = "{ output.number = input.number + 1000; return input.number % 5 == 0; }"
        derived = channel.derive(code, Marked, placement="auto")
    else:
        derived, _ = channel.route(code, 2, Marked, placement="auto")
    seen = listen(derived)
    for start in range(0, 100, 10):
        move(here, here=start % 20 == 10)
        for number in (1, 5, 6, 10):
            source.submit_sync(Tick(1, start + number))
    assert seen.numbers == [1000 + start + number for start in range(0, 100, 10) for number in (5, 10)]


def test_of_two_sources_one_may_have_moved_and_the_other_not(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    one, other = created.source(), created.source()
    seen = listen(there.open(created.id, Tick).derive("input.number % 2 == 0", placement="auto"))
    move(here, here=False)
    one.submit_sync(Tick(1, 0))  # is derived where it arrives from here on
    move(here, here=True)
    other.submit_sync(Tick(2, 0))  # is derived where it is submitted, so the next one takes the short way
    move(here, here=False)
    for number in (1, 2, 3):
        one.submit_sync(Tick(1, number))
    assert (seen.of(1), seen.of(2)) == ([0, 2], [0])


def test_a_sink_that_comes_back_after_a_move_does_not_derive_twice(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    source = created.source()
    derived = there.open(created.id, Tick).derive(
        "{ output.number = input.number + 1000; return 1; }", Marked, placement="auto"
    )
    keeper = listen(created.derive("{ output.number = input.number + 1000; return 1; }", Marked, placement="auto"))
    for turn in range(6):
        seen = Collector()
        sink = derived.subscribe(seen)
        source.submit_sync(Tick(1, turn))
        assert seen.numbers == [1000 + turn]
        sink.close()
        eventually(lambda: not here._switchboard.core.members[derived.id].fanout.targets, "it is not sent to")
        move(here, here=turn % 2 == 1)
        source.submit_sync(Tick(1, 77))
    assert len(keeper.events) == 12


def test_auto_moves_code_that_saves_nothing_to_the_sink_and_back(start_hub: StartHub) -> None:
    here, there = start_hub(policy=Policy(load_max=16.0)), start_hub()
    created = here.create("bulks", Bulk)
    code = """{
        long i; double sum = 0;
        for (i = 0; i < param.loops; i++) sum += sqrt(i + input.number);
        return sum >= 0 && input.number % param.divisor == 0;
    }"""
    moving = there.open(created.id, Bulk).derive(code, params={"loops": 500, "divisor": 1}, placement="auto")
    numbers: list[int] = []
    moving.subscribe(lambda item: numbers.append(item.number))
    source, number = created.source(), 0

    def flow_until(placement: str) -> None:
        nonlocal number
        deadline = time.monotonic() + 25
        while moving.derivation.counts()[here.address].placement != placement:
            assert time.monotonic() < deadline, f"not placed at the {placement}"
            source.submit_batch([Bulk(number + place, PAYLOAD) for place in range(100)])
            number += 100
        source.drain(30)

    source.submit_sync(Bulk(number, PAYLOAD))
    number += 1
    flow_until("sink")
    assert numbers == list(range(number)), "until then it passes everything"
    changed = number
    moving.params.update(loops=0, divisor=1000)
    flow_until("source")
    source.submit_batch([Bulk(number + place, PAYLOAD) for place in range(1000)])
    source.drain(30)
    assert numbers[changed:] == [passed for passed in range(changed, number + 1000) if passed % 1000 == 0]


def test_code_with_statics_stays_where_it_is(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    source = created.source()
    seen = listen(there.open(created.id, Tick).derive(COUNTED, Marked, placement="auto"))
    source.submit_sync(Tick(1, 0))
    [derivation] = derivations(here)
    assert not derivation.movable
    source.submit_sync(Tick(1, 0))
    assert seen.numbers == [1, 2]


# Sources and sinks that move


@pytest.mark.parametrize("placement", ["source", "sink"])
def test_a_source_that_moves_is_derived_from_wherever_it_is(start_hub: StartHub, placement: str) -> None:
    hubs = [start_hub() for _ in range(4)]
    created = hubs[0].create("ticks", Tick)
    channels = [hub.open(created.id, Tick) for hub in hubs]
    derived = [channels[place].derive(EVEN, Marked, placement=placement) for place in (0, 3)]
    collectors = [listen(channel) for channel in derived]
    chained = listen(derived[1].derive("input.number % 4 == 0", placement=placement))
    source, number = channels[0].source(), 0
    for place in (0, 0, 1, 1, 0, 2, 3, 3, 0):
        for _ in range(11):
            submit(source, 1, number)
            number += 1
        frozen = source.freeze(timeout=30)
        assert frozen == SourceState(created.id, source.id, number)
        source = channels[place].source(resume=frozen)
    source.submit_sync(Tick(1, number + number % 2))
    wanted = [*range(0, number, 2), number + number % 2]
    for seen in collectors:
        seen.has(len(wanted))
        assert seen.numbers == wanted
        assert not seen.gaps
    chained.has(1)
    assert chained.numbers == [number for number in wanted if number % 4 == 0]


def test_a_source_is_closed_and_others_are_opened_in_the_same_hub(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    seen = listen(there.open(created.id, Tick).derive(COUNTED, Marked))
    for producer in range(5):
        with created.source() as source:
            for number in range(3):
                source.submit(Tick(producer, number))
        if producer % 2:
            eventually(lambda: not derivations(here), "nothing is left of it")
    seen.has(15)
    assert [seen.of(producer) for producer in range(5)] == [[1, 2, 3]] * 5


def test_a_sink_of_a_derived_channel_moves_to_another_hub(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("ticks", Tick)
    source = created.source()
    channels = [hub.open(created.id, Tick).derive(EVEN, Marked) for hub in hubs[1:]]
    numbers: list[int] = []
    sink = channels[0].subscribe(lambda item: numbers.append(item.number))
    number = 0
    for turn in range(1, 8):
        for _ in range(5):
            source.submit(Tick(1, number))
            number += 1
        following = channels[turn % 2].subscribe(lambda item: numbers.append(item.number), paused=True)
        source.submit(Tick(1, number))
        number += 1
        state = sink.freeze(following.state(), timeout=30)
        following.resume(state)
        sink = following
    source.drain(30)
    eventually(lambda: len(numbers) >= number // 2)
    assert numbers == list(range(0, number, 2))


def test_what_has_gathered_is_derived_before_a_source_is_closed(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    collectors = [listen(hub.open(created.id, Tick).derive(EVEN, Marked)) for hub in (here, there)]
    for producer in range(20):
        with created.source() as source:
            for number in range(30):
                source.submit(Tick(producer, number))
    for seen in collectors:
        seen.has(20 * 15)
        assert [seen.of(producer) for producer in range(20)] == [list(range(0, 30, 2))] * 20


# Links and managers


@pytest.mark.parametrize("placement", ["source", "sink", "auto"])
def test_a_link_that_breaks_loses_nothing_that_is_derived(
    start_hub: StartHub, any_link: str, traffic: Callable[..., Callable[[], dict[int, int]]], placement: str
) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    derived = there.open(created.id, Tick).derive(EVEN, Marked, placement=placement)
    seen = listen(derived)
    finish = traffic(created.source(), 1)
    for turn in range(4):
        seen.has((turn + 1) * 100)
        cut_links(here)
        if placement == "auto":
            move(here, here=turn % 2 == 1)
    seen.has(len(seen.events) + 100)
    count = finish()[1]
    seen.has((count + 1) // 2)
    assert seen.numbers == list(range(0, count, 2))
    assert not seen.gaps


@pytest.mark.parametrize("placement", ["source", "sink"])
def test_the_managers_hub_dies_and_comes_back_knowing_nothing(start_hub: StartHub, placement: str) -> None:
    manager, producer, consumer = start_hub(), start_hub(), start_hub()
    id = manager.create("ticks", Tick).id
    source = producer.open(id, Tick).source()
    code = "input.number >= param.low"
    derived = consumer.open(id, Tick).derive(code, params={"low": 0}, placement=placement)
    chained = derived.derive("input.number % 2 == 0")
    seen, seen_chained = listen(derived), listen(chained)
    for low in (5, 10, 3):
        derived.params.update(low=low)
    for number in range(10):
        source.submit_sync(Tick(1, number))
    address = manager.address
    manager.close()
    for number in range(10, 20):
        source.submit_sync(Tick(1, number))
    assert seen.numbers == list(range(3, 20)), "without the manager, traffic goes on"
    again = start_hub(address)
    again.create("ticks", Tick)
    eventually(lambda: known(again, derived.name), "the derived channel is entered again by those who take part")
    eventually(lambda: known(again, chained.name), "and the one derived from it")
    eventually(lambda: again.describe(id).sources == [producer.address], "the source too")
    derived.params.update(low=50)
    late = start_hub().open(id, Tick).source()
    for one in (source, late):
        for number in (49, 50, 51):
            one.submit_sync(Tick(2, number))
    assert seen.of(2) == [50, 51, 50, 51], "all sources have the parameters of the day"
    assert seen_chained.of(2) == [50, 50]
    assert start_hub().open(id, Tick).derive("input.number > 1").id.startswith(f"echoic://{address}/")


def known(hub: Hub, name: str) -> bool:
    return any(entry.name == name and entry.sinks == 1 for entry in hub.channels())


def test_the_sources_hub_dies_and_another_takes_its_place(start_hub: StartHub) -> None:
    manager, producer, consumer = start_hub(), start_hub(), start_hub()
    id = manager.create("ticks", Tick).id
    seen = listen(consumer.open(id, Tick).derive(COUNTED, Marked))
    producer.open(id, Tick).source().submit_sync(Tick(1, 0))
    address = producer.address
    producer.close()
    source = start_hub(address).open(id, Tick).source()
    for _ in range(2):
        source.submit_sync(Tick(2, 0))
    assert (seen.of(1), seen.of(2)) == ([1], [1, 2])


def test_a_sinks_hub_that_ends_leaves_the_derivation_idle(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    source = created.source()
    derived = there.open(created.id, Tick).derive(EVEN, Marked)
    listen(derived)
    source.submit_sync(Tick(1, 0))
    there.close()
    eventually(lambda: not created.endpoints.member.derivations, "nobody listens")
    [derivation] = derivations(here)
    for number in range(10):
        source.submit_sync(Tick(1, number))
    assert derivation.counts().events_in == 1


@pytest.mark.parametrize("placement", ["source", "auto"])
def test_those_who_stay_miss_nothing_while_others_derive_and_go(
    start_hub: StartHub, traffic: Callable[..., Callable[[], dict[int, int]]], placement: str
) -> None:
    hubs = [start_hub() for _ in range(4)]
    created = hubs[0].create("ticks", Tick)
    channels = [hub.open(created.id, Tick) for hub in hubs]
    staying = [listen(channel.derive(EVEN, Marked, placement=placement)) for channel in channels]
    chained = listen(channels[3].derive(EVEN, Marked, placement=placement).derive("input.number % 4 == 0"))
    finish = [traffic(channels[place].source(), place) for place in (0, 1, 2)][-1]
    draw = Random(11)
    for turn in range(40):
        channel = draw.choice(channels)
        code = draw.choice([EVEN, COUNTED])
        derived = channel.derive(code, Marked, placement=placement, share=draw.random() < 0.5)
        if draw.random() < 0.3:
            derived = derived.derive(f"input.number % {turn + 1} == 0")
        sink = derived.subscribe(Collector(), thread=draw.random() < 0.5)
        if draw.random() < 0.3:
            with channel.source() as source:
                source.submit(Tick(9, -1))
        if placement == "auto":
            move(draw.choice(hubs), here=draw.random() < 0.5)
        sink.close()
    counts = finish()
    for producer, count in counts.items():
        for seen, step in [*((seen, 2) for seen in staying), (chained, 4)]:
            wanted = list(range(0, count, step))
            eventually(lambda seen=seen, one=producer, due=wanted: len(seen.of(one)) >= len(due), "all have arrived")
            assert seen.of(producer) == wanted
            assert not seen.gaps


# Type extension


@pytest.mark.parametrize("placement", ["source", "sink"])
def test_sources_and_sinks_may_know_more_or_less_than_the_channel(start_hub: StartHub, placement: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("trades", Trade)
    plain, wide = created.source(), created.source(WideTrade)
    narrow = start_hub().open(created.id).source(NarrowTrade)
    derived = there.open(created.id, Trade).derive('input.price >= 1.0 && input.symbol != "X"', placement=placement)
    whole, part, beside = Collector(), Collector(), Collector()
    derived.subscribe(whole)
    derived.subscribe(part, Quote)
    created.derive('input.price >= 1.0 && input.symbol != "X"', placement=placement).subscribe(beside, Quote)
    for number in range(4):
        plain.submit_sync(trade(number))
        wide.submit_sync(WideTrade("NY", 10 + number, number / 2, "W", 5))
        narrow.submit_sync(NarrowTrade("N", number / 2, 20 + number, 1))
        narrow.submit_sync(NarrowTrade("X", 9.0, 99, 1))
    wanted = [2, 12, 22, 3, 13, 23]
    assert whole.numbers == part.numbers == beside.numbers == wanted
    assert whole.events[:3] == [trade(2), Trade(12, 1.0, "W"), Trade(22, 1.0, "N")]
    assert part.events[0] == Quote(1.0, 2)


def test_a_transform_is_received_as_a_type_with_fewer_fields(start_hub: StartHub) -> None:
    @event
    class Twice:
        twice: float64

    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    source = created.source()
    code = "{ output.number = input.number; output.price = 2 * input.number; return 1; }"
    derived = there.open(created.id, Tick).derive(code, Quote)

    @event
    class Price:
        price: float64

    seen = Collector()
    derived.subscribe(seen, Price)
    source.submit_sync(Tick(1, 4))
    assert seen.events == [Price(8.0)]
    with pytest.raises(Exception, match="twice"):
        derived.subscribe(seen, Twice)
