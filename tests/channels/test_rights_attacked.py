"""Whoever has a certificate and few rights tries to get more; so does a manager that was taken over."""

from collections.abc import Sequence

import msgspec
import pytest

from echoic.channels import (
    ChannelId,
    Consult,
    Ended,
    Joined,
    Member,
    Message,
    Policy,
    Refused,
    SinkHub,
    Step,
    ignore,
    renew,
)
from echoic.channels.hub_id import check_hub_id, hub_id
from echoic.channels.journal_messages import Fetch, Fetched, Kept, Mark, Marked
from echoic.channels.messages import (
    Attach,
    Derive,
    DerivedAs,
    Describe,
    Described,
    Detach,
    Done,
    Gap,
    Join,
    Leave,
    Placement,
    Recipe,
    Tune,
)
from echoic.errors import DeniedError, MalformedFrameError
from echoic.formats import Format, event
from echoic.rights import Decision, Right, Rights, parse_rights
from echoic.testing.samples import Trade
from echoic.wire import Batch
from tests.channels.company import Company, trades

RIGHTS = parse_rights(
    """
    allow manager   admin                       *
    allow intruder  admin                       toys
    allow exchange  publish                     trades*
    allow exchange  publish                     secret
    allow bourse    publish                     trades
    allow desk      subscribe,derive            trades
    allow boss      subscribe,derive,steer      trades
    allow press     subscribe                   trades.cheap
    allow press     subscribe                   weather*
    allow recorder  subscribe                   trades
    """
)
TRADES = str(ChannelId("manager:1", "trades"))


@event
class Low:
    low: float


def block(low: float) -> bytes:
    return bytes(Batch.of([Low(low)], Low).records)


def cheap(name: str = "trades.cheap", parent: str = "trades", low: float = 80.0) -> Step:
    return Step(
        name,
        name,
        Recipe(parent, "{ return input.price < param.low; }", params=Format.of(Low).descriptor),
        block(low),
        input=Format.of(Trade).descriptor,
    )


def company(*names: str, policy: Policy | None = None) -> Company:
    made = Company("manager", *names, rights=RIGHTS, policy=policy)
    for channel in ("trades", "secret", "weather"):
        made.create("manager", channel)
    return made


def refusal(reply: Message) -> str:
    assert isinstance(reply, Refused), reply
    return reply.kind


def record(made: Company, owner: str = "recorder", journal: str = "j1") -> tuple[Member, Message]:
    """Let a hub record trades."""
    member = made.hubs[owner].open(ChannelId("manager:1", "trades"), Format.of(Trade))
    member.sink = SinkHub(f"{owner}:1", "block", ("s",), journal=journal)
    answers: list[Message] = []
    made.hubs[owner].join(member, "sink", answers.append)
    made.settle()
    return member, answers[0]


def say(made: Company, teller: str, told: str, message: Message) -> None:
    """Let one hub send another a notice."""
    made.meet(teller, told)
    made.hubs[teller].send(f"id-{told}", message)
    made.settle()


def test_a_stranger_has_no_source_forget_what_is_kept_for_a_recorder() -> None:
    made = company("exchange", "recorder", "stranger", "desk")
    member, _ = made.publish("exchange", "manager")
    record(made)
    made.hubs["exchange"].submit(member, 1, trades(3))
    for thief in ("stranger", "desk"):
        reply = made.ask(thief, "exchange", Detach(TRADES, f"{thief}:1", journal="j1"))
        assert refusal(reply) in ("ChannelNotFoundError", "DeniedError")
    assert [keeping.journal for keeping in member.keepings] == ["j1"]
    assert member.unconfirmed_bytes > 0


def test_a_subscriber_does_not_take_the_journal_of_another() -> None:
    """Whoever is known for a journal has the true recorder sent no more, and may have events forgotten."""
    made = company("exchange", "recorder", "desk")
    member, _ = made.publish("exchange", "manager")
    record(made)
    _, reply = record(made, "desk")
    assert refusal(reply) == "DeniedError"
    made.hubs["exchange"].submit(member, 1, trades(3))
    say(made, "desk", "exchange", Kept(TRADES, "j1", {1: 99}))
    assert member.unconfirmed_bytes > 0
    assert made.got("recorder") == 3
    assert made.got("desk") == 0


