"""Rights among hubs: asked at the manager, at each source and at each sink, also of those who lie."""

import pytest

from echoic.channels import (
    ChannelId,
    Joined,
    Message,
    Policy,
    Refused,
    Resolve,
    SinkHub,
    Step,
    renew,
)
from echoic.channels.journal_messages import Fetch
from echoic.channels.messages import (
    Attach,
    Browse,
    Derive,
    DerivedAs,
    Describe,
    Described,
    Detach,
    Done,
    Join,
    Leave,
    Listing,
    Recipe,
    Register,
    Report,
    Reported,
    Resolved,
    Steer,
    Tune,
    encode_message,
)
from echoic.errors import LimitExceededError, MalformedFrameError
from echoic.formats import Format, event
from echoic.rights import parse_rights
from echoic.testing.samples import Trade
from echoic.wire import Batch, Frame, FrameKind
from tests.channels.company import Company, trades

RIGHTS = parse_rights(
    """
    allow manager   admin                       *
    allow exchange  publish                     trades*
    allow desk      subscribe,derive            trades
    allow boss      subscribe,derive,steer      trades
    allow press     subscribe                   trades.cheap
    allow insider   subscribe                   secret
    """
)


def company(*names: str, policy: Policy | None = None) -> Company:
    made = Company("manager", *names, rights=RIGHTS, policy=policy)
    made.create("manager")
    made.create("manager", "secret")
    return made


def refusal(reply: Message) -> str:
    assert isinstance(reply, Refused), reply
    return reply.kind


@event
class Low:
    low: float


def cheap(name: str = "trades.cheap", parent: str = "trades") -> Step:
    return Step(
        name,
        name,
        Recipe(parent, "{ return input.price < param.low; }", params=Format.of(Low).descriptor),
        bytes(Batch.of([Low(80.0)], Low).records),
        input=Format.of(Trade).descriptor,
    )


def test_who_has_the_rights_hears_what_is_published() -> None:
    made = company("exchange", "desk")
    member, joined = made.publish("exchange", "manager")
    assert isinstance(joined, Joined)
    assert isinstance(made.subscribe("desk", "manager")[1], Joined)
    made.hubs["exchange"].submit(member, 1, trades(3))
    made.settle()
    assert made.got("desk") == 3
    assert ("desk", "subscribe", "trades") in made.audited("manager", allowed=True)


@pytest.mark.parametrize(
    ("who", "kind"), [("press", "DeniedError"), ("stranger", "ChannelNotFoundError"), ("", "ChannelNotFoundError")]
)
def test_who_has_not_is_refused_and_who_has_none_is_not_told_that_it_is_there(who: str, kind: str) -> None:
    made = company()
    made.rights = parse_rights("allow manager admin *\nallow press derive trades")
    made.hubs["manager"].admission.rights = made.rights
    made.add("asker", who=who)
    assert refusal(made.subscribe("asker", "manager")[1]) == kind
    assert refusal(made.publish("asker", "manager")[1]) == kind
    assert (who or "anonymous", "subscribe", "trades") in made.audited("manager", allowed=False)
    assert made.hubs["manager"].manager.directory.get("trades").sinks == {}


def test_what_somebody_has_no_right_to_is_not_shown_to_him() -> None:
    made = company("press", "insider", "exchange")
    made.publish("exchange", "manager")
    made.hubs["manager"].manager.names.register("secret", "echoic://manager:1/secret", frozenset())
    listing = made.ask("insider", "manager", Browse())
    assert isinstance(listing, Listing)
    assert [entry.name for entry in listing.channels] == ["secret"]
    assert made.ask("press", "manager", Browse()) == Listing([])
    assert isinstance(made.ask("insider", "manager", Resolve("secret")), Resolved)
    assert isinstance(made.ask("insider", "manager", Describe("secret")), Described)
    for message in (Resolve("secret"), Describe("secret"), Resolve("secre"), Describe("nothing")):
        reply = made.ask("press", "manager", message)
        assert isinstance(reply, Refused)
        assert "secret" not in reply.reason, "no hint at names that are near"
    assert made.ask("press", "exchange", Report()) == Reported("exchange:1", [])


def test_nobody_speaks_for_another_hub() -> None:
    made = company("desk", "boss")
    made.subscribe("desk", "manager")
    for message in (
        Join("trades", "sink", SinkHub("desk:1")),
        Leave("trades", "sink", "desk:1"),
        Register("trades", "echoic://desk:1/trades"),
    ):
        assert refusal(made.ask("boss", "manager", message)) == "DeniedError"
    assert list(made.hubs["manager"].manager.directory.get("trades").sinks) == ["desk:1"]


def test_a_channel_is_not_passed_off_as_derived_from_another() -> None:
    """`desk` may subscribe to whatever is made of `trades`, and says that `secret` is."""
    made = company("desk")
    lie = Join("secret", "sink", SinkHub("desk:1"), (cheap("secret"),))
    assert refusal(made.ask("desk", "manager", lie)) == "ChannelNotFoundError"
    assert made.hubs["manager"].manager.directory.get("secret").sinks == {}


