"""Whoever finds the port: other versions, other protocols, garbage, floods, dawdlers, and peers that vanish."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from echoic import Hub
from echoic.channels.greeting import count_frame
from echoic.errors import EchoicError, UnreachableError
from echoic.links import parse_address
from echoic.wire import FrameKind, Hello, encode_frame, encode_hello
from tests.hub.parties import Collector, Tick, eventually

pytestmark = pytest.mark.system

HELLO = Hello(hub="stranger", address="127.0.0.1:1")


def framed(kind: FrameKind, payload: bytes) -> bytes:
    return b"".join(encode_frame(kind, [payload]))


def greeting(hello: Hello) -> bytes:
    return framed(FrameKind.HELLO, encode_hello(hello))


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as hub:
        hub.create("ticks", Tick)
        yield hub


def connect(hub: Hub) -> socket.socket:
    stranger = socket.create_connection(parse_address(hub.address))
    stranger.settimeout(20)
    return stranger


def answer_of(stranger: socket.socket) -> bytes:
    """Return all that is said until the other hangs up."""
    said = b""
    with contextlib.suppress(ConnectionError):
        while data := stranger.recv(65536):
            said += data
    return said


def check_healthy(hub: Hub) -> None:
    """A hub that behaves can still open a channel and be sent events."""
    with Hub() as honest:
        seen = Collector()
        honest.open(f"echoic://{hub.address}/ticks", Tick).subscribe(seen)
        with hub.open("ticks", Tick).source() as source:
            source.submit_sync(Tick(1, 1), timeout=60)
        assert seen.numbers == [1]


SAID = {
    "garbage": os.urandom(4096),
    "zeros": bytes(4096),
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": bytes.fromhex("16030100c8010000c40303") + bytes(200),
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "another version": greeting(Hello(version=2, hub="stranger", address="127.0.0.1:1")),
    "no hub": greeting(Hello(address="127.0.0.1:1")),
    "not a hello": framed(FrameKind.EVENTS, bytes(100)),
    "a claim of 16 MiB": (16 * 1024 * 1024).to_bytes(4, "little") + bytes([1, 0, 0, 0]) + bytes(8),
    "no session": greeting(HELLO) + count_frame(0, 0),
    "a hello of 2 MB": (2 * 1024 * 1024).to_bytes(4, "little") + bytes([1, 0, 0, 0]) + bytes(8 + 2 * 1024 * 1024),
    "text that is no address": greeting(Hello(hub="stranger", address="nowhere at all")) + count_frame(1, 0) + b"x",
}
BEHIND = {
    "garbage": os.urandom(4096),
    "events of no channel": framed(FrameKind.EVENTS, bytes(100)),
    "a count that cannot be": count_frame(7, 10**9),
    "an unknown message": framed(FrameKind.CONTROL, b"\x93\x01\xc2\x81\xa4what\xa4ever"),
    "a format that is none": framed(FrameKind.FORMATS, os.urandom(64)),
    "a short credit": framed(FrameKind.CREDITS, b"1"),
    "shared memory that is not there": framed(FrameKind.SHARED, bytes(16)),
    "half a frame": framed(FrameKind.CONTROL, bytes(1000))[:500],
}


@pytest.mark.parametrize("what", SAID)
def test_a_stranger_is_sent_away(hub: Hub, what: str) -> None:
    with connect(hub) as stranger:
        with contextlib.suppress(ConnectionError):
            stranger.sendall(SAID[what])
        if what not in {"text that is no address", "tls"}:  # of which the latter looks like half a frame
            said = answer_of(stranger)
            assert b"ticks" not in said
    check_healthy(hub)


@pytest.mark.parametrize("what", BEHIND)
def test_a_peer_that_greets_well_and_then_breaks_a_rule_is_given_up(hub: Hub, what: str) -> None:
    with connect(hub) as stranger:
        stranger.sendall(greeting(HELLO) + count_frame(7, 0) + BEHIND[what])
        if what == "half a frame":
            eventually(lambda: hub.statistics().links)
            stranger.close()
        else:
            answer_of(stranger)
    check_healthy(hub)


def test_a_hub_tells_which_version_a_peer_speaks() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, Hub() as hub:
        address = "{}:{}".format(*listening.getsockname())

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listening.accept()
                    with peer:
                        peer.sendall(greeting(Hello(version=9, hub="future", address=address)))
                        peer.recv(65536)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(UnreachableError, match="version 9 of the protocol, this program version 1"):
            hub.open(f"echoic://{address}/ticks")
        listening.shutdown(socket.SHUT_RDWR)


def test_a_hub_tells_that_a_port_is_another_protocols() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, Hub() as hub:

        def answer() -> None:
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listening.accept()
                    with peer:
                        peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                        peer.recv(65536)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(UnreachableError, match="another protocol"):
            hub.open("echoic://{}:{}/ticks".format(*listening.getsockname()))
        listening.shutdown(socket.SHUT_RDWR)


def test_a_flood_of_connections_keeps_no_honest_hub_away(hub: Hub) -> None:
    threads, descriptors = threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))
    flood = [connect(hub) for _ in range(500)]
    try:
        started = time.monotonic()
        check_healthy(hub)
        assert time.monotonic() - started < 40
        assert threading.active_count() - threads < 150
    finally:
        for stranger in flood:
            stranger.close()
    eventually(lambda: threading.active_count() <= threads, "threads return")
    eventually(lambda: len(list(Path("/proc/self/fd").iterdir())) <= descriptors, "descriptors return")


def dawdle(hub: Hub) -> float:
    """Say hello so slowly that it never ends; return after how many seconds the other hung up."""
    started = time.monotonic()
    with connect(hub) as stranger, contextlib.suppress(ConnectionError):
        for byte in greeting(HELLO) * 100:
            stranger.sendall(bytes([byte]))
            time.sleep(0.1)
            if time.monotonic() - started > 40:
                break
    return time.monotonic() - started


def test_those_who_dawdle_or_are_silent_are_given_up(hub: Hub) -> None:
    with ThreadPoolExecutor(1) as threads, socket.create_server(("127.0.0.1", 0)) as silent:
        dawdling = threads.submit(dawdle, hub)
        started = time.monotonic()
        with pytest.raises(EchoicError):
            hub.open("echoic://{}:{}/ticks".format(*silent.getsockname()))
        assert time.monotonic() - started < 40
        assert dawdling.result() < 40
    check_healthy(hub)


def test_peers_that_vanish_in_the_middle_of_a_frame_leave_nothing_behind(hub: Hub) -> None:
    stranger_hello = [Hello(hub=f"stranger{number}", address="127.0.0.1:1") for number in range(20)]
    for number, hello in enumerate(stranger_hello):
        with connect(hub) as stranger:
            stranger.sendall(greeting(hello) + count_frame(number + 1, 0) + framed(FrameKind.CONTROL, bytes(999))[:200])
            eventually(lambda hello=hello: any(link.hub == hello.hub for link in hub.statistics().links) or True)
    check_healthy(hub)
    eventually(lambda: len(hub.statistics().links) <= 1, "the strangers are forgotten")


def test_a_hub_that_nobody_answers_for_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = "{}:{}".format(*listening.getsockname())
    with Hub() as hub:
        started = time.monotonic()
        with pytest.raises(UnreachableError, match="no hub answers at"):
            hub.open(f"echoic://{address}/ticks")
        assert time.monotonic() - started < 8
