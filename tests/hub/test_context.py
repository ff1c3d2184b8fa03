"""Contexts of real sources: a threshold of somebody else steers the program that submits, before `submit` returns."""

import logging
import threading

import numpy
import pytest

from echoic import Array, Channel, Context, Policy, Source, Trouble, event, int32, uint8
from echoic.eager import Modulator
from echoic.errors import (
    ECodeError,
    EncodeError,
    FormatError,
    IncompatibleTypesError,
    LocalError,
    RefusedError,
)
from tests.hub.parties import Collector, StartHub, eventually


@event
class Sample:
    number: int
    t: float


@event
class Limits:
    low: int32
    high: int32


@event
class Controls:
    temperature: float
    step: float
    open: bool
    small: uint8
    valves: Array[float, 2]
    limits: Limits


@event
class Other:
    step: float


class Cooling(Modulator):
    """Does what COOL and VENT do, as the half of an eager handler."""

    requires = ("context",)
    limit: float = 90.0

    def enqueue(self, event: Sample) -> None:
        if event.t > self.limit:
            self.services.context.set("step", self.services.context.step / 2)
            self.services.context.vent(event.t)
            super().enqueue(event)


COOL = "{ if (input.t > 90.0) { context.step = context.step / 2; } return input.t > 90.0; }"
VENT = "{ if (input.t > 90.0) { context.vent(input.t); } return 1; }"


def values() -> Controls:
    return Controls(20.0, 1.0, False, 3, [1.0, 2.0], Limits(-1, 1))


class Plant:
    """A source with a context in one hub, and the channel as another hub has it."""

    def __init__(self, start_hub: StartHub) -> None:
        self.vented: list[float] = []
        self.context = Context(values(), writable=("step", "valves"), functions={"vent": self.vented.append})
        self.here = start_hub().create("reactor", Sample, context=Controls)
        self.far = start_hub()
        self.there: Channel = self.far.open(self.here.id, Sample)
        self.source: Source = self.here.source(context=self.context)


@pytest.fixture
def plant(start_hub: StartHub) -> Plant:
    return Plant(start_hub)


def test_a_threshold_changes_the_program_before_submit_returns(plant: Plant) -> None:
    seen = Collector()
    plant.there.derive(COOL).subscribe(seen)
    steps = []
    for number, t in enumerate((10.0, 95.0, 20.0, 99.0)):
        plant.source.submit(Sample(number, t))
        steps.append(plant.source.context.step)
    assert steps == [1.0, 0.5, 0.5, 0.25]
    plant.source.drain()
    assert seen.numbers == [1, 3]


def test_functions_are_called_in_the_thread_that_submits_whichever_way_it_does(plant: Plant) -> None:
    plant.there.derive(VENT).subscribe(Collector())
    source, vented = plant.source, plant.vented
    threads: list[int] = []
    source.submit(Sample(0, 91.0))
    assert vented == [91.0]
    source.submit_sync(Sample(1, 92.0))
    assert vented == [91.0, 92.0]
    source.submit_batch([Sample(2, 93.0), Sample(3, 1.0), Sample(4, 94.0)])
    assert vented == [91.0, 92.0, 93.0, 94.0]
    context = Context(values(), functions={"vent": lambda _: threads.append(threading.get_ident())})
    other = plant.here.source(context=context)
    for number in range(300):  # enough to have events gather, if that were allowed
        other.submit(Sample(number, 91.0))
    assert threads == [threading.get_ident()] * 300


def test_nothing_happens_while_nobody_listens(plant: Plant) -> None:
    derived = plant.there.derive(COOL)
    plant.source.submit(Sample(0, 95.0))
    assert plant.context.step == 1.0
    sink = derived.subscribe(Collector())
    plant.source.submit(Sample(1, 95.0))
    assert plant.context.step == 0.5
    sink.close()
    eventually(lambda: not plant.source.heard, "the sink is gone")
    plant.source.submit(Sample(2, 95.0))
    assert plant.context.step == 0.5


def test_every_source_has_values_of_its_own(plant: Plant) -> None:
    context = Context(values(), writable=("step",))
    other = plant.here.source(context=context)
    plant.there.derive(COOL).subscribe(Collector())
    other.submit(Sample(0, 99.0))
    assert (plant.context.step, context.step) == (1.0, 0.5)


