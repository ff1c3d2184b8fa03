"""Every sink sees one producer's events in the order in which they were submitted (JECho, section 4)."""

import threading

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echoic import Channel, Hub, Source
from tests.hub.parties import Collector, StartHub, Tick, eventually

DTYPE = numpy.dtype([("producer", "i8"), ("number", "i8")])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(1, 40)),
        st.tuples(st.just("batch"), st.integers(0, 40)),
        st.tuples(st.just("array"), st.integers(0, 40)),
        st.tuples(st.just("sync"), st.integers(1, 2)),
        st.tuples(st.just("flush"), st.just(0)),
    ),
    max_size=20,
)


def perform(source: Source, producer: int, how: str, start: int, count: int) -> int:
    numbers = range(start, start + count)
    if how == "submit":
        for number in numbers:
            source.submit(Tick(producer, number))
    elif how == "batch":
        source.submit_batch([Tick(producer, number) for number in numbers])
    elif how == "array":
        source.submit_batch(numpy.array([(producer, number) for number in numbers], DTYPE))
    elif how == "sync":
        for number in numbers:
            source.submit_sync(Tick(producer, number), timeout=30)
    else:
        source.flush()
        return start
    return start + count


@pytest.fixture(scope="module")
def system() -> tuple[Channel, list[Collector]]:
    """Return a channel with sinks of every kind in its own hub and in two others."""
    with Hub() as here, Hub() as there, Hub() as elsewhere:
        created = here.create("ticks", Tick)
        collectors = []
        for hub in (here, there, there, elsewhere):
            channel = hub.open(created.id, Tick)
            for kind in ({}, {"thread": True}, {"batch": True}):
                seen = Collector()
                channel.subscribe(seen.batch if kind.get("batch") else seen, **kind)
                collectors.append(seen)
        yield created, collectors


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(todo=steps)
def test_any_mixture_of_submitting_keeps_the_order(
    system: tuple[Channel, list[Collector]], todo: list[tuple[str, int]]
) -> None:
    channel, collectors = system
    for seen in collectors:
        seen.events.clear()
    number = 0
    with channel.source() as source:
        for how, count in todo:
            number = perform(source, 1, how, number, count)
    for seen in collectors:
        seen.has(number)
        assert seen.numbers == list(range(number))


def test_any_mixture_keeps_the_order_without_a_sink_beside_the_source(start_hub: StartHub, any_link: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    seen = Collector()
    there.open(created.id, Tick).subscribe(seen)
    source, number = created.source(), 0
    for turn in range(60):
        for how, count in (("submit", turn), ("sync", 1), ("submit", 3), ("array", 5), ("submit", 1), ("batch", 2)):
            number = perform(source, 1, how, number, count)
    source.flush()
    seen.has(number)
    assert seen.numbers == list(range(number))


def test_several_producers_keep_their_own_order(start_hub: StartHub, any_link: str) -> None:
    manager, *hubs = [start_hub() for _ in range(4)]
    created = manager.create("ticks", Tick)
    collectors = [Collector() for _ in hubs]
    channels = [hub.open(created.id, Tick) for hub in hubs]
    for channel, seen in zip(channels, collectors, strict=True):
        channel.subscribe(seen)
    kinds = ("submit", "batch", "sync", "array", "flush")

    def produce(producer: int) -> None:
        with channels[producer % len(channels)].source() as source:
            number = 0
            for turn in range(100):
                number = perform(source, producer, kinds[(turn * (producer + 1)) % 5], number, 1 + turn % 5)
            perform(source, producer, "submit", number, 1000 - number)

    threads = [threading.Thread(target=produce, args=(producer,)) for producer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seen in collectors:
        seen.has(6000)
        assert len(seen.events) == 6000
        for producer in range(6):
            assert seen.of(producer) == list(range(1000))


def test_threads_that_share_a_source_lose_nothing_and_keep_each_its_order(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    seen = Collector()
    there.open(created.id, Tick).subscribe(seen)
    source = created.source()

    def produce(producer: int) -> None:
        number = 0
        for turn in range(50):
            number = perform(source, producer, ("submit", "batch", "sync")[turn % 3], number, 4)

    threads = [threading.Thread(target=produce, args=(producer,)) for producer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    source.flush()
    seen.has(800)
    assert [seen.of(producer) for producer in range(4)] == [list(range(200))] * 4


def test_a_handler_that_submits_to_its_own_channel_does_not_overtake(start_hub: StartHub) -> None:
    """All sinks see the answer behind what it answers, though the first one submits it before the second is called."""
    channel = start_hub().create("ticks", Tick)
    source = channel.source()
    first, second = Collector(), Collector()

    def answer(tick: Tick) -> None:
        first(tick)
        if tick.number < 5:
            source.submit(Tick(1, tick.number + 1))

    channel.subscribe(answer)
    channel.subscribe(second)
    source.submit(Tick(1, 0))
    second.has(6)
    assert first.numbers == second.numbers == list(range(6))


def test_threads_that_share_a_source_are_seen_in_one_order_by_all_sinks_beside_it(start_hub: StartHub) -> None:
    channel = start_hub().create("ticks", Tick)
    source = channel.source()
    collectors = [Collector(), Collector()]
    for seen in collectors:
        channel.subscribe(seen)

    def produce(producer: int) -> None:
        for number in range(3000):
            source.submit(Tick(producer, number))

    threads = [threading.Thread(target=produce, args=(producer,)) for producer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    eventually(lambda: all(len(seen.events) == 9000 for seen in collectors))
    assert collectors[0].events == collectors[1].events
    for producer in range(3):
        assert collectors[0].of(producer) == list(range(3000))


def test_a_lone_event_does_not_wait_for_company(start_hub: StartHub) -> None:
    """Sources that fall idle and wake again, while others keep the hub busy, never leave an event behind."""
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    seen = Collector()
    there.open(created.id, Tick).subscribe(seen)
    sources = [created.source() for _ in range(4)]
    for round_ in range(150):
        for producer, source in enumerate(sources):
            source.submit(Tick(producer, round_))
        seen.has(4 * (round_ + 1))
    assert [seen.of(producer) for producer in range(4)] == [list(range(150))] * 4
