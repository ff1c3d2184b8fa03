"""Sockets: how they are set, and that a peer which vanished without a word is noticed."""

import itertools
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from echoic.links import Connection, Listener, dial, listener
from echoic.links.sockets import RECEIVE_BYTES, RECEIVE_BYTES_CALM, SocketConnection
from tests.links.conftest import Connect

HERE, THERE = "198.51.100.1", "198.51.100.2"
NUMBERS = itertools.count()


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_both_ends_of_tcp_notice_a_vanished_peer_within_seconds(kind: str, end: int, connect: Connect) -> None:
    connection = connect(kind)[end]
    assert isinstance(connection, SocketConnection)
    options = connection._socket.getsockopt  # noqa: SLF001
    assert options(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    assert options(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert options(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 1
    assert options(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 1
    assert options(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3
    assert options(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 3000


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def far_away() -> Iterator[tuple[str, str]]:
    """A network of two machines, so to speak; yield the names of the other one and of the cable between them."""
    if os.getuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and `ip` to make a network")
    namespace, cable = f"echoic{os.getpid()}-{next(NUMBERS)}", f"e{os.getpid()}-{next(NUMBERS)}"
    try:
        ip("netns", "add", namespace)
    except subprocess.CalledProcessError:
        pytest.skip("cannot make network namespaces here")
    try:
        ip("link", "add", cable, "type", "veth", "peer", "name", "far", "netns", namespace)
        ip("address", "add", f"{HERE}/24", "dev", cable)
        ip("link", "set", cable, "up")
        for command in (("address", "add", f"{THERE}/24", "dev", "far"), ("link", "set", "far", "up")):
            ip("-netns", namespace, *command)
        yield namespace, cable
    except subprocess.CalledProcessError:
        pytest.skip("cannot make a cable here")
    finally:
        ip("netns", "delete", namespace)


def wait_for_end(connection: Connection) -> float:
    began = time.monotonic()
    try:
        while time.monotonic() - began < 10:
            assert connection.receive() is None
    except OSError:
        pass
    return time.monotonic() - began


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("sending", [False, True])
def test_a_cable_that_was_pulled_is_noticed_within_seconds(far_away: tuple[str, str], sending: bool) -> None:
    namespace, cable = far_away
    listening = Listener(f"{HERE}:0")
    script = f"import time; from echoic.links import dial; c = dial({listening.address!r}); time.sleep(30)"
    command = ["ip", "netns", "exec", namespace, sys.executable, "-c", script]
    with subprocess.Popen(command) as process:
        accepted = listening.accept(10_000)
        assert accepted is not None
        assert accepted.checked
        ip("link", "set", cable, "down")
        if sending:
            accepted.send([bytes(1000)])
        assert wait_for_end(accepted) < 6
        process.kill()
    accepted.close()
    listening.close()


def test_a_connection_over_tcp_that_leaves_the_machine_is_checked() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("198.51.100.9", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        own = probe.getsockname()[0]
    listening = Listener(f"{own}:0")
    listener._listeners.remove(listening)  # noqa: SLF001 - as if another process listened
    dialled, accepted = dial(listening.address), listening.accept(1000)
    assert accepted is not None
    assert dialled.checked
    assert accepted.checked
    for each in (dialled, accepted, listening):
        each.close()


def test_a_connection_asks_for_as_much_as_comes() -> None:
    """Rooms of 64 KB for a few bytes, shrunk each time, made the heap of a calm hub creep."""
    ours, theirs = socket.socketpair()
    with theirs:
        connection = SocketConnection(ours, "peer", checked=False)
        theirs.sendall(b"x" * 100)
        assert len(connection.receive()) == 100
        assert connection._receive_bytes == RECEIVE_BYTES_CALM  # noqa: SLF001 - it is seen nowhere else
        theirs.sendall(b"x" * RECEIVE_BYTES_CALM)
        assert len(connection.receive()) == RECEIVE_BYTES_CALM
        assert connection._receive_bytes == RECEIVE_BYTES  # noqa: SLF001 - likewise
        connection.close()
