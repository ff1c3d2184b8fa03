"""What a hub tells a manager that has begun anew, and in which order."""

from collections.abc import Callable, Mapping

import pytest

from echoic.channels import ChannelId, Concentrator, Derive, DerivedAs, Dial, Message, Placement, Plain, Steer, Steered
from echoic.channels.messages import Done, Tune
from echoic.formats import Format
from echoic.testing.samples import Trade
from tests.channels.company import Company
from tests.channels.recipes import HIGH, LIMITS, LOW, SECOND, wish

FILTER, ROUTER = "input.price < param.low", "return input.price < param.low ? 0 : 1;"


class Parted:
    """A hub that derives for itself; its manager has ended, and another begins in its place."""

    def __init__(self, code: str = FILTER, *, ports: int = 0, placement: Placement = "source") -> None:
        """Let the hub hear a derived channel: the last, if there are several ports, and it opens no other.

        Args:
            code: What derives.
            ports: How many it has, if it is a router.
            placement: `sink` for a hub that has no source, and derives what others send.
        """
        self.company = Company("manager", "origin")
        self.company.create("manager")
        self.origin = self.company.hubs["origin"]
        if placement != "sink":
            self.source, _ = self.company.publish("origin", "manager")
        step = wish(code=code, params=LIMITS.descriptor, values=LOW, ports=ports, placement=placement)
        made = self.company.ask("origin", "manager", Derive(step))
        assert isinstance(made, DerivedAs)
        self.first, self.step = made.steps[0], made.steps[-1]
        self.heard = self.origin.open(ChannelId("manager:1", self.step.name), Format.of(Trade))
        self.heard.lineage = (self.step,)
        self.company.subscribe("origin", "manager", self.step.name)

    @property
    def values(self) -> bytes:
        """The parameters that are in use here: at the source, or if there is none for what others would send."""
        steps = [derivation.step for derivation in self.origin.derivations.values()] or self.heard.lineage
        return steps[0].values

    def begin_anew(self) -> None:
        """Start another manager, whose program has created the channel and has derived from it, as the first one's."""
        heir = self.company.hubs["manager"] = Concentrator("id-heir", "manager:1")
        self.company.create("manager")
        heir.manager.directory.adopt([self.step])

    def ask(self, message: Message) -> list[tuple[Message, bytes]]:
        """Ask the manager; note what is answered, and which parameters are in force here at that moment."""
        answers: list[tuple[Message, bytes]] = []
        self.origin.ask("manager:1", message, lambda reply: answers.append((reply, self.values)))
        return answers


def test_a_change_is_confirmed_to_a_hub_with_sources_when_they_have_it_though_the_manager_has_begun_anew() -> None:
    parted = Parted()
    parted.origin.gone("id-manager", "it took leave")
    parted.begin_anew()
    answers = parted.ask(Tune(parted.step.name, HIGH))
    parted.company.settle()
    assert answers == [(Done(), HIGH)]


@pytest.mark.parametrize("placement", ["source", "sink"])
def test_a_change_by_way_of_a_port_that_is_not_open_here_is_confirmed_when_other_ports_have_it(
    placement: Placement,
) -> None:
    parted = Parted(ROUTER, ports=2, placement=placement)
    assert str(ChannelId("manager:1", parted.first.name)) not in parted.origin.members
    parted.origin.gone("id-manager", "it took leave")
    parted.begin_anew()
    answers = parted.ask(Tune(parted.first.name, HIGH))
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


def test_a_change_waits_until_the_manager_knows_of_the_sources_though_its_former_end_was_not_noticed() -> None:
    parted = Parted()
    parted.begin_anew()
    parted.company.meet("manager", "origin")
    assert [one.connected for one in parted.origin.neighbourhood.at("manager:1")] == [True, True]
    answers = parted.ask(Tune(parted.step.name, HIGH))
    parted.company.settle()
    assert answers == [(Done(), HIGH)]
    assert not any(list(member.lacking()) for member in parted.origin.members.values())


def test_a_manager_that_takes_leave_tells_of_a_change_over_the_links_that_it_has() -> None:
    parted = Parted()
    answers = parted.ask(Tune(parted.step.name, HIGH))
    parted.company.hubs["manager"].farewell()
    parted.company.settle()
    assert answers == [(Done(), HIGH)]
    assert not any(isinstance(effect, Dial) for effect in parted.company.effects["manager"])


def test_a_change_replaces_later_parameters_that_the_manager_has_forgotten() -> None:
    parted = Parted()
    for values in (HIGH, LOW, HIGH):
        assert isinstance(parted.company.ask("origin", "manager", Tune(parted.step.name, values)), Done)
    parted.origin.gone("id-manager", "it took leave")
    parted.begin_anew()
    answers = parted.ask(Tune(parted.step.name, LOW))
    parted.company.settle()
    assert answers == [(Done(), LOW)]


@pytest.mark.parametrize("of", ["what is submitted", "what is derived", "a port that is not open"])
def test_a_manager_begun_anew_asks_the_sources_of_who_wants_something_of_all(of: str) -> None:
    class Wheel:
        def ask(self, _: str, __: Mapping[str, Plain], answer: Callable[[str, Mapping[str, Plain]], None]) -> None:
            answer("", {})

    parted = Parted(ROUTER, ports=2)
    names = {
        "what is submitted": "trades",
        "what is derived": parted.step.name,
        "a port that is not open": parted.first.name,
    }
    parted.source.helms = {1: Wheel()}
    parted.origin.gone("id-manager", "it took leave")
    parted.begin_anew()
    answers = parted.ask(Steer(names[of], "stop"))
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


def test_who_changes_what_a_channel_does_that_is_only_called_like_a_port_does_not_join_others_again() -> None:
    parted = Parted()
    for name in ("trades.1", "trades.2"):
        parted.company.create("manager", name)
        parted.company.publish("origin", "manager", name)
        parted.origin.members[f"echoic://manager:1/{name}"].lose("source")
    parted.ask(Steer("trades.1", "stop"))
    parted.company.settle()
    lacking = [member.name for member in parted.origin.members.values() if list(member.lacking())]
    assert lacking == ["trades.2"]
