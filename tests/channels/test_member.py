"""Members: what has been heard of a source, what is missing, and what is owed to a subscription."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.channels import Call, ChannelId, Gap, Member, SinkHub
from echoic.channels.member import OWED_MAX, POSITIONS_MAX
from echoic.channels.messages import Bind
from echoic.errors import ClosedError, MalformedFrameError

SOURCE = 77


def a_member() -> Member:
    return Member(ChannelId("a:1", "trades"), 5, None)


def a_sink(subscription: int = 1, hub: str = "h") -> SinkHub:
    return SinkHub("b:1", hub=hub, subscription=subscription)


@given(st.lists(st.tuples(st.sampled_from(["events", "gap", "bind"]), st.integers(0, 40), st.integers(1, 10))))
def test_whatever_arrives_each_event_is_delivered_or_missing_at_most_once(script: list[tuple[str, int, int]]) -> None:
    member, seen = a_member(), list[int]()
    for name, first, count in script:
        numbers = list(range(first, first + count))
        if name == "events":
            stale, missing = member.advance(SOURCE, first, count)
            seen += range(missing.first, missing.last + 1) if missing else ()
            seen += numbers[stale:]
        elif name == "gap":
            gap = member.skip(Gap(1, SOURCE, first, first + count - 1, "a test"))
            seen += range(gap.first, gap.last + 1) if gap else ()
        else:
            for gap in member.resume(Bind(1, member.id, {SOURCE: first}, {SOURCE: max(0, first - count)})):
                seen += range(gap.first, gap.last + 1)
    assert seen == sorted(set(seen))
    if seen:
        assert seen == list(range(seen[0], seen[-1] + 1)), "from the first on nothing is passed over"
        assert member.positions[SOURCE] == seen[-1] + 1


def test_a_gap_of_a_source_that_was_never_heard_is_news() -> None:
    gap = Gap(1, SOURCE, 0, 4, "dropped")
    member = a_member()
    assert member.skip(gap) == gap
    assert member.skip(gap) is None
    assert member.advance(SOURCE, 5, 1) == (0, None)


def test_a_gap_tells_also_what_is_missing_before_it() -> None:
    member = a_member()
    member.advance(SOURCE, 0, 3)
    assert member.skip(Gap(1, SOURCE, 5, 6, "dropped")) == Gap(1, SOURCE, 3, 6, "dropped")


def test_of_events_that_were_there_in_part_the_others_are_fresh() -> None:
    member = a_member()
    member.advance(SOURCE, 0, 5)
    assert member.advance(SOURCE, 2, 3) == (3, None)
    assert member.advance(SOURCE, 3, 6) == (2, None)
    assert member.positions[SOURCE] == 9


def test_positions_are_bounded() -> None:
    member = a_member()
    for source in range(POSITIONS_MAX + 10):
        member.advance(source, 0, 1)
    assert POSITIONS_MAX // 2 < len(member.positions) <= POSITIONS_MAX


def test_a_hub_that_is_attached_learns_where_each_source_is() -> None:
    member = a_member()
    member.sources = {1: 10, 2: 0}
    assert member.attach("h", a_sink()) == Bind(5, member.id, {1: 10, 2: 0}, {1: 10, 2: 0}, 1)
    assert member.attach("h", a_sink()) is None


def test_a_hub_that_is_attached_late_learns_what_it_missed_of_every_source() -> None:
    member = a_member()
    member.sources = {1: 10}
    member.owe(a_sink())
    member.pass_over(1, 5)
    member.sources[2] = 3
    member.pass_over(2, 4)
    bind = member.attach("h", a_sink())
    assert bind is not None
    assert bind.positions == {1: 15, 2: 7}
    assert bind.since == {1: 10, 2: 3}
    missing = list(Member(ChannelId("a:1", "trades"), 1, None).resume(bind))
    assert [(gap.source, gap.first, gap.last) for gap in missing] == [(1, 10, 14), (2, 3, 6)]


def test_nothing_is_owed_to_another_subscription_or_after_it_was_cancelled() -> None:
    member = a_member()
    member.sources = {1: 10}
    member.owe(a_sink(1))
    member.pass_over(1, 5)
    bind = member.attach("h", a_sink(2))
    assert bind is not None
    assert bind.since == {1: 15}
    assert member.disown("b:1", 2) == "h"
    member.owe(a_sink(3))
    member.pass_over(1, 5)
    assert member.disown("b:1", 3) == ""
    bind = member.attach("h", a_sink(3))
    assert bind is not None
    assert bind.since == {1: 20}


def test_an_earlier_subscription_that_is_cancelled_late_does_not_end_the_present_one() -> None:
    member = a_member()
    member.attach("h", a_sink(2))
    assert member.disown("b:1", 1) == ""
    assert "h" in member.fanout.targets


def test_what_is_owed_is_bounded() -> None:
    member = a_member()
    for subscription in range(OWED_MAX + 10):
        member.owe(a_sink(subscription + 1))
    member.sources = {1: 5}
    bind = member.attach("h", a_sink(1))
    assert bind is not None
    assert bind.since == {1: 5}, "the oldest is forgotten"


def test_a_call_hears_each_hub_once_and_only_those_it_asked() -> None:
    call = Call({"one": a_sink(), "two": SinkHub("c:1", sinks=("x", "y"))})
    call.answered("three", "elsewhere", memoryview(msgspec.msgpack.encode({"spy": "hello"})))
    assert not call.failures
    call.answered("one", "there", memoryview(msgspec.msgpack.encode({"sink": "broke"})))
    assert call.failures == {"sink at there": "broke"}
    call.gone("two", "it crashed")
    assert call.failures["x, y at c:1"] == "the hub is gone: it crashed"
    assert not call.waiting


@given(st.binary(min_size=1))
def test_an_answer_that_cannot_be_read_is_refused_as_declared(told: bytes) -> None:
    call = Call({"one": a_sink()})
    try:
        call.answered("one", "there", memoryview(told))
    except MalformedFrameError:
        assert call.waiting
    else:
        assert not call.waiting


def test_the_roles_that_the_manager_has_yet_to_confirm_are_told_in_order() -> None:
    member = a_member()
    member.roles = frozenset({"source", "sink"})
    assert list(member.lacking()) == ["sink", "source"]
    member.joined = frozenset({"sink"})
    assert list(member.lacking()) == ["source"]
    with pytest.raises(ClosedError):
        member.pass_over(1, 1)