def test_no_assignment_is_lost_when_threads_submit_to_one_source(plant: Plant) -> None:
    plant.there.derive("{ context.step++; return 0; }").subscribe(Collector())

    def submit() -> None:
        for number in range(200):
            plant.source.submit(Sample(number, 1.0))

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert plant.context.step == 801.0


def test_a_sink_in_the_process_of_the_source_steers_as_well(plant: Plant) -> None:
    seen = Collector()
    plant.here.derive(COOL).subscribe(seen)
    plant.source.submit(Sample(0, 95.0))
    assert (plant.context.step, seen.numbers) == (0.5, [0])


def test_what_is_derived_from_a_derived_channel_steers_the_first_source(plant: Plant) -> None:
    hot = plant.there.derive("input.t > 90.0")
    hotter = hot.derive("{ context.step = 0.125; context.vent(input.t); return 1; }")
    hotter.subscribe(Collector())
    plant.source.submit(Sample(0, 50.0))
    assert plant.context.step == 1.0
    plant.source.submit(Sample(1, 95.0))
    assert (plant.context.step, plant.vented) == (0.125, [95.0])


def test_a_function_may_submit_to_its_own_source(start_hub: StartHub) -> None:
    here = start_hub().create("reactor", Sample, context=Controls)
    seen, sources = Collector(), list[Source]()
    context = Context(values(), functions={"answer": lambda t: sources[0].submit(Sample(9, t / 2))})
    sources.append(here.source(context=context))
    start_hub().open(here.id, Sample).derive(
        "{ if (input.t > 90.0) { context.answer(input.t); } return 1; }"
    ).subscribe(seen)
    sources[0].submit(Sample(0, 100.0))
    sources[0].submit(Sample(1, 1.0))
    seen.has(3)
    assert [one.t for one in seen.events] == [100.0, 50.0, 1.0]


def test_a_function_that_raises_harms_neither_source_nor_other_events(
    plant: Plant, caplog: pytest.LogCaptureFixture
) -> None:
    def melt(_: float) -> None:
        raise ValueError("the secret of the plant")

    troubles: list[Trouble] = []
    seen = Collector()
    plant.source.close()
    source = plant.here.source(context=Context(values(), functions={"vent": melt}))
    plant.there.derive(VENT, on_trouble=troubles.append).subscribe(seen)
    with caplog.at_level(logging.ERROR, "echoic.hub"):
        source.submit(Sample(0, 95.0))
    source.submit(Sample(1, 5.0))
    seen.has(1)
    assert seen.numbers == [1]
    eventually(lambda: troubles, "trouble is told")
    assert troubles[0].text == "a function of the source's context has failed"
    assert "the secret of the plant" in caplog.text


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("{ context.temperature = 1; return 1; }", "`context.temperature` cannot be assigned to"),
        ("{ context.melt(1); return 1; }", "the source's context has no function `melt`, only `vent`"),
        ("{ context.vent(); return 1; }", "`context.vent` takes at least 1 numbers, got 0"),
    ],
)
def test_a_source_refuses_what_it_does_not_offer_and_says_why(plant: Plant, code: str, reason: str) -> None:
    with pytest.raises(RefusedError) as caught:
        plant.there.derive(code).subscribe(Collector())
    assert reason in str(caught.value)
    plant.source.submit(Sample(0, 95.0))
    assert plant.context.temperature == 20.0


def test_a_source_without_a_context_refuses_and_one_with_a_context_that_comes_later_does_not(
    start_hub: StartHub,
) -> None:
    here = start_hub().create("reactor", Sample, context=Controls)
    bare = here.source()
    troubles: list[Trouble] = []
    derived = start_hub().open(here.id, Sample).derive(COOL, on_trouble=troubles.append)
    with pytest.raises(RefusedError, match="the source has no context"):
        derived.subscribe(Collector())
    context = Context(values(), writable=("step",))
    seen = Collector()
    steering = here.source(context=context)
    derived.subscribe(seen)
    steering.submit(Sample(0, 95.0))
    bare.submit(Sample(1, 95.0))
    steering.drain()
    assert (context.step, seen.numbers) == (0.5, [0])
    eventually(lambda: any(trouble.text == "the source has no context" for trouble in troubles), "it is told")


