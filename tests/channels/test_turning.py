"""A source's hub makes the turn: between two batches of all its sources, with the numbers at that moment."""

import pytest

from echoic.channels import ChannelId, Concentrator, Drain, Joined, Member, Refused, SinkHub, ignore
from echoic.channels.answering import carry_out
from echoic.channels.attaching import attached
from echoic.channels.keeping import JOURNALS_MAX, Keeping
from echoic.channels.messages import Attach, Done, Message, Turned
from echoic.channels.quiet import ancestry
from echoic.formats import Format
from echoic.rights import Rights, parse_rights
from echoic.testing.samples import Trade
from tests.channels.company import Company
from tests.channels.modulators import Holding, Scene

HUB, COMING = "h", "successor"


def turning(
    scene: Scene, runner: Holding | Refused | None = None, former: Member | None = None, *, drain: bool = True
) -> Member:
    """Let the sink go over to another modulator; return its channel."""
    other = scene.derive(b"2")
    scene.listen(other, COMING, instead=(former or scene.member).name, former="sink")
    scene.compile(runner if runner is not None else Holding())
    if drain:
        scene.drain()
    return other


def taken(member: Member, source: int, count: int, name: str = "sink") -> list[bool]:
    return [member.turns.takes(name, HUB, source, first) for first in range(count)]


def numbers(scene: Scene, member: Member) -> dict[int, int]:
    """Return under which numbers the sources of the scene are known in a derived channel."""
    assert member.origin is not None
    return {source: instance.source for source, instance in member.origin.instances.items()}


def test_a_turn_is_made_at_once_where_nothing_is_being_derived() -> None:
    scene = Scene(Holding(), sources=2)
    scene.submit(0, 1, source=1)
    scene.submit(0, source=2)
    other = turning(scene)
    assert isinstance(scene.replies[-1], Joined)
    known = numbers(scene, scene.member)
    assert taken(scene.member, known[1], 4) == [True, True, False, False]
    assert taken(scene.member, known[2], 3) == [True, False, False]
    assert scene.submit(2, 3, source=1) == [2, 3, 2, 3], "until the sink leaves it, the former channel goes on"
    assert taken(other, numbers(scene, other)[1], 2, COMING) == [True, True]


def test_a_turn_waits_for_what_is_being_derived_and_counts_it_to_the_former_channel() -> None:
    scene = Scene(Holding())
    scene.submit(0)
    scene.core.quiet.begin(scene.parent)
    other = turning(scene)
    assert len(scene.replies) == 1
    assert scene.core.quiet.paused(scene.parent)
    assert not other.heard_here, "nothing is derived for a sink that has yet to come"
    assert scene.submit(1) == [1], "what is under way is still the former modulator's alone"
    scene.core.quiet.end(scene.parent)
    scene.drain()
    assert len(scene.replies) == 2
    assert not scene.core.quiet.paused(scene.parent)
    assert taken(scene.member, numbers(scene, scene.member)[1], 3) == [True, True, False]
    assert scene.submit(2) == [2, 2]
    assert taken(other, numbers(scene, other)[1], 1, COMING) == [True]


def test_a_turn_to_the_channel_itself_and_back() -> None:
    scene = Scene(Holding())
    scene.submit(0, 1)
    scene.listen(scene.parent, "plain", instead=scene.member.name, former="sink")
    scene.drain()
    assert taken(scene.parent, 1, 4, "plain") == [False, False, True, True]
    scene.core.leave(scene.member, "sink")
    scene.member.turns.forget("sink")
    scene.submit(2)
    scene.listen(scene.member, "back", instead=scene.parent.name, former="plain")
    scene.compile(Holding())
    scene.drain()
    assert taken(scene.parent, 1, 5, "plain") == [False, False, True, False, False]
    assert scene.submit(3) == [3]
    known = numbers(scene, scene.member)[1]
    assert scene.member.turns.takes("back", HUB, known, scene.member.sources[known] - 1)


def test_several_turns_at_once_are_all_made() -> None:
    scene = Scene(Holding())
    third = scene.derive(b"3")
    scene.listen(third, "other")
    scene.compile(Holding())
    scene.core.quiet.begin(scene.parent)
    wanted = scene.derive(b"2")
    scene.listen(wanted, "one", instead=scene.member.name, former="sink")
    scene.listen(wanted, "two", instead=third.name, former="other")
    scene.compile(Holding())
    assert len(scene.replies) == 2
    scene.core.quiet.end(scene.parent)
    scene.drain()
    assert [type(reply) for reply in scene.replies] == [Joined] * 4
    assert not scene.core.quiet.paused(scene.parent)
    assert not scene.core.turning


