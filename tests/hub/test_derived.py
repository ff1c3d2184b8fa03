"""Derived channels between real hubs: what comes out, for whom, from which sources, and what runs for nobody."""

import itertools
from collections.abc import Callable

import numpy
import pytest

from echoic import Array, Channel, Hub, Source, event, float64, int64
from echoic.channels import DerivationCounts
from tests.hub.parties import Collector, StartHub, Tick, Trade, eventually, trade

CHEAP = "{ return input.price < 5.0; }"
EVERY_SECOND = "{ static int n; n = n + 1; return n % 2 == 0; }"


@event
class Mean:
    number: int64
    mean: float64


@event
class Words:
    n: int64
    number: int64
    word: str
    samples: Array[float64, "n"]


@event
class Shout:
    n: int64
    number: int64
    loud: str
    doubled: Array[float64, "n"]


MEAN = """{
    static double sum;
    static long count;
    sum = sum + input.price;
    count = count + 1;
    output.number = input.number;
    output.mean = sum / count;
    return 1;
}"""


def publish(source: Source, first: int, last: int) -> None:
    for number in range(first, last):
        source.submit(trade(number))


def counts_of(channel: Channel) -> list[DerivationCounts]:
    """Return what the derivation of a channel did, in each hub where it is at work."""
    return list(channel.derivation.counts().values())


def events_in(channel: Channel) -> int:
    return sum(counts.events_in for counts in counts_of(channel))


def listen(channel: Channel) -> Collector:
    seen = Collector()
    channel.subscribe(seen, on_gap=seen.gaps.append)
    return seen


@pytest.fixture
def pair(start_hub: StartHub) -> tuple[Channel, Channel]:
    """Return a channel in the hub that created it, and in another."""
    created = start_hub().create("trades", Trade)
    return created, start_hub().open(created.id, Trade)


def test_a_filter_passes_events_as_they_are(pair: tuple[Channel, Channel], any_link: str) -> None:
    here, there = pair
    source = here.source()
    seen = listen(there.derive(CHEAP))
    publish(source, 0, 40)
    source.submit_sync(trade(3))
    assert seen.events == [trade(number) for number in [*range(10), 3]]


