"""Requests to the sources of a channel: passed on by its manager, answered by each for itself."""

from collections.abc import Callable, Mapping

import pytest

from echoic.channels import ChannelId, Concentrator, Message, Plain, Policy, Refused, Steer, Steered, Steering
from echoic.channels.messages import Done, Join, SinkHub
from echoic.channels.steering import ANSWERS_MAX, VALUES_MAX, checked_values, steer
from echoic.errors import ChannelNotFoundError, LocalError, RefusedError
from tests.channels.recipes import TRADE, wish

ID = str(ChannelId("m:1", "trades"))


class Wheel:
    """A source that remembers what it was asked, and answers when it is told to."""

    def __init__(self, refusal: str = "", *, late: bool = False) -> None:
        self.asked: list[tuple[str, dict[str, Plain]]] = []
        self.later: list[Callable[[], None]] = []
        self._refusal = refusal
        self._late = late

    def ask(self, action: str, values: Mapping[str, Plain], answer: Callable[[str, Mapping[str, Plain]], None]) -> None:
        self.asked.append((action, dict(values)))
        self.later.append(lambda: answer(self._refusal, {"asked": len(self.asked)}))
        if not self._late:
            self.later.pop()()


class Manager(Concentrator):
    """A hub that notes what it asks of others, for a test to answer."""

    def ask(self, address: str, message: Message, answer: Callable[[Message], None]) -> None:
        self.__dict__.setdefault("noted", {})[address] = (message, answer)


def hub_with(*wheels: Wheel | None, policy: Policy | None = None) -> Concentrator:
    core = Manager("m", "m:1", "manager", policy=policy)
    core.manager.directory.create("trades", TRADE)
    member = core.open(ChannelId("m:1", "trades"), TRADE)
    member.sources = dict.fromkeys(range(1, len(wheels) + 1), 0)
    member.helms = {number: wheel for number, wheel in enumerate(wheels, 1) if wheel is not None}
    if wheels:
        core.manager.handle(Join("trades", "source", SinkHub("m:1")), frozenset())
    return core


def asked(core: Concentrator, channel: str = ID, action: str = "tune", **values: Plain) -> list[Message]:
    answers: list[Message] = []
    steer(core, Steer(channel, action, values), answers.append)
    return answers


def test_every_source_answers_for_itself() -> None:
    wheel = Wheel()
    core = hub_with(wheel, None, Wheel("too hot"))
    assert asked(core, rate=2.5, mode="fast") == [
        Steered(
            (
                Steering("m:1", 1, "", {"asked": 1}),
                Steering("m:1", 2, "the source offers no controls"),
                Steering("m:1", 3, "too hot", {"asked": 1}),
            )
        )
    ]
    assert wheel.asked == [("tune", {"rate": 2.5, "mode": "fast"})]


def test_the_answer_waits_for_the_slowest_source() -> None:
    slow = Wheel(late=True)
    answers = asked(hub_with(slow, Wheel()), action="stop")
    assert answers == []
    slow.later.pop()()
    assert [one.source for one in answers[0].answers] == [2, 1]


def test_a_hub_that_lets_nobody_steer_says_so() -> None:
    with pytest.raises(RefusedError, match="the hub at m:1 lets nobody steer its sources"):
        asked(hub_with(Wheel(), policy=Policy(steer=False)))


def test_an_action_that_is_not_known_is_refused_by_name() -> None:
    with pytest.raises(RefusedError, match="a source can be asked to start, stop, tune, not to 'melt'"):
        asked(hub_with(Wheel()), action="melt")


def test_a_channel_that_is_not_known_is_not_found() -> None:
    core = hub_with(Wheel())
    for channel in ("trdes", str(ChannelId("m:1", "trdes"))):
        with pytest.raises(ChannelNotFoundError):
            asked(core, channel)


def test_a_manager_asks_the_hubs_with_sources_of_a_channel_and_of_what_it_is_derived_from() -> None:
    core = hub_with()
    derived = core.manager.directory.derive(wish())[0].name
    core.manager.directory.join_source("trades", "a:1")
    core.manager.directory.join_source("trades", "b:1")
    core.manager.directory.join_source(derived, "c:1")
    answers = asked(core, derived, "start")
    requests = core.noted
    assert requests["a:1"][0] == requests["b:1"][0] == Steer(ID, "start")
    assert requests["c:1"][0] == Steer(str(ChannelId("m:1", derived)), "start")
    requests["a:1"][1](Steered((Steering("a:1", 5),)))
    requests["b:1"][1](Refused("UnreachableError", "nobody answers there"))
    assert answers == []
    requests["c:1"][1](Done())
    found = {one.hub: one.refusal for one in answers[0].answers}
    assert found == {"a:1": "", "b:1": "nobody answers there", "c:1": "it has answered by Done"}
    assert [one.taken for one in answers[0].answers].count(True) == 1


def test_a_channel_without_sources_is_answered_at_once() -> None:
    assert asked(hub_with(), "trades") == [Steered(())]


def test_answers_are_limited_so_that_they_fit_into_a_message() -> None:
    answers = asked(hub_with(*(Wheel() for _ in range(ANSWERS_MAX + 10))))
    assert len(answers[0].answers) == ANSWERS_MAX


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({f"v{number}": 1 for number in range(VALUES_MAX + 1)}, "33 values are given, limit is 32"),
        ({"text": "x" * 257}, "a text has 257 characters, limit is 256 - at `text`"),
        ({"rate": 2**63}, "an integer needs more than 64 bits - at `rate`"),
        ({"rates": [1]}, "expected a number, text or truth, got list - at `rates`"),
        ({"": 1}, "expected a name of 1 to 100 characters"),
        ({"x" * 101: 1}, "expected a name of 1 to 100 characters"),
    ],
)
def test_values_are_few_small_and_plain(values: dict[str, object], problem: str) -> None:
    with pytest.raises(LocalError) as caught:
        checked_values(values)
    assert problem in str(caught.value)


def test_a_peer_that_sends_too_much_is_refused() -> None:
    with pytest.raises(RefusedError, match="limit is 256"):
        asked(hub_with(Wheel()), text="x" * 257)