def test_a_source_that_refuses_goes_on_as_before() -> None:
    scene = Scene(Holding())
    scene.submit(0)
    turning(scene, Refused("RefusedError", "the hub runs no modulators signed by ed25519:xyz"))
    assert isinstance(scene.replies[-1], Refused)
    assert not scene.core.quiet.paused(scene.parent)
    assert scene.submit(1) == [1]
    assert taken(scene.member, numbers(scene, scene.member)[1], 3) == [True] * 3


def test_a_turn_back_where_none_was_made_leaves_to_each_channel_what_was_under_way() -> None:
    scene = Scene(Holding())
    other = scene.derive(b"2")
    scene.listen(other, "another sink")
    scene.compile(Holding())
    other.turns.expect(COMING)
    assert scene.submit(0, 1) == [0, 1, 0, 1]
    here, there = (numbers(scene, member)[1] for member in (scene.member, other))
    before = taken(scene.member, here, 2), taken(other, there, 2, COMING)
    assert before == ([True, True], [False, False])
    answer = scene.replies.append
    scene.core.join(scene.member, "sink", answer, instead=other.name, handle=COMING, successor="sink")
    scene.drain()
    assert isinstance(scene.replies[-1], Joined)
    assert (taken(scene.member, here, 2), taken(other, there, 2, COMING)) == before, "it may be handed over only then"
    assert scene.submit(2) == [2, 2]
    assert taken(scene.member, here, 3) == [True] * 3
    assert taken(other, there, 3, COMING) == [False] * 3


def test_a_source_that_never_heard_of_the_former_channel_turns_too() -> None:
    scene = Scene(Holding())
    unknown = scene.derive(b"never heard")
    scene.core.close(unknown)
    other = turning(scene, former=unknown)
    assert isinstance(scene.replies[-1], Joined)
    assert scene.submit(0) == [0, 0]
    assert taken(other, numbers(scene, other)[1], 1, COMING) == [True]


def test_nothing_is_sent_while_a_modulator_is_being_drained() -> None:
    scene = Scene(Holding(2))
    assert scene.submit(0, 1, 2) == [0]
    other = turning(scene, drain=False)
    (drain,) = scene.take(Drain)
    assert isinstance(drain, Drain)
    assert scene.core.quiet.paused(scene.parent)
    assert len(scene.replies) == 1
    assert not other.heard_here
    assert scene.send(list(drain.modulation.drained())) == [1, 2]
    drain.then()
    assert scene.core.quiet.paused(scene.parent), "what the other one holds back for others comes before, too"
    assert scene.drain() == []
    assert len(scene.replies) == 2
    assert not scene.core.quiet.paused(scene.parent)


def test_a_channel_and_those_that_it_is_derived_from_are_its_ancestry() -> None:
    scene = Scene(Holding())
    assert ancestry(scene.member) == [scene.member, scene.parent]
    assert ancestry(scene.parent) == [scene.parent]


def test_a_wish_of_before_a_turn_that_comes_after_it_does_not_take_it_back() -> None:
    company = Company("manager", "source", "sink")
    for name in ("former", "other"):
        company.create("manager", name)
        company.publish("source", "manager", name)
    former, _ = company.subscribe("sink", "manager", "former")
    other, _ = company.subscribe("sink", "manager", "other")

    def wish(name: str, subscription: int) -> SinkHub:
        return SinkHub("sink:1", "block", (name,), hub="id-sink", subscription=subscription, turns={name: True})

    turn = Attach(other.id, wish("t", 7), instead=former.id, handle="s", successor="t")
    assert isinstance(company.ask("manager", "source", turn), Turned)
    assert not former.turns.taking("s", "id-source")
    assert isinstance(company.ask("manager", "source", Attach(former.id, wish("s", 8))), Done)
    assert not former.turns.taking("s", "id-source")
    assert other.turns.taking("t", "id-source")


def test_what_was_told_when_a_hub_had_no_source_does_not_count_for_its_next_one() -> None:
    company = Company("manager", "source", "sink")
    company.create("manager", "ticks")
    company.subscribe("sink", "manager", "ticks")
    member, _ = company.publish("source", "manager", "ticks")
    core = company.hubs["source"]
    core.leave(member, "source")
    company.settle()
    late = Attach(member.id, SinkHub("sink:1", "block", ("s",), hub="id-sink", subscription=1, turns={"s": True}))
    assert isinstance(company.ask("manager", "source", late), Done)
    heard = company.hubs["sink"].members[member.id]
    assert heard.turns.taking("s", "id-source")
    heard.sink = SinkHub("sink:1", "block", ("s",), turns={"s": False})  # it has left meanwhile
    company.hubs["sink"].join(heard, "sink", ignore)
    company.settle()
    company.publish("source", "manager", "ticks", source=2)
    assert not heard.turns.taking("s", "id-source")


