"""A connection that dies without a word: noticed, resumed, and nothing lost, repeated or out of order.

Two network namespaces with a router between them. When its firewall loses every packet, both sides keep their sockets
and hear nothing: neither an end nor a reset.

    source 10.77.1.2 ---- 10.77.1.1 router 10.77.2.1 ---- 10.77.2.2 sink

Both dial by turns, and both are by turns plain and secured: with certificates, and just the rights that each needs.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from echoic.testing.charter import Charter
from tests.reliability.firewall import Firewall, run, why_no_firewall
from tests.reliability.trying import sized
from tests.system.processes import Process, Start, processes, wait_until

NOTICED_SECONDS = 5.0
SLACK_SECONDS = 40.0  # after which a test has failed, however busy the machine is
IDLE_SECONDS = 0.5

SOURCE_HOST, SINK_HOST = "10.77.1.2", "10.77.2.2"
PAIRS = [("sink", False), ("sink", True), ("source", False), ("source", True)]

pytestmark = [pytest.mark.system, pytest.mark.skipif(bool(why_no_firewall()), reason=why_no_firewall())]


class Router:
    """Joins two namespaces, until its firewall is told not to."""

    def __init__(self) -> None:
        tag = f"ec{os.getpid() % 100_000}"
        self.left, self.middle, self.right = (f"{tag}{side}" for side in "lmr")

    def __enter__(self) -> Self:
        for name in (self.left, self.middle, self.right):
            run(*f"ip netns add {name}".split())
            run(*f"ip -n {name} link set lo up".split())
        for side, number in ((self.left, 1), (self.right, 2)):
            for command in (
                f"ip link add {side}a netns {side} type veth peer name {side}b netns {self.middle}",
                f"ip -n {side} addr add 10.77.{number}.2/24 dev {side}a",
                f"ip -n {self.middle} addr add 10.77.{number}.1/24 dev {side}b",
                f"ip -n {side} link set {side}a up",
                f"ip -n {self.middle} link set {side}b up",
                f"ip -n {side} route add default via 10.77.{number}.1",
            ):
                run(*command.split())
        run("ip", "netns", "exec", self.middle, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        self.firewall = Firewall(self.middle)
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self.left, self.middle, self.right):
            run("ip", "netns", "del", name)


@pytest.fixture
def router() -> Iterator[Router]:
    with Router() as router:
        yield router


@pytest.fixture
def start() -> Iterator[Start]:
    with processes() as start:
        yield start


def seen(sink: Process) -> int:
    return sink.ask()["next"].get("1", 0)


def secure(folder: Path, dialler: str) -> Charter:
    """Let whoever is dialled manage the channel, and each do with it what he has to."""
    grants = {"source": ["publish ticks"], "sink": ["subscribe ticks"]}
    grants["source" if dialler == "sink" else "sink"].append("admin ticks")
    return Charter.draw_up(folder / "charter", grants, {"source": [SOURCE_HOST], "sink": [SINK_HOST]})


class Pair:
    """A source and a sink on the two sides."""

    def __init__(
        self, router: Router, start: Start, dialler: str, charter: Charter | None = None, *, patient: bool = False
    ) -> None:
        def on(namespace: str, host: str, role: str) -> dict[str, object]:
            papers = {"charter": str(charter.folder), "identity": role} if charter else {"insecure": True}
            place = ["ip", "netns", "exec", namespace]
            return {"prefix": place, "listen": f"{host}:0", "patient": patient, **papers}

        left, right = on(router.left, SOURCE_HOST, "source"), on(router.right, SINK_HOST, "sink")
        pace = {"producer": 1, "pause": 0.01, "pause_every": 20}
        if dialler == "sink":
            self.source = start("publish", channel="ticks", create=True, **pace, **left)
            self.sink = start("watch", channel=self.source.started["id"], **right)
        else:
            self.sink = start("watch", channel="ticks", create=True, **right)
            self.source = start("publish", channel=self.sink.started["id"], **pace, **left)
        self._firewall, self._charter = router.firewall, charter

    def flow(self) -> None:
        before = seen(self.sink)
        wait_until(lambda: seen(self.sink) > before + 300, "events flow")

    def cut(self) -> float:
        """Lose all packets until the source has noticed; return how many seconds that took."""
        self.flow()
        self._firewall.drop("forward")
        stopped = time.monotonic()
        wait_until(lambda: self.source.ask()["links"] != [True], "the source notices", NOTICED_SECONDS + SLACK_SECONDS)
        noticed = time.monotonic() - stopped
        self._firewall.pass_all()
        self.flow()
        return noticed

    def check(self) -> None:
        assert self.source.ask()["peers"] == (["sink"] if self._charter else [""])
        submitted = self.source.ask("halt")["submitted"]
        wait_until(lambda: seen(self.sink) == submitted, "everything arrives")
        told = self.sink.ask()
        assert told["problems"] == told["gaps"] == []
        assert len(told["spans"]["1"]) == 1
        assert told["first"]["1"] + told["counted"]["1"] == submitted


@pytest.mark.parametrize(("dialler", "secured"), PAIRS)
def test_a_half_open_connection_is_noticed_and_resumed(
    request: pytest.FixtureRequest, router: Router, start: Start, tmp_path: Path, dialler: str, secured: bool
) -> None:
    charter = secure(tmp_path, dialler) if secured else None
    pair, noticed = Pair(router, start, dialler, charter), list[float]()
    for _ in range(PAIRS.index((dialler, secured)), sized(request, "half_open"), len(PAIRS)):
        seconds = pair.cut()
        if seconds > NOTICED_SECONDS:  # the machine may have done something else for a moment
            seconds = pair.cut()
        noticed.append(seconds)
    pair.check()
    kind = "secured" if secured else "plain"
    print(f"{len(noticed)} {kind} cuts, dialled by the {dialler}: noticed after {max(noticed):.1f} s at most")
    assert max(noticed) <= NOTICED_SECONDS


def test_an_idle_half_open_connection_is_noticed_too(router: Router, start: Start) -> None:
    pair = Pair(router, start, "sink")
    pair.flow()
    pair.source.ask("halt")
    time.sleep(IDLE_SECONDS)
    router.firewall.drop("forward")
    wait_until(lambda: pair.source.ask()["links"] != [True], "the source notices", NOTICED_SECONDS + SLACK_SECONDS)


def test_a_cut_that_nobody_could_notice_is_not_noticed(router: Router, start: Start) -> None:
    """What is noticed is the cut: without a firewall nothing is, though it is looked for in the same way."""
    pair = Pair(router, start, "sink")
    pair.flow()
    with pytest.raises(AssertionError, match="the source notices"):
        wait_until(lambda: pair.source.ask()["links"] != [True], "the source notices", 1.0)


def test_hubs_that_wait_for_ever_for_a_silent_peer_are_found(
    router: Router, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "SLACK_SECONDS", 0.0)
    with pytest.raises(AssertionError, match="the source notices"):
        Pair(router, start, "sink", patient=True).cut()


def test_a_right_that_is_missing_is_found(router: Router, start: Start, tmp_path: Path) -> None:
    hosts = {"source": [SOURCE_HOST], "sink": [SINK_HOST]}
    charter = Charter.draw_up(tmp_path / "charter", {"source": ["publish,admin ticks"], "sink": []}, hosts)
    with pytest.raises(AssertionError, match="a worker ended"):
        Pair(router, start, "sink", charter).flow()
