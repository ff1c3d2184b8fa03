"""The doorway before the bridge to Foxglove: strangers, floods and others' pages end there; clients do not notice."""

import contextlib
import logging
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from echoic.errors import EchoicError, LimitExceededError, MalformedFrameError
from echoic.interop import doorway as doorway_module
from echoic.interop.client_frames import ClientFrames
from echoic.interop.doorway import Doorway
from echoic.interop.exposure import exposed
from echoic.interop.upgrade import refusal_of
from echoic.links import STRANGERS_MAX, gate
from tests.links.certificates import Authority
from tests.system.processes import wait_until

PAGE = "https://app.foxglove.dev"
PATIENCE_SECONDS = 30.0
Open = Callable[..., tuple[Doorway, str]]


@pytest.fixture
def server() -> Iterator[int]:
    """A server without limits, which says back what it is told, or very much of it."""

    def answer(client: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            for said in client:
                client.send(said if said != "flood" else "x" * 30_000_000)

    with serve(answer, "127.0.0.1", 0, max_size=None, compression=None) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made.socket.getsockname()[1]
        made.shutdown()
        thread.join()


@pytest.fixture
def open_doorway(server: int) -> Iterator[Open]:
    with contextlib.ExitStack() as stack:

        def make(listen: str = "127.0.0.1:0", **options: Any) -> tuple[Doorway, str]:
            place = exposed(listen, options.get("certificate"), insecure=True)
            made = Doorway(place, ("127.0.0.1", server), (PAGE,))
            stack.callback(made.close)
            return made, place.url("ws", made.port)

        yield make


def look(url: str, **options: Any) -> ClientConnection:
    return connect(url, compression=None, open_timeout=PATIENCE_SECONDS, max_size=None, **options)


def test_a_client_comes_through_both_ways(open_doorway: Open) -> None:
    _, url = open_doorway()
    with look(url) as client:
        for said in ("hello", "x" * 100_000, b"\0" * 70_000):
            client.send(said)
            assert client.recv(PATIENCE_SECONDS) == said
        client.send("flood")
        assert len(client.recv(PATIENCE_SECONDS)) == 30_000_000


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://127.0.0.1:80", "null", "https://app.foxglove.dev.evil"]
)
def test_pages_of_others_may_not_look_and_that_is_told_once(
    open_doorway: Open, origin: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, url = open_doorway()
    for _ in range(3):
        with pytest.raises(InvalidStatus) as refused, look(url, origin=origin):
            pass
        assert refused.value.response.status_code == 403
    told = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [origin in record.getMessage() for record in told] == [True]


@pytest.mark.parametrize("origin", [None, PAGE, "file://", "app://foxglove"])
def test_programs_and_pages_that_were_named_may_look(open_doorway: Open, origin: Any) -> None:
    _, url = open_doorway()
    with look(url, origin=origin) as client:
        client.send("hello")
        assert client.recv(PATIENCE_SECONDS) == "hello"


def test_an_origin_that_is_there_twice_and_what_is_no_request_are_refused() -> None:
    twice = b"GET / HTTP/1.1\r\nOrigin: file://\r\nORIGIN : https://evil.example\r\n\r\n"
    assert "twice" in refusal_of(twice, (PAGE,))
    for request in (b"POST / HTTP/1.1\r\n\r\n", b"\r\n\r\n", b"GET /\r\n\r\n", b"\xff\xfe\r\n\r\n"):
        assert "nothing but a WebSocket" in refusal_of(request, (PAGE,))
    assert not refusal_of(b"GET / HTTP/1.1\r\nOrigin: HTTPS://APP.foxglove.dev\r\n\r\n", (PAGE + "/",))


def ended(connection: socket.socket) -> bool:
    """Whether the other side has hung up, within a patience that no honest limit exceeds."""
    connection.settimeout(PATIENCE_SECONDS)
    try:
        while connection.recv(65_536):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000])
def test_a_stranger_who_does_not_come_to_the_point_is_hung_up(
    open_doorway: Open, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorway_module, "STRANGER_SECONDS", 0.3)
    made, _ = open_doorway()
    with socket.create_connection(("127.0.0.1", made.port)) as stranger:
        with contextlib.suppress(ConnectionError):
            stranger.sendall(said)
        assert ended(stranger)


def test_a_stranger_who_drips_is_hung_up_all_the_same(open_doorway: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorway_module, "STRANGER_SECONDS", 0.5)
    made, _ = open_doorway()
    with socket.create_connection(("127.0.0.1", made.port)) as stranger, contextlib.suppress(ConnectionError):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            stranger.sendall(b"G")
            time.sleep(0.05)
        pytest.fail("it may drip for ever")


def test_silent_strangers_keep_nobody_out(open_doorway: Open) -> None:
    made, url = open_doorway()
    strangers = [socket.create_connection(("127.0.0.1", made.port)) for _ in range(100)]
    try:
        with look(url) as client:
            client.send("hello")
            assert client.recv(PATIENCE_SECONDS) == "hello"
        assert ended(strangers[0]), "the eldest of a crowd has to leave"
    finally:
        for stranger in strangers:
            stranger.close()


def test_there_is_room_for_so_many_clients_and_for_others_when_one_leaves(
    open_doorway: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorway_module, "CLIENTS_MAX", 3)
    _, url = open_doorway()

    def has_room() -> bool:
        try:
            with look(url):
                return True
        except InvalidStatus as error:
            assert error.response.status_code == 503  # noqa: PT017 - nothing else may refuse
            return False

    with look(url), look(url):
        with look(url):
            assert not has_room()
        wait_until(has_room, "there is room for one more")