def test_nor_with_the_help_of_a_manager() -> None:
    made = Company("exchange", "recorder", "desk", rights=RIGHTS)
    made.add("manager", rights=False)
    made.create("manager")
    member, _ = made.publish("exchange", "manager")
    record(made)
    record(made, "desk")
    made.hubs["exchange"].submit(member, 1, trades(3))
    say(made, "desk", "exchange", Kept(TRADES, "j1", {1: 99}))
    assert member.unconfirmed_bytes > 0
    assert made.got("recorder") == 3


def test_the_same_recorder_begins_anew_in_another_hub() -> None:
    made = company("exchange", "recorder")
    member, _ = made.publish("exchange", "manager")
    record(made)
    made.add("second", who="recorder")
    _, reply = record(made, "second")
    assert isinstance(reply, Joined)
    made.hubs["exchange"].submit(member, 1, trades(3))
    made.settle()
    assert made.got("second") == 3


def test_a_source_that_denies_a_hub_goes_on_keeping_for_the_recorder_whose_journal_it_claims() -> None:
    made = Company("exchange", "recorder", "stranger", rights=RIGHTS)
    made.add("manager", rights=False)
    made.create("manager")
    record(made)
    member, _ = made.publish("exchange", "manager")
    made.hubs["exchange"].submit(member, 1, trades(3))
    made.hubs["manager"].manager.directory.get("trades").sinks["stranger:1"] = SinkHub("stranger:1", journal="j1")
    made.publish("exchange", "manager")
    assert [keeping.journal for keeping in member.keepings] == ["j1"]


def test_who_may_only_subscribe_changes_no_parameters_by_what_he_says_when_he_joins() -> None:
    made = company("exchange", "desk", "press", "boss")
    made.publish("exchange", "manager")
    made.ask("desk", "manager", Derive(cheap()))
    made.subscribe("desk", "manager", "trades.cheap")
    told = msgspec.structs.replace(cheap(low=0.0), version=7)
    book = made.hubs["manager"].manager.directory
    wish = Join("trades.cheap", "sink", SinkHub("press:1", hub="id-press", subscription=1), (told,))
    assert isinstance(made.ask("press", "manager", wish), Joined)
    step = book.get("trades.cheap").step
    assert step is not None
    assert (step.values, step.version) == (block(80.0), 0)
    wish = Join("trades.cheap", "sink", SinkHub("boss:1", hub="id-boss", subscription=1), (told,))
    assert isinstance(made.ask("boss", "manager", wish), Joined)
    step = book.get("trades.cheap").step
    assert step is not None
    assert step.values == block(0.0)


def test_derived_channels_are_counted_also_if_they_come_with_a_wish_to_join() -> None:
    made = company("exchange", "desk", policy=Policy(peer_derivations_max=2))
    for name in ("a", "b"):
        assert isinstance(made.ask("desk", "manager", Derive(cheap(f"trades.{name}"))), DerivedAs)
        made.subscribe("desk", "manager", f"trades.{name}")
    wish = Join("trades.c", "sink", SinkHub("desk:1"), (cheap("trades.c"),))
    assert refusal(made.ask("desk", "manager", wish)) == "LimitExceededError"


def test_derived_channels_that_nobody_takes_part_in_are_forgotten_before_anybody_is_refused() -> None:
    made = company("exchange", "desk", policy=Policy(peer_derivations_max=2))
    made.publish("exchange", "manager")
    for number in range(5):
        step = cheap(f"trades.c{number}")
        assert isinstance(made.ask("desk", "manager", Derive(step)), DerivedAs)
        member, joined = made.subscribe("desk", "manager", step.name)
        assert isinstance(joined, Joined), joined
        made.hubs["desk"].leave(member, "sink")
        made.settle()
    assert len(made.hubs["exchange"].derivations) <= 2


def test_code_that_is_at_rest_is_not_counted_against_its_owner() -> None:
    made = company("exchange", "desk", policy=Policy(peer_cost_max=12))
    made.publish("exchange", "manager")
    for number in range(5):
        step = cheap(f"trades.c{number}")
        made.ask("desk", "manager", Derive(step))
        member, joined = made.subscribe("desk", "manager", step.name)
        assert isinstance(joined, Joined), joined
        made.hubs["desk"].leave(member, "sink")
        made.settle()


