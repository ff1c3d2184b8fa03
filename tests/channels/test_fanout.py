"""Fanouts: credits, parking, and gaps that are exact for any sequence of submits and grants."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.channels import CREDIT_BYTES, Fanout, Gap, Message, Run, SinkHub, Slow
from echoic.channels.fanout import PARKED_BYTES_MAX, CreditMeter
from echoic.channels.messages import Cut

POLICIES: tuple[Slow, ...] = ("block", "drop_oldest", "latest", "disconnect")
FRAME_BYTES = CREDIT_BYTES // 8

Sent = Iterable[tuple[str, bytes | Message]]


class Book:
    """What a target has got of each source, and in which order."""

    def __init__(self) -> None:
        self.next: dict[int, int] = {}
        self.cut = False

    def take(self, sent: Sent, runs: dict[bytes, Run]) -> None:
        for _, item in sent:
            assert not self.cut
            match item:
                case Gap(_, source, first, last):
                    self.move(source, first, last)
                case Cut():
                    self.cut = True
                case bytes():
                    run = runs[item]
                    self.move(run.source, run.first, run.last)
                case _:
                    pytest.fail(f"unexpected {item}")

    def move(self, source: int, first: int, last: int) -> None:
        assert first == self.next.get(source, 0), "in order, nothing twice, nothing in silence"
        self.next[source] = last + 1


actions = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.integers(1, 3), st.integers(1, 5)),
        st.tuples(st.just("full"), st.integers(1, 3), st.integers(1, 5)),
        st.tuples(st.just("grant"), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("hurry"), st.just(0), st.just(0)),
        st.tuples(st.just("policy"), st.integers(0, 3), st.just(0)),
    ),
    max_size=60,
)


@given(st.sampled_from(POLICIES), actions)
def test_every_event_is_sent_or_told_missing_once_and_in_order(slow: Slow, script: list[tuple[str, int, int]]) -> None:
    fanout, book, runs, positions = Fanout(7), Book(), dict[bytes, Run](), dict[int, int]()
    fanout.attach("hub", SinkHub("a:1", slow))
    for name, number, count in script:
        if name in ("submit", "full") and not book.cut:
            first = positions.get(number, 0)
            positions[number] = first + count
            frame = f"{len(runs):08}".encode().ljust(FRAME_BYTES)
            runs[frame] = run = Run(number, first, first + count - 1, frame)
            book.take(fanout.submit(run, frozenset({"hub"} if name == "full" else ())), runs)
        elif name == "grant":
            book.take(fanout.grant("hub", number * FRAME_BYTES), runs)
        elif name == "hurry":
            book.take(fanout.hurry(), runs)
        elif name == "policy" and not book.cut and POLICIES[number] != "disconnect":
            fanout.attach("hub", SinkHub("a:1", POLICIES[number]))
        for target in fanout.targets.values():
            assert target.credit <= CREDIT_BYTES
            assert target.parked_bytes <= PARKED_BYTES_MAX + FRAME_BYTES
    if not book.cut:
        book.take(fanout.grant("hub", CREDIT_BYTES), runs)
        book.take(fanout.hurry(), runs)
        assert book.next == positions


def run(first: int, size: int = FRAME_BYTES) -> Run:
    return Run(1, first, first, bytes(size))


def test_a_source_waits_only_for_targets_that_want_every_event() -> None:
    for slow in POLICIES:
        fanout = Fanout(1)
        fanout.attach("hub", SinkHub("a:1", slow))
        for first in range(8):
            assert not fanout.blocked
            assert [item for _, item in fanout.submit(run(first))] == [bytes(FRAME_BYTES)]
        assert fanout.blocked == (slow == "block")


def test_a_target_that_is_slow_does_not_keep_others_waiting() -> None:
    fanout = Fanout(1)
    fanout.attach("slow", SinkHub("a:1", "latest"))
    fanout.attach("fast", SinkHub("b:1", "latest"))
    for first in range(20):
        sent = dict(fanout.submit(run(first)))
        assert "fast" in sent
        list(fanout.grant("fast", FRAME_BYTES))
    assert fanout.statistics() == (11, FRAME_BYTES)


def test_a_target_that_wants_to_be_cut_off_gets_a_gap_and_nothing_more() -> None:
    fanout = Fanout(1)
    fanout.attach("hub", SinkHub("a:1", "disconnect"))
    for first in range(8):
        list(fanout.submit(run(first)))
    gap, cut = [item for _, item in fanout.submit(run(8))]
    assert isinstance(gap, Gap)
    assert (gap.first, gap.last) == (8, 8)
    assert isinstance(cut, Cut)
    assert not cut.asked
    assert list(fanout.submit(run(9))) == []


def test_the_same_subscription_changes_its_policy_and_a_further_one_begins_afresh() -> None:
    fanout = Fanout(1)
    assert fanout.attach("hub", SinkHub("a:1", "block", subscription=1))
    target = fanout.targets["hub"]
    assert not fanout.attach("hub", SinkHub("a:1", "latest", subscription=1))
    assert fanout.targets["hub"] is target
    assert target.sink.slow == "latest"
    assert fanout.attach("hub", SinkHub("a:1", "latest", subscription=2))
    assert fanout.targets["hub"] is not target


def test_granting_more_than_was_spent_gives_no_more_than_there_was() -> None:
    fanout = Fanout(1)
    fanout.attach("hub", SinkHub("a:1"))
    list(fanout.grant("hub", CREDIT_BYTES))
    assert fanout.targets["hub"].credit == CREDIT_BYTES


def test_a_grant_to_a_hub_that_was_detached_does_nothing() -> None:
    fanout = Fanout(1)
    fanout.attach("hub", SinkHub("a:1"))
    assert fanout.detach("hub")
    assert not fanout.detach("hub")
    assert list(fanout.grant("hub", 1)) == []


@given(st.lists(st.integers(0, CREDIT_BYTES)))
def test_a_meter_grants_what_was_handled_no_more_and_never_holds_much_back(sizes: list[int]) -> None:
    meter = CreditMeter()
    granted = sum(meter.handled(size) for size in sizes)
    assert 0 <= sum(sizes) - granted < CREDIT_BYTES // 4