def test_one_address_of_another_machine_has_a_share_of_the_room(
    open_doorway: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorway_module, "FROM_ONE_ADDRESS_MAX", 1)
    monkeypatch.setattr(doorway_module, "is_loopback", lambda _: False)  # the one machine there is plays all of them
    _, url = open_doorway()
    with look(url), pytest.raises(InvalidStatus) as refused, look(url):
        pass
    assert refused.value.response.status_code == 503


def test_a_message_larger_than_any_client_has_to_say_ends_the_connection(open_doorway: Open) -> None:
    _, url = open_doorway()
    for said in ("x" * 300_000, ["x" * 20_000] * 30):  # whole, and in fragments
        with look(url) as client:
            with contextlib.suppress(ConnectionClosed):
                client.send(said)
            with pytest.raises(ConnectionClosed):
                client.recv(PATIENCE_SECONDS)


def test_a_client_that_does_not_read_is_hung_up(open_doorway: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorway_module, "STALLED_SECONDS", 0.5)
    made, _ = open_doorway()
    with socket.create_connection(("127.0.0.1", made.port)) as client:
        client.sendall(
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        assert client.recv(100).startswith(b"HTTP/1.1 101")
        client.sendall(b"\x81\x85\0\0\0\0flood")
        wait_until(lambda: not made._clients.total(), "it is hung up")  # noqa: SLF001 - it does not read, so cannot tell


def test_tls_has_its_limits_too(open_doorway: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorway_module, "STRANGER_SECONDS", 2.0)
    authority = Authority(tmp_path)
    identity = authority.issue("shown")
    made, url = open_doorway(certificate=(identity.certificate, identity.key))
    context = ssl.create_default_context(cafile=str(authority.path))
    with look(url, ssl=context) as client, socket.create_connection(("127.0.0.1", made.port)) as stranger:
        assert ended(stranger), "nobody waits for a handshake without end"
        client.send("hello")
        assert client.recv(PATIENCE_SECONDS) == "hello"
    with socket.create_connection(("127.0.0.1", made.port)) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert ended(plain)


def test_who_is_refused_and_stays_is_a_stranger_still(
    open_doorway: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PARTING_SECONDS", PATIENCE_SECONDS)  # as if asyncio waited for all of them
    authority = Authority(tmp_path)
    identity = authority.issue("127.0.0.1")
    trusting = ssl.create_default_context(cafile=str(authority.path))
    monkeypatch.setattr(doorway_module, "STRANGER_SECONDS", PATIENCE_SECONDS)
    made, _ = open_doorway(certificate=(identity.certificate, identity.key))
    every = list[ssl.SSLSocket]()
    with contextlib.ExitStack() as stack:
        for _ in range(STRANGERS_MAX + 8):
            plain = stack.enter_context(socket.create_connection(("127.0.0.1", made.port), PATIENCE_SECONDS))
            stays = stack.enter_context(trusting.wrap_socket(plain, server_hostname="127.0.0.1"))
            stays.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nOrigin: https://evil.example\r\n\r\n")
            assert stays.recv(100).startswith(b"HTTP/1.1 403")
            every.append(stays)
        assert made._gate.strangers == STRANGERS_MAX  # noqa: SLF001 - nobody else can tell
        assert ended(every[0]), "the eldest has to leave"


def test_a_doorway_that_is_closed_hangs_up_on_everybody(open_doorway: Open) -> None:
    made, url = open_doorway()
    with look(url) as client, socket.create_connection(("127.0.0.1", made.port)) as stranger:
        made.close()
        made.close()
        assert ended(stranger)
        with pytest.raises(ConnectionClosed):
            client.recv(PATIENCE_SECONDS)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", made.port))


def frame(opcode: int, length: int, *, fin: bool = True, masked: bool = True) -> bytes:
    mark = 128 if masked else 0
    if length < 126:
        size = bytes([mark | length])
    elif length < 65_536:
        size = bytes([mark | 126]) + struct.pack(">H", length)
    else:
        size = bytes([mark | 127]) + struct.pack(">Q", length)
    return bytes([(128 if fin else 0) | opcode]) + size + bytes(4 if masked else 0)


PARTS = st.tuples(st.sampled_from([0, 1, 2, 9]), st.integers(0, 70_000), st.booleans(), st.booleans())


@given(st.lists(PARTS, max_size=8), st.integers(1, 5000))
def test_what_is_measured_does_not_depend_on_how_the_stream_is_cut(
    parts: list[tuple[int, int, bool, bool]], step: int
) -> None:
    total, refused, stream = 0, "", b""
    for opcode, length, fin, masked in parts:
        stream += frame(opcode, length, fin=fin, masked=masked) + b"\xaa" * length
        if opcode == 9:
            refused = refused or ("control" if length > 125 else "")
        else:
            total = total + length if opcode == 0 else length
            refused = refused or ("message" if total > 100_000 else "")
    frames = ClientFrames(100_000)
    expected: type[EchoicError] = MalformedFrameError if refused == "control" else LimitExceededError
    with pytest.raises(expected, match=refused) if refused else contextlib.nullcontext():
        for start in range(0, len(stream), step):
            frames.measure(stream[start : start + step])


def test_a_frame_that_claims_all_the_memory_is_refused_by_its_header() -> None:
    with pytest.raises(LimitExceededError, match="9223372036854775807"):
        ClientFrames().measure(frame(1, 0)[:1] + bytes([128 | 127]) + struct.pack(">Q", 2**63 - 1) + bytes(4))
