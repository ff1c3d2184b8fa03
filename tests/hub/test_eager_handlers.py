"""Eager handlers between real hubs: which sources they reach, what comes out, and what is left in the end.

What a modulator may do is the same in the process of the source and in a confined one; such tests run in both places.
How pairs are swapped under traffic is `test_reset`.
"""

import logging
import threading

import pytest

from echoic import Context, EcodeModulator, Policy, event, float64
from echoic.eager.ready import Cluster, Priority
from echoic.errors import DeliveryError, IncompatibleTypesError, LocalError, RefusedError
from tests.hub.eager_modulators import (
    Above,
    Asking,
    Beating,
    Between,
    Bounds,
    Cautious,
    Counting,
    Doubling,
    Every,
    Held,
    Keeping,
    MakeHub,
    Newest,
    Priced,
    Quota,
    Taking,
    Twice,
    children,
    confining,
    cut_links,
    listen,
    publish,
)
from tests.hub.parties import Collector, Note, Quote, StartHub, Tick, Trade, eventually, trade

# Sources


def test_every_source_has_an_object_of_its_own(running: MakeHub, viewing: MakeHub) -> None:
    hubs = [running(), running()]
    id = hubs[0].create("trades", Trade).id
    sources = [hub.open(id, Trade).source() for hub in (*hubs, hubs[1])]
    seen = listen(viewing().open(id, Trade), Counting())
    for source in sources:
        publish(source, 10, 13)
    assert seen.numbers == [0, 1, 2] * 3


def test_a_source_that_comes_later_has_the_modulator_before_its_first_event(running: MakeHub, viewing: MakeHub) -> None:
    manager = running()
    id = manager.create("trades", Trade).id
    bounds = Bounds()
    seen = listen(viewing().open(id, Trade), Between(bounds))
    for hub in (manager, running()):
        source = hub.open(id, Trade).source()
        source.submit_sync(trade(9), timeout=30)
        source.submit_sync(trade(10), timeout=30)
        source.close()
    assert seen.numbers == [9, 9]


def test_a_later_hub_that_does_not_list_the_key_is_told_of_and_sends_nothing(
    trusting: MakeHub, viewing: MakeHub, start_hub: StartHub
) -> None:
    manager, closed = trusting(), start_hub()
    id = manager.create("trades", Trade).id
    seen, everything = listen(viewing().open(id, Trade), Every(1)), listen(viewing().open(id, Trade), None)
    late = closed.open(id, Trade).source()
    assert seen.told("runs no modulators signed by").hub == closed.address
    publish(late, 0, 3)
    publish(manager.open(id, Trade).source(), 3, 5)
    assert (seen.numbers, everything.numbers) == ([3, 4], [0, 1, 2, 3, 4])


def test_a_source_moves_to_another_hub_and_is_modulated_there(running: MakeHub, viewing: MakeHub) -> None:
    first, second = running(), running()
    id = first.create("trades", Trade).id
    source = first.open(id, Trade).source()
    seen = listen(viewing().open(id, Trade), Every(2))
    publish(source, 0, 5)
    moved = second.open(id, Trade).source(resume=source.freeze())
    publish(moved, 5, 10)
    assert (seen.numbers, seen.gaps) == ([0, 2, 4, 6, 8], [])
    back = first.open(id, Trade).source(resume=moved.freeze())
    publish(back, 10, 13)
    assert (seen.numbers, seen.gaps) == ([0, 2, 4, 6, 8, 10, 12], [])


@pytest.mark.parametrize("any_link", ["unix", "tcp"], indirect=True)
def test_a_link_that_breaks_costs_neither_events_nor_the_modulator(
    trusting: MakeHub, viewing: MakeHub, any_link: str
) -> None:
    hub, viewer = trusting(), viewing()
    channel = hub.create("trades", Trade)
    source, seen = channel.source(), listen(viewer.open(channel.id, Trade), Counting("over links that break"))
    for turn in range(5):
        for _ in range(20):
            source.submit(trade(0))
        cut_links((hub, viewer)[turn % 2])
        for _ in range(20):
            source.submit(trade(0))
    source.drain(30)
    assert (seen.numbers, seen.gaps) == (list(range(200)), [])


