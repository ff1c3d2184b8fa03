"""What a member of a group tells of itself, on channels of its hub."""

import threading
import time
from collections.abc import Callable, Iterator

import pytest

import echoic
from echoic import Hub
from echoic.errors import AddressError, ChannelNotFoundError, LocalError
from echoic.groups.policies import Static
from echoic.hub.group_status import GroupStatus, GroupStatusSource, PackingChanged, status_of


@echoic.event
class Transfer:
    account: str
    amount: int


class Restless(Static):
    """A policy that changes its mind with every pack."""

    def leave(self, pack: object) -> str:
        return "because it likes to"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as made:
        yield made


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_member_tells_how_it_stands(hub: Hub) -> None:
    group = hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address})
    group.subscribe(lambda event, stamp: None)
    group.submit_sync(Transfer("a", 1), 20)
    told: list[GroupStatus] = []
    with GroupStatusSource(hub, group, seconds=0.02) as source, Hub() as other:
        assert source.channel.id == f"echoic://{hub.address}/ledger.group"
        other.open(source.channel.id, GroupStatus).subscribe(told.append)
        until(lambda: len(told) > 2)
    status = told[-1]
    assert (status.group, status.member, status.members, status.primary) == ("ledger", "n1", ["n1"], True)
    assert (status.leader, status.role, status.engine) == ("n1", "leader", "embedded")
    assert (status.submitted, status.delivered, status.reason) == (1, 1, "")
    assert (status.packing, status.waiting, status.under_way) == ("probe", 0, 0)
    assert abs(status.at - time.time()) < 60
    assert told[-1].at > told[-2].at


def test_each_change_of_packing_is_told_with_its_reason(hub: Hub) -> None:
    group = hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address}, packing=Restless(1))
    group.subscribe(lambda event, stamp: None)
    changed: list[PackingChanged] = []
    with GroupStatusSource(hub, group, seconds=0.02) as source:
        source.packing_channel.subscribe(changed.append)
        for number in range(5):
            group.submit_sync(Transfer("a", number), 20)
        until(lambda: len(changed) >= 5)
    assert {(each.group, each.member, each.reason) for each in changed} == {("ledger", "n1", "because it likes to")}
    assert all(abs(each.at - time.time()) < 60 for each in changed)
    assert changed[0].degree == changed[0].degree_before == 1.0


def test_a_member_without_a_view_says_why(hub: Hub) -> None:
    group = hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address, "n2": "127.0.0.1:1"})
    status = status_of(group)
    assert (status.members, status.primary) == ([], False)
    assert status.reason


def test_members_at_one_name_server_do_not_get_in_each_others_way() -> None:
    with Hub() as names, Hub(names=names.address) as one, Hub(names=names.address) as two:
        peers = {"n1": one.address, "n2": two.address}
        groups = [hub.join("ledger", Transfer, me=name, peers=peers) for hub, name in ((one, "n1"), (two, "n2"))]
        sources = [GroupStatusSource(hub, group) for hub, group in zip((one, two), groups, strict=True)]
        assert [each.channel.name for each in sources] == ["ledger.group", "ledger.group.n2"]
        for source in sources:
            source.close()


def test_what_is_closed_leaves_no_channels_and_no_thread(hub: Hub) -> None:
    group = hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address})
    source = GroupStatusSource(hub, group, seconds=0.02)
    source.close()
    source.close()
    with pytest.raises(ChannelNotFoundError):
        hub.open("ledger.group")
    assert not any("echoic-status" in thread.name for thread in threading.enumerate())
    GroupStatusSource(hub, group).close()


def test_it_ends_with_its_hub() -> None:
    with Hub() as hub:
        group = hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address})
        source = GroupStatusSource(hub, group, seconds=0.02)
    until(lambda: not any("echoic-status" in thread.name for thread in threading.enumerate()))
    source.close()


def test_what_cannot_be_is_refused(hub: Hub) -> None:
    group = hub.join("a ledger", Transfer, me="n1", peers={"n1": hub.address})
    with pytest.raises(AddressError):
        GroupStatusSource(hub, group)
    with pytest.raises(LocalError, match="expected a time above 0"):
        GroupStatusSource(hub, group, seconds=0)