@pytest.mark.parametrize("name", ["weather.free", "payroll", "tradesman", "echoic/audit"])
def test_a_derived_channel_has_no_name_to_which_others_have_rights(name: str) -> None:
    """`press` may subscribe to `weather*`, and would get trades by that name."""
    made = company("exchange", "desk", "press")
    made.publish("exchange", "manager")
    reply = made.ask("desk", "manager", Derive(cheap(name)))
    assert refusal(reply) in ("DeniedError", "ChannelNotFoundError")
    wish = Join(name, "sink", SinkHub("desk:1"), (cheap(name),))
    assert refusal(made.ask("desk", "manager", wish)) in ("DeniedError", "ChannelNotFoundError")
    assert name not in made.hubs["manager"].manager.directory


def test_a_manager_that_was_taken_over_gives_derived_events_no_other_name() -> None:
    made = Company("exchange", "press", rights=RIGHTS)
    made.add("manager", rights=False)
    made.create("manager")
    member, _ = made.publish("exchange", "manager")
    step = msgspec.structs.replace(cheap("weather.free"), owned_by="desk")
    made.hubs["manager"].manager.directory.derive(step)
    made.subscribe("press", "manager", "weather.free")
    made.hubs["exchange"].submit(member, 1, trades(3))
    made.settle()
    assert made.hubs["exchange"].derivations == {}


def test_nor_says_it_that_they_are_derived_from_something_else() -> None:
    """`press` may subscribe to `weather`, of which nothing is made here."""
    made = Company("exchange", "press", rights=RIGHTS)
    manager = made.add("manager", rights=False)
    made.create("manager")
    made.publish("exchange", "manager")
    weather = msgspec.structs.replace(cheap("weather.x", "weather"), owned_by="desk")
    leak = msgspec.structs.replace(cheap("trades.leak"), owned_by="desk")
    order = Attach(str(ChannelId("manager:1", "trades.leak")), SinkHub("press:1"), (weather, leak))
    replies: list[Message] = []
    manager.ask("exchange:1", order, replies.append)
    made.settle()
    assert isinstance(replies[0], Refused)
    outlet = made.hubs["exchange"].members.get(order.channel)
    assert outlet is None or outlet.fanout.targets == {}


def test_a_manager_does_not_pass_off_code_as_that_of_the_source_itself() -> None:
    made = Company("exchange", "desk", rights=RIGHTS)
    manager = made.add("manager", rights=False)
    made.create("manager")
    made.publish("exchange", "manager")
    manager.manager.directory.derive(msgspec.structs.replace(cheap(), owned_by="exchange"))
    made.subscribe("desk", "manager", "trades.cheap")
    assert made.hubs["exchange"].derivations == {}


def test_a_manager_has_no_sink_leave_a_channel_of_another() -> None:
    """A turn would tell the desk that it gets no more trades."""
    made = company("exchange", "desk")
    intruder = made.add("intruder", rights=False)
    made.create("intruder", "toys")
    member, _ = made.publish("exchange", "manager")
    made.publish("exchange", "intruder", "toys", source=2)
    made.subscribe("desk", "manager")
    order = Attach(str(ChannelId("intruder:1", "toys")), SinkHub("desk:1"), (), TRADES, "s", "t")
    replies: list[Message] = []
    intruder.ask("exchange:1", order, replies.append)
    made.settle()
    assert refusal(replies[0]) == "DeniedError"
    assert not member.told.get("desk:1")


def test_nobody_leaves_a_channel_for_another_that_he_has_no_right_to() -> None:
    made = company("exchange", "desk")
    made.publish("exchange", "manager")
    wish = Join("trades", "sink", SinkHub("desk:1"), (), "secret", "s", "s")
    assert refusal(made.ask("desk", "manager", wish)) == "ChannelNotFoundError"


def test_what_is_answered_does_not_tell_which_channels_there_are() -> None:
    made = company("exchange", "stranger")
    made.publish("exchange", "manager", "secret")
    for message in (
        lambda name: Leave(name, "sink", "stranger:1"),
        lambda name: Leave(name, "source", "stranger:1"),
        lambda name: Detach(f"echoic://manager:1/{name}", "stranger:1"),
    ):
        there, not_there = (
            made.ask("stranger", at, message(name))
            for name in ("secret", "nothing")
            for at in (("exchange",) if isinstance(message("x"), Detach) else ("manager",))
        )
        assert there == not_there


