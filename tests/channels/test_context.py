"""Code that acts on the context of a source: event by event, and nothing is left of one that faults."""

import struct

import pytest

from echoic import event
from echoic.channels import ChannelId, Derivation, Policy, Recipe, Step, Workshop
from echoic.channels.context import objection
from echoic.channels.instance import Instance
from echoic.channels.member import Member
from echoic.ecode import Buffer, Signature, check
from echoic.errors import RefusedError
from echoic.formats import NATIVE, Format
from echoic.wire import Batch


@event
class Sample:
    t: float
    label: str


@event
class Controls:
    step: float
    limit: float


SAMPLE, CONTROLS = Format.of(Sample), Format.of(Controls).on(NATIVE)


class Plant:
    """A context that remembers what was done to it."""

    def __init__(self, *, writable: tuple[str, ...] = ("step",), failing: str = "") -> None:
        self.format = CONTROLS
        self.writable = frozenset(writable)
        self.block = bytearray(struct.pack("=dd", 1.0, 90.0))
        self.done: list[tuple[str, object]] = []
        self.failing = failing
        self.reads = 0

    def refusal(self, function: str, arguments: int) -> str:
        return "" if function in ("vent", "raise_limit") and arguments == 1 else f"there is no {function}/{arguments}"

    def read(self) -> bytes:
        self.reads += 1
        return bytes(self.block)

    def write(self, offset: int, data: Buffer) -> None:
        self.done.append(("write", struct.unpack("=d", data)[0]))
        self.block[offset : offset + len(data)] = data

    def call(self, function: str, arguments: tuple[float, ...]) -> bool:
        self.done.append((function, arguments[0]))
        if function == "raise_limit":
            self.block[8:] = struct.pack("=d", arguments[0])
        return function != self.failing

    @property
    def values(self) -> tuple[float, float]:
        return struct.unpack("=dd", self.block)


def step_of(code: str, **more: object) -> Step:
    recipe = Recipe("samples", code, **more)
    return Step("hot", "hot", recipe, input=SAMPLE.descriptor, context=CONTROLS.descriptor)


def derivation_of(code: str, plant: Plant | None, **more: object) -> tuple[Derivation, Instance]:
    parent = Member(ChannelId("h:1", "samples"), 1, SAMPLE)
    parent.sources[7] = 0
    parent.contexts = {7: plant} if plant is not None else None
    step = step_of(code, **more)
    made = Derivation("here", step, parent, Policy())
    for port in range(step.recipe.ports or 1):
        made.outlets[port] = Member(ChannelId("h:1", f"hot.{port}"), 2 + port, SAMPLE)
    made.equip(Workshop(step, made.policy, parent))
    return made, made.instance(7)


def samples(*temperatures: float) -> Batch:
    return Batch.of([Sample(t, f"at {t}") for t in temperatures], Sample)


def labels(batch: Batch) -> list[str]:
    return [one.label for one in batch.events()]


def test_calls_take_place_between_the_events_of_a_batch() -> None:
    plant = Plant()
    code = "{ if (input.t > context.limit) { context.raise_limit(input.t); return 1; } return 0; }"
    derivation, instance = derivation_of(code, plant)
    made = derivation.apply(instance, samples(91.0, 90.5, 95.0, 92.0))
    assert labels(made[0]) == ["at 91.0", "at 95.0"]
    assert plant.done == [("raise_limit", 91.0), ("raise_limit", 95.0)]
    assert (instance.events_in, instance.events_out) == (4, 2)


def test_an_assignment_is_in_effect_before_the_functions_of_its_event_are_called() -> None:
    plant = Plant()
    derivation, instance = derivation_of("{ context.vent(1); context.step /= 2; return 1; }", plant)
    derivation.apply(instance, samples(1.0))
    assert plant.done == [("write", 0.5), ("vent", 1.0)]


def test_what_is_assigned_but_stays_the_same_is_not_written() -> None:
    plant = Plant()
    derivation, instance = derivation_of("{ context.step = 1; return 1; }", plant)
    derivation.apply(instance, samples(1.0))
    assert plant.done == []


def test_an_event_that_faults_leaves_the_context_as_it_was() -> None:
    plant = Plant()
    code = "{ context.step = 9; context.vent(1); return 1 / (int) input.t; }"
    derivation, instance = derivation_of(code, plant)
    made = derivation.apply(instance, samples(0.0))
    assert (made, plant.done, plant.values) == ({}, [], (1.0, 90.0))
    assert derivation.faults == 1