class GoingOver:
    """A hub with a source of two channels, and a sink that goes over between them."""

    def __init__(self) -> None:
        self.company = Company("manager", "source", "sink")
        for name in ("former", "other"):
            self.company.create("manager", name)
            self.company.publish("source", "manager", name)
        self.manager, self.source, self.sink = (self.company.hubs[name] for name in ("manager", "source", "sink"))
        self.former, _ = self.company.subscribe("sink", "manager", "former")
        self.other = self.sink.open(ChannelId("manager:1", "other"), Format.of(Trade))
        self.other.turns.expect("t")

    def go(self, member: Member, name: str, instead: str, handle: str) -> list[Message]:
        replies: list[Message] = []
        member.sink = SinkHub("sink:1", "block", (name,))
        self.sink.join(member, "sink", replies.append, instead=instead, handle=handle, successor=name)
        self.company.settle()
        return replies

    def pass_seconds(self, count: int) -> None:
        for second in range(1, count + 1):
            for hub in self.company.hubs.values():
                hub.tick(second * 1_000_000_000)
            self.company.settle()


@pytest.mark.parametrize("apart", [True, False], ids=["from both", "from the manager"])
def test_what_a_manager_says_that_was_given_up_counts_more_than_a_turn_of_before(apart: bool) -> None:
    scene = GoingOver()
    scene.go(scene.other, "t", "former", "s")
    assert not scene.former.turns.taking("s", "id-source")
    scene.source.gone("id-manager", "it cannot be reached")
    scene.manager.gone("id-source", "it cannot be reached")
    if apart:
        scene.source.gone("id-sink", "it cannot be reached")
        scene.sink.gone("id-source", "it cannot be reached")
    scene.go(scene.former, "s", "other", "t")  # the source's hub hears nothing of it
    scene.other.turns.forget("t")
    scene.other.sink = None
    scene.sink.leave(scene.other, "sink")
    scene.pass_seconds(8)
    assert scene.former.turns.taking("s", "id-source")
    assert list(scene.source.members[scene.former.id].fanout.targets) == ["id-sink"]


def test_a_wish_of_before_the_manager_was_given_up_is_left_to_what_it_says_when_it_is_back() -> None:
    scene, replies = GoingOver(), list[Message]()
    scene.source.gone("id-sink", "it cannot be reached")
    scene.sink.gone("id-source", "it cannot be reached")
    wish = SinkHub("sink:1", "block", ("s",), hub="id-sink", turns={"s": False})
    attached(scene.source, scene.source.members[scene.former.id], wish, replies.append)  # when it is connected to
    scene.source.gone("id-manager", "it cannot be reached")
    scene.manager.gone("id-source", "it cannot be reached")
    scene.company.settle()
    assert replies == [Done()]
    scene.pass_seconds(3)
    assert scene.former.turns.taking("s", "id-source")
    assert list(scene.source.members[scene.former.id].fanout.targets) == ["id-sink"]


def test_nobody_waits_for_a_sink_that_is_closed_while_it_goes_over() -> None:
    scene = GoingOver()
    carry = scene.company.carry

    def carry_late(hub: Concentrator) -> None:
        """What the source's hub tells the sink's is on its way."""
        outbox = hub.neighbours["id-sink"].session.outbox if hub is scene.source else []
        late = list(outbox)
        outbox.clear()
        carry(hub)
        outbox.extend(late)

    scene.company.carry = carry_late  # type: ignore[method-assign]
    replies = scene.go(scene.other, "t", "former", "s")
    assert (replies, scene.other.expecting) == ([], 1)
    scene.former.turns.forget("s")
    scene.company.settle()
    assert (replies, scene.other.expecting) == ([Joined([])], 0)


@pytest.mark.parametrize("manager", ["manager", "source"], ids=["another", "itself"])
def test_who_cannot_take_part_is_told_and_nobody_is_expected(manager: str) -> None:
    company = Company("manager", "source", "sink")
    company.create(manager)
    recording = company.hubs["sink"].open(ChannelId(f"{manager}:1", "trades"), Format.of(Trade))
    recording.sink = SinkHub("sink:1", "block", ("r",), journal="one more")
    company.hubs["sink"].join(recording, "sink", ignore)
    company.settle()
    core = company.hubs["source"]
    member = core.open(ChannelId(f"{manager}:1", "trades"), Format.of(Trade))
    member.sources[1] = 0
    member.keepings = tuple(Keeping(f"journal {number}") for number in range(JOURNALS_MAX))  # have yet to confirm
    replies: list[Message] = []
    for _ in range(3):
        core.join(member, "source", replies.append)
        company.settle()
    assert [reply.kind for reply in replies if isinstance(reply, Refused)] == ["LimitExceededError"] * 3
    assert (len(replies), member.expecting, member.asking) == (3, 0, {"source": 0})
    assert manager == "source" or f"id-{manager}" in core.neighbours


