"""Sources and sinks that move, and members that come and go while others publish."""

import threading
import time
from typing import Self

import msgspec
import pytest

from echoic import Channel, Source
from echoic.errors import ClosedError, DeliveryError
from echoic.hub import SinkState, SourceState
from tests.hub.parties import Collector, StartHub, Tick, eventually


class Publisher:
    """Publishes numbers from a thread until it is stopped."""

    def __init__(self, channel: Channel, producer: int) -> None:
        self.count = 0
        self.late: list[str] = []
        self._channel = channel
        self._producer = producer
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self._channel.source() as source:
            while not self._stop.is_set():
                self.submit(source)
                if self.count % 50 == 0:
                    time.sleep(0.001)

    def submit(self, source: Source) -> None:
        number, self.count = self.count, self.count + 1
        if number % 20 == 7:
            try:
                source.submit_sync(Tick(self._producer, number), timeout=60)
            except DeliveryError as problem:  # somebody left while it was asked, which is known at once
                self.late += [text for text in problem.failures.values() if "no answer" in text]
        elif number % 20 == 13:
            source.submit_batch([Tick(self._producer, number)])
        else:
            source.submit(Tick(self._producer, number))


def test_a_source_moves_from_hub_to_hub_under_traffic(start_hub: StartHub) -> None:
    manager, *hubs = [start_hub() for _ in range(5)]
    created = manager.create("ticks", Tick)
    channels = [hub.open(created.id, Tick) for hub in hubs]
    collectors = [Collector() for _ in range(3)]
    for channel, seen in zip([*channels[:2], created], collectors, strict=True):
        channel.subscribe(seen, on_gap=seen.gaps.append)
    moving = channels[0].source()
    with Publisher(channels[3], 2) as other:
        number = 0
        for turn in range(1, 40):
            for _ in range(turn % 7 + 1):
                if number % 3 == 0:
                    moving.submit_batch([Tick(1, number), Tick(1, number + 1)])
                    number += 2
                else:
                    moving.submit(Tick(1, number))
                    number += 1
            frozen = moving.freeze(timeout=30)
            carried = msgspec.json.decode(msgspec.json.encode(frozen), type=SourceState)
            assert carried.position == number
            with pytest.raises(ClosedError):
                moving.submit(Tick(1, -1))
            moving = channels[turn % len(channels)].source(resume=carried)
        moving.submit_sync(Tick(1, number), timeout=30)
    for seen in collectors:
        eventually(lambda seen=seen: len(seen.of(1)) == number + 1 and len(seen.of(2)) == other.count)
        assert seen.of(1) == list(range(number + 1))
        assert seen.of(2) == list(range(other.count))
        assert not seen.gaps


