"""Listeners and diallers: who meets by which way, and what strangers cannot do to a listener."""

import os
import resource
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from echoic.errors import AddressError, UnreachableError
from echoic.links import Connection, Listener, dial, listener, parse_address, unix_path
from echoic.links.memory import MemoryConnection
from echoic.links.sockets import SocketConnection
from echoic.links.unix import UnixConnection

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: do not say goodbye


@pytest.fixture
def listening() -> Iterator[Listener]:
    listening = Listener("127.0.0.1:0")
    yield listening
    listening.close()


@pytest.fixture
def elsewhere(listening: Listener) -> Listener:
    """The listener, as diallers of another process see it."""
    listener._listeners.remove(listening)  # noqa: SLF001
    return listening


def meet(listening: Listener, address: str = "") -> type[Connection]:
    """Connect and return by which way."""
    dialled = dial(address or listening.address)
    accepted = listening.accept(1000)
    assert accepted is not None
    assert type(accepted) is type(dialled)
    dialled.send([b"hello"])
    received = accepted.receive() or accepted.receive()
    assert received == b"hello"
    dialled.close()
    accepted.close()
    return type(dialled)


def dial_tcp(listening: Listener) -> socket.socket:
    return socket.create_connection(parse_address(listening.address))


def test_within_a_process_no_socket_is_used(listening: Listener) -> None:
    assert meet(listening) is MemoryConnection
    assert meet(listening, f"localhost:{listening.port}") is MemoryConnection


def test_on_one_machine_the_unix_socket_is_used(elsewhere: Listener) -> None:
    assert meet(elsewhere) is UnixConnection
    assert meet(elsewhere, f"localhost:{elsewhere.port}") is UnixConnection


def test_a_listener_at_every_interface_has_a_unix_socket_too() -> None:
    listening = Listener("0.0.0.0:0")
    assert meet(listening, f"127.0.0.1:{listening.port}") is MemoryConnection
    listener._listeners.remove(listening)  # noqa: SLF001
    assert meet(listening, f"127.0.0.1:{listening.port}") is UnixConnection
    listening.close()


def test_tcp_is_used_when_nobody_answers_at_the_unix_socket(elsewhere: Listener) -> None:
    path = unix_path(elsewhere.port)
    assert path is not None
    path.unlink()
    assert meet(elsewhere) is SocketConnection
    path.touch()
    assert meet(elsewhere) is SocketConnection
    path.unlink()
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    assert meet(elsewhere) is SocketConnection


def test_two_loopback_addresses_with_one_port_are_two_listeners(listening: Listener) -> None:
    other = Listener(f"127.0.0.2:{listening.port}")
    dialled = dial(other.address)
    assert listening.accept(20) is None
    accepted = other.accept(1000)
    assert accepted is not None
    listener._listeners.clear()  # noqa: SLF001
    assert meet(other) is SocketConnection
    assert meet(listening) is UnixConnection
    for each in (dialled, accepted, other):
        each.close()


def test_listening_works_on_version_6_too() -> None:
    try:
        listening = Listener("[::1]:0")
    except UnreachableError:
        pytest.skip("no IPv6 here")
    assert listening.address == f"[::1]:{listening.port}"
    listener._listeners.remove(listening)  # noqa: SLF001
    assert meet(listening) is SocketConnection
    listening.close()


def test_a_socket_that_a_killed_hub_left_behind_is_replaced() -> None:
    first = Listener("127.0.0.1:0")
    path = unix_path(first.port)
    assert path is not None
    first.close()
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    second = Listener(first.address)
    listener._listeners.remove(second)  # noqa: SLF001
    assert meet(second) is UnixConnection
    second.close()


def test_closing_removes_the_unix_socket_and_may_be_repeated(listening: Listener) -> None:
    path = unix_path(listening.port)
    assert path is not None
    assert path.exists()
    listening.close()
    listening.close()
    assert not path.exists()
    assert listening.accept(1000) is None
    with pytest.raises(UnreachableError, match="no hub answers at"):
        dial(listening.address)


def test_closing_wakes_whoever_accepts(listening: Listener) -> None:
    accepting = threading.Thread(target=listening.accept, args=(1_000_000,))
    accepting.start()
    time.sleep(0.05)
    listening.close()
    accepting.join(60)
    assert not accepting.is_alive()


def test_closing_ends_connections_that_nobody_accepted(listening: Listener) -> None:
    dialled = dial(listening.address)
    listening.close()
    assert dialled.receive() == b""
    dialled.close()


def test_an_address_in_use_cannot_be_listened_at(listening: Listener) -> None:
    with pytest.raises(UnreachableError, match=f"cannot listen at {listening.address}: Address already in use"):
        Listener(listening.address)
    assert meet(listening) is MemoryConnection


@pytest.mark.parametrize("address", ["203.0.113.1:0", "no-such-host.invalid:0"])
def test_an_address_of_another_machine_cannot_be_listened_at(address: str) -> None:
    with pytest.raises(UnreachableError, match=f"cannot listen at {address}"):
        Listener(address)


