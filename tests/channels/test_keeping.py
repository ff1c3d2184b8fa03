"""What is kept for a recorder, from when on, and until when; runs with faults are in tests/simulation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echoic.channels import ChannelId, Concentrator, Directory, SinkHub
from echoic.channels.directory import JOURNALS_MAX
from echoic.channels.fanout import Run
from echoic.channels.journal_messages import Ask, Kept
from echoic.channels.keeping import KEPT_BYTES_MAX, Keeping, confirm, keep_for, settle_journals
from echoic.channels.member import Member
from echoic.channels.messages import Detach, Done, Join, Joined, Leave, Message, Refused
from echoic.errors import LimitExceededError
from echoic.formats import Format
from echoic.testing.samples import Trade
from echoic.wire import Batch

ID = ChannelId("m:1", "trades")
FORMAT = Format.of(Trade)
RECORDER = SinkHub("r:1", "block", ("recorder",), "r", 1, journal="j")


def run(source: int, first: int, count: int, size: int = 100) -> Run:
    return Run(source, first, first + count - 1, bytes(size))


@given(
    st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.integers(1, 5)), max_size=30),
    st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.integers(0, 60)), max_size=10),
)
def test_exactly_what_is_not_confirmed_is_kept(
    submitted: list[tuple[int, int]], confirmed: list[tuple[int, int]]
) -> None:
    keeping, positions = Keeping("j"), dict.fromkeys((1, 2, 3), 0)
    runs: list[Run] = []
    for source, count in submitted:
        runs.append(run(source, positions[source], count))
        positions[source] += count
        keeping.note(runs[-1], FORMAT)
    safe = dict.fromkeys((1, 2, 3), 0)
    for source, position in confirmed:
        keeping.confirm({source: position})
        safe[source] = max(safe[source], position)
    left = [one for one in runs if one.last >= safe[one.source]]
    assert sorted(keeping.pending(), key=str) == sorted([(one, FORMAT) for one in left], key=str)
    assert keeping.bytes_kept == 100 * len(left)
    assert keeping.starts() == {
        source: min(one.first for one in left if one.source == source) for source in {one.source for one in left}
    }


def test_sources_wait_while_too_much_is_not_confirmed() -> None:
    keeping = Keeping("j")
    keeping.note(run(1, 0, 1, KEPT_BYTES_MAX), FORMAT)
    assert not keeping.full
    keeping.note(run(1, 1, 1), FORMAT)
    assert keeping.full
    keeping.confirm({1: 1})
    assert not keeping.full


@pytest.fixture
def core() -> Concentrator:
    core = Concentrator("m", "m:1", "manager")
    core.manager.directory.create("trades", None)
    return core


@pytest.fixture
def member(core: Concentrator) -> Member:
    member = core.open(ID, None)
    member.sources[1] = 0
    core.join(member, "source", lambda reply: None)
    return member


def submit(core: Concentrator, member: Member, count: int) -> None:
    core.submit(member, 1, Batch.of([Trade("IBM", 75.5, number) for number in range(count)], Trade))


def test_nothing_is_kept_for_a_channel_that_nobody_records(core: Concentrator, member: Member) -> None:
    submit(core, member, 3)
    assert member.keepings == ()


def test_events_are_kept_until_the_recorder_itself_says_that_they_are_safe(core: Concentrator, member: Member) -> None:
    keep_for(member, RECORDER)
    submit(core, member, 3)
    core.call(member, 1, Batch.of([Trade("IBM", 1.0, 1)], Trade))
    (keeping,) = member.keepings
    assert [(one.first, one.last) for one, _ in keeping.pending()] == [(0, 2), (3, 3)]
    member.fanout.attach("r", RECORDER)
    confirm(core, Kept(member.id, "another", {1: 4}), "r")
    confirm(core, Kept(member.id, "j", {1: 4}), "stranger")
    assert keeping.starts() == {1: 0}
    confirm(core, Kept(member.id, "j", {1: 3}, trouble="the disk is full"), "r")
    assert keeping.starts() == {1: 3}
    assert keeping.trouble == "the disk is full"


def test_a_confirmation_for_a_channel_that_is_not_open_is_no_harm(core: Concentrator) -> None:
    confirm(core, Kept("echoic://m:1/nothing", "j", {1: 3}), "r")


def test_an_empty_call_leaves_nothing_to_be_kept(core: Concentrator, member: Member) -> None:
    keep_for(member, RECORDER)
    core.call(member, 1, Batch.of([], Trade))
    assert member.keepings[0].bytes_kept == 0


def test_events_are_kept_for_so_many_journals_and_no_more(member: Member) -> None:
    for number in range(16):
        keep_for(member, SinkHub("r:1", journal=f"j{number}"))
    keep_for(member, SinkHub("r:1", journal="j3"))
    with pytest.raises(LimitExceededError, match="16 journals already"):
        keep_for(member, SinkHub("r:1", journal="one more"))


def ask(core: Concentrator, message: Message) -> Message:
    answers: list[Message] = []
    core.ask(core.address, message, answers.append)
    return answers[0]


def test_a_source_that_comes_later_keeps_events_for_a_recorder_that_is_away(core: Concentrator) -> None:
    assert ask(core, Join("trades", "sink", RECORDER)) == Joined([])
    core.manager.forget("r:1")
    reply = ask(core, Join("trades", "source", SinkHub("s:1")))
    assert reply == Joined([], journals={"j": True})
    member = core.open(ID, None)
    settle_journals(member, {"j": True})
    assert [keeping.journal for keeping in member.keepings] == ["j"]


def test_nothing_is_kept_any_more_for_a_recorder_that_has_left(core: Concentrator, member: Member) -> None:
    directory = core.manager.directory
    keep_for(member, RECORDER)
    submit(core, member, 1)
    directory.join_sink("trades", RECORDER)
    assert ask(core, Leave("trades", "sink", "r:1")) == Done()
    assert member.keepings == ()
    assert directory.get("trades").journals == {"j": False}
    keep_for(member, RECORDER)
    settle_journals(member, {"j": False})
    assert member.keepings == ()


def test_a_detachment_that_names_no_journal_keeps_what_is_kept(core: Concentrator, member: Member) -> None:
    keep_for(member, RECORDER)
    submit(core, member, 1)
    assert ask(core, Detach(member.id, "r:1", 1)) == Done()
    assert member.keepings[0].starts() == {1: 0}


def test_the_book_of_journals_is_bounded() -> None:
    directory = Directory()
    directory.create("trades", None)
    for number in range(100):
        directory.join_sink("trades", SinkHub("r:1", journal=f"j{number}"))
    book = directory.get("trades").journals
    assert [name for name, recorded in book.items() if recorded] == ["j99"]
    assert len(book) == JOURNALS_MAX + 1
    for number in range(JOURNALS_MAX - 1):
        directory.join_sink("trades", SinkHub(f"r:{number + 2}", journal=f"k{number}"))
    with pytest.raises(LimitExceededError, match="recorded in 16 journals already"):
        directory.join_sink("trades", SinkHub("r:99", journal="one more"))


def test_how_far_a_source_is_recorded_is_told_by_its_recorder_only(core: Concentrator, member: Member) -> None:
    refused = ask(core, Ask(member.id, 7))
    assert isinstance(refused, Refused)
    assert "not recorded here" in refused.reason
    member.recorded = ("j", {7: 12})
    assert ask(core, Ask(member.id, 7)) == Kept(member.id, "j", {7: 12})
    assert ask(core, Ask(member.id, 8)) == Kept(member.id, "j", {8: 0})
