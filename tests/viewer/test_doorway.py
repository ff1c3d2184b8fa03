"""The doorway of the page: strangers are counted before TLS, and those who were let in by where they come from."""

import asyncio
import contextlib
import http.client
import os
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import echoic
from echoic.links import STRANGERS_MAX, gate, parse_address
from echoic.links.gate import Caller
from echoic.viewer import Viewer
from echoic.viewer.doorway import CONNECTIONS_MAX, FROM_ONE_ADDRESS_MAX, REQUEST_LOOKS, Entrance, Visit
from tests.links.certificates import Authority
from tests.system.processes import wait_until

pytestmark = pytest.mark.system
FLOOD = 600
GROWTH_BYTES_MAX = 64 * 2**20
SECONDS = 60.0
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Served:
    """A page by TLS, and how to ask it."""

    def __init__(self, viewer: Viewer, authority: Path) -> None:
        self.viewer = viewer
        self.context = ssl.create_default_context(cafile=str(authority))

    def asked(self) -> int:
        connection = http.client.HTTPSConnection(self.viewer.address, timeout=SECONDS, context=self.context)
        with contextlib.closing(connection):
            connection.request("GET", "/", headers={"Authorization": f"Bearer {self.viewer.token}"})
            return connection.getresponse().status


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    authority = Authority(tmp_path)
    identity = authority.issue("127.0.0.1")
    with echoic.Hub() as hub, Viewer(hub, "127.0.0.1:0", certificate=identity.certificate, key=identity.key) as viewer:
        yield Served(viewer, authority.path)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE_BYTES


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01"])
def test_a_flood_of_silent_connections_costs_a_page_by_tls_so_much_and_honest_requests_are_answered(
    served: Served, said: bytes
) -> None:
    assert served.asked() == 200
    bytes_before, descriptors_before = resident(), descriptors()
    with contextlib.ExitStack() as stack:
        for number in range(FLOOD):
            stranger = stack.enter_context(socket.create_connection(parse_address(served.viewer.address), SECONDS))
            with contextlib.suppress(ConnectionError):  # it was sent away already
                stranger.sendall(said)
            if number % 100 == 0:
                assert served.asked() == 200
        wait_until(lambda: descriptors() - descriptors_before - FLOOD <= STRANGERS_MAX, "the others were sent away")
        assert resident() - bytes_before < GROWTH_BYTES_MAX
        assert served.asked() == 200


def test_who_shook_hands_and_asks_for_nothing_is_a_stranger_still(served: Served) -> None:
    address = parse_address(served.viewer.address)
    with contextlib.ExitStack() as stack:
        silent = [
            stack.enter_context(
                served.context.wrap_socket(socket.create_connection(address, SECONDS), server_hostname="127.0.0.1")
            )
            for _ in range(STRANGERS_MAX + 1)
        ]
        assert served.asked() == 200
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            silent[0].settimeout(1.0)  # well before anybody is too slow
            assert silent[0].recv(100) == b""


def room(*hosts: str, who: str = "") -> list[str]:
    """Return what visits from these hosts are told, which come in one after the other in a name and stay."""

    async def enter() -> list[str]:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            entrance = Entrance(lambda: None, listening, None)
            callers = [Caller(listening, f"{host}:{port}") for port, host in enumerate(hosts, 1)]
            told = [Visit(entrance, caller).enter(who) for caller in callers]
            entrance.close()
            return told

    return asyncio.run(enter())


def test_a_network_of_ipv6_has_the_room_of_one_address() -> None:
    told = room(*(f"[2001:db8::{number:x}]" for number in range(FROM_ONE_ADDRESS_MAX + 1)), "[2001:db8:0:1::1]")
    assert [bool(each) for each in told] == [False] * FROM_ONE_ADDRESS_MAX + [True, False]
    assert "from this address" in told[-2]


def test_there_is_room_for_so_many_in_all_also_from_this_machine() -> None:
    told = room(*["127.0.0.1"] * (CONNECTIONS_MAX + 1))
    assert [bool(each) for each in told] == [False] * CONNECTIONS_MAX + [True]


def refused(served: Served, stack: contextlib.ExitStack) -> ssl.SSLSocket:
    """Return a connection that has asked for the feed without a token, was refused, and stays."""
    plain = stack.enter_context(socket.create_connection(parse_address(served.viewer.address), SECONDS))
    made = stack.enter_context(
        served.context.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False)
    )
    made.sendall(
        f"GET /feed HTTP/1.1\r\nHost: {served.viewer.address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    assert made.recv(4096).startswith(b"HTTP/1.1 403")
    return made


def test_tabs_that_are_refused_and_stay_do_not_keep_the_page_from_others(
    served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "PARTING_SECONDS", SECONDS)  # as if asyncio waited for all of them
    descriptors_before = descriptors()
    with contextlib.ExitStack() as stack:
        for number in range(2 * STRANGERS_MAX):
            refused(served, stack)
            if number % 16 == 15:
                assert served.asked() == 200
        ours = 2 * STRANGERS_MAX
        wait_until(lambda: descriptors() - descriptors_before - ours <= STRANGERS_MAX, "the others were sent away")
        wait_until(lambda: descriptors() - descriptors_before - ours <= 1, "who says nothing more is sent away in time")
        refused(served, stack)
        served.viewer.close()
    assert not [record for record in caplog.records if record.exc_info]


def test_who_is_refused_and_does_not_take_leave_is_gone_soon(served: Served) -> None:
    with contextlib.ExitStack() as stack:
        begun = time.monotonic()
        made = refused(served, stack)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while socket.socket.recv(made, 4096):  # what comes below TLS, so that nobody takes leave
                pass
        assert time.monotonic() - begun < REQUEST_LOOKS - 1


def test_one_name_has_a_quarter_of_the_connections_also_from_this_machine() -> None:
    told = room(*["127.0.0.1"] * (CONNECTIONS_MAX // 4 + 1), who="mallory")
    assert [bool(each) for each in told] == [False] * (CONNECTIONS_MAX // 4) + [True]
    assert "for `mallory`" in told[-1]


def test_a_place_is_given_back_when_a_visit_ends() -> None:
    async def come_and_go() -> set[str]:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            entrance, told = Entrance(lambda: None, listening, None), set()
            for port in range(1, CONNECTIONS_MAX + 2):
                visit = Visit(entrance, Caller(listening, f"127.0.0.1:{port}"))
                told.add(visit.enter("alice"))
                visit.leave()
                visit.leave()  # as a connection does that was closed while it was one of HTTP and of a WebSocket
            entrance.close()
            return told

    assert asyncio.run(come_and_go()) == {""}


def test_who_was_let_in_has_only_so_long_for_the_rest_of_the_next_request(served: Served) -> None:
    request = f"GET / HTTP/1.1\r\nHost: {served.viewer.address}\r\nAuthorization: Bearer {served.viewer.token}\r\n\r\n"
    with (
        socket.create_connection(parse_address(served.viewer.address), SECONDS) as plain,
        served.context.wrap_socket(plain, server_hostname="127.0.0.1", suppress_ragged_eofs=False) as slow,
    ):
        begun = time.monotonic()
        while time.monotonic() - begun < REQUEST_LOOKS + 2:  # who asks again and again may stay
            slow.sendall(request.encode())
            head = b""
            while b"</html>" not in head:
                received = slow.recv(65536)
                assert received
                head += received
            time.sleep(0.5)
        slow.sendall(b"G")
        begun = time.monotonic()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while slow.recv(65536):
                pass
        assert time.monotonic() - begun < 3 * REQUEST_LOOKS
