"""Whatever a hub has said or left unanswered: when it is given up, all of it is cleared away, and nothing grows."""

from collections.abc import Callable

import pytest

from echoic.channels import Concentrator, Message, Policy, Refused, SinkHub, ignore, member
from echoic.channels.answering import carry_out
from echoic.channels.messages import Attach, Browse, Join, Joined, Update
from echoic.channels.recipe import Recipe, Step
from echoic.errors import MalformedBatchError
from echoic.formats import Format
from echoic.testing.samples import Trade
from echoic.wire import Batch
from tests.channels.company import Company

TRADE = Format.of(Trade)


def last_request(core: Concentrator) -> int:
    """Return the number of the request that a hub has made last."""
    return core.requests.add("nobody", core.now_ns, ignore) - 1


def give_up(core: Concentrator) -> None:
    core.gone("id-other", "it broke a rule")


def wait(core: Concentrator) -> None:
    for second in range(13):
        core.tick(second * 900_000_000)


def removed_while_somebody_joins() -> tuple[Concentrator, list[Message]]:
    """Return a manager that asks a source about a sink, of a channel that is no more, and what the sink is answered."""
    company, joined = Company("manager", "other"), list[Message]()
    company.create("manager")
    company.meet("other", "manager")
    core = company.hubs["manager"]
    carry_out(core, Join("trades", "source", SinkHub("other:1")), ignore, "id-other")
    carry_out(core, Join("trades", "sink", SinkHub("sink:1")), joined.append, "id-other")
    core.manager.directory.remove("trades")
    return core, joined


@pytest.mark.parametrize("end", [give_up, wait])
def test_who_asks_is_answered_though_a_channel_that_another_waits_for_was_removed(
    end: Callable[[Concentrator], None],
) -> None:
    core, joined = removed_while_somebody_joins()
    replies: list[Message] = []
    core.ask("other:1", Browse(), replies.append)
    end(core)
    assert [type(reply) for reply in joined] == [Refused]
    assert len(replies) == 1
    assert isinstance(replies[0], Refused)


def test_a_source_that_knows_nothing_of_a_channel_which_was_removed_is_not_to_blame() -> None:
    core, joined = removed_while_somebody_joins()
    core.requests.answered("id-other", last_request(core), Refused("ChannelNotFoundError", "it is not known here"))
    assert [reply.kind for reply in joined if isinstance(reply, Refused)] == ["ChannelNotFoundError"]


def test_what_opens_a_channel_while_a_manager_is_given_up_keeps_nothing_of_it() -> None:
    company, replies = Company("other", "mine"), list[Message]()
    for name in ("former", "next"):
        company.create("other", name)
    company.subscribe("mine", "other", "former")
    company.publish("mine", "other", "next")
    core = company.hubs["mine"]
    wanted = core.members["echoic://other:1/next"]
    wanted.sink = SinkHub("mine:1", "block", ("t",))
    wanted.turns.expect("t")
    core.join(wanted, "sink", ignore, instead="former", handle="s", successor="t")
    number = last_request(core)
    core.ask("other:1", Browse(), replies.append)
    heard = Step("next.x", "next.x", Recipe("next", "input.volume > 1"), input=TRADE.descriptor)
    core.requests.answered("id-other", number, Joined([], heard=(heard,), turned=("id-other",)))
    give_up(core)
    assert [type(reply).__name__ for reply in replies] == ["Gone"]
    assert "id-other" not in core.neighbours


def test_orders_to_turn_sinks_that_are_nowhere_are_not_noted_without_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member, "TOLD_MAX", 10)
    monkeypatch.setattr(member, "HANDLES_MAX", 10)
    company = Company("manager", "source")
    company.create("manager")
    former, _ = company.publish("source", "manager")
    core = company.hubs["source"]
    for number in range(30):
        for address, handle in ((f"a{number}:1", "s"), ("a0:1", f"s{number}")):
            order = Attach("echoic://nowhere:1/x", SinkHub(address), (), former.id, handle, "t")
            carry_out(core, order, ignore, "id-manager")
    assert len(former.told) == 10
    assert max(map(len, former.told.values())) == 10
    assert not core.turning


@pytest.mark.parametrize("policy", [Policy(derivations_max=1), Policy(peer_derivations_max=1)])
def test_no_room_is_made_by_removing_what_the_newcomer_is_derived_from(policy: Policy) -> None:
    company = Company("manager", "source", "sink", policy=policy)
    company.create("manager")
    company.publish("source", "manager")
    first = Step("a", "a", Recipe("trades", "input.volume > 1"), input=TRADE.descriptor, owned_by="ann")
    second = Step("b", "b", Recipe("a", "input.volume > 2"), input=TRADE.descriptor, owned_by="ann")
    sink = SinkHub("sink:1", hub="id-sink")
    reply = company.ask("manager", "source", Attach("echoic://manager:1/b", sink, (first, second)))
    assert isinstance(reply, Refused)
    assert "limit" in reply.reason
    assert list(company.hubs["source"].derivations) == ["echoic://manager:1/a"]


def test_who_pulls_a_shared_object_is_answered_though_its_master_tells_nonsense() -> None:
    company, replies = Company("mine", "other"), list[Message]()
    company.meet("other", "mine")
    core = company.hubs["mine"]
    record = bytes(Batch.of([Trade("IBM", 1.0, 1)], Trade).records)
    shared = core.sharing.copy(f"other:1/shared/1-{'0' * 16}", TRADE, record, 0)
    core.sharing.pull(shared, replies.append)
    with pytest.raises(MalformedBatchError):
        core.requests.answered("id-other", last_request(core), Update(shared.id, 5, b"\1\2"))
    assert [type(reply) for reply in replies] == [Refused]