def test_who_may_derive_is_not_told_which_names_are_taken() -> None:
    made = company("desk")
    there, not_there = (made.ask("desk", "manager", Derive(cheap(name))) for name in ("secret", "nothing"))
    assert isinstance(there, Refused)
    assert isinstance(not_there, Refused)
    assert there.reason.replace("secret", "nothing") == not_there.reason


def test_a_source_does_not_speak_for_that_of_another() -> None:
    made = company("exchange", "bourse", "desk")
    member, _ = made.publish("exchange", "manager", source=1)
    rival, _ = made.publish("bourse", "manager", source=2)
    listener, _ = made.subscribe("desk", "manager")
    made.hubs["exchange"].submit(member, 1, trades(2))
    made.hubs["bourse"].submit(rival, 2, trades(1))
    made.settle()
    assert made.got("desk") == 3
    rival.sources[1] = 1000
    made.hubs["bourse"].submit(rival, 1, trades(1))
    say(made, "bourse", "desk", Gap(rival.number, 1, 2, 5000, "it is not true"))
    made.hubs["exchange"].submit(member, 1, trades(2))
    made.settle()
    assert made.got("desk") == 5
    assert listener.missed == 0


def test_a_source_goes_on_elsewhere_when_whoever_had_it_is_gone() -> None:
    made = company("exchange", "bourse", "desk")
    member, _ = made.publish("exchange", "manager", source=1)
    rival, _ = made.publish("bourse", "manager", source=2)
    made.subscribe("desk", "manager")
    made.hubs["exchange"].submit(member, 1, trades(2))
    made.settle()
    made.hubs["desk"].gone("id-exchange", "it is no more")
    rival.sources[1] = 2
    made.hubs["bourse"].submit(rival, 1, trades(1))
    made.settle()
    assert made.got("desk") == 3


def test_nobody_publishes_in_the_trail_of_a_hub() -> None:
    made = Company("manager", "exchange", "desk", rights=parse_rights("allow * * *"))
    made.create("manager", "echoic/audit")
    assert refusal(made.publish("exchange", "manager", "echoic/audit")[1]) == "DeniedError"
    made.subscribe("desk", "manager", "echoic/audit")
    made.hubs["manager"].admission.rights = None
    member, _ = made.publish("exchange", "manager", "echoic/audit")
    made.hubs["exchange"].submit(member, 1, trades(3))
    made.settle()
    assert made.got("desk") == 0


def test_a_name_that_fills_a_frame_is_not_kept() -> None:
    made = company("stranger")
    made.ask("stranger", "manager", Leave("x" * 1_000_000, "sink", "stranger:1"))
    made.ask("stranger", "manager", Derive(cheap(parent="y" * 1_000_000)))
    assert all(len(channel) < 1000 for _, _, channel in made.audited("manager", allowed=False))


@pytest.mark.parametrize("placement", ["sink", "auto"])
def test_what_sinks_derive_themselves_is_not_sent_to_who_has_no_right_to_it(placement: Placement) -> None:
    """`press` may subscribe to cheap trades, and would be sent all of them."""
    made = company("exchange", "desk", "press")
    member, _ = made.publish("exchange", "manager")
    step = cheap()
    recipe = msgspec.structs.replace(step.recipe, placement=placement)
    made.ask("desk", "manager", Derive(msgspec.structs.replace(step, recipe=recipe)))
    assert isinstance(made.subscribe("desk", "manager", "trades.cheap")[1], Joined)
    reply = made.subscribe("press", "manager", "trades.cheap")[1]
    assert isinstance(reply, Refused)
    assert "`press` may not subscribe `trades`" in reply.reason
    made.hubs["exchange"].submit(member, 1, trades(3))
    made.settle()
    assert made.got("press") == 0


def test_a_bookmark_is_of_whoever_has_put_it_there() -> None:
    made = company("desk", "boss")
    member = made.hubs["manager"].open(ChannelId("manager:1", "trades"), Format.of(Trade))
    member.recorded = ("j1", {})
    for who in ("desk", "boss"):
        made.meet(who, "manager")
        made.hubs[who].ask("manager:1", Mark(TRADES, "billing", (5,)), ignore)
        made.settle()
    made.hubs["manager"].ask("manager:1", Mark(TRADES, "billing", (5,)), ignore)
    made.settle()
    marks = [effect.message.sink for effect in made.effects["manager"] if isinstance(effect, Consult)]
    assert len(set(marks)) == 3
    assert marks[2] == "billing"


