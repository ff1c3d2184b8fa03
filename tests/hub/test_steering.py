"""Proto-channels between real hubs: sinks start, stop and tune the sources, which know whether anybody listens."""

import threading
import time

import pytest

import echoic.hub.steering
from echoic import Controls, Policy, Source
from echoic.errors import ChannelNotFoundError, LocalError, RefusedError
from tests.hub.parties import Collector, StartHub, Tick, eventually


class Generator:
    """A program that generates ticks while it is told to."""

    def __init__(self) -> None:
        self.going = False
        self.rate = 1.0
        self.heard: list[bool] = []
        self.controls = Controls(start=self.start, stop=self.stop, tune=self.tune, demand=self.heard.append)

    def start(self) -> None:
        self.going = True

    def stop(self) -> dict[str, object]:
        self.going = False
        return {"rate": self.rate, "mode": "still", "going": False}

    def tune(self, rate: float) -> dict[str, object]:
        if rate <= 0:
            raise ValueError(f"a rate of {rate} is none")
        self.rate = rate
        return {"rate": rate}


@pytest.fixture
def generator() -> Generator:
    return Generator()


def test_a_sink_in_another_hub_starts_stops_and_tunes_the_source(start_hub: StartHub, generator: Generator) -> None:
    hub = start_hub()
    source = hub.create("ticks", Tick).source(controls=generator.controls)
    there = start_hub().open(f"echoic://{hub.address}/ticks", Tick)
    assert there.steer("start")[0].taken
    assert generator.going
    answer = there.steer("tune", rate=2.5)[0]
    assert (answer.hub, answer.source, answer.values, generator.rate) == (hub.address, source.id, {"rate": 2.5}, 2.5)
    assert there.steer("stop")[0].values == {"rate": 2.5, "mode": "still", "going": False}
    assert not generator.going


def test_the_sources_of_all_hubs_are_asked_and_answer_for_themselves(start_hub: StartHub) -> None:
    hubs = [start_hub() for _ in range(3)]
    channel = hubs[0].create("ticks", Tick)
    generators = [Generator() for _ in range(4)]
    for place, generator in zip((0, 1, 1, 2), generators, strict=True):
        hubs[place].open(channel.id, Tick).source(controls=generator.controls)
    bare = hubs[2].open(channel.id, Tick).source()
    answers = hubs[1].open(channel.id, Tick).steer("tune", rate=7)
    assert [generator.rate for generator in generators] == [7] * 4
    assert {answer.hub for answer in answers} == {hub.address for hub in hubs}
    refused = [(answer.source, answer.refusal) for answer in answers if not answer.taken]
    assert refused == [(bare.id, "the source offers no controls")]


def test_a_derived_channel_steers_the_sources_that_it_is_derived_from(
    start_hub: StartHub, generator: Generator
) -> None:
    channel = start_hub().create("ticks", Tick)
    channel.source(controls=generator.controls)
    derived = start_hub().open(channel.id, Tick).derive("input.number > 5")
    assert derived.steer("start")[0].taken
    derived.subscribe(Collector())
    answers = derived.steer("tune", rate=3.0)
    assert ([answer.taken for answer in answers], generator.rate) == ([True], 3.0)


def test_what_no_source_takes_is_refused_with_the_reasons(start_hub: StartHub, generator: Generator) -> None:
    channel = start_hub().create("ticks", Tick)
    there = start_hub().open(channel.id, Tick)
    with pytest.raises(RefusedError, match="no source of `ticks` takes `start`: it has no sources"):
        there.steer("start")
    channel.source(controls=Controls(start=generator.start))
    with pytest.raises(RefusedError, match="the source has no control to stop it"):
        there.steer("stop")
    with pytest.raises(RefusedError, match="a source can be asked to start, stop, tune, not to 'melt'"):
        there.steer("melt")
    with pytest.raises(RefusedError, match="unexpected keyword argument"):
        there.steer("start", now=True)
    with pytest.raises(LocalError, match="expected a number, text or truth"):
        there.steer("start", when=None)
    assert not generator.going


def test_a_control_that_raises_refuses_with_its_reason(start_hub: StartHub, generator: Generator) -> None:
    channel = start_hub().create("ticks", Tick)
    channel.source(controls=generator.controls)
    with pytest.raises(RefusedError, match="ValueError: a rate of -1 is none"):
        channel.steer("tune", rate=-1)
    assert channel.steer("tune", rate=1)[0].taken