def test_no_address_is_no_address() -> None:
    with pytest.raises(AddressError):
        Listener("nowhere")
    with pytest.raises(AddressError):
        dial("nowhere")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:1", "no-such-host.invalid:1", "." * 70 + ":1"])
def test_nobody_answers_where_nobody_listens(address: str) -> None:
    with pytest.raises(UnreachableError, match="no hub answers at"):
        dial(address)


def test_a_dialler_never_connects_to_itself() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    own = socket.socket()
    own.bind(("127.0.0.1", port))
    own.connect(("127.0.0.1", port))  # what the system does by chance, once in some ten thousand times
    assert own.getsockname() == own.getpeername()
    own.close()
    with pytest.raises(UnreachableError):
        dial(f"127.0.0.1:{port}")


def test_a_dialler_that_connected_to_itself_says_that_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect_to_itself(address: tuple[str, int], _: float) -> socket.socket:
        own = socket.socket()
        own.bind(("127.0.0.1", 0))
        own.connect(own.getsockname())
        return own

    monkeypatch.setattr(socket, "create_connection", connect_to_itself)
    with pytest.raises(UnreachableError, match="Connection refused"):
        dial("127.0.0.1:7401")


def test_a_flood_of_connections_is_accepted(listening: Listener) -> None:
    strangers = [dial_tcp(listening) for _ in range(300)]
    accepted = [listening.accept(1000) for _ in strangers]
    assert None not in accepted
    for each in (*strangers, *accepted):
        if each is not None:
            each.close()


def test_more_connections_within_a_process_than_can_wait_are_refused(listening: Listener) -> None:
    dialled = [dial(listening.address) for _ in range(listener.BACKLOG)]
    with pytest.raises(UnreachableError, match="512 connections wait"):
        dial(listening.address)
    for each in dialled:
        each.close()
    while (accepted := listening.accept(0)) is not None:
        accepted.close()
    assert meet(listening) is MemoryConnection


def test_connections_that_were_reset_before_they_were_accepted_do_no_harm(elsewhere: Listener) -> None:
    for _ in range(20):
        stranger = dial_tcp(elsewhere)
        stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        stranger.close()
    for _ in range(20):
        accepted = elsewhere.accept(50)
        if accepted is not None:
            with pytest.raises(OSError, match="reset"):
                accepted.receive()
            accepted.close()
    assert meet(elsewhere) is UnixConnection


def test_a_unix_peer_that_left_before_it_was_accepted_is_still_heard(elsewhere: Listener) -> None:
    dialled = dial(elsewhere.address)
    dialled.send([b"last words"])
    dialled.close()
    accepted = elsewhere.accept(1000)
    assert accepted is not None
    assert accepted.receive() == b"last words"
    accepted.close()


def test_a_listener_survives_a_lack_of_file_descriptors(elsewhere: Listener) -> None:
    stranger = dial_tcp(elsewhere)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = os.dup(0)
    os.close(highest)
    began = time.monotonic()
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest, limits[1]))
    try:
        refused = [elsewhere.accept(100) for _ in range(3)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert refused == [None] * 3
    assert 0.1 < time.monotonic() - began < 20  # neither spinning nor stuck
    accepted = elsewhere.accept(1000)
    assert accepted is not None
    accepted.close()
    stranger.close()


def test_garbage_from_a_stranger_is_handed_over_as_it_is(elsewhere: Listener) -> None:
    with dial_tcp(elsewhere) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        accepted = elsewhere.accept(1000)
        assert accepted is not None
        assert accepted.receive() == b"GET / HTTP/1.1\r\n\r\n"
        accepted.close()


def test_a_child_process_does_not_dial_the_listener_it_inherited(listening: Listener) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        dialled = dial(listening.address)
        os.write(writing, type(dialled).__name__.encode())
        os._exit(0)
    os.close(writing)
    accepted = listening.accept(2000)
    assert os.read(reading, 100) == b"UnixConnection"
    os.waitpid(child, 0)
    os.close(reading)
    assert accepted is not None
    accepted.close()


def test_another_process_meets_by_the_unix_socket(listening: Listener) -> None:
    script = f"""
from echoic.links import dial
connection = dial({listening.address!r})
frame = bytes(1_000_000)
shared = connection.share([frame], len(frame))
connection.send([shared])
while (data := connection.receive()) is None:
    pass
print(type(connection).__name__, data.decode())
connection.close()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        accepted = listening.accept(10_000)
        assert accepted is not None
        shared = None
        while shared is None:
            shared = accepted.receive()
        assert accepted.unshare(shared[16:]) == bytes(1_000_000)
        accepted.send([b"thanks"])
        assert process.communicate(timeout=60)[0] == "UnixConnection thanks\n"
        assert accepted.peer == f"process {process.pid}"
    accepted.close()