def test_a_source_that_cannot_be_drained_goes_on(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    seen = Collector()
    seen.gate.clear()
    there.open(created.id, Tick).subscribe(seen, thread=True)
    source = created.source()
    source.submit(Tick(1, 0))
    with pytest.raises(DeliveryError):
        source.freeze(timeout=0.2)
    source.submit(Tick(1, 1))
    seen.gate.set()
    assert source.freeze(timeout=30).position == 2
    seen.has(2)
    assert seen.numbers == [0, 1]


def test_freezing_shows_no_empty_batch_to_anybody(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    sizes: list[int] = []
    for hub in (here, there):
        hub.open(created.id, Tick).subscribe(lambda batch: sizes.append(len(batch)), batch=True)
        hub.open(created.id, Tick).subscribe(lambda batch: sizes.append(len(batch)), batch=True, thread=True)
    source = created.source()
    source.submit_batch([])
    source.submit_batch([Tick(1, 1), Tick(1, 2)])
    source.freeze(timeout=30)
    eventually(lambda: len(sizes) >= 4)
    assert sizes == [2] * 4


def test_those_who_stay_miss_nothing_while_others_come_and_go(start_hub: StartHub, any_link: str) -> None:
    manager, here, there, elsewhere = [start_hub() for _ in range(4)]
    created = manager.create("ticks", Tick)
    channels = [hub.open(created.id, Tick) for hub in (here, there, elsewhere)]
    staying = [Collector() for _ in channels]
    for channel, seen in zip(channels, staying, strict=True):
        channel.subscribe(seen, on_gap=seen.gaps.append)
    with Publisher(channels[0], 0) as first, Publisher(channels[1], 1) as second:
        for turn in range(25):
            channel = channels[turn % 3]
            passing = Collector()
            sinks = [channel.subscribe(passing, thread=turn % 2 == 0) for _ in range(2)]
            with created.source() as extra, channel.source() as another:
                extra.submit_sync(Tick(10, turn), timeout=30)
                another.submit(Tick(11, turn))
            visitor = start_hub()
            guest = Collector()
            visitor.open(created.id, Tick).subscribe(guest)
            guest.has(5)
            for sink in sinks:
                sink.close()
            visitor.close()
            for producer in (0, 1):
                numbers = guest.of(producer)
                assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True
    assert first.late == second.late == []
    for seen in staying:
        eventually(lambda seen=seen: len(seen.events) >= first.count + second.count + 50)
        assert seen.of(0) == list(range(first.count))
        assert seen.of(1) == list(range(second.count))
        assert seen.of(10) == seen.of(11) == list(range(25))
        assert not seen.gaps


def test_traffic_goes_on_without_the_manager(start_hub: StartHub) -> None:
    manager, here, there = start_hub(), start_hub(), start_hub()
    created = manager.create("ticks", Tick)
    seen = Collector()
    there.open(created.id, Tick).subscribe(seen, on_gap=seen.gaps.append)
    source = here.open(created.id, Tick).source()
    for number in range(1000):
        source.submit(Tick(1, number))
        if number == 300:
            manager.close()
    source.submit_sync(Tick(1, 1000), timeout=30)
    assert seen.numbers == list(range(1001))
    assert not seen.gaps


def test_a_manager_that_comes_back_is_joined_again(start_hub: StartHub) -> None:
    manager, here, there = start_hub(), start_hub(), start_hub()
    created = manager.create("ticks", Tick)
    seen = Collector()
    there.open(created.id, Tick).subscribe(seen)
    source = here.open(created.id, Tick).source()
    address = manager.address
    manager.close()
    source.submit_sync(Tick(1, 1), timeout=30)
    again = start_hub(address)
    again.create("ticks", Tick)
    eventually(lambda: again.describe("ticks").sinks and again.describe("ticks").sources, "they join again")
    late = Collector()
    start_hub().open(created.id, Tick).subscribe(late)
    source.submit_sync(Tick(1, 2), timeout=30)
    assert (seen.numbers, late.numbers) == ([1, 2], [2])


def test_a_hub_drains_when_it_is_closed(start_hub: StartHub, any_link: str) -> None:
    for turn in range(5):
        here, there = start_hub(), start_hub()
        created = there.create("ticks", Tick)
        seen = Collector()
        created.subscribe(seen, on_gap=seen.gaps.append)
        source = here.open(created.id, Tick).source()
        count = 3000 * turn + 1
        for number in range(count):
            source.submit(Tick(1, number))
        started = time.monotonic()
        here.close()
        assert time.monotonic() - started < 30
        seen.has(count)
        assert seen.numbers == list(range(count))
        there.close()


def test_a_sink_that_closes_at_the_same_time_as_a_hub_is_no_trouble(start_hub: StartHub) -> None:
    for _ in range(10):
        here, there = start_hub(), start_hub()
        created = here.create("ticks", Tick)
        sink = there.open(created.id, Tick).subscribe(Collector())
        with Publisher(created, 1):
            threads = [threading.Thread(target=close) for close in (sink.close, there.close, there.close)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
            assert not any(thread.is_alive() for thread in threads)
        here.close()


@pytest.mark.parametrize("thread", [False, True])
def test_a_sink_moves_to_another_hub_under_traffic(start_hub: StartHub, any_link: str, thread: bool) -> None:
    manager, first, second, here, there = [start_hub() for _ in range(5)]
    created = manager.create("ticks", Tick)
    seen = Collector()
    sink = here.open(created.id, Tick).subscribe(seen, on_gap=seen.gaps.append, thread=thread)
    with (
        Publisher(first.open(created.id, Tick), 0) as one,
        Publisher(second.open(created.id, Tick), 1) as other,
    ):
        eventually(lambda: len(seen.events) > 100)
        successor = there.open(created.id, Tick).subscribe(seen, on_gap=seen.gaps.append, paused=True)
        carried = msgspec.json.encode(successor.state())  # to the other process
        state = sink.freeze(until=msgspec.json.decode(carried, type=SinkState), timeout=30)
        successor.resume(state)
        goal = len(seen.events) + 200
        eventually(lambda: len(seen.events) > goal)
    seen.has(one.count + other.count)
    for producer, publisher in enumerate((one, other)):
        assert seen.of(producer) == list(range(publisher.count))
    assert seen.gaps == []


def test_a_sink_that_cannot_be_frozen_in_time_goes_on(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    seen = Collector()
    sink = there.open(created.id, Tick).subscribe(seen)
    source = created.source()
    source.submit_sync(Tick(0, 0), timeout=30)
    with pytest.raises(DeliveryError, match="have not arrived"):
        sink.freeze(until=SinkState(created.id, {source.id: 5}), timeout=0.1)
    source.submit_sync(Tick(0, 1), timeout=30)
    assert seen.numbers == [0, 1]