def test_where_a_sink_goes_on_that_was_marked_before_there_were_rights_is_found() -> None:
    made = company("desk")
    member = made.hubs["manager"].open(ChannelId("manager:1", "trades"), Format.of(Trade))
    member.recorded = ("j1", {})
    replies: list[Message] = []
    made.meet("desk", "manager")
    made.hubs["desk"].ask("manager:1", Mark(TRADES, "billing"), replies.append)
    made.settle()
    for kept in ((), (7,)):
        asked = [effect for effect in made.effects["manager"] if isinstance(effect, Consult)][-1]
        asked.answer(Marked(kept))
        made.settle()
    assert replies == [Marked((7,))]


def test_who_loses_the_right_while_he_waits_for_a_journal_gets_nothing_of_it() -> None:
    made = company("desk")
    member = made.hubs["manager"].open(ChannelId("manager:1", "trades"), Format.of(Trade))
    member.recorded = ("j1", {})
    replies: list[Message] = []
    made.meet("desk", "manager")
    made.hubs["desk"].ask("manager:1", Fetch(TRADES, 0, 0, 1), replies.append)
    made.settle()
    renew(made.hubs["manager"], parse_rights("allow manager admin *"))
    (asked,) = [effect for effect in made.effects["manager"] if isinstance(effect, Consult)]
    asked.answer(Fetched("j1", (1,), (0,), blocks=b"what was said"))
    made.settle()
    assert refusal(replies[0]) == "DeniedError"


def test_a_reader_of_a_journal_does_not_fill_the_trail() -> None:
    made = company("desk")
    member = made.hubs["manager"].open(ChannelId("manager:1", "trades"), Format.of(Trade))
    member.recorded = ("j1", {})
    made.meet("desk", "manager")
    for _ in range(10):
        made.hubs["desk"].ask("manager:1", Fetch(TRADES, 0, 0, 1), ignore)
        made.settle()
    assert len(made.audited("manager", allowed=True)) == 1


def test_nobody_stands_where_a_hub_of_another_name_does() -> None:
    """Requests for that hub would go to him, and he could take leave of channels in its place."""
    made = company("desk", "exchange")
    made.subscribe("desk", "manager")
    thief = made.add("thief")
    thief.address = "desk:1"  # type: ignore[misc] # what it says in its hello
    with pytest.raises(DeniedError, match="`thief` says it stands at desk:1, where a hub of `desk` does"):
        made.meet("thief", "manager")


def test_a_manager_with_other_rules_strikes_who_has_lost_his_rights() -> None:
    """Sources without rules of their own send to nobody whom the manager does not let in."""
    made = Company("manager", "desk", rights=RIGHTS)
    made.create("manager")
    made.add("exchange", rights=False)
    member, _ = made.publish("exchange", "manager")
    made.subscribe("desk", "manager")
    assert len(member.fanout.targets) == 1
    renew(made.hubs["manager"], parse_rights("allow manager admin *"))
    made.settle()
    channel = made.hubs["manager"].manager.directory.get("trades")
    assert (channel.sinks, channel.sources) == ({}, set())
    assert member.fanout.targets == {}


def test_code_of_who_may_not_derive_any_more_is_removed_and_whoever_listens_is_told() -> None:
    made = company("exchange", "desk", "press")
    made.publish("exchange", "manager")
    made.ask("desk", "manager", Derive(cheap()))
    made.subscribe("press", "manager", "trades.cheap")
    exchange = made.hubs["exchange"]
    assert exchange.derivations
    renew(exchange, parse_rights("allow manager admin *\nallow press subscribe trades.cheap"))
    made.settle()
    assert exchange.derivations == {}
    (ended,) = [effect for effect in made.effects["press"] if isinstance(effect, Ended)]
    assert "`desk` may not derive `trades`" in ended.reason
    assert made.ask("desk", "manager", Tune("trades.cheap", block(1.0))) == Done()
    made.hubs["manager"].admission.rights = parse_rights("allow manager admin *\nallow desk subscribe trades*")
    assert refusal(made.ask("desk", "manager", Tune("trades.cheap", block(1.0)))) == "DeniedError"


