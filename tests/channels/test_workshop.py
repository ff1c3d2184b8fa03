"""A derivation's code works on events and parameters of any machine, and on types that have grown."""

import pytest

from echoic.channels import Derivation, Policy, Recipe, Step, Workshop
from echoic.channels.identity import ChannelId
from echoic.channels.member import Member
from echoic.ecode import parameter_format
from echoic.errors import RefusedError
from echoic.formats import ARCHITECTURES, Architecture, Format, event, int32
from echoic.wire import Batch


@event
class Sample:
    number: int
    label: str


@event
class Grown:
    unit: str
    label: str
    weight: float
    number: int


@event
class Narrow:
    number: int32
    label: str


CODE = "input.number > param.low && input.label == param.label"
PARAMETERS = {"low": 5, "label": "a"}
SAMPLES = [Sample(1, "a"), Sample(6, "b"), Sample(7, "a"), Sample(9, "a")]


def derivation_of(step: Step, policy: Policy | None = None) -> Derivation:
    made = Derivation("here", step, None, policy or Policy())
    made.outlets[step.port] = Member(ChannelId("h:1", step.name), 1, None)
    made.equip(Workshop(step, made.policy))
    return made


def step_on(architecture: Architecture) -> Step:
    block = Batch.of([PARAMETERS], parameter_format(PARAMETERS)).to(parameter_format(PARAMETERS).on(architecture))
    recipe = Recipe("samples", CODE, params=block.format.descriptor)
    return Step("d", "d", recipe, bytes(block.records), input=Format.of(Sample).on(architecture).descriptor)


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=ARCHITECTURES)
def test_recipes_and_events_of_any_machine_are_understood(architecture: Architecture) -> None:
    derivation = derivation_of(step_on(architecture))
    here = Batch.of(SAMPLES)
    for batch in (here, here.to(here.format.on(architecture))):
        made = derivation.apply(derivation.instance(1), batch)[0]
        assert made.to(Sample).events() == [SAMPLES[2], SAMPLES[3]]
        assert not derivation.suspended


def test_a_type_with_more_fields_passes_with_all_of_them() -> None:
    derivation = derivation_of(step_on(ARCHITECTURES["x86_64"]))
    grown = [Grown("m", sample.label, 0.5, sample.number) for sample in SAMPLES]
    made = derivation.apply(derivation.instance(1), Batch.of(grown))[0]
    assert made.to(Grown).events() == [grown[2], grown[3]]


def test_a_type_with_narrower_fields_is_converted_first() -> None:
    derivation = derivation_of(step_on(ARCHITECTURES["x86_64"]))
    narrow = [Narrow(sample.number, sample.label) for sample in SAMPLES]
    made = derivation.apply(derivation.instance(1), Batch.of(narrow))[0]
    assert made.to(Sample).events() == [SAMPLES[2], SAMPLES[3]]


def test_events_that_are_not_of_the_type_suspend_the_derivation_and_hurt_nobody() -> None:
    @event
    class Stranger:
        colour: str

    derivation = derivation_of(step_on(ARCHITECTURES["x86_64"]))
    assert derivation.apply(derivation.instance(1), Batch.of([Stranger("red")])) == {}
    assert "cannot take the events" in derivation.suspended


def test_parameters_that_are_no_record_suspend_the_derivation_and_hurt_nobody() -> None:
    for architecture in ("x86_64", "sparc32"):
        step = step_on(ARCHITECTURES[architecture])
        derivation = derivation_of(step)
        derivation.tune(Step("d", "d", step.recipe, b"xyz", version=1))
        assert not derivation.rejects(Format.of(Sample), bytes(Batch.of(SAMPLES[:1]).records), 1)
        assert derivation.apply(derivation.instance(1), Batch.of(SAMPLES)) == {}
        assert "cannot take the events" in derivation.suspended


def test_a_program_that_may_cost_too_much_is_refused_with_both_numbers() -> None:
    recipe = Recipe("samples", "{ int i; int s = 0; for (i = 0; i < 1000; i++) s += i; return s; }")
    with pytest.raises(RefusedError, match=r"one event may cost \d{4,} units, the limit here is 999"):
        Workshop(Step("d", "d", recipe, input=Format.of(Sample).descriptor), Policy(cost_max=999))
