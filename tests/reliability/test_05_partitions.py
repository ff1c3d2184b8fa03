"""Real partitions: three members of a group in three namespaces, whose firewalls lose packets one way or both.

Whoever can speak with a majority goes on; whoever cannot is given nothing; and when the firewall lets everything pass
again all are one within seconds, with one history. A channel across the same cuts loses nothing. Half of the cuts are
between members and hubs that are plain, half between secured ones: with certificates, and just the rights they need.

    two-way     nothing comes in, nothing goes out
    deaf        it can speak, and hears nothing
    mute        it hears, and cannot speak
    flapping    both ways, on and off, five times a second, and then for good
"""

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic.errors import EchoicError
from echoic.testing.charter import Charter
from echoic.testing.trials.accounts import check_accounts
from tests.engines.fault_campaign import Campaign
from tests.engines.trios import NAMES, ProcessTrio, namespaces
from tests.reliability.firewall import Firewall, why_no_firewall
from tests.reliability.trying import sized
from tests.system.processes import Process, Start, processes, wait_until

pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(why_no_firewall()), reason=why_no_firewall())]

MERGE_SECONDS = 5.0
GO_ON_SECONDS = 30.0
IN_FLIGHT_SECONDS = 1.0
CUT_SECONDS = (1.5, 3.0)
FLAP_SECONDS = 0.1
HOOKS = {"two-way": ("input", "output"), "deaf": ("input",), "mute": ("output",), "flapping": ("input", "output")}


MEMBER = ["publish,subscribe embedded-*"]
GRANTS = {**dict.fromkeys(NAMES, MEMBER), "source": ["publish,admin ticks"], "sink": ["subscribe ticks"]}
HOSTS = {role: [f"10.99.0.{node}"] for role, node in {"n1": 1, "n2": 2, "n3": 3, "source": 1, "sink": 3}.items()}


@pytest.fixture
def trio(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProcessTrio]:
    """Plain, unless a test asks for rights."""
    grants = getattr(request, "param", None)
    charter = Charter.draw_up(tmp_path / "charter", grants, HOSTS) if grants else None
    with namespaces(tmp_path / "nodes") as nodes:
        made = ProcessTrio("embedded", tmp_path, nodes, charter=charter, durability="disk")
        yield made
        made.close()


@pytest.fixture
def start() -> Iterator[Start]:
    with processes() as start:
        yield start


class Partitions:
    """Members, and firewalls before them."""

    def __init__(self, trio: ProcessTrio, seed: int) -> None:
        self.trio, self.chance = trio, random.Random(seed)
        self.campaign = Campaign(trio, seed)
        self.campaign.begin()
        self.firewalls = {name: Firewall(f"{trio.nodes.id}-{name}") for name in NAMES}
        self.merge_seconds: list[float] = []

    def cut(self, name: str, kind: str) -> None:
        """Part a member from the others, see who goes on, and let all come together."""
        others = [other for other in NAMES if other != name]
        firewall, hooks = self.firewalls[name], HOOKS[kind]
        if kind == "flapping":
            for _ in range(5):
                firewall.drop(*hooks)
                time.sleep(FLAP_SECONDS)
                firewall.pass_all()
                time.sleep(FLAP_SECONDS)
        firewall.drop(*hooks)
        time.sleep(IN_FLIGHT_SECONDS)
        given, before = self.last(name), max(map(self.last, others))
        self.trio.until(lambda: min(map(self.last, others)) > before + 20, GO_ON_SECONDS, lambda: f"{others} stop")
        time.sleep(self.chance.uniform(*CUT_SECONDS) - IN_FLIGHT_SECONDS)
        if "input" in hooks:
            assert self.last(name) == given, f"{name} was {kind} and went on"
        assert self.last(name) <= max(map(self.last, others)), f"{name} was {kind} and has more than a majority"
        firewall.pass_all()
        began = time.monotonic()
        self.trio.wait_for_view(40.0)
        self.merge_seconds.append(time.monotonic() - began)
        self.campaign.check()

    def last(self, name: str) -> int:
        return self.trio.stories.latest()[name].last


class Crossing:
    """A channel from the node of one member to that of another."""

    def __init__(self, trio: ProcessTrio, start: Start) -> None:
        def at(node: int, role: str) -> dict[str, object]:
            place = ["ip", "netns", "exec", f"{trio.nodes.id}-n{node}"]
            papers = {"charter": str(trio.charter.folder), "identity": role} if trio.charter else {"insecure": True}
            return {"prefix": place, "listen": f"10.99.0.{node}:0", **papers}

        self.source: Process = start(
            "publish", channel="ticks", create=True, producer=1, pause=0.02, pause_every=20, **at(1, "source")
        )
        self.sink: Process = start("watch", channel=self.source.started["id"], **at(3, "sink"))
        assert self.sink.started

    def check(self) -> None:
        submitted = self.source.ask("halt")["submitted"]
        wait_until(lambda: self.sink.ask()["next"].get("1", 0) == submitted, "everything arrives")
        told = self.sink.ask()
        assert told["problems"] == []
        found = check_accounts("the sink", submitted, told["spans"]["1"], told["gaps"], since=told["first"]["1"])
        assert found == []


@pytest.mark.parametrize("trio", [None, GRANTS], indirect=True, ids=["plain", "secured"])
def test_majorities_go_on_minorities_stop_and_all_are_one_again(
    request: pytest.FixtureRequest, trio: ProcessTrio, start: Start
) -> None:
    given = request.config.getoption("--seed")
    seed = time.time_ns() % 2**32 if given is None else given
    print(f"seed {seed}")
    partitions, crossing = Partitions(trio, seed), Crossing(trio, start)
    size = sized(request, "partitions")
    for number in range(size // 2, size) if trio.charter else range(size // 2):
        kind = list(HOOKS)[number % len(HOOKS)]
        name = trio.leader() if number % 2 else partitions.chance.choice(NAMES)
        partitions.cut(name, kind)
        if partitions.merge_seconds[-1] > MERGE_SECONDS:  # the machine may have done something else for a moment
            partitions.merge_seconds.pop()
            partitions.cut(name, kind)
    figures = partitions.campaign.finish()
    crossing.check()
    slowest = max(partitions.merge_seconds)
    kind = "secured" if trio.charter else "plain"
    print(
        f"{len(partitions.merge_seconds)} {kind} cuts: {figures.events} events, one again after {slowest:.2f} s at most"
    )
    assert slowest < MERGE_SECONDS, f"seed {seed}"
    assert figures.events > 100


def test_a_member_that_is_not_cut_off_is_found_to_go_on(trio: ProcessTrio, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trial can fail: a firewall that lets everything pass makes no minority."""
    partitions = Partitions(trio, seed=1)
    monkeypatch.setitem(HOOKS, "two-way", ("input",))
    monkeypatch.setattr(partitions.firewalls["n2"], "drop", lambda *_: None)
    with pytest.raises(AssertionError, match="n2 was two-way and went on"):
        partitions.cut("n2", "two-way")


@pytest.mark.parametrize("trio", [{**GRANTS, "n3": ["subscribe embedded-*"]}], indirect=True, ids=["silent n3"])
def test_a_right_that_is_missing_is_found(trio: ProcessTrio) -> None:
    """The part with rights is what it says: a member that may not publish is none."""
    trio.join(wait=False)
    with pytest.raises((AssertionError, EchoicError), match=r"no view of|may not"):
        trio.wait_for_view(3.0)