def test_the_type_of_the_context_is_the_channels(plant: Plant, start_hub: StartHub) -> None:
    assert plant.there.context is not None
    assert plant.there.context.layout == plant.context.format.layout
    with pytest.raises(IncompatibleTypesError, match="the context is a `Other`, expected the channel's `Controls`"):
        plant.here.source(context=Context(Other(1.0)))
    with pytest.raises(ECodeError, match="record `Controls` has no field `stop`"):
        plant.there.derive("context.stop > 0")
    with pytest.raises(LocalError, match="runs at the source, got the placement 'sink'"):
        plant.there.derive("context.step > 0", placement="sink")
    bare = start_hub().create("bare", Sample)
    with pytest.raises(ECodeError, match="there is no `context`"):
        bare.derive("context.step > 0")
    assert bare.context is None
    with pytest.raises(LocalError, match="has no context"):
        _ = bare.source().context


def test_a_context_that_may_be_placed_anywhere_stays_at_the_source(plant: Plant) -> None:
    derived = plant.there.derive(COOL, placement="auto")
    assert derived.derivation is not None
    assert derived.derivation.placement == "source"


def test_a_hub_that_runs_no_code_of_others_has_no_steering_code(start_hub: StartHub) -> None:
    here = start_hub(policy=Policy(derive=False)).create("reactor", Sample, context=Controls)
    source = here.source(context=Context(values(), writable=("step",)))
    with pytest.raises(RefusedError, match="runs no code of others"):
        start_hub().open(here.id, Sample).derive(COOL).subscribe(Collector())
    source.submit(Sample(0, 95.0))
    assert source.context.step == 1.0


def test_a_modulator_has_the_context_as_a_service(plant: Plant) -> None:
    seen = Collector()
    plant.here.subscribe(seen, modulator=Cooling(90.0))
    for number, t in enumerate((10.0, 95.0)):
        plant.source.submit(Sample(number, t))
    seen.has(1)
    assert (plant.context.step, plant.vented, seen.numbers) == (0.5, [95.0], [1])


# The object itself


def test_values_are_attributes_that_the_program_reads_and_assigns() -> None:
    context = Context(values())
    context.step = 0.25
    context.temperature = 21
    context.open = True
    context.small = 255
    context.valves = [3.0, 4.0]
    context.limits = Limits(5, 6)
    assert (context.step, context.temperature, context.open, context.small) == (0.25, 21.0, True, 255)
    assert list(context.valves) == [3.0, 4.0]
    assert (context.limits.low, context.limits.high) == (5, 6)
    assert "step" in dir(context)
    assert "step=0.25" in repr(context)


def test_values_that_do_not_fit_are_refused() -> None:
    context = Context(values())
    for name, value in (("small", 256), ("step", "fast"), ("open", 2.5), ("valves", [1.0])):
        with pytest.raises(EncodeError):
            setattr(context, name, value)
    with pytest.raises(AttributeError, match="the context has no value 'stop'"):
        context.stop = 1
    with pytest.raises(AttributeError, match="the context has no value 'stop'"):
        _ = context.stop
    assert context.small == 3


def test_a_context_that_cannot_be_one_is_refused() -> None:
    @event
    class Named:
        name: str

    @event
    class Shadowing:
        format: float

    with pytest.raises(FormatError, match="a context has numbers"):
        Context(Named("x"))
    with pytest.raises(FormatError, match="cannot have a value or function named `format`"):
        Context(Shadowing(1.0))
    with pytest.raises(FormatError, match="`step` is both a value and a function"):
        Context(values(), functions={"step": print})
    with pytest.raises(LocalError, match="there is no value `stop` that could be writable, only `temperature`"):
        Context(values(), writable=("stop",))


def test_a_reader_sees_no_value_half_written() -> None:
    context = Context(Other(0.0), writable=("step",))
    halves = (struct_of(1.0), struct_of(-1.0 / 3.0))
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for half in halves:
                context.write(0, half)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert {context.step for _ in range(20_000)} <= {0.0, 1.0, -1.0 / 3.0}
    finally:
        done.set()
        writer.join()


def struct_of(value: float) -> bytes:
    return numpy.float64(value).tobytes()


def test_a_modulator_has_a_face_of_the_context() -> None:
    called: list[float] = []
    context = Context(values(), writable=("step",), functions={"vent": called.append})
    service = context.capability()
    assert (service.step, service.valves, service.limits) == (1.0, [1.0, 2.0], {"low": -1, "high": 1})
    service.set("step", 0.5)
    service.vent(3.0)
    assert (context.step, called) == (0.5, [3.0])
    with pytest.raises(RefusedError, match="cannot be assigned to: the source does not list it"):
        service.set("temperature", 1.0)
    with pytest.raises(AttributeError):
        _ = service.melt