def test_a_sink_in_the_hub_of_the_source_is_served_as_those_elsewhere(running: MakeHub, viewing: MakeHub) -> None:
    """Its modulator writes into events of its own, so nobody else sees what it has written."""
    hub = running()
    channel = hub.create("trades", Trade)
    plain = Collector()
    channel.subscribe(plain)
    near = listen(channel, Doubling())
    far = listen(viewing().open(channel.id, Trade), Doubling())
    source = channel.source()
    source.submit_batch([trade(number) for number in range(5)])
    publish(source, 5, 10)
    assert near.numbers == far.numbers == [2 * number for number in range(10)]
    assert plain.numbers == list(range(10))


@event
class Limit:
    limit: float64


def test_a_modulator_sees_what_its_source_lets_others_see(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    source = channel.source(context=Context(Limit(1.0)))
    seen = listen(viewing().open(channel.id, Trade), Above())
    publish(source, 0, 5)
    source.context.limit = 0.5
    publish(source, 0, 4)
    assert seen.numbers == [3, 4, 2, 3]


def test_a_modulator_writes_a_shared_object_where_it_runs(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    source, quota = channel.source(), Quota(3)
    seen = listen(viewing().open(channel.id, Trade), Taking(quota))
    publish(source, 0, 10)
    assert seen.numbers == [0, 1, 2]
    eventually(lambda: (quota.left, quota.taken) == (0, 3), "the master has it")
    quota.left = 2
    quota.publish()

    def takes_more() -> bool:
        source.submit_sync(trade(20), timeout=30)
        return len(seen.events) == 5

    eventually(takes_more, "the modulator has what was published")


def test_threads_that_share_a_source_share_its_modulator_one_after_the_other(
    running: MakeHub, viewing: MakeHub
) -> None:
    channel = running().create("trades", Trade)
    source, seen = channel.source(), listen(viewing().open(channel.id, Trade), Counting())
    threads = [
        threading.Thread(target=lambda: [source.submit(trade(number)) for number in range(500)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    source.drain(30)
    assert seen.numbers == list(range(2000))


@pytest.mark.parametrize("end", ["close", "freeze", "the hub"])
def test_what_is_held_back_is_sent_before_its_source_ends(running: MakeHub, viewing: MakeHub, end: str) -> None:
    hub = running()
    channel = hub.create("trades", Trade)
    source, seen = channel.source(), listen(viewing().open(channel.id, Trade), Keeping())
    publish(source, 0, 5)
    assert not seen.events
    {"close": source.close, "freeze": source.freeze, "the hub": hub.close}[end]()
    eventually(lambda: len(seen.events) == 5, "nothing is lost", 5)
    assert seen.numbers == [0, 1, 2, 3, 4]


# What comes out


def test_a_modulator_sends_events_of_its_own_as_time_passes(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    source, seen = channel.source(), listen(viewing().open(channel.id, Trade), Beating())
    source.submit(trade(100))
    seen.has(5)
    assert seen.numbers[:5] == [1, 2, 3, 4, 5]


def test_a_synchronous_event_passes_a_queue_that_decides_the_order(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    source, seen = channel.source(), listen(viewing().open(channel.id, Trade), Priority("number"))
    for number in (3, 1, 2):
        source.submit_sync(trade(number), timeout=30)
    assert seen.numbers == [3, 1, 2]


def test_events_of_another_type_come_out(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    seen, made = Collector(), Collector()
    opened = viewing().open(channel.id, Trade)
    opened.subscribe(seen, Quote, modulator=Priced())
    opened.modulate(Priced()).subscribe(made)
    publish(channel.source(), 0, 4)
    assert seen.events == made.events == [Quote(number / 2, number) for number in range(4)]


def test_a_type_that_does_not_come_out_cannot_be_received(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting().create("trades", Trade)
    opened = viewing().open(channel.id, Trade)
    with pytest.raises(IncompatibleTypesError):
        opened.subscribe(Collector(), Note, modulator=Priced())
    publish(channel.source(), 0, 1)


def test_a_synchronous_event_waits_for_the_handler_behind_the_modulator(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    source, seen = channel.source(), []

    def handler(item: Trade) -> None:
        if item.number == 4:
            raise ValueError("four")
        seen.append(item.number)

    viewing().open(channel.id, Trade).subscribe(handler, modulator=Twice())
    for number in range(3):
        source.submit_sync(trade(number), timeout=30)
        assert seen == [n for n in range(number + 1) for _ in range(2)]
    with pytest.raises(DeliveryError, match="four"):
        source.submit_sync(trade(4), timeout=30)


def test_a_batch_of_any_kind_is_modulated_event_by_event(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("ticks", Tick)
    source, seen = channel.source(), listen(viewing().open(channel.id, Tick), Every(1000))
    source.submit_batch([Tick(1, number) for number in range(10_000)])
    source.drain(30)
    assert seen.numbers == list(range(0, 10_000, 1000))


def test_a_modulated_channel_is_modulated_and_derived_in_turn(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    opened = viewing().open(channel.id, Trade)
    even = opened.modulate(Every(2))
    seen = {
        "both": listen(even, Every(3)),
        "then E-Code": listen(even, EcodeModulator("input.number > 5")),
        "three": listen(even.modulate(Every(3)), Priced()),
    }
    derived = Collector()
    even.derive("input.number < 3").subscribe(derived)
    publish(channel.source(), 0, 13)
    assert {name: each.numbers for name, each in seen.items()} == {
        "both": [0, 6, 12],
        "then E-Code": [6, 8, 10, 12],
        "three": [0, 6, 12],
    }
    assert derived.numbers == [0, 2]


def test_a_derived_channel_is_modulated(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    seen = listen(viewing().open(channel.id, Trade).derive("input.number % 2 == 0"), Every(3))
    publish(channel.source(), 0, 13)
    assert seen.numbers == [0, 6, 12]


def test_a_handle_on_a_modulated_channel_is_reset(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting().create("trades", Trade)
    source, seen = channel.source(), Collector()
    even = viewing().open(channel.id, Trade).modulate(Every(2))
    handle = even.subscribe(seen, modulator=Every(3))
    publish(source, 0, 7)
    handle.reset(Every(5))
    publish(source, 7, 21)
    handle.reset()
    publish(source, 21, 25)
    assert seen.numbers == [0, 6, 10, 20, 22, 24]


# Demodulators


def test_a_demodulator_drops_changes_and_repeats_before_the_handler(start_hub: StartHub) -> None:
    """It needs no modulator, and no permission: nothing of it leaves this hub."""
    here, there = start_hub(), start_hub()
    channel = here.create("trades", Trade)
    source, demodulator = channel.source(), Cautious()
    seen = listen(there.open(channel.id, Trade), None, demodulator)
    for number in range(3):
        source.submit_sync(trade(number), timeout=30)
    assert [(item.number, item.symbol) for item in seen.events] == [(0, "seen"), (0, "S0"), (2, "seen"), (2, "S2")]
    assert demodulator.started == 1
    with pytest.raises(DeliveryError, match="three"):
        source.submit_sync(trade(3), timeout=30)
    source.submit_sync(trade(4), timeout=30)
    assert seen.numbers[-1] == 4


def test_the_period_of_a_demodulator_goes_on_after_an_error(
    start_hub: StartHub, caplog: pytest.LogCaptureFixture
) -> None:
    channel = start_hub().create("trades", Trade)
    source, demodulator = channel.source(), Newest()
    with caplog.at_level(logging.ERROR, "echoic.hub"):
        seen = listen(channel, None, demodulator)
        source.submit_sync(trade(1), timeout=30)
        eventually(lambda: demodulator.failures == 1)
        source.submit_sync(trade(2), timeout=30)
        seen.has(1)
    assert seen.numbers == [2]
    assert "Newest failed when its period was over" in caplog.text


@pytest.mark.parametrize("end", ["the handle", "the hub"])
def test_the_period_of_a_demodulator_ends_with_its_handler(start_hub: StartHub, end: str) -> None:
    hub, before = start_hub(), set(threading.enumerate())
    handle = hub.create("trades", Trade).subscribe(Collector(), demodulator=Newest())
    clocks = [each for each in threading.enumerate() if each not in before and each.name == "echoic-demodulator"]
    assert len(clocks) == 1
    (handle if end == "the handle" else hub).close()
    eventually(lambda: not clocks[0].is_alive(), "the thread of the demodulator ends", 10)


def test_a_pair_that_is_refused_leaves_no_thread(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting().create("trades", Trade)
    _source, opened = channel.source(), viewing().open(channel.id, Trade)
    handle = opened.subscribe(Collector(), modulator=Every(1))
    before = set(threading.enumerate())
    with pytest.raises(RefusedError, match="`desk`"):
        opened.subscribe(Collector(), modulator=Asking(), demodulator=Newest())
    with pytest.raises(RefusedError, match="`desk`"):
        handle.reset(Asking(), Newest())
    left = [each for each in threading.enumerate() if each not in before and each.name == "echoic-demodulator"]
    eventually(lambda: not any(each.is_alive() for each in left), "the clock of the demodulator stops", 5)


# Handles


def test_two_handles_go_their_own_ways(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting().create("trades", Trade)
    opened, source = viewing().open(channel.id, Trade), channel.source()
    seen = [Collector(), Collector()]
    handles = [opened.subscribe(each, modulator=Every(2)) for each in seen]
    publish(source, 0, 3)
    handles[0].reset(Every(3))
    publish(source, 3, 7)
    handles[0].close()
    publish(source, 7, 9)
    assert [each.numbers for each in seen] == [[0, 2, 3, 6], [0, 2, 4, 6, 8]]
    with pytest.raises(LocalError, match="closed"):
        handles[0].reset(Every(1))


def test_a_handle_tells_what_its_modulator_does_in_each_hub(running: MakeHub, viewing: MakeHub) -> None:
    hubs = [running(), running()]
    id = hubs[0].create("ticks", Tick).id
    sources = [hub.open(id, Tick).source() for hub in hubs]
    seen = Collector()
    handle = viewing().open(id, Tick).subscribe(seen, modulator=Every(4))
    for source, count in zip(sources, (8, 20), strict=True):
        source.submit_batch([Tick(1, number) for number in range(count)])
        source.drain(30)
    for hub, count in zip(hubs, (8, 20), strict=True):
        counts = handle.derivations()[hub.address]
        assert (counts.sources, counts.events_in, counts.events_out) == (1, count, count // 4)
        assert (counts.bytes_in, counts.bytes_out, counts.bytes_saved) == (16 * count, 4 * count, 12 * count)
        assert counts.busy_ns > 0
        assert (counts.faults, counts.suspended) == (0, "")
    assert handle.statistics().events == 7


def test_a_handle_is_a_context_and_its_channel_open_to_others(
    trusting: MakeHub, viewing: MakeHub, start_hub: StartHub
) -> None:
    channel = trusting().create("trades", Trade)
    source, seen, other = channel.source(), Collector(), Collector()
    with viewing().open(channel.id, Trade).subscribe(seen, modulator=Every(2)) as handle:
        start_hub().open(handle.channel.id, Trade).subscribe(other)
        publish(source, 0, 4)
    publish(source, 4, 7)
    assert (seen.numbers, other.numbers) == ([0, 2], [0, 2, 4, 6])


def test_nothing_runs_for_a_handle_that_was_closed(trusting: MakeHub, viewing: MakeHub) -> None:
    hub = trusting()
    channel = hub.create("trades", Trade)
    source, seen = channel.source(), Collector()
    handle = viewing().open(channel.id, Trade).subscribe(seen, modulator=Every(1))
    publish(source, 0, 3)
    handle.close()
    eventually(lambda: not source.heard, "nobody listens")
    publish(source, 3, 6)
    assert seen.numbers == [0, 1, 2]
    assert [counts.events_in for counts in hub.report(hub.address).derivations] in ([3], [])


def test_what_is_held_back_is_sent_when_the_pair_is_reset(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    source, seen = channel.source(), Collector()
    handle = viewing().open(channel.id, Trade).subscribe(seen, modulator=Keeping())
    publish(source, 0, 5)
    assert not seen.events
    handle.reset(Every(1))
    publish(source, 5, 8)
    assert seen.numbers == list(range(8))


def test_what_is_gathered_is_sent_when_the_pair_is_reset(running: MakeHub, viewing: MakeHub) -> None:
    channel = running().create("trades", Trade)
    source, seen = channel.source(), Collector()
    modulator, demodulator = Cluster.pair(Trade, count=10)
    handle = viewing().open(channel.id, Trade).subscribe(seen, modulator=modulator, demodulator=demodulator)
    publish(source, 0, 15)
    assert seen.numbers == list(range(10))
    handle.reset(Every(1))
    publish(source, 15, 18)
    assert seen.numbers == list(range(18))


def test_a_handler_closes_itself(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting().create("trades", Trade)
    source, seen = channel.source(), Collector()

    def handler(item: Trade) -> None:
        seen(item)
        handle.close()

    handle = viewing().open(channel.id, Trade).subscribe(handler, modulator=Every(1))
    for number in range(5):
        source.submit(trade(number))
    eventually(lambda: seen.events and not source.heard, "nobody listens")
    publish(source, 5, 8)
    assert seen.numbers == [0]


def test_what_a_demodulator_keeps_is_handled_before_the_next_pair(trusting: MakeHub, viewing: MakeHub) -> None:
    channel = trusting().create("trades", Trade)
    source, seen = channel.source(), Collector()
    handle = viewing().open(channel.id, Trade).subscribe(seen, modulator=Every(1), demodulator=Held())
    publish(source, 0, 3)
    assert seen.numbers == [0]
    publish(source, 3, 4)
    handle.reset(Every(2))
    publish(source, 4, 7)
    assert seen.numbers == [0, 1, 2, 3, 4, 6]


def test_a_modulator_that_is_installed_again_begins_anew(running: MakeHub, viewing: MakeHub) -> None:
    """Nobody has used it meanwhile, so nobody knows of what it has counted."""
    channel = running().create("trades", Trade)
    source, seen = channel.source(), Collector()
    handle = viewing().open(channel.id, Trade).subscribe(seen, modulator=Counting())
    publish(source, 10, 13)
    handle.reset(Every(1))
    publish(source, 20, 22)
    handle.reset(Counting())
    publish(source, 10, 13)
    assert seen.numbers == [0, 1, 2, 20, 21, 0, 1, 2]


@confining
def test_a_confined_process_ends_when_nobody_listens(start_hub: StartHub, viewing: MakeHub) -> None:
    """There is a spare one as long as any is in use."""
    before = children()
    channel = start_hub(policy=Policy(sandboxed_keys=("*",))).create("trades", Trade)
    source = channel.source()
    handle = viewing().open(channel.id, Trade).subscribe(Collector(), modulator=Every(1))
    for n in range(2, 6):
        publish(source, 0, n)
        handle.reset(Every(n))
    eventually(lambda: len(children() - before) <= 2, "the processes of former modulators end", 10)
    handle.close()
    eventually(lambda: children() <= before, "the process of the last modulator ends", 10)


@confining
def test_a_hub_that_is_closed_leaves_no_process(start_hub: StartHub, viewing: MakeHub) -> None:
    before = children()
    hub = start_hub(policy=Policy(sandboxed_keys=("*",)))
    channel = hub.create("trades", Trade)
    source = channel.source()
    opened = viewing().open(channel.id, Trade)
    for n in (1, 2):
        opened.subscribe(Collector(), modulator=Every(n))
    publish(source, 0, 3)
    assert len(children() - before) >= 2
    hub.close()
    eventually(lambda: children() <= before, "all processes end")


@confining
def test_everybody_can_be_let_in_but_only_confined(start_hub: StartHub) -> None:
    before = children()
    channel = start_hub(policy=Policy(sandboxed_keys=("*",))).create("trades", Trade)
    seen = listen(start_hub().open(channel.id, Trade), Every(2))
    publish(channel.source(), 0, 5)
    assert seen.numbers == [0, 2, 4]
    assert children() - before