def test_a_transform_sends_what_the_code_has_made(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    seen = listen(there.derive(MEAN, Mean))
    for number in range(4):
        source.submit_sync(trade(number))
    assert seen.events == [Mean(0, 0.0), Mean(1, 0.25), Mean(2, 0.5), Mean(3, 0.75)]


def test_a_router_gives_each_event_to_one_port_and_runs_once(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    low, high, rare = there.route("return input.number == 7 ? -1 : input.price < 5.0 ? 0 : 1;", 3)
    collectors = [listen(port) for port in (low, high, rare)]
    publish(source, 0, 20)
    source.submit_sync(trade(19))
    assert [seen.numbers for seen in collectors] == [[0, 1, 2, 3, 4, 5, 6, 8, 9], [*range(10, 20), 19], []]
    assert events_in(low) == 21


def test_a_router_may_also_transform(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    odd, even = there.route("{ output.number = -input.number; return input.number % 2 == 0; }", 2, Mean)
    seen_odd, seen_even = listen(odd), listen(even)
    for number in range(4):
        source.submit_sync(trade(number))
    assert (seen_odd.numbers, seen_even.numbers) == ([-1, -3], [0, -2])


def test_the_python_spelling_does_the_same_as_the_c_spelling(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()

    def cheap(input):  # noqa: A002, ANN001, ANN202 - the compiler reads it, Python does not run it
        return input.price < 5.0

    collectors = [listen(there.derive(code)) for code in (CHEAP, cheap, "input.price < 5.0")]
    publish(source, 0, 40)
    source.submit_sync(trade(0))
    assert [seen.numbers for seen in collectors] == [[*range(10), 0]] * 3


@pytest.mark.parametrize("where", [0, 1, 2], ids=["manager", "sink", "third"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_every_source_present_and_future_is_derived_from(start_hub: StartHub, where: int, when: str) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("trades", Trade)
    cheap = hubs[1].open(created.id, Trade).derive(CHEAP)
    channel = hubs[where].open(created.id, Trade)
    source = channel.source() if when == "before" else None
    seen = listen(cheap)
    source = source or channel.source()
    publish(source, 0, 40)
    source.submit_sync(trade(1))
    assert seen.numbers == [*range(10), 1]
    assert list(cheap.derivation.counts()) == [hubs[where].address]


def test_each_source_has_statics_of_its_own(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("ticks", Tick)
    channels = [hub.open(created.id, Tick) for hub in hubs]
    sources = [channels[place].source() for place in (0, 0, 1, 2)]
    seen = listen(channels[1].derive(EVERY_SECOND))
    for number in range(9):
        for producer, source in enumerate(sources):
            source.submit_sync(Tick(producer, number))
    assert [seen.of(producer) for producer in range(4)] == [[1, 3, 5, 7]] * 4


def test_sinks_beside_the_source_and_elsewhere_hear_the_same(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("trades", Trade)
    source = created.source()
    derived = [hub.open(created.id, Trade).derive(MEAN, Mean) for hub in hubs]
    collectors = [listen(channel) for channel in derived for _ in range(2)]
    raw = listen(hubs[2].open(created.id, Trade))
    for number in range(30):
        source.submit_sync(trade(number)) if number % 3 == 0 else source.submit(trade(number))
    source.flush()
    for seen in collectors:
        seen.has(30)
        assert seen.events == collectors[0].events
        assert seen.numbers == list(range(30))
    raw.has(30)
    assert raw.numbers == list(range(30))
    assert events_in(derived[0]) == 30


def test_those_who_derive_the_same_share_one_channel(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("trades", Trade)
    channels = [hub.open(created.id, Trade) for hub in hubs]
    source = created.source()
    same = [channel.derive("input.price < param.low", params={"low": 5.0}) for channel in channels]
    assert len({channel.id for channel in same}) == 1
    collectors = [listen(channel) for channel in same]
    source.submit_sync(trade(1))
    assert [seen.numbers for seen in collectors] == [[1]] * 3
    assert events_in(same[0]) == 1


def test_what_differs_in_anything_is_not_shared(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    terms = {"params": {"low": 5.0}}
    first = there.derive("input.price < param.low", **terms)
    others = [
        there.derive("input.price  < param.low", **terms),
        there.derive("input.price < param.low", params={"low": 6.0}),
        there.derive("input.price < param.low", params={"low": numpy.float32(5)}),
        there.derive("input.price < param.low", **terms, share=False),
        there.derive("input.price < param.low", **terms, share=False),
        there.derive("input.price < param.low", **terms, placement="sink"),
        there.derive("output.number = 1; return input.price < param.low;", Mean, **terms),
    ]
    assert len({first.id, *[other.id for other in others]}) == 1 + len(others)
    assert here.derive("input.price < param.low", **terms).id == first.id


def test_what_was_updated_is_shared_by_those_who_want_what_it_has_become(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    code = "input.price < param.low"
    changed = there.derive(code, params={"low": 5.0})
    changed.params.update(low=7.0)
    assert here.derive(code, params={"low": 7.0}).id == changed.id
    assert here.derive(code, params={"low": 5.0}).id != changed.id


def test_nothing_runs_while_nobody_listens(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    cheap = there.derive(CHEAP)
    publish(source, 0, 10)
    source.flush()
    assert counts_of(cheap) == []
    seen = Collector()
    sink = cheap.subscribe(seen)
    source.submit_sync(trade(1))
    assert events_in(cheap) == 1
    sink.close()
    eventually(lambda: not here.endpoints.member.derivations, "nobody listens")
    for number in range(5):
        source.submit_sync(trade(number))
    assert events_in(cheap) == 1
    seen = listen(cheap)
    source.submit_sync(trade(2))
    assert seen.numbers == [2]
    assert events_in(cheap) == 2


def test_a_local_sink_that_is_closed_leaves_nothing_running(start_hub: StartHub) -> None:
    channel = start_hub().create("trades", Trade)
    source, cheap = channel.source(), channel.derive(CHEAP)
    sink = cheap.subscribe(Collector())
    source.submit(trade(0))
    sink.close()
    source.submit(trade(1))
    assert events_in(cheap) == 1


@pytest.mark.parametrize("placement", ["source", "sink", "auto"])
@pytest.mark.parametrize("depth", [2, 3])
def test_derived_channels_are_derived_from_in_turn(start_hub: StartHub, depth: int, placement: str) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("trades", Trade)
    sources = [hubs[place].open(created.id, Trade).source() for place in (0, 2)]
    channel, kept = hubs[1].open(created.id, Trade), set(range(60))
    for divisor in (2, 3, 5)[:depth]:
        channel = channel.derive(f"input.number % {divisor} == 0", placement=placement)
        kept = {number for number in kept if number % divisor == 0}
    collectors = [listen(hub.open(channel.id, Trade)) for hub in hubs]
    for source in sources:
        publish(source, 0, 60)
        source.submit_sync(trade(0))
    for seen in collectors:
        seen.has(2 * len(kept) + 2)
        assert sorted(seen.numbers) == sorted([*kept, 0] * 2)


def test_the_middle_of_a_chain_may_have_sinks_too_or_none(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    middle = there.derive("input.number % 2 == 0")
    last = middle.derive("input.number % 3 == 0")
    seen_last = listen(last)
    source.submit_sync(trade(6))
    seen_middle = Collector()
    sink = middle.subscribe(seen_middle)
    for number in (2, 3, 12):
        source.submit_sync(trade(number))
    sink.close()
    for number in (4, 18):
        source.submit_sync(trade(number))
    assert seen_middle.numbers == [2, 12]
    assert seen_last.numbers == [6, 12, 18]


def test_a_chain_goes_through_a_router_and_a_transform(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    _, even = there.route("input.number % 2 == 0", 2)
    mean = even.derive(MEAN, Mean)
    seen = listen(mean.derive("input.mean > 0.5"))
    for number in range(7):
        source.submit_sync(trade(number))
    assert seen.events == [Mean(4, 1.0), Mean(6, 1.5)]


def test_a_derived_channel_has_sources_of_its_own_which_are_not_filtered(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("trades", Trade)
    parent = created.source()
    cheap = hubs[1].open(created.id, Trade).derive(CHEAP)
    seen = listen(cheap)
    chained = listen(cheap.derive("input.number % 2 == 1"))
    own = [hub.open(cheap.id, Trade).source() for hub in hubs]
    for place, source in enumerate(own):
        source.submit_sync(trade(101 + place))
    parent.submit_sync(trade(1))
    parent.submit_sync(trade(50))
    own[0].close()
    parent.submit_sync(trade(3))
    assert seen.numbers == [101, 102, 103, 1, 3]
    assert chained.numbers == [101, 103, 1, 3]


def test_every_way_of_submitting_is_derived_from_in_order(pair: tuple[Channel, Channel]) -> None:
    source = pair[0].source()
    collectors = [listen(channel.derive("input.number % 2 == 0")) for channel in pair]
    numbers = itertools.count()
    for turn in range(40):
        for _ in range(turn % 5):
            source.submit(trade(next(numbers)))
        source.submit_batch([trade(next(numbers)) for _ in range(turn % 4)])
        source.submit_sync(trade(next(numbers)), timeout=30)
    last = next(numbers)
    source.submit_batch([trade(last + last % 2)])
    source.flush()
    wanted = [number for number in range(last) if number % 2 == 0] + [last + last % 2]
    for seen in collectors:
        seen.has(len(wanted))
        assert seen.numbers == wanted


def test_a_sink_that_comes_while_events_gather_does_not_reorder_them(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    source = created.source()
    remote = listen(there.open(created.id, Tick).derive("input.number >= 0"))
    local_channel = created.derive("input.number >= 0")
    number = 0
    for _ in range(30):
        for _ in range(7):
            source.submit(Tick(1, number))
            number += 1
        seen = Collector()
        sink = local_channel.subscribe(seen)
        source.submit_sync(Tick(1, number))
        source.submit_sync(Tick(1, number + 1))
        number += 2
        eventually(lambda seen=seen, number=number: seen.numbers[-1:] == [number - 1])
        assert seen.numbers == sorted(seen.numbers)
        sink.close()
    remote.has(number)
    assert remote.numbers == list(range(number))


def test_handlers_of_batches_and_iterators_get_derived_events(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    cheap = there.derive(CHEAP)
    whole = Collector()
    cheap.subscribe(whole.batch, batch=True)
    with cheap.events(timeout=60) as one_by_one, cheap.events(batch=True, timeout=60) as batches:
        source.submit_batch([trade(number) for number in range(5, 15)])
        source.submit_batch([trade(number) for number in range(50, 60)])
        source.submit_batch([trade(3)])
        assert [item.number for item in itertools.islice(one_by_one, 6)] == [5, 6, 7, 8, 9, 3]
        sizes = [len(batch) for batch in itertools.islice(batches, 2)]
    assert sizes == [5, 1], "a batch of which nothing is left does not arrive"
    whole.has(6)
    assert whole.numbers == [5, 6, 7, 8, 9, 3]


def test_strings_and_dynamic_arrays_go_in_and_come_out(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("words", Words)
    source = created.source()
    code = """{
        int i;
        if (input.word == "quiet" || strlen(input.word) == 0) return 0;
        output.n = input.n;
        output.number = length(input.samples);
        output.loud = input.word;
        for (i = 0; i < input.n; i = i + 1) output.doubled[i] = 2 * input.samples[i];
        return 1;
    }"""
    derived = [hub.open(created.id, Words).derive(code, Shout, capacities={"doubled": 5}) for hub in (here, there)]
    collectors = [listen(channel) for channel in derived]
    filtered = listen(there.open(created.id, Words).derive('input.word != "quiet" && input.n > 0'))
    source.submit_batch(
        [Words(count, 0, word, [0.5] * count) for count, word in enumerate(["a", "quiet", "", "çé", "b"])]
    )
    source.submit_sync(Words(5, 0, "x" * 3000, [1.0] * 5))
    for seen in collectors:
        assert [item.loud for item in seen.events] == ["a", "çé", "b", "x" * 3000]
        assert [list(item.doubled) for item in seen.events] == [[], [1.0] * 3, [1.0] * 4, [2.0] * 5]
        assert seen.numbers == [0, 3, 4, 5]
    assert [item.word for item in filtered.events] == ["", "çé", "b", "x" * 3000]


def test_the_code_sees_a_large_event_whole(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("words", Words)
    code = "{ long i; double s = 0; for (i = 0; i < input.n; i++) s += input.samples[i]; output.mean = s; return 1; }"
    source, seen = created.source(), listen(there.open(created.id, Words).derive(code, Mean))
    source.submit(Words(10_000, 1, "w", numpy.ones(10_000)))
    source.submit_sync(Words(3, 2, "w", [1.0, 2.0, 3.0]))
    assert [item.mean for item in seen.events] == [10_000.0, 6.0]


@pytest.mark.parametrize("slow", ["block", "drop_oldest", "latest", "disconnect"])
def test_sinks_of_derived_channels_may_be_slow_in_every_way(start_hub: StartHub, slow: str) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("words", Words)
    source = created.source()
    seen = Collector()
    seen.gate.clear()
    even = there.open(created.id, Words).derive("input.number % 2 == 0")
    sink = even.subscribe(seen, slow=slow, thread=True, on_gap=seen.gaps.append)
    fast = listen(there.open(created.id, Words).derive("input.number % 2 == 0 && input.n >= 0", share=False))
    samples = numpy.zeros(40_000)
    submitted = 0
    while submitted < 300 and not (slow == "block" and source.would_wait()):
        source.submit(Words(len(samples), submitted, "w", samples))
        submitted += 1
    seen.gate.set()
    source.submit_sync(Words(0, submitted + submitted % 2, "w", []), timeout=30)
    wanted = [*range(0, submitted, 2), submitted + submitted % 2]
    assert fast.numbers == wanted
    if slow == "block":
        assert submitted < 300, "a full sink of a derived channel holds the source up"
        seen.has(len(wanted))
        assert seen.numbers == wanted
    elif slow == "disconnect":
        eventually(lambda: sink.closed, "it is cut off")
    else:
        seen.has(1)
        eventually(lambda: len(seen.events) + len(seen.missed) == len(wanted), "each is there or told to be missing")
        assert seen.missed
        assert set(seen.numbers) <= set(wanted)
        assert seen.numbers == sorted(seen.numbers)


def test_a_handler_that_submits_what_is_derived_from_does_not_overtake(start_hub: StartHub) -> None:
    channel = start_hub().create("ticks", Tick)
    source, seen = channel.source(), Collector()
    echo = channel.derive("input.number < 5")

    def follow(tick: Tick) -> None:
        seen(tick)
        source.submit(Tick(1, tick.number + 1))

    echo.subscribe(follow)
    source.submit(Tick(1, 0))
    seen.has(5)
    assert seen.numbers == [0, 1, 2, 3, 4]


def test_a_sink_that_fails_at_a_derived_event_is_named(pair: tuple[Channel, Channel]) -> None:
    source = pair[0].source()

    def clumsy(_: Trade) -> None:
        raise ValueError("dropped it")

    for channel in pair:
        channel.derive(CHEAP).subscribe(clumsy)
    with pytest.raises(Exception, match="dropped it") as caught:
        source.submit_sync(trade(0))
    assert len(caught.value.failures) == 2
    source.submit_sync(trade(50))


@pytest.fixture
def named(start_hub: StartHub) -> tuple[Callable[[], Hub], Channel]:
    server = start_hub()
    hub = start_hub(names=server.address)
    return lambda: start_hub(names=server.address), hub.create("trades", Trade)


def test_a_derived_channel_is_found_by_its_name(named: tuple[Callable[[], Hub], Channel]) -> None:
    start, created = named
    source = created.source()
    cheap = start().open("trades", Trade).derive("input.price < param.low", params={"low": 5.0}, name="cheap")
    assert cheap.name == "cheap"
    third = start().open("cheap", Trade)
    assert third.id == cheap.id
    seen = listen(third)
    source.submit_sync(trade(1))
    source.submit_sync(trade(20))
    third.params.update(low=100.0)
    source.submit_sync(trade(21))
    assert seen.numbers == [1, 21]
    assert third.derivation.parent == "trades"
    assert third.derivation.code == "input.price < param.low"


def test_a_third_hub_opens_a_derived_channel_by_id(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("trades", Trade)
    source = created.source()
    cheap = hubs[1].open(created.id, Trade).derive("input.price < param.low", params={"low": 5.0})
    third = hubs[2].open(cheap.id, Trade)
    assert third.params.values == {"low": 5.0}
    seen = listen(third)
    third.params.update(low=1.0)
    publish(source, 0, 10)
    source.submit_sync(trade(0))
    assert seen.numbers == [0, 1, 0]
    entries = {entry.name: entry for entry in hubs[2].channels(hubs[0].address)}
    assert (entries[cheap.name].parent, entries[cheap.name].sources, entries[cheap.name].sinks) == ("trades", 1, 1)


def test_a_transform_that_was_placed_with_its_sinks_goes_on_when_its_source_was_drained(
    pair: tuple[Channel, Channel],
) -> None:
    created, opened = pair
    troubles: list[object] = []
    seen = listen(opened.derive(MEAN, Mean, placement="sink", on_trouble=troubles.append))
    source = created.source()
    for number in (1, 2):
        source.submit(trade(number))
        source.drain()
    assert seen.numbers == [1, 2]
    assert troubles == []