def test_a_book_begun_anew_takes_derived_channels_from_who_may_derive_alone() -> None:
    made = company("press", "desk")
    wish = ("trades.cheap", "sink")
    assert refusal(made.ask("press", "manager", Join(*wish, SinkHub("press:1"), (cheap(),)))) == "ChannelNotFoundError"
    assert "trades.cheap" not in made.hubs["manager"].manager.directory
    assert isinstance(made.ask("desk", "manager", Join(*wish, SinkHub("desk:1"), (cheap(),))), Joined)
    assert made.hubs["manager"].manager.directory.get("trades.cheap").step.owner == "desk"  # type: ignore[union-attr]


def test_names_are_entered_by_managers_alone() -> None:
    made = company("exchange")
    assert refusal(made.ask("exchange", "manager", Register("trades", "echoic://exchange:1/trades"))) == "DeniedError"
    boss = Company("names", rights=RIGHTS)
    boss.add("manager")
    assert boss.ask("manager", "names", Register("trades", "echoic://manager:1/trades")) == Done()


def test_a_manager_that_was_taken_over_makes_no_source_send_to_who_may_not_subscribe() -> None:
    made = Company("exchange", "stranger", rights=RIGHTS)
    made.add("manager", rights=False)  # it lets anybody do anything
    made.create("manager")
    member, _ = made.publish("exchange", "manager")
    assert refusal(made.subscribe("stranger", "manager")[1]) == "RefusedError"
    made.hubs["exchange"].submit(member, 1, trades(3))
    made.settle()
    assert made.got("stranger") == 0
    assert member.fanout.targets == {}
    assert ("stranger", "subscribe", "trades") in made.audited("exchange", allowed=False)


def test_nor_does_a_source_that_comes_later_send_to_him() -> None:
    made = Company("exchange", "stranger", rights=RIGHTS)
    made.add("manager", rights=False)
    made.create("manager")
    made.subscribe("stranger", "manager")
    member, joined = made.publish("exchange", "manager")
    assert isinstance(joined, Joined)
    made.hubs["exchange"].submit(member, 1, trades(3))
    made.settle()
    assert made.got("stranger") == 0


def test_a_sink_takes_nothing_from_who_may_not_publish_whatever_the_manager_says() -> None:
    made = Company("desk", rights=RIGHTS)
    for accomplice in ("manager", "forger"):
        made.add(accomplice, rights=False)
    made.create("manager")
    made.subscribe("desk", "manager")
    member, _ = made.publish("forger", "manager")
    assert member.fanout.targets == {}, "the sink has declined"
    made.hubs["forger"].submit(member, 1, trades(3))
    made.settle()
    assert made.got("desk") == 0
    assert ("forger", "publish", "trades") in made.audited("desk", allowed=False)


def test_only_the_manager_tells_sources_whom_to_send_to() -> None:
    made = company("exchange", "desk", "boss")
    member, _ = made.publish("exchange", "manager")
    id = str(ChannelId("manager:1", "trades"))
    for message in (Attach(id, SinkHub("boss:1")), Tune(id, b"", 7), Steer(id, "stop")):
        assert refusal(made.ask("boss", "exchange", message)) == "DeniedError"
    made.subscribe("desk", "manager")
    assert refusal(made.ask("boss", "exchange", Detach(id, "desk:1"))) == "DeniedError"
    assert len(member.fanout.targets) == 1
    assert made.ask("desk", "exchange", Detach(id, "desk:1")) == Done()
    assert member.fanout.targets == {}


def test_code_runs_where_its_author_may_derive_and_its_owner_may_tune_it() -> None:
    made = company("exchange", "desk", "boss", "press")
    member, _ = made.publish("exchange", "manager")
    assert refusal(made.ask("press", "manager", Derive(cheap()))) == "ChannelNotFoundError"
    derived = made.ask("desk", "manager", Derive(cheap()))
    assert isinstance(derived, DerivedAs)
    assert derived.steps[0].owner == "desk"
    for listener in ("desk", "press"):
        assert isinstance(made.subscribe(listener, "manager", "trades.cheap")[1], Joined)
    made.hubs["exchange"].submit(member, 1, trades(1))
    assert list(made.hubs["exchange"].derivations) == ["echoic://manager:1/trades.cheap"]
    lower = Tune("trades.cheap", bytes(Batch.of([Low(1.0)], Low).records))
    assert refusal(made.ask("press", "manager", lower)) == "DeniedError"
    assert made.ask("desk", "manager", lower) == Done()
    assert made.ask("boss", "manager", lower) == Done()


def test_a_manager_that_was_taken_over_ships_no_code_of_who_may_not_derive() -> None:
    made = Company("exchange", "press", "stranger", rights=RIGHTS)
    made.add("manager", rights=False)
    made.create("manager")
    made.publish("exchange", "manager")
    made.ask("stranger", "manager", Derive(cheap()))
    reply = made.subscribe("press", "manager", "trades.cheap")[1]
    assert isinstance(reply, Refused)
    assert "`stranger` may not derive `trades`" in reply.reason
    assert made.hubs["exchange"].derivations == {}


