"""Sinks that do not keep up: what each rule promises, and that nothing is lost silently."""

import threading
import time

import numpy
import pytest

from echoic import Batch, Source
from tests.hub.parties import Collector, StartHub, Tick, eventually

DTYPE = numpy.dtype([("producer", "i8"), ("number", "i8"), ("payload", "S1008")], align=True)
BATCH = 256  # of 1 KiB
BATCHES = 160  # 40 MiB in all: more than all queues and credits together
BOUND_BYTES = 28 * 1024 * 1024


def pour(source: Source, first: int = 0) -> int:
    for number in range(first, first + BATCH * BATCHES, BATCH):
        batch = numpy.zeros(BATCH, DTYPE)
        batch["number"] = numpy.arange(number, number + BATCH)
        source.submit_batch(batch)
    return first + BATCH * BATCHES


class Numbers(Collector):
    """A handler of batches that remembers only numbers."""

    def batch(self, batch: Batch) -> None:
        self.gate.wait()
        self.events.extend(batch.array["number"].tolist())

    @property
    def numbers(self) -> list[int]:
        return self.events


@pytest.mark.parametrize("where", ["here", "there"])
@pytest.mark.parametrize("slow", ["drop_oldest", "latest"])
def test_what_is_dropped_is_told_exactly(start_hub: StartHub, slow: str, where: str) -> None:
    here, there, elsewhere = start_hub(), start_hub(), start_hub()
    created = here.create("ticks", DTYPE)
    lazy, keen = Numbers(), Numbers()
    lazy.gate.clear()
    opened = (here if where == "here" else there).open(created.id)
    sink = opened.subscribe(lazy.batch, batch=True, slow=slow, on_gap=lazy.gaps.append)
    elsewhere.open(created.id).subscribe(keen.batch, batch=True)
    source = created.source()
    total = pour(source)
    keen.has(total)
    assert keen.numbers == list(range(total))
    counts = created.statistics()
    assert counts.waiting_bytes + sink.statistics().waiting_bytes < BOUND_BYTES
    lazy.gate.set()
    eventually(lambda: lazy.numbers and lazy.numbers[-1] == total - 1, "the last event arrives")
    eventually(lambda: len(lazy.numbers) + sink.statistics().missed == total, "everything is accounted for")
    assert lazy.numbers == sorted(set(lazy.numbers))
    assert lazy.missed == set(range(total)) - set(lazy.numbers)
    assert sink.statistics().missed == len(lazy.missed) > 0
    total = pour(source, total)
    eventually(lambda: len(lazy.numbers) + sink.statistics().missed == total, "everything is accounted for")
    assert lazy.missed == set(range(total)) - set(lazy.numbers)


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_source_waits_for_a_sink_that_wants_everything(start_hub: StartHub, where: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", DTYPE)
    lazy = Numbers()
    lazy.gate.clear()
    opened = (here if where == "here" else there).open(created.id)
    sink = opened.subscribe(lazy.batch, batch=True, thread=True)
    source = created.source()
    pouring = threading.Thread(target=pour, args=(source,))
    pouring.start()
    eventually(lambda: sink.statistics().waiting_bytes > 4 * 1024 * 1024, "the queue fills")
    pouring.join(0.3)
    assert pouring.is_alive()
    assert created.statistics().waiting_bytes + sink.statistics().waiting_bytes < BOUND_BYTES
    lazy.gate.set()
    pouring.join(60)
    lazy.has(BATCH * BATCHES)
    assert lazy.numbers == list(range(BATCH * BATCHES))
    assert not lazy.gaps


def test_a_waiting_source_holds_up_no_other_channel(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    clogged, free = here.create("clogged", DTYPE), here.create("free", Tick)
    lazy, keen = Numbers(), Collector()
    lazy.gate.clear()
    there.open(clogged.id).subscribe(lazy.batch, batch=True, thread=True)
    there.open(free.id, Tick).subscribe(keen)
    pouring = threading.Thread(target=pour, args=(clogged.source(),))
    pouring.start()
    source = free.source()
    for number in range(500):
        source.submit(Tick(1, number))
        if number % 100 == 0:
            source.submit_sync(Tick(1, -1), timeout=30)
    keen.has(505)
    assert [number for number in keen.numbers if number >= 0] == list(range(500))
    lazy.gate.set()
    pouring.join(60)
    lazy.has(BATCH * BATCHES)


def test_a_waiting_source_ends_with_its_hub(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", DTYPE)
    lazy = Numbers()
    lazy.gate.clear()
    there.open(created.id).subscribe(lazy.batch, batch=True, thread=True)
    source = created.source()
    ended: list[str] = []

    def pour_until_closed() -> None:
        try:
            pour(source)
        except Exception as error:  # noqa: BLE001 - the test tells
            ended.append(type(error).__name__)

    pouring = threading.Thread(target=pour_until_closed)
    pouring.start()
    pouring.join(0.5)
    assert pouring.is_alive()
    started = time.monotonic()
    here.close()
    assert time.monotonic() - started < 20
    pouring.join(30)
    assert ended == ["ClosedError"]
    lazy.gate.set()


def test_a_waiting_source_goes_on_when_the_sink_is_closed(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", DTYPE)
    lazy = Numbers()
    lazy.gate.clear()
    sink = there.open(created.id).subscribe(lazy.batch, batch=True, thread=True)
    pouring = threading.Thread(target=pour, args=(created.source(),))
    pouring.start()
    pouring.join(0.3)
    assert pouring.is_alive()
    threading.Timer(0.2, lazy.gate.set).start()
    sink.close()
    pouring.join(60)
    assert not pouring.is_alive()


@pytest.mark.parametrize("where", ["here", "there"])
def test_a_sink_is_disconnected_that_asked_for_it(start_hub: StartHub, where: str) -> None:
    here, there, elsewhere = start_hub(), start_hub(), start_hub()
    created = here.create("ticks", DTYPE)
    lazy, keen = Numbers(), Numbers()
    lazy.gate.clear()
    opened = (here if where == "here" else there).open(created.id)
    sink = opened.subscribe(lazy.batch, batch=True, slow="disconnect")
    elsewhere.open(created.id).subscribe(keen.batch, batch=True)
    source = created.source()
    total = pour(source)
    keen.has(total)
    lazy.gate.set()
    eventually(lambda: sink.closed, "it is disconnected")
    assert lazy.numbers == list(range(len(lazy.numbers)))
    assert len(lazy.numbers) < total
    again = Numbers()
    opened.subscribe(again.batch, batch=True)
    last = pour(source, total)
    again.has(BATCH * BATCHES)
    assert again.numbers == list(range(total, last))


def test_gaps_of_a_source_that_falls_silent_are_told_too(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", DTYPE)
    lazy = Numbers()
    lazy.gate.clear()
    there.open(created.id).subscribe(lazy.batch, batch=True, slow="latest", on_gap=lazy.gaps.append)
    chatty, brief = created.source(), created.source()
    pour(chatty)
    few = numpy.zeros(10, DTYPE)
    few["number"] = -1
    brief.submit_batch(few)
    chatty.submit_batch(numpy.zeros(10, DTYPE))
    lazy.gate.set()

    def accounted() -> bool:
        missed = sum(gap.last - gap.first + 1 for gap in lazy.gaps if gap.source == brief.id)
        return missed + lazy.numbers.count(-1) == 10

    eventually(accounted, "what the silent source lost is told")


def test_an_iterator_follows_the_rules_too(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", DTYPE)
    gaps: list[object] = []
    with there.open(created.id).events(batch=True, slow="latest", timeout=0.5, on_gap=gaps.append) as batches:
        total = pour(created.source())
        seen = [number for batch in batches for number in batch.array["number"].tolist()]
    assert seen[-1] == total - 1
    assert seen == sorted(set(seen))
    assert len(seen) + sum(gap.last - gap.first + 1 for gap in gaps) == total


def test_small_events_are_bounded_too(start_hub: StartHub) -> None:
    """Events that are submitted one by one wait in their source's run, which is bounded like all else."""
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    lazy = Collector()
    lazy.gate.clear()
    there.open(created.id, Tick).subscribe(lazy.batch, batch=True, slow="drop_oldest", on_gap=lazy.gaps.append)
    source = created.source()
    for number in range(20_000):
        source.submit(Tick(1, number))
    source.flush()
    assert source.statistics().gathered == 0
    lazy.gate.set()
    eventually(lambda: len(lazy.events) + len(lazy.missed) == 20_000)
    assert set(lazy.numbers) | lazy.missed == set(range(20_000))


def test_who_waits_for_the_latest_event_does_not_displace_it(start_hub: StartHub) -> None:
    """`drain` sends nothing but its question, which is no event that could be later than the last one."""
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    lazy = Collector()
    lazy.gate.clear()
    there.open(created.id, Tick).subscribe(lazy, slow="latest", on_gap=lazy.gaps.append)
    source = created.source()
    for number in range(1000):
        source.submit_batch([Tick(1, number)])
    opening = threading.Timer(0.2, lazy.gate.set)
    opening.start()
    source.drain()
    opening.join()
    assert lazy.numbers[-1] == 999
    assert set(lazy.numbers) | lazy.missed == set(range(1000))