@pytest.mark.parametrize("place", ["exchange", "desk"])
def test_who_is_granted_a_right_later_is_let_in_then(place: str) -> None:
    made = Company("exchange", "desk", rights=RIGHTS)
    made.add("manager", rights=False)
    made.create("manager")
    made.hubs[place].admission.rights = parse_rights("allow manager admin *")
    listener, _ = made.subscribe("desk", "manager")
    listener.roles |= {"sink"}
    member, _ = made.publish("exchange", "manager")
    made.hubs["exchange"].submit(member, 1, trades(1))
    made.settle()
    assert made.got("desk") == 0
    renew(made.hubs[place], RIGHTS)
    for hub in made.hubs.values():
        hub.tick(hub.now_ns + 2_000_000_000)
    made.settle()
    made.hubs["exchange"].submit(member, 1, trades(2))
    made.settle()
    assert made.got("desk") == 2


def test_a_plain_subscriber_is_told_what_is_the_matter() -> None:
    made = Company("exchange", "stranger", rights=RIGHTS)
    made.add("manager", rights=False)
    made.create("manager")
    made.publish("exchange", "manager")
    _, reply = made.subscribe("stranger", "manager")
    assert reply == Refused(
        "RefusedError",
        "not every source sends to this hub: exchange:1: `stranger` may not subscribe `trades` - at the hub exchange:1",
    )


def test_what_has_parameters_is_not_shared_with_somebody_else_who_could_change_them() -> None:
    made = company("exchange", "desk", "boss")
    fresh = msgspec.structs.replace(cheap(), name="", group="")
    names = []
    for who in ("desk", "boss", "desk"):
        reply = made.ask(who, "manager", Derive(fresh))
        assert isinstance(reply, DerivedAs)
        names.append(reply.steps[0].name)
    assert names[0] == names[2] != names[1]
    assert made.ask("boss", "manager", Tune(names[1], block(1.0))) == Done()
    plain = msgspec.structs.replace(fresh, recipe=Recipe("trades", "{ return 1; }"), values=b"")
    shared = {repr(made.ask(who, "manager", Derive(plain))) for who in ("desk", "boss")}
    assert len(shared) == 1


def test_nobody_calls_himself_what_a_hub_is_called_that_has_yet_to_come() -> None:
    made = company()
    id = hub_id("1234", "desk")
    thief = made.add("thief")
    thief.id = id  # type: ignore[misc] # what it says in its hello
    with pytest.raises(MalformedFrameError, match=r"`thief` calls its hub 1234-.* id of somebody else"):
        made.meet("thief", "manager")
    made.add("desk").id = id  # type: ignore[misc] # as a hub with this certificate does
    made.meet("desk", "manager")
    assert made.hubs["manager"].neighbours[id].who == "desk"
    check_hub_id(hub_id("1234", ""), "")
    check_hub_id(id, "")


def test_who_may_only_subscribe_is_not_shown_a_modulator_and_its_shared_objects() -> None:
    made = company("desk", "press", "boss")
    rules = "allow manager admin *\nallow press subscribe trades.eager\nallow boss subscribe,modulate trades"
    made.hubs["manager"].admission.rights = parse_rights(f"{rules}\nallow desk subscribe,modulate trades")
    recipe = Recipe("trades", "", "modulator", parcel=b"with the id of a shared object", identity=b"i")
    step = Step("trades.eager", "trades.eager", recipe, input=Format.of(Trade).descriptor)
    assert isinstance(made.ask("desk", "manager", Derive(step)), DerivedAs)
    for who, seen in (("desk", recipe.parcel), ("boss", recipe.parcel), ("press", b"")):
        reply = made.ask(who, "manager", Describe("trades.eager"))
        assert isinstance(reply, Described)
        assert reply.lineage[0].recipe.parcel == seen
    assert isinstance(made.subscribe("press", "manager", "trades.eager")[1], Joined)


def test_nothing_is_decided_event_by_event() -> None:
    asked: list[str] = []

    class Counting(Rights):
        def decide(self, who: str, right: Right, channel: str, ancestors: Sequence[str] = ()) -> Decision:
            asked.append(who)
            return super().decide(who, right, channel, ancestors)

    made = Company("manager", "exchange", "desk", "press", rights=Counting(RIGHTS.rules))
    made.create("manager")
    member, _ = made.publish("exchange", "manager")
    made.ask("desk", "manager", Derive(cheap()))
    made.subscribe("desk", "manager")
    made.subscribe("press", "manager", "trades.cheap")
    assert asked
    asked.clear()
    for _ in range(100):
        made.hubs["exchange"].submit(member, 1, trades(3))
        made.settle()
    assert made.got("desk") == 300
    assert asked == []