def test_who_may_not_subscribe_reads_no_journal() -> None:
    made = company("exchange")
    assert refusal(made.ask("exchange", "manager", Fetch("echoic://manager:1/trades", 0, 0, 1))) == "DeniedError"


def test_who_has_lost_a_right_is_cut_off_at_once() -> None:
    made = company("exchange", "desk")
    member, _ = made.publish("exchange", "manager")
    made.subscribe("desk", "manager")
    renew(made.hubs["exchange"], parse_rights("allow manager admin *\nallow exchange publish trades"))
    made.hubs["exchange"].submit(member, 1, trades(3))
    made.settle()
    assert made.got("desk") == 0
    member, _ = made.publish("exchange", "manager")
    renew(made.hubs["exchange"], RIGHTS)
    made.subscribe("desk", "manager")
    made.hubs["exchange"].submit(member, 1, trades(2))
    made.settle()
    assert made.got("desk") == 2
    renew(made.hubs["desk"], parse_rights("allow manager admin *"))
    made.hubs["exchange"].submit(member, 1, trades(2))
    made.settle()
    assert made.got("desk") == 2


def test_nobody_goes_on_with_the_link_of_another() -> None:
    made = company("desk")
    made.meet("desk", "manager")
    made.hubs["thief"] = made.hubs["desk"]
    thief = made.add("thief")
    thief.id = "id-desk"  # type: ignore[misc] # what it says in its hello
    with pytest.raises(MalformedFrameError, match="`thief` says it is a hub of `desk`"):
        made.meet("thief", "manager")
    assert made.hubs["manager"].neighbours["id-desk"].who == "desk"


def test_one_name_has_so_many_links_derivations_and_changes_and_no_more() -> None:
    policy = Policy(peer_links_max=2, peer_derivations_max=2, peer_tunes_per_second=3)
    made = company("exchange", policy=policy)
    made.publish("exchange", "manager")
    for number in range(3):
        made.add(f"desk{number}", who="desk")
    made.meet("desk0", "manager")
    made.meet("desk1", "manager")
    with pytest.raises(LimitExceededError, match="`desk` has 2 links with this hub, the limit is 2"):
        made.meet("desk2", "manager")
    for name in ("a", "b"):
        assert isinstance(made.ask("desk0", "manager", Derive(cheap(f"trades.{name}"))), DerivedAs)
        made.subscribe("desk0", "manager", f"trades.{name}")
    assert refusal(made.ask("desk1", "manager", Derive(cheap("trades.c")))) == "LimitExceededError"
    tune = Tune("trades.a", bytes(Batch.of([Low(1.0)], Low).records))
    replies = [made.ask("desk0", "manager", tune) for _ in range(5)]
    assert [isinstance(reply, Done) for reply in replies] == [True] * 3 + [False] * 2
    made.hubs["manager"].now_ns += 1_000_000_000
    assert made.ask("desk1", "manager", tune) == Done()


def test_code_of_one_name_costs_so_much_and_no_more() -> None:
    made = company("exchange", "desk", policy=Policy(peer_cost_max=20))
    member, _ = made.publish("exchange", "manager")
    for name in ("a", "b", "c", "d", "e", "f"):
        made.ask("desk", "manager", Derive(cheap(f"trades.{name}")))
    replies = [made.subscribe("desk", "manager", f"trades.{name}")[1] for name in ("a", "b", "c", "d", "e", "f")]
    assert isinstance(replies[0], Joined)
    assert isinstance(replies[-1], Refused)
    assert "in all code of `desk`, the limit here is 20" in replies[-1].reason
    assert 0 < len(member.derivations) < 6


def test_what_waits_for_all_links_of_one_name_is_bounded() -> None:
    made = company("exchange", policy=Policy(peer_waiting_bytes_max=10_000))
    member, _ = made.publish("exchange", "manager")
    for number in range(3):
        made.add(f"desk{number}", who="desk")
        made.subscribe(f"desk{number}", "manager")
    hub = made.hubs["exchange"]
    for _ in range(100):  # nothing is carried, so all of it waits
        hub.submit(member, 1, trades(10))
    assert not hub.blocked(member)
    hub.tick(hub.now_ns + 1)
    assert hub.blocked(member)
    made.settle()
    for number in range(3):
        made.hubs[f"desk{number}"].tell(made.hubs[f"desk{number}"].neighbours["id-exchange"])
    made.settle()
    hub.tick(hub.now_ns + 1)
    assert not hub.blocked(member)


def test_a_request_that_is_none_is_refused() -> None:
    made = company("desk")
    made.meet("desk", "manager")
    payload = encode_message(9, Joined([]))
    made.hubs["manager"].receive("id-desk", Frame(FrameKind.CONTROL, 0, memoryview(payload)))
    made.settle()
    assert made.hubs["manager"].manager.directory.get("trades").sinks == {}
