"""What a hub tells a manager that has begun anew, and in which order."""

from collections.abc import Callable, Mapping

import pytest

from echoic.channels import ChannelId, Concentrator, Derivation, Derive, DerivedAs, Message, Plain, Steer, Steered, Step
from echoic.channels.messages import Done, Tune
from echoic.formats import Format
from echoic.testing.samples import Trade
from tests.channels.company import Company
from tests.channels.recipes import HIGH, LIMITS, LOW, SECOND, wish


class Parted:
    """A hub that derives for itself from its own source; its manager has ended, and another begins in its place."""

    def __init__(self) -> None:
        self.company = Company("manager", "origin")
        self.company.create("manager")
        self.source, _ = self.company.publish("origin", "manager")
        self.origin = self.company.hubs["origin"]
        step = wish(code="input.price < param.low", params=LIMITS.descriptor, values=LOW)
        made = self.company.ask("origin", "manager", Derive(step))
        assert isinstance(made, DerivedAs)
        self.step: Step = made.steps[0]
        self.origin.open(ChannelId("manager:1", self.step.name), Format.of(Trade)).lineage = made.steps
        self.company.subscribe("origin", "manager", self.step.name)

    @property
    def derivation(self) -> Derivation:
        [derivation] = self.origin.derivations.values()
        return derivation

    def begin_anew(self) -> None:
        """Start another manager, whose program has created the channel and has derived from it, as the first one's."""
        heir = self.company.hubs["manager"] = Concentrator("id-heir", "manager:1")
        self.company.create("manager")
        heir.manager.directory.adopt([self.step])

    def ask(self, message: Message) -> list[tuple[Message, bytes]]:
        """Ask the manager; note what is answered, and which parameters are in force here at that moment."""
        answers: list[tuple[Message, bytes]] = []
        self.origin.ask("manager:1", message, lambda reply: answers.append((reply, self.derivation.step.values)))
        return answers


def test_a_change_is_confirmed_to_a_hub_with_sources_when_they_have_it_though_the_manager_has_begun_anew() -> None:
    parted = Parted()
    parted.origin.gone("id-manager", "it took leave")
    parted.begin_anew()
    answers = parted.ask(Tune(parted.step.name, HIGH))
    parted.company.settle()
    assert answers == [(Done(), HIGH)]


def test_a_change_that_was_asked_for_while_the_manager_was_ending_waits_until_its_heir_knows_of_the_sources() -> None:
    parted = Parted()
    parted.origin.neighbours["id-manager"].leaving = True
    answers = parted.ask(Tune(parted.step.name, HIGH))
    parted.origin.gone("id-manager", "it took leave")
    parted.origin.tick(2 * SECOND)  # what it takes part in is asked for again, after the change
    parted.begin_anew()
    parted.company.settle()
    assert answers == [(Done(), HIGH)]


def test_a_change_replaces_later_parameters_that_the_manager_has_forgotten() -> None:
    parted = Parted()
    for values in (HIGH, LOW, HIGH):
        assert isinstance(parted.company.ask("origin", "manager", Tune(parted.step.name, values)), Done)
    parted.origin.gone("id-manager", "it took leave")
    parted.begin_anew()
    answers = parted.ask(Tune(parted.step.name, LOW))
    parted.company.settle()
    assert answers == [(Done(), LOW)]


@pytest.mark.parametrize("derived", [False, True])
def test_a_manager_begun_anew_asks_the_sources_of_who_wants_something_of_all(derived: bool) -> None:
    class Wheel:
        def ask(self, _: str, __: Mapping[str, Plain], answer: Callable[[str, Mapping[str, Plain]], None]) -> None:
            answer("", {})

    parted = Parted()
    parted.source.helms = {1: Wheel()}
    parted.origin.gone("id-manager", "it took leave")
    parted.begin_anew()
    answers = parted.ask(Steer(parted.step.name if derived else "trades", "stop"))
    parted.company.settle()
    [(reply, _)] = answers
    assert isinstance(reply, Steered)
    assert ("origin:1", 1) in [(one.hub, one.source) for one in reply.answers]


def test_nothing_is_joined_again_for_a_change_while_the_manager_knows_all() -> None:
    parted = Parted()
    parted.company.settle()
    assert not any(list(member.lacking()) for member in parted.origin.members.values())
    parted.ask(Tune(parted.step.name, HIGH))
    assert len(parted.origin.requests) == 1