def test_a_sink_that_cannot_be_recorded_for_is_refused_though_its_hub_has_to_be_connected_to() -> None:
    company = Company("manager", "source", "sink", rights=parse_rights("allow * * *"))
    company.create("manager")
    member, _ = company.publish("source", "manager")
    member.keepings = tuple(Keeping(f"journal {number}") for number in range(JOURNALS_MAX))
    replies: list[Message] = []
    attached(company.hubs["source"], member, SinkHub("sink:1", "block", ("r",), journal="one more"), replies.append)
    assert (replies, member.expecting) == ([], 1)
    company.settle()
    assert [type(reply) for reply in replies] == [Refused]
    assert member.expecting == 0


@pytest.mark.parametrize("rights", [None, parse_rights("allow * * *")], ids=["plain", "with rights"])
def test_a_turn_that_cannot_be_made_is_refused(rights: Rights | None) -> None:
    company = Company("manager", "source", "sink", rights=rights)
    for name in ("former", "other"):
        company.create("manager", name)
        company.publish("source", "manager", name)
    company.subscribe("sink", "manager", "former")
    wanted = company.hubs["source"].members["echoic://manager:1/other"]
    wanted.keepings = tuple(Keeping(f"journal {number}") for number in range(JOURNALS_MAX))
    other = company.hubs["sink"].open(ChannelId("manager:1", "other"), Format.of(Trade))
    other.turns.expect("t")
    other.sink = SinkHub("sink:1", "block", ("t",), journal="one more")
    replies: list[Message] = []
    company.hubs["sink"].join(other, "sink", replies.append, instead="former", handle="s", successor="t")
    company.settle()
    assert [type(reply) for reply in replies] == [Refused]


@pytest.mark.parametrize("apart", [True, False], ids=["from both", "from the manager"])
def test_a_turn_is_not_made_any_more_when_its_manager_was_given_up(apart: bool) -> None:
    scene = GoingOver()
    member = scene.source.members[scene.former.id]
    scene.source.quiet.begin(member)  # so it has to wait
    assert scene.go(scene.other, "t", "former", "s") == []
    scene.source.gone("id-manager", "it cannot be reached")
    scene.manager.gone("id-source", "it cannot be reached")
    if apart:
        scene.source.gone("id-sink", "it cannot be reached")
        scene.sink.gone("id-source", "it cannot be reached")
    scene.company.settle()
    scene.go(scene.former, "s", "other", "t")
    scene.other.turns.forget("t")
    scene.other.sink = None
    scene.sink.leave(scene.other, "sink")
    scene.source.quiet.end(member)
    scene.pass_seconds(12)
    assert scene.former.turns.taking("s", "id-source")
    assert not scene.source.turning


@pytest.mark.parametrize("channel", ["former", "echoic://nowhere/x y", ""])
def test_an_order_for_what_is_no_channel_is_refused_and_not_kept(channel: str) -> None:
    scene, replies = GoingOver(), list[Message]()
    order = Attach(channel, SinkHub("sink:1", "block", ("s",)), (), scene.former.id, "s", "t")
    carry_out(scene.source, order, replies.append, "id-manager")
    assert [type(reply) for reply in replies] == [Refused]
    assert not scene.source.turning
    scene.source.gone("id-manager", "it broke a rule")
    assert "id-manager" not in scene.source.neighbours


def test_a_wish_of_before_a_source_ended_is_left_to_what_the_next_one_is_told() -> None:
    scene, replies = GoingOver(), list[Message]()
    member = scene.source.members[scene.former.id]
    scene.source.gone("id-sink", "it cannot be reached")
    scene.sink.gone("id-source", "it cannot be reached")
    wish = SinkHub("sink:1", "block", ("s",), hub="id-sink", turns={"s": False}, subscription=scene.former.subscription)
    attached(scene.source, member, wish, replies.append)
    scene.source.leave(member, "source")
    scene.source.join(member, "source", replies.append)
    scene.company.settle()
    scene.pass_seconds(5)
    assert scene.former.turns.taking("s", "id-source")
