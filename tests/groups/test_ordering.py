"""The ordering core by hand: small scenes, each told step by step, of what the simulation meets by chance."""

from collections.abc import Callable, Iterable
from random import Random

import pytest

from echoic.errors import MalformedFrameError
from echoic.groups.engine import Delivered, Ended, EngineEvent, Restored, StateWanted, Suspended, View, Viewed
from echoic.groups.messages import Append, Appended, Forward, Message, Vote
from echoic.groups.options import Options
from echoic.groups.ordering import Ordering
from echoic.groups.roster import Roster, Seat, decode_roster, encode_roster, group_of
from echoic.groups.standing import DATA, ROSTER, VIEW, decode_standing
from echoic.groups.writes import Append as AppendWrite
from echoic.groups.writes import Ballot, Entry, Image, Snapshot

MILLISECOND = 1_000_000
OPTIONS = Options(election_ns=100 * MILLISECOND, heartbeat_ns=20 * MILLISECOND)

Filter = Callable[[str, str, Message], bool]


class Stage:
    """Members whose messages arrive at once and in order, unless a scene keeps them back."""

    def __init__(self, *names: str, options: Options = OPTIONS, applied: dict[str, int] | None = None) -> None:
        self.names = names
        self.options = options
        self.now_ns = 0
        self.members: dict[str, Ordering] = {}
        self.homes: dict[str, int] = {}
        self.events: dict[str, list[EngineEvent]] = {}
        self.writes: dict[str, list[object]] = {}
        self.passes: Filter = lambda sender, to, message: True
        self.lives = 0
        for name in names:
            self.start(name, applied=(applied or {}).get(name, 0))

    def start(self, name: str, image: Image | None = None, *, applied: int = 0) -> Ordering:
        self.lives += 1
        home = image.life if image is not None else 100 + self.lives
        image = image or Image(home, Ballot(0, ""), None, ())
        peers = {each: f"{each}:1" for each in {*self.names, name}}
        beginning = str(applied).encode()
        member = Ordering(
            name, self.lives, peers, image, self.options, Random(self.lives), self.now_ns,
            applied_sequence=applied, beginning=beginning,
        )  # fmt: skip
        self.members[name], self.homes[name] = member, home
        self.events[name], self.writes[name] = [], []
        return member

    def settle(self, rounds: int = 50) -> None:
        """Let everything that was said arrive, and what is said because of it."""
        for _ in range(rounds):
            said = [(name, to, message) for name in list(self.members) for to, message in self.spoken(name)]
            if not said:
                return
            for sender, to, message in said:
                if to in self.members and self.passes(sender, to, message):
                    self.members[to].receive(sender, self.homes[sender], message, self.now_ns)

    def spoken(self, name: str) -> Iterable[tuple[str, Message]]:
        member = self.members[name]
        member.flush(self.now_ns)
        self.writes[name] += member.take_writes()
        self.events[name] += member.take_events()
        return [(to, message) for names, message in member.take_outbox() for to in names]

    def pass_time(self, milliseconds: int) -> None:
        for _ in range(milliseconds // 5):
            self.now_ns += 5 * MILLISECOND
            for member in list(self.members.values()):
                member.tick(self.now_ns)
            self.settle()

    @property
    def leader(self) -> str:
        (name,) = [name for name, member in self.members.items() if member.leads]
        return name

    def submit(self, name: str, *payloads: bytes) -> None:
        for payload in payloads:
            self.members[name].submit(payload)
        self.settle()

    def delivered(self, name: str) -> list[bytes]:
        return [bytes(event.payload) for event in self.events[name] if isinstance(event, Delivered)]

    def views(self, name: str) -> list[tuple[str, ...]]:
        return [event.view.members for event in self.events[name] if isinstance(event, Viewed)]


def founded(*names: str, options: Options = OPTIONS) -> Stage:
    stage = Stage(*names, options=options)
    stage.pass_time(100)
    return stage


def silence(*names: str) -> Filter:
    return lambda sender, to, message: sender not in names and to not in names


def test_members_that_are_all_new_found_a_group_led_by_the_first_by_name() -> None:
    stage = founded("n1", "n2", "n3")
    assert stage.leader == "n1"
    assert all(stage.views(name) == [("n1", "n2", "n3")] for name in stage.names)


def test_a_group_of_one_is_founded_at_once() -> None:
    stage = founded("n1")
    stage.submit("n1", b"alone")
    assert stage.delivered("n1") == [b"alone"]


def test_a_group_is_not_founded_while_a_member_is_missing_and_says_who() -> None:
    stage = Stage("n1", "n2", "n3")
    del stage.members["n3"]
    stage.pass_time(1000)
    assert stage.members["n1"].statistics().missing == ("n3",)
    assert not stage.views("n1")


def test_no_view_is_delivered_before_every_member_holds_the_founding_roster() -> None:
    stage = Stage("n1", "n2", "n3")
    stage.passes = lambda sender, to, message: not (to == "n3" and isinstance(message, Append))
    stage.pass_time(300)
    assert stage.leader == "n1"
    assert not stage.views("n1")
    assert not stage.views("n2")
    stage.passes = lambda sender, to, message: True
    stage.pass_time(100)
    assert stage.views("n1") == [("n1", "n2", "n3")]


def test_everybody_is_given_the_same_packs_in_the_same_order() -> None:
    stage = founded("n1", "n2", "n3")
    stage.submit("n2", b"a", b"b")
    stage.submit("n1", b"c")
    stage.submit("n3", b"d")
    assert stage.delivered("n1") == [b"a", b"b", b"c", b"d"]
    assert stage.delivered("n1") == stage.delivered("n2") == stage.delivered("n3")


def test_a_pack_is_not_delivered_before_a_majority_holds_it() -> None:
    stage = founded("n1", "n2", "n3")
    stage.passes = lambda sender, to, message: not isinstance(message, Appended)
    stage.submit("n1", b"held back")
    assert not any(stage.delivered(name) for name in stage.names)


def test_with_stability_all_a_pack_waits_for_every_member_of_the_view_until_one_is_out_of_it() -> None:
    stage = founded("n1", "n2", "n3", options=Options(stability="all", election_ns=10**8, heartbeat_ns=2 * 10**7))
    stage.passes = silence("n3")
    stage.submit("n1", b"waits")
    assert stage.delivered("n1") == []
    stage.pass_time(300)
    assert stage.delivered("n1") == stage.delivered("n2") == [b"waits"]
    assert stage.views("n1")[-1] == ("n1", "n2")


def test_a_member_cut_off_is_suspended_and_given_nothing_and_gets_everything_when_it_is_back() -> None:
    stage = founded("n1", "n2", "n3")
    stage.passes = silence("n1")
    stage.submit("n1", b"of the one cut off")
    stage.pass_time(500)
    stage.submit("n2", b"of the majority")
    assert any(isinstance(event, Suspended) for event in stage.events["n1"])
    assert stage.delivered("n1") == []
    assert stage.delivered("n2") == [b"of the majority"]
    stage.passes = lambda sender, to, message: True
    stage.pass_time(500)
    expected = [b"of the majority", b"of the one cut off"]
    assert [stage.delivered(name) for name in stage.names] == [expected] * 3
    assert stage.views("n1")[-1] == ("n1", "n2", "n3")


def test_a_member_that_misses_a_moment_is_told_its_view_again_and_no_other() -> None:
    stage = founded("n1", "n2", "n3")
    stage.passes = lambda sender, to, message: to != "n3"
    while not isinstance(stage.events["n3"][-1], Suspended):
        stage.pass_time(5)
    stage.passes = lambda sender, to, message: True
    stage.pass_time(60)
    assert stage.views("n3") == [("n1", "n2", "n3")] * 2


def test_a_member_that_takes_leave_is_out_of_the_view_without_waiting() -> None:
    stage = founded("n1", "n2", "n3")
    stage.members["n3"].leave(stage.now_ns)
    stage.settle()
    del stage.members["n3"]
    stage.pass_time(10)
    assert stage.views("n1")[-1] == ("n1", "n2")


def test_a_leader_that_takes_leave_is_succeeded_without_waiting() -> None:
    stage = founded("n1", "n2", "n3")
    stage.members["n1"].leave(stage.now_ns)
    stage.settle()
    del stage.members["n1"]
    stage.settle()
    assert stage.leader in {"n2", "n3"}


def test_packs_of_a_sender_are_neither_lost_nor_doubled_nor_reordered_when_the_leader_changes() -> None:
    stage = founded("n1", "n2", "n3")
    stage.passes = lambda sender, to, message: not isinstance(message, Appended)
    stage.submit("n3", *(str(number).encode() for number in range(10)))
    del stage.members["n1"]
    stage.passes = lambda sender, to, message: True
    stage.pass_time(600)
    assert stage.delivered("n2") == stage.delivered("n3") == [str(number).encode() for number in range(10)]


def test_a_forwarded_pack_that_comes_twice_or_out_of_turn_counts_once_and_in_its_turn() -> None:
    stage = founded("n1", "n2", "n3")
    group, home = stage.members["n1"].statistics().group, stage.homes["n2"]
    for first, payloads in ((2, [b"two"]), (1, [b"one", b"two"]), (1, [b"one"]), (3, [b"three"])):
        stage.members["n1"].receive("n2", home, Forward(group, 77, first, payloads), stage.now_ns)
    stage.settle()
    assert stage.delivered("n3") == [b"one", b"two", b"three"]


def test_figure_8_of_the_raft_paper_entries_of_former_terms_are_not_counted_as_safe() -> None:
    """A leader whose former entry reaches a majority must not deliver it before one of its own term does."""
    roster = encode_roster(Roster(tuple(Seat(f"n{n}", n, "", True) for n in (1, 2, 3))))
    base = (Entry(0, ROSTER, "", 0, 0, roster), Entry(1, VIEW, "", 0, 0, b"\x93\xa2n1\xa2n2\xa2n3"))
    former = Entry(2, DATA, "n1", 5, 1, b"former")
    stage = Stage("n1", "n2", "n3", options=Options(election_ns=10**8, heartbeat_ns=2 * 10**7, append_bytes_max=1))
    stage.start("n1", Image(1, Ballot(3, ""), None, (*base, former)))
    stage.start("n2", Image(2, Ballot(3, ""), None, base))
    stage.start("n3", Image(3, Ballot(3, ""), None, (*base, Entry(3, VIEW, "", 0, 0, b"\x91\xa2n3"))))
    # The leader of term 4 sends what n2 lacks one entry at a time; its own view is kept back.
    stage.passes = lambda sender, to, message: (
        "n3" not in (sender, to)
        and not (isinstance(message, Append) and any(entry.term > 3 for entry in message.entries))
    )
    leader = stage.members["n1"]
    while not leader.leads:
        stage.pass_time(5)
    leader.receive("n2", 2, Appended(leader.term, False, 2, 3, 0, False), stage.now_ns)
    stage.settle()
    assert leader.tempted  # n2 holds the former entry by now
    assert stage.delivered("n1") == []
    stage.passes = silence("n3")
    stage.pass_time(100)
    assert stage.delivered("n1") == [b"former"]


def test_a_member_votes_once_in_a_term_and_only_for_a_log_that_has_all_of_its_own() -> None:
    stage = founded("n1", "n2", "n3")
    stage.submit("n1", b"known")
    voter, group = stage.members["n3"], stage.members["n3"].statistics().group
    stage.passes = lambda sender, to, message: False
    stage.pass_time(90)
    voter.receive("n2", stage.homes["n2"], Vote(group, 9, 1, 0), stage.now_ns)
    voter.receive("n1", stage.homes["n1"], Vote(group, 9, 99, 1), stage.now_ns)
    voter.receive("n2", stage.homes["n2"], Vote(group, 9, 99, 1), stage.now_ns)
    voter.flush(stage.now_ns)
    answers = [message.granted for _, message in voter.take_outbox() if type(message).__name__ == "Voted"]
    assert answers == [False, True, False]
    assert Ballot(9, f"n1#{stage.homes['n1']:x}") in voter.take_writes()


def test_a_member_without_its_storage_is_seated_as_a_learner_and_votes_when_it_has_caught_up() -> None:
    stage = founded("n1", "n2", "n3")
    stage.submit("n1", b"before")
    stage.start("n3")
    stage.pass_time(600)
    assert stage.delivered("n3") == [b"before"]
    assert stage.members["n1"].statistics().roster == ("n1", "n2", "n3")
    assert stage.members["n1"].knows("n3", stage.homes["n3"])
    assert stage.views("n1")[-1] == ("n1", "n2", "n3")


def test_a_second_process_under_the_name_of_a_live_member_is_turned_away() -> None:
    stage = founded("n1", "n2", "n3")
    twin = Ordering(
        "n3", 99, dict.fromkeys(stage.names, ""), Image(999, Ballot(0, ""), None, ()), OPTIONS, Random(9), 0
    )
    twin.tick(stage.now_ns)
    knock = next(message for _, message in twin.take_outbox())
    stage.members["n1"].receive("n3", 999, knock, stage.now_ns)
    turned = [message for to, message in stage.spoken("n1") if type(message).__name__ == "Turned"]
    assert "live member" in turned[0].reason


def test_a_member_is_admitted_and_expelled() -> None:
    stage = founded("n1", "n2", "n3")
    stage.start("n4")
    stage.pass_time(50)
    assert any("must admit" in event.reason for event in stage.events["n4"] if isinstance(event, Suspended))
    stage.members["n2"].change("n4", "n4:1", admit=True, now_ns=stage.now_ns)
    stage.pass_time(300)
    assert stage.views("n4")[-1] == ("n1", "n2", "n3", "n4")
    stage.members["n3"].change("n2", "", admit=False, now_ns=stage.now_ns)
    stage.pass_time(400)
    assert any(isinstance(event, Ended) for event in stage.events["n2"])
    assert stage.views("n1")[-1] == ("n1", "n3", "n4")


def test_a_leader_can_be_expelled_and_the_others_go_on() -> None:
    stage = founded("n1", "n2", "n3")
    stage.members["n2"].change("n1", "", admit=False, now_ns=stage.now_ns)
    stage.settle()
    stage.pass_time(10)
    assert any(isinstance(event, Ended) for event in stage.events["n1"])
    del stage.members["n1"]
    stage.pass_time(500)
    stage.submit("n3", b"goes on")
    assert stage.delivered("n2") == [b"goes on"]


def test_a_member_that_missed_more_than_is_kept_is_given_a_state() -> None:
    stage = founded("n1", "n2", "n3")
    stage.passes = silence("n3")
    stage.submit("n1", b"a", b"b", b"c")
    stage.pass_time(300)
    leader = stage.members["n1"]
    leader.compact(leader.statistics().commit, b"3 of them", ())
    stage.passes = lambda sender, to, message: True
    stage.pass_time(100)
    (wanted,) = [event for event in stage.events["n1"] if isinstance(event, StateWanted)]
    position = leader.statistics().commit
    leader.give_state(wanted.ticket, position, b"3 of them", [b"x" * 10, b"y"], stage.now_ns)
    stage.settle()
    (restored,) = [event for event in stage.events["n3"] if isinstance(event, Restored)]
    assert (restored.summary, list(restored.chunks)) == (b"3 of them", [b"x" * 10, b"y"])
    stage.submit("n1", b"d")
    assert stage.delivered("n3") == [b"d"]


def test_own_packs_within_a_state_are_told() -> None:
    stage = founded("n1", "n2", "n3")
    stage.passes = lambda sender, to, message: to != "n3"
    stage.submit("n3", b"mine", b"mine too")
    stage.pass_time(300)
    leader = stage.members["n1"]
    position = leader.statistics().commit
    assert stage.delivered("n1") == [b"mine", b"mine too"]
    leader.compact(position, b"", ())
    stage.passes = lambda sender, to, message: True
    stage.pass_time(100)
    (wanted,) = [event for event in stage.events["n1"] if isinstance(event, StateWanted)]
    leader.give_state(wanted.ticket, leader.statistics().commit, b"", [], stage.now_ns)
    stage.pass_time(50)
    (restored,) = [event for event in stage.events["n3"] if isinstance(event, Restored)]
    assert restored.own == 2


def test_a_log_that_was_compacted_goes_on_from_its_snapshot_after_a_restart() -> None:
    stage = founded("n1")
    stage.submit("n1", b"a", b"b")
    member = stage.members["n1"]
    member.compact(member.statistics().commit, b"two", (b"chunk",))
    stage.submit("n1", b"c")
    image = replayed(stage.writes["n1"], stage.homes["n1"])
    assert image.snapshot is not None
    again = Stage("n1")
    again.start("n1", image)
    again.pass_time(300)
    (restored,) = [event for event in again.events["n1"] if isinstance(event, Restored)]
    assert (restored.summary, restored.chunks) == (b"two", (b"chunk",))
    assert again.delivered("n1") == [b"c"]


def replayed(writes: Iterable[object], home: int) -> Image:
    """Return what a disk has after writes."""
    ballot, snapshot, entries = Ballot(0, ""), None, []
    for write in writes:
        match write:
            case Ballot():
                ballot = write
            case AppendWrite(first, more):
                base = snapshot.index if snapshot else 0
                entries = [*entries[: first - base - 1], *more]
            case Snapshot():
                base = snapshot.index if snapshot else 0
                entries, snapshot = entries[write.index - base :], write
    return Image(home, ballot, snapshot, tuple(entries))


def test_a_group_of_new_members_goes_on_from_the_one_whose_application_has_most() -> None:
    stage = Stage("n1", "n2", "n3", applied={"n1": 3, "n2": 7, "n3": 7})
    stage.pass_time(60)
    assert stage.leader == "n2"
    wanted = [event for event in stage.events["n2"] if isinstance(event, StateWanted)]
    assert sorted(event.after for event in wanted) == [3, 7]
    for event in wanted:
        stage.members["n2"].give_state(event.ticket, 1, b"7", [], stage.now_ns)
    stage.pass_time(60)
    assert [event.summary for event in stage.events["n1"] if isinstance(event, Restored)] == [b"7"]
    assert stage.views("n1") == [("n1", "n2", "n3")]


def test_a_leader_orders_no_more_while_a_member_of_the_view_is_far_behind() -> None:
    stage = founded("n1", "n2", "n3", options=Options(election_ns=10**8, heartbeat_ns=2 * 10**7, lag_bytes_max=5000))
    stage.passes = lambda sender, to, message: (
        not (sender == "n3" and isinstance(message, Appended) and message.index > 2)
    )
    stage.submit("n1", *(bytes(1000) for _ in range(20)))
    assert 3 <= len(stage.delivered("n2")) <= 6
    stage.passes = lambda sender, to, message: True
    stage.pass_time(100)
    assert len(stage.delivered("n3")) == 20


def test_a_member_whose_application_does_not_keep_up_takes_no_more_entries() -> None:
    stage = founded("n1", "n2", "n3")
    stage.members["n3"].hold = True
    stage.submit("n1", b"a", b"b")
    stage.pass_time(100)
    assert stage.delivered("n2") == [b"a", b"b"]
    assert stage.delivered("n3") == []
    stage.members["n3"].hold = False
    stage.pass_time(100)
    assert stage.delivered("n3") == [b"a", b"b"]


def test_what_is_safe_is_never_replaced() -> None:
    stage = founded("n1", "n2", "n3")
    stage.submit("n1", b"safe")
    follower = stage.members["n2"]
    statistics = follower.statistics()
    forged = Append(statistics.group, statistics.term + 1, 1, 0, [Entry(2, DATA, "n1", 1, 1, b"forged")], 9)
    with pytest.raises(MalformedFrameError, match="cannot be replaced"):
        follower.receive("n1", stage.homes["n1"], forged, stage.now_ns)


@pytest.mark.parametrize(("kind", "payload"), [(VIEW, b"\xc1"), (ROSTER, b"\x90\x90"), (7, b"")])
def test_entries_that_are_none_are_refused_before_they_are_kept(kind: int, payload: bytes) -> None:
    stage = founded("n1", "n2", "n3")
    follower = stage.members["n2"]
    last, statistics = follower.statistics().last, follower.statistics()
    forged = Append(statistics.group, statistics.term, last, statistics.term, [Entry(1, kind, "", 0, 0, payload)], 9)
    with pytest.raises(MalformedFrameError):
        follower.receive("n1", stage.homes["n1"], forged, stage.now_ns)
    assert follower.statistics().last == last


def test_messages_of_another_group_of_the_same_name_are_ignored() -> None:
    stage = founded("n1", "n2", "n3")
    follower = stage.members["n2"]
    before = follower.statistics()
    follower.receive("n1", 5, Append(before.group + 2, 99, 0, 0, [], 0), stage.now_ns)
    follower.receive("n1", 5, Vote(before.group + 2, 99, 99, 99), stage.now_ns)
    assert follower.statistics() == before


def test_a_roster_knows_its_group_by_its_members_homes() -> None:
    one = encode_roster(Roster((Seat("n1", 1, "", True),)))
    other = encode_roster(Roster((Seat("n1", 2, "", True),)))
    assert group_of(one) != group_of(other) != 0
    assert decode_roster(one).voters == ("n1",)
    with pytest.raises(MalformedFrameError):
        decode_roster(encode_roster(Roster((Seat("n1", 1, "", True), Seat("n1", 2, "", True)))))
    with pytest.raises(MalformedFrameError):
        decode_standing(b"\xc1")


def test_a_view_is_a_record_of_who_is_in_the_group() -> None:
    assert View(2, ("n1", "n2"), True).members == ("n1", "n2")