def test_a_function_that_fails_is_a_fault_and_ends_the_calls_of_its_event() -> None:
    plant = Plant(failing="vent")
    derivation, instance = derivation_of("{ context.vent(1); context.raise_limit(2); return 1; }", plant)
    assert derivation.apply(instance, samples(1.0)) == {}
    assert plant.done == [("vent", 1.0)]
    assert derivation.trouble == "a function of the source's context has failed"


def test_code_that_only_reads_sees_one_state_of_the_context_for_the_whole_batch() -> None:
    plant = Plant()
    derivation, instance = derivation_of("input.t > context.limit", plant)
    assert labels(derivation.apply(instance, samples(89.0, 91.0))[0]) == ["at 91.0"]
    assert plant.reads == 1
    assert not derivation.steers


def test_statics_are_kept_beside_the_context_and_saved_without_it() -> None:
    derivation, instance = derivation_of("{ static int k; k++; context.step = k; return k > 2; }", Plant())
    derivation.apply(instance, samples(1.0, 1.0))
    derivation.apply(instance, samples(1.0))
    assert derivation.states() == {instance.source: struct.pack("=ixxxx", 3)}
    derivation.restore({instance.source: struct.pack("=ixxxx", 0)})
    assert derivation.apply(instance, samples(1.0)) == {}
    with pytest.raises(RefusedError, match="has 9 bytes, expected 8"):
        derivation.restore({instance.source: bytes(9)})


def test_a_router_and_a_transform_give_what_they_would_give_for_a_batch() -> None:
    plant = Plant()
    derivation, instance = derivation_of("{ context.step++; return input.t > 2; }", plant, ports=2)
    made = derivation.apply(instance, samples(1.0, 3.0, 2.0))
    assert {port: labels(batch) for port, batch in made.items()} == {0: ["at 1.0", "at 2.0"], 1: ["at 3.0"]}
    code = "{ context.step++; output.t = context.step; output.label = input.label; return input.t > 1; }"
    derivation, instance = derivation_of(code, plant, output=SAMPLE.descriptor)
    events = derivation.apply(instance, samples(1.0, 3.0, 2.0))[0].events()
    assert [(one.t, one.label) for one in events] == [(6.0, "at 3.0"), (7.0, "at 2.0")]


def test_code_with_a_context_never_moves_and_is_never_turned_away() -> None:
    derivation, _ = derivation_of("input.t > context.limit", Plant())
    assert not derivation.movable
    assert not derivation.rejects(SAMPLE, bytes(samples(1.0).records), 1)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("{ context.limit = 1; return 1; }", "`context.limit` cannot be assigned to: the source does not list it"),
        ("{ context.melt(1); return 1; }", "there is no melt/1"),
        ("{ context.vent(1, 2); return 1; }", "there is no vent/2"),
    ],
)
def test_code_that_asks_for_more_than_the_source_offers_is_refused(code: str, reason: str) -> None:
    with pytest.raises(RefusedError) as caught:
        derivation_of(code, Plant())
    assert reason in str(caught.value)


def test_a_source_without_a_context_refuses_and_one_that_comes_later_is_told_of() -> None:
    with pytest.raises(RefusedError, match="the source has no context - at `hot`"):
        derivation_of("context.step > 0", None)
    derivation, _ = derivation_of("context.step > 0", Plant())
    later = derivation.instance(8)
    assert later.objection == derivation.trouble == "the source has no context"
    assert list(derivation.shares(8, samples(1.0))) == []


def test_a_context_of_another_type_is_no_context() -> None:
    @event
    class Other:
        step: float

    plant = Plant()
    plant.format = Format.of(Other).on(NATIVE)
    program = check("context.step > 0", Signature(SAMPLE, context=CONTROLS))
    assert objection(program, plant) == "the source's context is a `Other` of another layout than the channel's"


def test_code_that_names_the_context_cannot_run_where_events_arrive() -> None:
    with pytest.raises(RefusedError, match="code that names `context` runs at the source only"):
        Workshop(step_of("context.step > 0"), Policy())


def test_what_is_derived_from_a_derived_channel_has_the_context_of_the_first_source() -> None:
    plant = Plant()
    first, instance = derivation_of("1", plant)
    outlet = first.outlets[0]
    outlet.origin = first
    assert outlet.context_of(instance.source) is plant
    second = Derivation("here", step_of("{ context.step = 5; return 1; }"), outlet, Policy())
    second.outlets[0] = Member(ChannelId("h:1", "more"), 9, SAMPLE)
    second.equip(Workshop(second.step, second.policy, outlet))
    second.apply(second.instance(instance.source), samples(1.0))
    assert plant.values == (5.0, 90.0)