def test_a_control_may_return_plain_values_only(start_hub: StartHub) -> None:
    channel = start_hub().create("ticks", Tick)
    channel.source(controls=Controls(start=lambda: {"list": [1]}, stop=lambda: "no mapping"))
    with pytest.raises(RefusedError, match="expected a number, text or truth, got list - at `list`"):
        channel.steer("start")
    assert channel.steer("stop")[0].values == {}


def test_a_hub_may_let_nobody_steer(start_hub: StartHub, generator: Generator) -> None:
    channel = start_hub(policy=Policy(steer=False)).create("ticks", Tick)
    channel.source(controls=generator.controls)
    with pytest.raises(RefusedError, match="lets nobody steer its sources"):
        start_hub().open(channel.id, Tick).steer("start")
    assert not generator.going


def test_a_control_that_hangs_holds_up_nobody(start_hub: StartHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echoic.hub.steering, "CONTROL_SECONDS", 0.05)
    release = threading.Event()
    channel = start_hub().create("ticks", Tick)
    source = channel.source(controls=Controls(start=release.wait, stop=lambda: {"done": True}))
    there = start_hub().open(channel.id, Tick)
    try:
        with pytest.raises(RefusedError, match="the source has not answered within"):
            there.steer("start")
        with pytest.raises(RefusedError, match="has yet to come to an end with an earlier request"):
            there.steer("stop")
        seen = Collector()
        there.subscribe(seen)
        source.submit_sync(Tick(0, 1))
        assert seen.numbers == [1]
    finally:
        release.set()
    deadline = time.monotonic() + 30
    while True:
        try:
            assert there.steer("stop")[0].values == {"done": True}
            break
        except RefusedError:
            assert time.monotonic() < deadline


def test_requests_to_one_source_are_carried_out_one_after_the_other_and_are_limited(start_hub: StartHub) -> None:
    release, order = threading.Event(), list[int]()

    def tune(number: int) -> None:
        release.wait(4)
        order.append(number)

    channel = start_hub().create("ticks", Tick)
    channel.source(controls=Controls(tune=tune))
    limit = echoic.hub.steering.WAITING_MAX
    outcomes: list[str] = []

    def ask(number: int) -> None:
        try:
            channel.steer("tune", number=number)
            outcomes.append("done")
        except RefusedError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(limit + 4)]
    for thread in threads:
        thread.start()
    eventually(lambda: outcomes, "some are refused")
    release.set()
    for thread in threads:
        thread.join()
    assert outcomes.count("done") == len(order) >= limit
    assert any("requests wait for the source already, which is the limit" in outcome for outcome in outcomes)


def test_a_control_may_use_the_hub_as_any_thread_does(start_hub: StartHub) -> None:
    channel, seen, sources = start_hub().create("ticks", Tick), Collector(), list[Source]()
    there = start_hub().open(channel.id, Tick)
    there.subscribe(seen)

    def start() -> None:
        sources[0].submit_sync(Tick(0, 7))
        channel.derive("input.number > 5").subscribe(Collector())

    sources.append(channel.source(controls=Controls(start=start)))
    assert there.steer("start")[0].taken
    assert seen.numbers == [7]


def test_a_source_knows_whether_anybody_listens(start_hub: StartHub, generator: Generator) -> None:
    channel = start_hub().create("ticks", Tick)
    source = channel.source(controls=generator.controls)
    there = start_hub().open(channel.id, Tick)
    assert not source.heard
    sink = there.subscribe(Collector())
    assert source.heard
    eventually(lambda: generator.heard == [True], "demand begins")
    other = channel.subscribe(Collector())
    sink.close()
    assert source.heard
    other.close()
    eventually(lambda: generator.heard == [True, False], "demand ends")
    derived = there.derive("input.number > 5").subscribe(Collector())
    eventually(lambda: generator.heard == [True, False, True], "a derivation is demand too")
    source.close()
    eventually(lambda: generator.heard == [True, False, True, False], "a closed source is not heard")
    assert not source.heard
    derived.close()


def test_a_source_that_has_ended_cannot_be_steered(start_hub: StartHub, generator: Generator) -> None:
    channel = start_hub().create("ticks", Tick)
    with channel.source(controls=generator.controls):
        assert channel.steer("start")[0].taken
    with pytest.raises(RefusedError):
        channel.steer("stop")
    with pytest.raises(ChannelNotFoundError):
        start_hub().open(channel.id.replace("ticks", "tacks"))
    assert generator.going
