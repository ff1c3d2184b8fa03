"""Groups as a program holds them: joining, submitting, subscribing, errors; the engines have a suite of their own."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import echoic
from echoic import aio
from echoic.errors import AddressError, ClosedError, DeliveryError, EncodeError, LocalError


@echoic.event
class Transfer:
    account: str
    amount: int


@echoic.event
class Amount:
    amount: int
    currency: str = "EUR"


Trio = list[echoic.Group]
StartTrio = Callable[..., Trio]


@pytest.fixture
def trio_peers() -> dict[str, str]:
    """The members that `start_trio` has started, with their addresses."""
    return {}


@pytest.fixture
def start_trio(trio_peers: dict[str, str]) -> Iterator[StartTrio]:
    with ExitStack() as stack:

        def start(count: int = 3, **options: object) -> Trio:
            hubs = [stack.enter_context(echoic.Hub()) for _ in range(count)]
            peers = {f"n{number}": hub.address for number, hub in enumerate(hubs, 1)}
            trio_peers.update(peers)
            groups = [
                hub.join("ledger", Transfer, me=me, peers=peers, election_timeout=0.3, **options)
                for me, hub in zip(peers, hubs, strict=True)
            ]
            for group in groups:
                group.wait_for(lambda view: len(view.members) == count)
            return groups

        yield start


def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)


def test_everybody_is_told_the_same_events_with_the_same_numbers(start_trio: StartTrio) -> None:
    groups = start_trio()
    told: list[list[tuple[int, str, int]]] = [[] for _ in groups]
    for group, events in zip(groups, told, strict=True):
        group.subscribe(lambda event, stamp, events=events: events.append((stamp.sequence, stamp.sender, event.amount)))
    for amount in range(100):
        groups[amount % 3].submit(Transfer("a", amount))
    until(lambda: all(len(events) == 100 for events in told))
    assert told[0] == told[1] == told[2]
    assert [sequence for sequence, _, _ in told[0]] == list(range(1, 101))
    for sender in range(3):
        own = [amount for _, name, amount in told[0] if name == f"n{sender + 1}"]
        assert own == list(range(sender, 100, 3))


def test_a_synchronous_event_comes_back_with_its_place(start_trio: StartTrio) -> None:
    (first, second, _) = start_trio()
    assert first.submit_sync(Transfer("a", 1)).sequence == 1
    stamp = second.submit_sync(Transfer("a", 2))
    assert (stamp.sequence, stamp.sender, stamp.view.members) == (2, "n2", ("n1", "n2", "n3"))


def test_the_first_subscriber_is_told_what_came_before_it_and_views_in_their_place(start_trio: StartTrio) -> None:
    (group,) = start_trio(1)
    group.submit_sync(Transfer("a", 1))
    told: list[object] = []
    group.subscribe(lambda event, stamp: told.append(event.amount), on_view=lambda view: told.append(view.members))
    group.submit_sync(Transfer("a", 2))
    until(lambda: len(told) == 3)
    assert told == [("n1",), 1, 2]


def test_batches_are_taken_as_they_were_packed_and_other_types_as_declared(start_trio: StartTrio) -> None:
    (group,) = start_trio(1)
    batches: list[tuple[int, int]] = []
    amounts: list[object] = []
    group.subscribe(lambda batch, stamp: batches.append((stamp.sequence, len(batch))), batch=True)
    group.subscribe(lambda event, stamp: amounts.append(event), declared=Amount)
    group.submit_batch([Transfer("a", amount) for amount in range(50)])
    group.drain()
    until(lambda: len(amounts) == 50)
    assert sum(count for _, count in batches) == 50
    assert len(batches) < 50
    assert amounts[49] == Amount(49, "EUR")


def test_events_can_be_iterated(start_trio: StartTrio) -> None:
    (group,) = start_trio(1)
    events = group.events(timeout=60)
    group.submit(Transfer("a", 7))
    event, stamp = next(events)
    assert (event, stamp.sequence) == (Transfer("a", 7), 1)
    events.close()
    assert list(events) == []


def test_a_handler_that_fails_does_not_keep_events_from_others(start_trio: StartTrio) -> None:
    (group,) = start_trio(1)
    told: list[int] = []

    def fail(event: object, stamp: object) -> None:
        raise ValueError("the ledger is closed")

    group.subscribe(fail)
    group.subscribe(lambda event, stamp: told.append(event.amount))
    group.submit(Transfer("a", 1))
    group.drain()
    until(lambda: told == [1])
    assert group.statistics().handler_failures == 1


def test_members_that_leave_are_out_of_the_view_and_their_hub_can_join_again(start_trio: StartTrio) -> None:
    groups = start_trio()
    groups[2].close()
    groups[2].close()
    groups[0].wait_for(lambda view: view.members == ("n1", "n2"))
    with pytest.raises(ClosedError):
        groups[2].submit(Transfer("a", 1))
    assert groups[0].submit_sync(Transfer("a", 1)).sequence == 1


def test_a_minority_says_so_and_orders_nothing(start_trio: StartTrio) -> None:
    groups = start_trio()
    groups[1].close()
    groups[0].wait_for(lambda view: len(view.members) == 2)
    groups[2].close()
    groups[0].wait_for(lambda view: not view.primary)
    with pytest.raises(DeliveryError, match=r"majority|leader"):
        groups[0].submit_sync(Transfer("a", 1), timeout=0.3)
    assert groups[0].view.members == ()


def test_what_a_group_has_ordered_is_there_after_all_of_its_members_were_started_anew(
    start_trio: StartTrio, tmp_path: Path
) -> None:
    def start(folder: str) -> tuple[list[echoic.Hub], Trio]:
        hubs = [echoic.Hub() for _ in range(3)]
        peers = {f"n{number}": hub.address for number, hub in enumerate(hubs, 1)}
        joined = [
            hub.join("ledger", Transfer, me=me, peers=peers, path=tmp_path / me, election_timeout=0.2)
            for me, hub in zip(peers, hubs, strict=True)
        ]
        return hubs, joined

    hubs, groups = start("first")
    for group in groups:
        group.wait_for(lambda view: len(view.members) == 3)
    assert groups[1].submit_sync(Transfer("a", 41)).sequence == 1
    for hub in hubs:
        hub.close()
    hubs, groups = start("second")
    told: list[int] = []
    groups[0].subscribe(lambda event, stamp: told.append(event.amount))
    groups[0].wait_for(lambda view: len(view.members) == 3)
    assert groups[2].submit_sync(Transfer("a", 42)).sequence == 2
    until(lambda: told == [41, 42])
    for hub in hubs:
        hub.close()


class Sums:
    """An application that keeps sums in memory."""

    durable = False

    def __init__(self) -> None:
        self.sum = self.sequence = 0
        self.loaded = 0

    def deliver(self, event: Transfer, stamp: echoic.GroupStamp) -> None:
        self.sum += event.amount
        self.sequence = stamp.sequence

    def applied(self) -> int:
        return self.sequence

    def save(self, after: int) -> Iterator[bytes]:
        return iter([str(self.sum).encode()])

    def load(self, chunks: Iterator[bytes], upto: int) -> None:
        self.sum, self.sequence = int(b"".join(chunks)), upto
        self.loaded += 1


def test_a_member_that_comes_late_is_given_the_state_of_the_others() -> None:
    with ExitStack() as stack:
        hubs = [stack.enter_context(echoic.Hub()) for _ in range(3)]
        peers = {f"n{number}": hub.address for number, hub in enumerate(hubs, 1)}
        states = {me: Sums() for me in peers}

        def join(me: str, hub: echoic.Hub) -> echoic.Group:
            group = hub.join(
                "sums", Transfer, me=me, peers=peers, state=states[me], kept_bytes=1 << 20, election_timeout=0.3
            )
            group.subscribe(states[me].deliver)
            return group

        groups = {me: join(me, hub) for me, hub in zip(peers, hubs, strict=True)}
        groups["n1"].wait_for(lambda view: len(view.members) == 3)
        groups["n3"].close()
        groups["n1"].wait_for(lambda view: len(view.members) == 2)
        for _ in range(60):
            groups["n1"].submit_batch([Transfer("x" * 1000, 1) for _ in range(100)])
        groups["n1"].drain()
        states["n3"] = Sums()
        groups["n3"] = join("n3", hubs[2])
        groups["n3"].wait_for(lambda view: len(view.members) == 3, timeout=60)
        groups["n1"].submit_sync(Transfer("x", 5))
        until(lambda: states["n3"].sum == 6005)
        assert states["n3"].loaded == 1
        until(lambda: {state.sequence for state in states.values()} == {6001})


def test_a_member_can_be_admitted_and_expelled(start_trio: StartTrio, trio_peers: dict[str, str]) -> None:
    groups = start_trio()
    with echoic.Hub() as hub:
        assert groups[0].statistics().engine["roster"] == ("n1", "n2", "n3")
        groups[1].admit("n4", hub.address)
        peers = trio_peers | {"n4": hub.address}
        late = hub.join("ledger", Transfer, me="n4", peers=peers, election_timeout=0.3)
        late.wait_for(lambda view: len(view.members) == 4)
        assert late.submit_sync(Transfer("a", 4)).sequence == 1
        groups[0].expel("n4")
        until(lambda: "expelled" in refusal(late))


def refusal(group: echoic.Group) -> str:
    """Return why a group takes no event, "" if it does."""
    try:
        group.submit(Transfer("a", 5))
    except ClosedError as error:
        return str(error)
    return ""


def test_whoever_submits_is_slowed_and_not_expelled_when_a_handler_is_slow(start_trio: StartTrio) -> None:
    groups = start_trio(packing="static:8")
    gate = threading.Event()
    groups[2].subscribe(lambda event, stamp: gate.wait(20))
    for group in groups[:2]:
        group.subscribe(lambda event, stamp: None)
    text, count = "x" * 60_000, 4000
    submitting = threading.Thread(target=lambda: [groups[0].submit(Transfer(text, n)) for n in range(count)])
    submitting.start()
    until(lambda: groups[0].packing.statistics().full, 20)
    time.sleep(0.5)
    assert groups[0].statistics().submitted < count
    assert all(len(group.view.members) == 3 for group in groups)
    assert all(group.statistics().backlog_bytes < 150 * 1024 * 1024 for group in groups)
    gate.set()
    submitting.join(30)
    groups[0].drain(60)
    assert groups[0].sequence == count


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"me": "n9"}, "none of the peers"),
        ({"engine": "paxos"}, "embedded, corosync, local"),
        ({"stability": "some"}, "majority, all"),
        ({"durability": "tape"}, "disk, os, memory"),
        ({"durability": "disk"}, "contradict"),
        ({"engine": "local", "path": "somewhere"}, "needs `embedded`"),
        ({"packing": "static:0"}, "at least 1 message"),
        ({"election_timeout": 0}, "expected 0.001"),
        ({"packing_interval": float("inf")}, "seconds"),
        ({"kept_bytes": -1}, "at least"),
        ({"me": ""}, "name"),
    ],
)
def test_options_that_are_wrong_are_refused_in_words(
    options: dict[str, object], problem: str, start_hub: Callable[..., echoic.Hub]
) -> None:
    hub = start_hub()
    settings = {"me": "n1", "peers": {"n1": hub.address}} | options
    with pytest.raises(LocalError, match=problem):
        hub.join("ledger", Transfer, **settings)
    assert hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address}).close() is None


def test_a_peer_needs_an_address_and_a_hub_joins_a_group_once(start_hub: Callable[..., echoic.Hub]) -> None:
    hub = start_hub()
    with pytest.raises(AddressError, match="of peer `n2`"):
        hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address, "n2": "nowhere"})
    hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address})
    with pytest.raises(LocalError, match="already"):
        hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address})


def test_an_event_that_does_not_fit_is_refused_at_once(start_trio: StartTrio) -> None:
    (group,) = start_trio(1)
    with pytest.raises(EncodeError):
        group.submit(Transfer("a", "much"))  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="limit of this group's engine"):
        group.submit(Transfer("x" * 9_000_000, 1))
    assert group.submit_sync(Transfer("x" * 1_000_000, 1)).sequence == 1


def test_why_packing_has_changed_is_told(start_trio: StartTrio) -> None:
    (group,) = start_trio(1, packing="paper:ta=0.05")
    deadline = time.monotonic() + 60
    changes = []
    while not changes and time.monotonic() < deadline:
        group.submit_batch([Transfer("a", amount) for amount in range(200)])
        changes = group.packing.changes()
    assert changes[0].reason
    statistics = group.packing.statistics()
    assert statistics.policy.startswith("paper")
    assert statistics.messages > 0


def test_the_same_in_asyncio() -> None:
    async def run() -> list[tuple[int, int]]:
        async with aio.Hub() as hub:
            group = await hub.join("ledger", Transfer, me="n1", peers={"n1": hub.address})
            await group.wait_for(lambda view: view.primary)
            told: list[tuple[int, int]] = []
            for amount in range(3):
                await group.submit(Transfer("a", amount))
            assert (await group.submit_sync(Transfer("a", 3))).sequence == 4
            events = group.events()
            async for event, stamp in events:
                told.append((stamp.sequence, event.amount))  # type: ignore[attr-defined]
                if len(told) == 4:
                    events.close()
            assert group.view.members == ("n1",)
            assert group.statistics().submitted == 4
            await group.close()
            return told

    assert asyncio.run(run()) == [(1, 0), (2, 1), (3, 2), (4, 3)]
