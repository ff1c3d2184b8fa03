"""Groups over time: what members told, what they decided and why, and members who tell anything."""

import time
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echoic import Hub
from echoic.errors import UnreachableError
from echoic.formats import event
from echoic.hub import GroupStatus, GroupStatusSource, PackingChanged
from echoic.monitor import group_history
from echoic.monitor.group_history import FORGET_SECONDS, GroupHistory, GroupsOverview
from echoic.monitor.groups import GroupMembers, group_of
from tests.hub.parties import eventually
from tests.monitor.nothing import holds_null

NOW = 1_800_000_000.0
BYTES_MAX = 400_000


@event
class Transfer:
    account: str
    amount: int


def status(member: str = "n1", **changes: object) -> GroupStatus:
    fields: dict[str, object] = {
        "group": "ledger",
        "at": NOW,
        "members": ["n1", "n2"],
        "position": 2,
        "primary": True,
        "reason": "",
        "engine": "embedded",
        "role": "leader",
        "leader": "n1",
        "term": 1,
        "commit": 10,
        "last": 12,
        "submitted": 5,
        "delivered": 9,
        "backlog_bytes": 0,
        "handler_failures": 0,
        "packing": "probe",
        "degree": 1.5,
        "bytes_aim": 16_384,
        "throughput": 100.0,
        "latency_ns": 2_500_000.0,
        "waiting": 0,
        "waiting_bytes": 0,
        "under_way": 0,
        "under_way_bytes": 0,
        "suspensions": 0,
        "changes": 0,
        "packing_reason": "",
    }
    return GroupStatus(member=member, **{**fields, **changes})  # type: ignore[arg-type]


def change(member: str = "n1", **changes: object) -> PackingChanged:
    fields: dict[str, object] = {
        "group": "ledger",
        "at": NOW,
        "degree_before": 1.0,
        "degree": 2.0,
        "bytes_before": 100,
        "bytes": 200,
        "throughput": 100.0,
        "latency_ns": 1e6,
        "reason": "more is better",
    }
    return PackingChanged(member=member, **{**fields, **changes})  # type: ignore[arg-type]


def test_what_a_member_tells_becomes_a_history() -> None:
    history = GroupHistory()
    for second in range(3):
        history.tell("id1", status(degree=float(second)), NOW + second)
    (group,) = history.loads(NOW + 3)
    (member,) = group.members
    assert (group.group, member.member, member.silent_seconds, member.latency_ms) == ("ledger", "n1", 1.0, 2.5)
    assert member.samples.at == [NOW, NOW + 1, NOW + 2]
    assert member.samples.degree == [0.0, 1.0, 2.0]


def test_a_change_of_view_is_noted_once_for_each_member() -> None:
    history = GroupHistory()
    for second in range(3):
        history.tell("id1", status(), NOW + second)
    history.tell("id1", status(members=["n1"], position=3), NOW + 3)
    history.tell("id1", status(members=[], primary=False, reason="alone"), NOW + 4)
    (group,) = history.loads(NOW + 5)
    assert [(each.members, each.primary, each.reason) for each in group.views] == [
        (["n1", "n2"], True, ""),
        (["n1"], True, ""),
        ([], False, "alone"),
    ]


def test_a_decision_has_its_reason_and_its_time() -> None:
    history = GroupHistory()
    history.tell("id1", status(), NOW)
    history.decide(change(at=NOW - 0.5), NOW)
    history.decide(change(at=NOW - 5000.0), NOW + 1)  # a clock that is elsewhere
    (group,) = history.loads(NOW + 1)
    assert [(each.at, each.degree_before, each.degree, each.reason) for each in group.decisions] == [
        (NOW - 0.5, 1.0, 2.0, "more is better"),
        (NOW + 1, 1.0, 2.0, "more is better"),
    ]


def test_who_tells_later_is_not_behind_for_that() -> None:
    history = GroupHistory()
    history.tell("id1", status("n1", delivered=100), NOW)
    history.tell("id2", status("n2", delivered=150), NOW + 0.5)
    history.tell("id1", status("n1", delivered=140), NOW + 1.0)
    (group,) = history.loads(NOW + 1)
    assert [(each.member, each.lag) for each in group.members] == [("n1", 10), ("n2", 0)]


