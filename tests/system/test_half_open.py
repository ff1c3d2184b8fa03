"""A connection that dies without a word: noticed, resumed, and nothing lost, repeated or out of order.

Two network namespaces with a router between them. When the router forwards no more, both sides keep their sockets and
hear nothing: neither an end nor a reset.

    source 10.77.1.2 ---- 10.77.1.1 router 10.77.2.1 ---- 10.77.2.2 sink
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from typing import Self

import pytest

from tests.system.processes import Process, Start, processes, wait_until

NOTICED_SECONDS = 5.0
SLACK_SECONDS = 5.0  # for a machine that does other work


def run(command: str, *, check: bool = True) -> bool:
    return subprocess.run(command.split(), check=check, capture_output=True).returncode == 0


def can_make_namespaces() -> bool:
    if os.geteuid() or shutil.which("ip") is None:
        return False
    name = f"echoic-{os.getpid()}"
    made = run(f"ip netns add {name}", check=False)
    return made and run(f"ip netns exec {name} ip link set lo up", check=False) and run(f"ip netns del {name}")


pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(not can_make_namespaces(), reason="needs root and network namespaces"),
]


class Router:
    """Joins two namespaces, until it is told not to."""

    def __init__(self) -> None:
        self._tag = f"ec{os.getpid() % 100_000}"
        self.left, self.middle, self.right = (f"{self._tag}{side}" for side in "lmr")

    def __enter__(self) -> Self:
        for name in (self.left, self.middle, self.right):
            run(f"ip netns add {name}")
            run(f"ip -n {name} link set lo up")
        for side, number in ((self.left, 1), (self.right, 2)):
            run(f"ip link add {side}a netns {side} type veth peer name {side}b netns {self.middle}")
            run(f"ip -n {side} addr add 10.77.{number}.2/24 dev {side}a")
            run(f"ip -n {self.middle} addr add 10.77.{number}.1/24 dev {side}b")
            run(f"ip -n {side} link set {side}a up")
            run(f"ip -n {self.middle} link set {side}b up")
            run(f"ip -n {side} route add default via 10.77.{number}.1")
        self.forward(True)
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self.left, self.middle, self.right):
            run(f"ip netns del {name}", check=False)

    def forward(self, does: bool) -> None:
        """Forward packets, or lose them silently: without forwarding the system tells nobody."""
        script = f"echo {int(does)} > /proc/sys/net/ipv4/ip_forward"
        subprocess.run(["ip", "netns", "exec", self.middle, "sh", "-c", script], check=True)


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


@pytest.mark.parametrize("dialler", ["sink", "source"])
def test_a_half_open_connection_is_noticed_and_resumed(router: Router, start: Start, dialler: str) -> None:
    left = {"prefix": ["ip", "netns", "exec", router.left], "listen": "10.77.1.2:0", "insecure": True}
    right = {"prefix": ["ip", "netns", "exec", router.right], "listen": "10.77.2.2:0", "insecure": True}
    if dialler == "sink":
        source = start("publish", channel="ticks", create=True, producer=1, pause=0.01, pause_every=20, **left)
        sink = start("watch", channel=source.started["id"], **right)
    else:
        sink = start("watch", channel="ticks", create=True, **right)
        source = start("publish", channel=sink.started["id"], producer=1, pause=0.01, pause_every=20, **left)
    wait_until(lambda: seen(sink) > 500, "events flow")
    router.forward(False)
    stopped = time.monotonic()
    wait_until(lambda: source.ask()["links"] != [True], "the source notices", NOTICED_SECONDS + SLACK_SECONDS)
    noticed = time.monotonic() - stopped
    router.forward(True)
    before = seen(sink)
    wait_until(lambda: seen(sink) > before + 500, "events flow again")
    submitted = source.ask("halt")["submitted"]
    wait_until(lambda: seen(sink) == submitted, "everything arrives")
    told = sink.ask()
    assert told["problems"] == []
    assert told["gaps"] == []
    assert len(told["spans"]["1"]) == 1
    assert told["first"]["1"] + told["counted"]["1"] == submitted
    print(f"noticed after {noticed:.1f} s")


def test_an_idle_half_open_connection_is_noticed_too(router: Router, start: Start) -> None:
    left = {"prefix": ["ip", "netns", "exec", router.left], "listen": "10.77.1.2:0", "insecure": True}
    right = {"prefix": ["ip", "netns", "exec", router.right], "listen": "10.77.2.2:0", "insecure": True}
    source = start("publish", channel="ticks", create=True, producer=1, pause=0.01, pause_every=20, **left)
    sink = start("watch", channel=source.started["id"], **right)
    wait_until(lambda: seen(sink) > 100, "events flow")
    source.ask("halt")
    router.forward(False)
    wait_until(lambda: source.ask()["links"] != [True], "the source notices", NOTICED_SECONDS + SLACK_SECONDS)
