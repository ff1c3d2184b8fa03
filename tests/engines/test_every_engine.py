"""One suite that every engine passes: the same promises, whatever orders the events.

`trio` are three members without faults to come; `faulty` ones can be killed and parted, or say why not. What the
members were given is checked as a whole at the end of each test (`Trio.settle`): total order, each sender's events in
order and once, everything everywhere, the same views between the same events.
"""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from echoic.errors import ClosedError, DeliveryError, EncodeError, LocalError
from echoic.links import Identity
from tests.engines.corosync_cluster import why_not
from tests.engines.fault_campaign import Campaign
from tests.engines.member import Note
from tests.engines.trios import HubTrio, Namespaces, ProcessTrio, SimulatedTrio, Trio, corosync_nodes, namespaces
from tests.links.certificates import Authority

pytestmark = pytest.mark.system

ENGINES = ("embedded in memory", "embedded on disk", "embedded with TLS", "local", "corosync", "sim")
FAULTY = ("embedded in memory", "embedded on disk", "corosync", "sim", "local")
SMALL = 800
LARGE_BYTES = 960_000


class Trios:
    """Trios by name, made when they are needed and kept for further tests."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack = folder, stack
        self._made: dict[str, Trio] = {}
        self._nodes: Namespaces | None = None

    def trio(self, title: str, *, processes: bool) -> Trio:
        key = f"{title}{' as processes' if processes and title.startswith('embedded') else ''}"
        if key not in self._made:
            self._made[key] = self._make(title, self.folder / key.replace(" ", "-"), processes=processes)
            self._stack.callback(self._made[key].close)
        return self._made[key]

    def _make(self, title: str, folder: Path, *, processes: bool) -> Trio:
        folder.mkdir(exist_ok=True)
        if title == "sim":
            return SimulatedTrio(title, folder)
        if title == "local":
            return HubTrio(title, folder, engine="local")
        if title == "corosync":
            if why_not():
                pytest.skip(why_not())
            nodes = self._stack.enter_context(corosync_nodes(folder / "nodes"))
            return ProcessTrio(title, folder, nodes, engine="corosync")
        options = {"durability": "disk"} if title == "embedded on disk" else {}
        if processes and self._nodes is None:
            self._nodes = self._stack.enter_context(namespaces(self.folder / "nodes"))
        nodes = self._nodes if processes else None
        identity = identities(folder, nodes) if title == "embedded with TLS" else None
        if processes:
            return ProcessTrio(title, folder, nodes, identity, **options)
        return HubTrio(title, folder, identity, **options)


def identities(folder: Path, nodes: Namespaces | None) -> Callable[[str], Identity]:
    authority = Authority(folder)

    def issue(name: str) -> Identity:
        return authority.issue(name, host="127.0.0.1" if nodes is None else f"10.99.0.{name[1:]}")

    return issue


@pytest.fixture(scope="module")
def trios(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trios]:
    with ExitStack() as stack:
        yield Trios(tmp_path_factory.mktemp("trios"), stack)


@pytest.fixture(params=ENGINES)
def trio(request: pytest.FixtureRequest, trios: Trios) -> Iterator[Trio]:
    made = trios.trio(request.param, processes=False)
    yield made
    made.end()


@pytest.fixture(params=FAULTY)
def faulty(request: pytest.FixtureRequest, trios: Trios) -> Iterator[Trio]:
    made = trios.trio(request.param, processes=True)
    yield made
    made.end()


def test_what_all_three_submit_under_load_is_given_to_all_in_one_order(trio: Trio) -> None:
    trio.join()
    trio.ask_all("submit", count=SMALL, text="under load")
    history = trio.settle()
    assert len(history) == 3 * SMALL
    assert {sender for _, sender, _ in history} == {"n1", "n2", "n3"}
    assert [sequence for sequence, _, _ in history] == list(range(1, 3 * SMALL + 1))


@pytest.mark.parametrize("packing", ["static:1", "static:8", "paper", "nagle:4096", "auto"])
def test_however_events_are_packed_they_are_delivered_alike(trio: Trio, packing: str) -> None:
    trio.join(packing=packing)
    trio.ask_all("submit", count=SMALL // 4, text="packed")
    assert len(trio.settle()) == 3 * (SMALL // 4)
    packed = trio.ask("n1", "statistics")["packing"]
    assert packed["messages"] == SMALL // 4
    if packing == "static:1":
        assert packed["packs"] == SMALL // 4
    if packing == "static:8":
        assert packed["packs"] >= SMALL // 4 / 8
    assert packed["waiting"] == packed["under_way"] == 0


def test_tiny_and_large_events_keep_their_order_and_what_is_too_large_is_refused(trio: Trio) -> None:
    trio.join()
    for size in (1, LARGE_BYTES, 1, LARGE_BYTES // 2):
        trio.ask_all("submit", count=1, text="L", size=size)
    trio.settle()
    story = trio.stories.latest()["n3"]
    assert sorted(int(digest.partition(".")[0]) for _, _, digest in story.events.values()) == sorted(
        3 * [1, 1, LARGE_BYTES // 2, LARGE_BYTES]
    )
    with pytest.raises(EncodeError, match="limit of this group's engine is"):
        trio.ask("n1", "submit", count=1, text="T", size=20_000_000)
    trio.ask("n1", "submit", count=1, text="still here")
    trio.settle()


def test_texts_of_any_length_arrive_one_by_one_as_they_were(trio: Trio) -> None:
    trio.join(batch=False)
    for text in ("", "a", "ätherisch ☃", "long " * 1000):
        trio.ask_all("submit", count=2, text=text)
    history = trio.settle()
    assert len(history) == 3 * 2 * 4
    lengths = {int(digest.partition(".")[0]) for _, _, digest in trio.stories.latest()["n2"].events.values()}
    assert lengths == {0, 1, 11, 5000}


def test_members_with_an_extended_type_and_those_without_read_each_other(trio: Trio) -> None:
    trio.join("n1", "n3", wait=False)
    trio.join("n2", kind="SignedNote")
    trio.ask_all("submit", count=20, text="signed or not")
    assert len(trio.settle()) == 60
    trio.leave("n2")
    trio.join("n2", kind="SignedNote")  # described in the order already, and once more
    trio.ask_all("submit", count=20, text="again")
    assert len(trio.settle()) == 120


def test_a_stamp_tells_the_place_that_everybody_sees(trio: Trio) -> None:
    trio.join()
    trio.ask("n2", "submit", count=5)
    sequence, sender, members = trio.ask("n1", "submit_sync", text="mine")
    assert sender == "n1"
    assert members == ["n1", "n2", "n3"]
    history = trio.settle()
    assert [(number, who) for number, who, _ in history if who == "n1"] == [(sequence, "n1")]


def test_a_member_that_leaves_is_out_of_the_view_at_once_and_may_come_back(trio: Trio) -> None:
    trio.join()
    trio.ask_all("load", pause=0.001)
    trio.advance(0.1)
    leaving = trio.leader()
    trio.ask(leaving, "unload")
    trio.ask(leaving, "drain")
    began = time.monotonic()
    trio.leave(leaving)
    trio.wait_for_view(5)
    assert time.monotonic() - began < 2.5, "nobody had to find out"
    others = list(trio.present)
    delivered = trio.ask(others[0], "statistics")["delivered"]
    trio.until(lambda: trio.ask(others[0], "statistics")["delivered"] > delivered)
    trio.join(leaving)
    trio.ask_all("unload")
    trio.ask(leaving, "submit", count=10)
    history = trio.settle()
    assert len({(sequence, number) for sequence, _, number in history}) == len(history)
    assert trio.stories.latest()[leaving].events.keys() >= set(range(1, len(history) + 1)), "what was kept comes again"


def test_members_that_close_while_they_submit_end_and_the_others_go_on(trio: Trio) -> None:
    trio.join()
    trio.ask_all("load")
    trio.advance(0.1)
    trio.leave("n3")
    trio.wait_for_view()
    assert trio.ask("n1", "unload") > 0
    trio.ask("n2", "unload")
    trio.settle()


def test_statistics_tell_how_a_member_stands(trio: Trio) -> None:
    trio.join()
    trio.ask_all("submit", count=50)
    trio.settle()
    found = trio.ask("n2", "statistics")
    assert (found["name"], found["me"]) == (trio.group, "n2")
    assert found["view"]["primary"] is True
    assert found["view"]["members"] == ["n1", "n2", "n3"]
    assert (found["submitted"], found["delivered"]) == (50, 150)
    assert (found["backlog_bytes"], found["handler_failures"], found["reason"]) == (0, 0, "")
    assert found["engine"]["engine"] == trio.title.partition(" ")[0]
    assert found["packing"]["messages"] == 50
    assert found["packing"]["degree"] >= 1
    assert isinstance(trio.ask("n2", "changes"), list)


def test_safe_for_all_means_that_all_of_the_view_have_it(trio: Trio) -> None:
    if trio.title in ("local", "corosync"):
        pytest.skip(f"{trio.title} has everything at all members of the view in any case")
    trio.join(stability="all")
    trio.ask_all("submit", count=100)
    assert len(trio.settle()) == 300
    trio.leave("n2")
    trio.wait_for_view()
    trio.ask_all("submit", count=10)
    assert len(trio.settle()) == 320


def test_members_are_admitted_and_expelled(trio: Trio) -> None:
    trio.join()
    if "admit" in trio.lacks:
        with pytest.raises(LocalError, match="fixed by its engine"):
            trio.ask("n1", "expel", name="n3")
        return
    trio.ask_all("submit", count=10)
    trio.settle()
    gone = trio.followers()[0]
    trio.ask(trio.leader(), "expel", name=gone)
    trio.until(lambda: "expelled" in trio.ask(gone, "statistics")["reason"])
    assert trio.ask(gone, "statistics")["view"]["primary"] is False
    trio.leave(gone)
    trio.forget(gone)
    trio.wait_for_view()
    trio.ask_all("submit", count=10)
    trio.ask(trio.leader(), "admit", name=gone, address=getattr(trio, "peers", {}).get(gone, ""))
    trio.join(gone)
    trio.ask_all("submit", count=10)
    assert len(trio.settle()) == 30 + 20 + 30


def test_after_kills_under_load_the_order_goes_on_and_who_comes_back_catches_up(faulty: Trio) -> None:
    faulty.need("kill")
    faulty.join()
    faulty.ask_all("load", pause=0.001)
    for killed in (faulty.followers()[0], faulty.leader()):
        faulty.advance(0.15)
        faulty.kill(killed)
        faulty.wait_for_view()
        survivor = min(faulty.present)
        before = faulty.ask(survivor, "statistics")["delivered"]
        faulty.until(lambda: faulty.ask(survivor, "statistics")["delivered"] > before + 50)  # noqa: B023 - asked here
        faulty.join(killed)
        faulty.ask(killed, "load", pause=0.001)
    faulty.advance(0.15)
    faulty.ask_all("unload")
    history = faulty.settle()
    stories = faulty.stories.latest()
    assert all(list(story.events) == list(range(1, len(history) + 1)) for story in stories.values()), "kept events"


def test_members_that_prove_who_they_are_come_back_after_kills_and_cuts_as_well(trios: Trios) -> None:
    trio = trios.trio("embedded with TLS", processes=True)
    campaign = Campaign(trio)
    campaign.begin()
    campaign.kill(trio.leader())
    if "cut" not in trio.lacks:
        campaign.cut(trio.leader(), seconds=1.0)
    assert campaign.finish().events > 100
    trio.end()


def test_a_member_that_missed_more_than_is_kept_is_given_state(faulty: Trio) -> None:
    faulty.need("kill")
    options = {"state": "notebook", "kept_bytes": 1_500_000}
    faulty.join(**options)
    faulty.ask_all("submit", count=20, text="before")
    faulty.settle()
    killed = faulty.followers()[-1]
    faulty.kill(killed)
    faulty.wait_for_view()
    for _ in range(4):
        faulty.ask_all("submit", count=125, text="while it was away ", size=600)
        faulty.settle()
    faulty.join(killed, **options)
    faulty.ask_all("submit", count=20, text="after")
    history = faulty.settle()
    assert len(history) == 3 * 20 + 4 * 2 * 125 + 3 * 20
    story = faulty.stories.latest()[killed]
    assert len(story.restored) >= 1
    assert set(story.events) == set(range(1, len(history) + 1)), "events by state, and those behind it"


def test_a_minority_stops_and_says_so_and_what_it_submits_is_delivered_once_when_it_is_back(faulty: Trio) -> None:
    faulty.need("cut")
    faulty.join()
    faulty.ask_all("submit", count=30, text="together")
    faulty.settle()
    away = faulty.leader()
    others = [name for name in faulty.present if name != away]
    faulty.cut(away)
    faulty.until(lambda: not faulty.ask(away, "statistics")["view"]["primary"])
    reason = faulty.ask(away, "statistics")["reason"]
    assert reason
    with pytest.raises(DeliveryError, match=reason.split(":")[0][:20]):
        faulty.ask(away, "submit_sync", text="alone", timeout=0.3)
    faulty.ask(away, "submit", count=10, text="alone too")
    last = faulty.stories.latest()[away].last
    faulty.until(lambda: faulty.ask(others[0], "statistics")["view"]["members"] == others)
    sequence, _, members = faulty.ask(others[0], "submit_sync", text="we go on", timeout=60)
    assert members == others
    assert sequence > last
    assert faulty.stories.latest()[away].last == last, "the minority is given nothing"
    faulty.heal(away)
    faulty.wait_for_view(30)
    history = faulty.settle()
    assert len(history) == 90 + 11 + 1


def test_a_slow_member_slows_those_who_submit_and_is_not_expelled(faulty: Trio) -> None:
    faulty.need("kill", "be slow")
    faulty.join("n1", "n2", wait=False)
    faulty.join("n3", slow=0.02)
    memory = {name: found["memory_bytes"] for name, found in faulty.ask_all("statistics").items()}
    with suppress(DeliveryError):
        faulty.ask("n1", "load", text="heavy" * 20_000)
    waited = {"suspensions": 0}

    def suspended() -> bool:
        packing = faulty.ask("n1", "statistics")["packing"]
        before, waited["suspensions"] = waited["suspensions"], packing["messages"]
        return packing["messages"] == before and packing["full"]

    faulty.until(suspended, 30)
    found = faulty.ask_all("statistics")
    assert all(each["view"]["members"] == ["n1", "n2", "n3"] for each in found.values())
    assert all(each["memory_bytes"] < memory[name] + 600_000_000 for name, each in found.items())
    faulty.ask("n3", "hurry")
    faulty.ask("n1", "unload")
    faulty.settle(30)
    assert [len(story.views) <= 1 for story in faulty.stories.read()] == [True] * 3, "nobody was expelled"


def test_a_closed_group_takes_nothing_more(trio: Trio) -> None:
    if isinstance(trio, ProcessTrio):
        pytest.skip("its groups are in other processes")
    trio.join()
    group = trio.attendants["n1"].group
    trio.leave("n1")
    with pytest.raises(ClosedError, match="was closed"):
        group.submit(Note(1, ""))


@pytest.mark.parametrize("seed", range(8))
def test_in_virtual_time_the_same_seed_gives_the_same_run_whatever_fails(tmp_path: Path, seed: int) -> None:
    runs = []
    for number in (1, 2):
        trio = SimulatedTrio("sim", tmp_path / str(number), seed)
        trio.join(stability=("majority", "all")[seed % 2])
        trio.world.loss = 0.02 * (seed % 3)
        chance = random.Random(seed)
        trio.ask_all("load", pause=0.03)
        for _ in range(6):
            name = chance.choice(sorted(trio.present))
            trio.advance(chance.uniform(0.02, 1.5))
            if chance.random() < 0.5:
                trio.cut(name)
                trio.advance(chance.uniform(0.05, 2))
                trio.heal(name)
            else:
                trio.kill(name)
                trio.advance(chance.uniform(0.01, 1.5))
                if chance.random() < 0.3 and len(trio.settled_members()) == 2:
                    trio.forget(name)
                trio.join(name, wait=False)
                trio.ask(name, "load", pause=0.03)
        trio.wait_for_view(60)
        trio.ask_all("unload")
        runs.append(trio.settle(60))
        trio.end()
    assert runs[0] == runs[1]
    assert len(runs[0]) > 100