def test_who_says_nothing_for_long_is_forgotten() -> None:
    history = GroupHistory()
    history.tell("id1", status(), NOW)
    history.decide(change(), NOW)
    assert len(history.loads(NOW + FORGET_SECONDS)) == 1
    assert history.loads(NOW + FORGET_SECONDS + 1) == []


texts = st.text(max_size=600)
numbers = st.floats() | st.integers(-(2**63), 2**63 - 1).map(float)
hostile = st.builds(
    status,
    texts,
    group=texts,
    members=st.lists(texts, max_size=100),
    reason=texts,
    degree=numbers,
    throughput=numbers,
    latency_ns=numbers,
    delivered=st.integers(-(2**63), 2**63 - 1),
    packing=texts,
    leader=texts,
)

hostile_changes = st.builds(change, texts, group=texts, reason=texts, at=numbers)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), hostile | st.builds(change, texts, group=texts, reason=texts, at=numbers)))
)
def test_whatever_members_tell_becomes_json_of_numbers_and_short_texts(told: list[tuple[int, object]]) -> None:
    history = GroupHistory()
    for second, (channel, each) in enumerate(told):
        if isinstance(each, GroupStatus):
            history.tell(f"id{channel}", each, NOW + second)
        elif isinstance(each, PackingChanged):
            history.decide(each, NOW + second)
    text = msgspec.json.encode(history.loads(NOW + len(told)))
    assert not holds_null(text)
    for group in msgspec.json.decode(text):
        assert all(len(member["reason"]) <= 300 and len(member["members"]) <= 64 for member in group["members"])


def test_a_look_has_a_size_however_many_members_there_are() -> None:
    history = GroupHistory()
    told = [status(f"n{number}", throughput=123_456.789) for number in range(300)]
    for second in range(group_history.SAMPLES_KEPT):
        for number, each in enumerate(told):
            history.tell(f"id{number}", each, NOW + second)
    assert len(msgspec.json.encode(history.loads(NOW + group_history.SAMPLES_KEPT))) < BYTES_MAX


def test_channels_of_groups_are_known_by_their_names() -> None:
    assert [group_of(name) for name in ("ledger.group", "a.b.group.n2", "ledger", "group", "ledger.grouping")] == [
        "ledger",
        "a.b",
        "",
        "",
        "",
    ]


@pytest.fixture
def hubs() -> Iterator[tuple[Hub, Hub]]:
    with Hub() as names, Hub(names=names.address) as one, Hub(names=names.address) as other:
        yield one, other


def test_a_real_member_is_followed_and_left(hubs: tuple[Hub, Hub]) -> None:
    member, looking = hubs
    overview = GroupsOverview(looking)
    with (
        member.join("ledger", Transfer, me="n1", peers={"n1": member.address}) as group,
        GroupStatusSource(member, group, seconds=0.02),
    ):
        group.subscribe(lambda event, stamp: None)
        overview.follow(looking.channels(looking.names[0]))
        group.submit(Transfer("A", 1))
        eventually(lambda: any(each.members[0].delivered for each in overview.look().groups))
        told = overview.look().groups[0]
        assert (told.group, told.members[0].member, told.members[0].primary) == ("ledger", "n1", True)
        assert told.views[-1].members == ["n1"]
    overview.close()
    heard = len(overview.look().groups[0].members[0].samples.at)
    assert heard == len(overview.look().groups[0].members[0].samples.at)


def test_something_else_of_such_a_name_is_left_alone(hubs: tuple[Hub, Hub]) -> None:
    other, looking = hubs
    channel = other.create("fake.group", Transfer)
    source = channel.source()
    overview = GroupsOverview(looking)
    for _ in range(30):
        overview.follow(looking.channels(looking.names[0]))
        source.submit(Transfer("<b>", 1))
    assert overview.look().groups == []
    overview.close()


def test_members_who_say_nothing_are_not_waited_for_without_end(hubs: tuple[Hub, Hub]) -> None:
    began = time.monotonic()
    with pytest.raises(UnreachableError, match="no member has said anything"):
        GroupMembers(hubs[1]).wait(0.05)
    assert time.monotonic() - began < 60
