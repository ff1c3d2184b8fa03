"""Derived channels from afar: parameters, static variables, faults, refusals, and mistakes that are told at once."""

import threading
import time

import numpy
import pytest

from echoic import Array, Channel, event, float64, int64
from echoic.channels import Policy, Trouble
from echoic.errors import (
    ChannelExistsError,
    EchoicError,
    ECodeError,
    EncodeError,
    FormatError,
    LocalError,
    RefusedError,
)
from tests.hub.parties import Collector, StartHub, Tick, Trade, eventually, trade

LOW = "input.price < param.low"
BETWEEN = "input.price >= param.low && input.price < param.high"
DIVIDED = "{ return 100 / (input.number - param.forbidden); }"


@event
class Marked:
    number: int64
    low: int64
    high: int64


@event
class Samples:
    n: int64
    samples: Array[float64, "n"]


@event
class Bounds:
    low: float64
    high: float64


def listen(channel: Channel) -> Collector:
    seen = Collector()
    channel.subscribe(seen)
    return seen


@pytest.fixture
def pair(start_hub: StartHub) -> tuple[Channel, Channel]:
    created = start_hub().create("trades", Trade)
    return created, start_hub().open(created.id, Trade)


# Parameters


def test_an_update_holds_for_every_event_submitted_after_it(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    low = there.derive(LOW, params={"low": 2.0})
    seen = listen(low)
    wanted = []
    for turn in range(40):
        bound = float(turn % 5)
        low.params.update(low=bound)
        assert low.params.values == {"low": bound}
        for number in range(10):
            source.submit(trade(number)) if turn % 2 else source.submit_sync(trade(number))
            wanted += [number] if number / 2 < bound else []
        source.flush()
    source.drain()
    assert seen.numbers == wanted


def test_parameters_are_updated_from_another_hub_and_keep_what_others_have_set(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("trades", Trade)
    source = created.source()
    mine = hubs[1].open(created.id, Trade).derive(BETWEEN, params={"low": 0.0, "high": 2.0})
    theirs = hubs[2].open(mine.id, Trade)
    seen = listen(mine)
    mine.params.update(low=1.0)
    theirs.params.update(high=3.0)
    for number in range(10):
        source.submit_sync(trade(number))
    assert seen.numbers == [2, 3, 4, 5]
    assert theirs.params.values == {"low": 1.0, "high": 3.0}


def test_sources_that_come_later_begin_with_the_parameters_of_the_day(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("trades", Trade)
    low = hubs[1].open(created.id, Trade).derive(LOW, params={"low": 2.0})
    seen = listen(low)
    for bound in (5.0, 3.0, 1.0):
        low.params.update(low=bound)
    source = hubs[2].open(created.id, Trade).source()
    for number in range(10):
        source.submit_sync(trade(number))
    assert seen.numbers == [0, 1]


@pytest.mark.parametrize("placement", ["source", "sink"])
def test_no_batch_mixes_two_parameter_blocks(start_hub: StartHub, placement: str) -> None:
    """The code writes both halves of the block into each event; whatever came of one batch has the same halves."""
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    code = "{ output.number = input.number; output.low = param.low; output.high = param.high; return 1; }"
    marked = there.open(created.id, Tick).derive(
        code, Marked, params={"low": 0, "high": 0, "padding": [0] * 100}, placement=placement
    )
    batches: list[list[Marked]] = []
    marked.subscribe(lambda batch: batches.append(list(batch)), batch=True)
    stop = threading.Event()

    def produce() -> None:
        with created.source() as source:
            number = 0
            while not stop.is_set():
                source.submit_batch([Tick(1, number + offset) for offset in range(200)])
                number += 200

    producer = threading.Thread(target=produce)
    producer.start()
    for version in range(1, 60):
        marked.params.update(low=version, high=-version)
        if version % 10 == 0:  # however slow the machine, some traffic is between updates
            eventually(lambda version=version: batches and batches[-1][-1].low == version, f"version {version}")
    stop.set()
    producer.join()
    events = [item for batch in batches for item in batch]
    assert [item.number for item in events] == list(range(len(events)))
    assert all(item.low == -item.high for item in events)
    assert all(len({item.low for item in batch}) == 1 for batch in batches)
    versions = [item.low for item in events]
    assert versions == sorted(versions)
    assert len(set(versions)) > 1, "updates have overtaken all of the traffic"


def test_updates_from_several_threads_all_arrive_and_the_last_one_stays(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    low = there.derive(LOW, params={"low": 0.0})
    seen = listen(low)
    threads = [
        threading.Thread(target=lambda: [low.params.update(low=float(bound)) for bound in range(20)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    version = here.endpoints.switchboard.core.manager.directory.get(low.name).step.version
    assert version == 80
    low.params.update(low=1.0)
    for number in range(10):
        source.submit_sync(trade(number))
    assert seen.numbers == [0, 1]


def test_parameters_of_every_shape_are_read_by_the_code(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    code = "input.symbol == param.symbol && input.number > param.range.low && input.price < param.weights[1]"
    params = {"symbol": "S1", "range": {"low": 0, "high": 9}, "weights": [0.0, 10.0]}
    chosen = there.derive(code, params=params)
    seen = listen(chosen)
    for number in range(30):
        source.submit_sync(trade(number))
    chosen.params.update(symbol="S2", range={"low": 5}, weights=[0, 6.5])
    for number in range(30):
        source.submit_sync(trade(number))
    assert seen.numbers == [1, 8, 15, 9]


def test_parameters_may_be_an_object_of_an_event_class(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    between = there.derive(BETWEEN, params=Bounds(1.0, 2.0))
    seen = listen(between)
    between.params.update(high=3.0)
    assert between.params.values == Bounds(1.0, 3.0)
    for number in range(10):
        source.submit_sync(trade(number))
    assert seen.numbers == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"lo": 1.0}, FormatError, "no parameter `lo`; did you mean `low`"),
        ({"low": "many"}, EncodeError, "expected `float64`, got str many"),
        ({"low": [1.0]}, EncodeError, "low"),
        ({"high": None}, EncodeError, "high"),
    ],
)
def test_a_wrong_update_is_refused_by_name_and_changes_nothing(
    pair: tuple[Channel, Channel], changes: dict[str, object], error: type[EchoicError], told: str
) -> None:
    here, there = pair
    source = here.source()
    between = there.derive(BETWEEN, params={"low": 1.0, "high": 2.0})
    seen = listen(between)
    with pytest.raises(error, match=told):
        between.params.update(**changes)
    for number in range(10):
        source.submit_sync(trade(number))
    assert seen.numbers == [2, 3]
    assert between.params.values == {"low": 1.0, "high": 2.0}


def test_a_channel_without_parameters_says_so(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    with pytest.raises(LocalError, match="`trades` has no parameters"):
        _ = here.params
    with pytest.raises(LocalError, match="has no parameters"):
        _ = there.derive("input.price < 1").params


# Static variables


def test_static_variables_are_saved_and_restored_for_each_source(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    created = hubs[0].create("trades", Trade)
    sources = [hub.open(created.id, Trade).source() for hub in hubs]
    code = "{ static int n = 10; static double sums[2]; n++; sums[1] += input.price; output.number = n; return 1; }"
    counted = hubs[1].open(created.id, Trade).derive(code, Marked)
    seen = listen(counted)
    for count, source in enumerate(sources, 1):
        for number in range(count):
            source.submit_sync(trade(number))
    saved = counted.derivation.save()
    assert sorted((state["n"], list(state["sums"])) for state in saved.values()) == [
        (11, [0.0, 0.0]),
        (12, [0.0, 0.5]),
        (13, [0.0, 1.5]),
    ]
    sources[0].submit_sync(trade(0))
    counted.derivation.restore(saved)
    seen.events.clear()
    for source in sources:
        source.submit_sync(trade(0))
    assert seen.numbers == [12, 13, 14]
    counted.derivation.restore({0: {"n": 100, "sums": [0.0, 0.0]}})
    for source in sources:
        source.submit_sync(trade(0))
    assert seen.numbers[3:] == [101, 101, 101]
    with pytest.raises(EchoicError, match=r"`?sums|`?n\b"):
        counted.derivation.restore({0: {"n": "many", "sums": [0.0, 0.0]}})


def test_code_without_static_variables_has_nothing_to_save(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    low = there.derive("input.price < 1.0")
    assert low.derivation.save() == {}
    listen(low)
    source.submit_sync(trade(0))
    assert low.derivation.save() == {}
    low.derivation.restore({})


# Faults


@pytest.mark.parametrize("where", ["beside the source", "elsewhere"])
@pytest.mark.parametrize("placement", ["source", "sink"])
def test_faults_are_counted_told_and_end_in_suspension_which_tuning_lifts(
    start_hub: StartHub, where: str, placement: str
) -> None:
    hubs = [start_hub(policy=Policy(faults_max=4)), start_hub(policy=Policy(faults_max=4))]
    created = hubs[0].create("ticks", Tick)
    source = created.source()
    channel = hubs[0 if where == "beside the source" else 1].open(created.id, Tick)
    troubles: list[Trouble] = []
    divided = channel.derive(
        DIVIDED, params={"forbidden": 3}, on_trouble=troubles.append, placement=placement, share=False
    )
    seen, others = listen(divided), [listen(channel), listen(channel.derive("input.number >= 0"))]
    source.submit_sync(Tick(1, 2))
    source.submit_sync(Tick(1, 3))
    source.submit_sync(Tick(1, 4))
    eventually(lambda: troubles, "the first fault is told")
    assert "divided by zero" in troubles[0].text
    assert "line 1, column" in troubles[0].text
    assert not troubles[0].suspended
    for _ in range(6):
        source.submit_sync(Tick(1, 3))
    eventually(lambda: troubles[-1].suspended, "it is suspended")
    assert "events have faulted" in troubles[-1].text
    source.submit_sync(Tick(1, 5))
    assert seen.numbers == [2, 4]
    for other in others:
        assert other.numbers == [2, 3, 4, *[3] * 6, 5]
    divided.params.update(forbidden=-1)
    source.submit_sync(Tick(1, 6))
    assert seen.numbers == [2, 4, 6]
    if placement == "source":
        [counts] = divided.derivation.counts().values()
        assert (counts.faults, counts.suspended) == (4, "")
        assert "divided by zero" in counts.fault


def test_many_faults_in_one_batch_are_stopped_at_the_limit(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    troubles: list[Trouble] = []
    bad = there.derive("{ int zero = 0; return 1 / zero; }", on_trouble=troubles.append)
    listen(bad)
    source.submit_batch([trade(number) for number in range(5000)])
    source.submit_sync(trade(0))
    eventually(lambda: troubles and troubles[-1].suspended)
    [counts] = bad.derivation.counts().values()
    assert counts.faults == Policy().faults_max


def test_rare_faults_do_not_suspend(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    seen = listen(there.derive("{ return 1 + 0 * (5 / (input.number % 1000)); }"))
    for block in range(20):
        source.submit_batch([trade(number) for number in range(block * 1000, block * 1000 + 1000)])
    source.drain()
    assert len(seen.events) == 20 * 999


def test_a_listener_that_fails_hurts_neither_source_nor_link(start_hub: StartHub) -> None:
    here, there = start_hub(), start_hub()
    created = here.create("ticks", Tick)
    source = created.source()

    def clumsy(_: Trouble) -> None:
        raise RuntimeError("cannot stand it")

    for hub in (here, there):
        channel = hub.open(created.id, Tick).derive(DIVIDED, params={"forbidden": 3}, share=False, on_trouble=clumsy)
        listen(channel)
    seen = listen(there.open(created.id, Tick))
    for number in range(10):
        source.submit_sync(Tick(1, number))
    assert seen.numbers == list(range(10))
    assert [link.connected for link in there.statistics().links] == [True]


def test_a_listener_may_mend_the_parameters_itself(start_hub: StartHub) -> None:
    channel = start_hub().create("ticks", Tick)
    source, mended = channel.source(), threading.Event()

    def mend(_: Trouble) -> None:
        divided.params.update(forbidden=-1)
        mended.set()

    divided = channel.derive(DIVIDED, params={"forbidden": 3}, on_trouble=mend)
    seen = listen(divided)
    for _ in range(40):
        source.submit(Tick(1, 3))
    assert mended.wait(60)
    source.submit_sync(Tick(1, 3))
    assert 3 in seen.numbers


# Refusals


def test_a_hub_that_runs_no_code_of_others_says_so(start_hub: StartHub) -> None:
    here, there = start_hub(policy=Policy(derive=False)), start_hub()
    created = here.create("trades", Trade)
    source = created.source()
    channel = there.open(created.id, Trade)
    cheap = channel.derive("input.price < 1.0")
    with pytest.raises(RefusedError, match=f"{here.address}.*runs no code of others"):
        cheap.subscribe(Collector())
    seen = listen(channel.derive("input.price < 1.0", placement="sink"))
    also = listen(channel.derive("input.price < 1.0", placement="auto"))
    for number in range(10):
        source.submit_sync(trade(number))
    assert seen.numbers == also.numbers == [0, 1]


def test_code_that_may_cost_too_much_is_refused_with_both_numbers(start_hub: StartHub) -> None:
    here, there = start_hub(policy=Policy(cost_max=500)), start_hub()
    created = here.create("trades", Trade)
    source = created.source()
    code = "{ int i; double s = 0; for (i = 0; i < 1000; i++) s += i; return s > input.price; }"
    heavy = there.open(created.id, Trade).derive(code)
    with pytest.raises(RefusedError, match=r"may cost \d{4,} units, the limit here is 500"):
        heavy.subscribe(Collector())
    seen = listen(there.open(created.id, Trade).derive("input.price < 1.0"))
    source.submit_sync(trade(0))
    assert seen.numbers == [0]


def test_too_many_derivations_are_refused_until_one_is_idle(start_hub: StartHub) -> None:
    here, there = start_hub(policy=Policy(derivations_max=2)), start_hub()
    created = here.create("trades", Trade)
    source = created.source()
    channels = [there.open(created.id, Trade).derive(f"input.number % {number} == 0") for number in (2, 3, 5)]
    sinks = [channel.subscribe(Collector()) for channel in channels[:2]]
    with pytest.raises(RefusedError, match=r"2 derivations .* limit is 2"):
        channels[2].subscribe(Collector())
    sinks[0].close()
    eventually(lambda: len(created.endpoints.member.derivations) == 1)
    seen = listen(channels[2])
    for number in range(6):
        source.submit_sync(trade(number))
    assert seen.numbers == [0, 5]


def test_derivations_that_take_too_much_time_are_suspended_and_others_refused(start_hub: StartHub) -> None:
    here, there = start_hub(policy=Policy(load_max=0.001)), start_hub()
    created = here.create("trades", Trade)
    source = created.source()
    troubles: list[Trouble] = []
    code = "{ int i; double s = 0; for (i = 0; i < 5000; i++) s += sqrt(i + input.price); return s < 0; }"
    heavy = there.open(created.id, Trade).derive(code, on_trouble=troubles.append)
    listen(heavy)
    light = there.open(created.id, Trade).derive("input.price >= 0.0")
    deadline = time.monotonic() + 60
    refusal = ""
    while not troubles and time.monotonic() < deadline:
        source.submit_batch([trade(number) for number in range(200)])
    eventually(lambda: troubles, "it is suspended")
    assert troubles[0].suspended
    assert "of a processor, the hub's limit is 0.001" in troubles[0].text
    try:
        sink = light.subscribe(Collector())
        sink.close()
    except RefusedError as error:
        refusal = str(error)
    assert "of a processor" in refusal
    assert "0.001" in refusal
    eventually(lambda: subscribes(light), "the load is gone")


def subscribes(channel: Channel) -> bool:
    try:
        channel.subscribe(Collector())
    except RefusedError:
        time.sleep(0.1)
        return False
    return True


def test_a_future_source_that_refuses_is_reported(start_hub: StartHub) -> None:
    manager, sink_hub = start_hub(), start_hub()
    strict = start_hub(policy=Policy(derive=False))
    created = manager.create("trades", Trade)
    troubles: list[Trouble] = []
    cheap = sink_hub.open(created.id, Trade).derive("input.price < 1.0", on_trouble=troubles.append)
    seen, whole = listen(cheap), listen(sink_hub.open(created.id, Trade))
    source = strict.open(created.id, Trade).source()
    eventually(lambda: troubles, "it is told")
    assert troubles[0].hub == strict.address
    assert "runs no code of others" in troubles[0].text
    source.submit_sync(trade(0))
    assert (seen.numbers, whole.numbers) == ([], [0])
    created.source().submit_sync(trade(1))
    assert seen.numbers == [1]


# Mistakes


def test_a_mistake_in_the_code_is_shown_with_a_caret(pair: tuple[Channel, Channel]) -> None:
    with pytest.raises(ECodeError) as caught:
        pair[1].derive("{\n    return input.prise < 3;\n}")
    line, column, problem = caught.value.problems[0]
    assert (line, column) == (2, 18)
    assert "did you mean `price`" in problem
    shown = str(caught.value).splitlines()
    assert shown[1].rstrip().endswith("return input.prise < 3;")
    assert shown[2].index("^") == shown[1].index("prise")


def test_only_typed_channels_can_be_derived_from(start_hub: StartHub) -> None:
    untyped = start_hub().create("anything")
    with pytest.raises(FormatError, match="`anything` has no type, and only typed channels"):
        untyped.derive("1")


def test_a_name_that_is_taken_is_refused(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    with pytest.raises(ChannelExistsError, match="trades"):
        there.derive("input.price < 1.0", name="trades")
    first = there.derive("input.price < 1.0", name="cheap")
    assert here.derive("input.price < 1.0", name="cheap").id == first.id
    with pytest.raises(ChannelExistsError, match="`cheap` is derived in another way"):
        here.derive("input.price < 2.0", name="cheap")
    with pytest.raises(EchoicError, match="channel name"):
        here.derive("input.price < 1.0", name="no good name")


def test_what_cannot_be_derived_at_all_is_refused(pair: tuple[Channel, Channel]) -> None:
    here, _ = pair
    with pytest.raises(LocalError, match="placement is one of source, sink, auto, got 'moon'"):
        here.derive("1", placement="moon")
    with pytest.raises(LocalError, match="at least one port, got 0"):
        here.route("0", 0)
    with pytest.raises(EchoicError, match="64"):
        here.route("0", 65)
    with pytest.raises(FormatError):
        here.derive("1", params={})
    with pytest.raises(FormatError):
        here.derive("1", params=7)
    with pytest.raises(ECodeError, match="low"):
        here.derive(LOW, params={"lower": 1})


@pytest.mark.parametrize("capacities", [{"sample": 3}, {"samples": -1}, {"samples": 2**40}, {"n": 4}])
def test_bad_capacities_are_refused(pair: tuple[Channel, Channel], capacities: dict[str, int]) -> None:
    with pytest.raises(EchoicError, match=f"`?{next(iter(capacities))}`?"):
        pair[0].derive("{ output.n = 0; return 1; }", Samples, capacities=capacities)


def test_an_output_longer_than_its_capacity_is_a_fault(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    troubles: list[Trouble] = []
    code = "{ output.n = input.number; return 1; }"
    seen = Collector()
    there.derive(code, Samples, capacities={"samples": 4}, on_trouble=troubles.append).subscribe(seen)
    for number in (1, 4, 5, 2):
        source.submit_sync(trade(number))
    assert [len(item.samples) for item in seen.events] == [1, 4, 2]
    eventually(lambda: troubles)
    assert "longer than its capacity" in troubles[0].text


def test_numbers_of_numpy_make_parameters_of_their_width(pair: tuple[Channel, Channel]) -> None:
    here, there = pair
    source = here.source()
    low = there.derive(LOW, params={"low": numpy.float32(1.5)})
    seen = listen(low)
    low.params.update(low=2)
    for number in range(6):
        source.submit_sync(trade(number))
    assert seen.numbers == [0, 1, 2, 3]
    with pytest.raises(EncodeError, match="float"):
        low.params.update(low=1e300)
