"""The HTTP server of a replicated service, against clients that are slow, many, hostile or of another authority."""

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic import Identity
from echoic.errors import AddressError, InsecureError
from echoic.links import STRANGERS_MAX
from echoic.replicas import http_server
from echoic.replicas.http_server import BODY_BYTES_MAX, HEAD_BYTES_MAX, Answer, HttpServer, Request
from echoic.testing.trials.tls_expiry import issue_brief
from echoic.trust.authority import Authority as RealAuthority
from tests.links.certificates import Authority
from tests.system.processes import wait_until

pytestmark = pytest.mark.system

HOST = b"Host: 127.0.0.1\r\n"


def echo(request: Request) -> Answer:
    if request.path == "/fail":
        raise ValueError("a mistake")
    return Answer(200, {"method": request.method, "path": request.path, "body": request.body.decode()})


@pytest.fixture
def server() -> Iterator[HttpServer]:
    made = HttpServer("127.0.0.1:0", echo)
    yield made
    made.close()


def connect(server: HttpServer) -> socket.socket:
    host, _, port = server.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def say(server: HttpServer, *pieces: bytes) -> bytes:
    """Say something, and return all that comes back until the server hangs up."""
    with connect(server) as link:
        for piece in pieces:
            link.sendall(piece)
        with contextlib.suppress(OSError):  # the server may have hung up by then
            link.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: link.recv(65536), b""))


def test_requests_on_one_connection_are_answered_in_order_also_if_they_come_at_once(server: HttpServer) -> None:
    wanted = b"POST /a HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc"
    answers = say(server, wanted * 3 + b"GET /last HTTP/1.1\r\n" + HOST + b"\r\n")
    assert answers.count(b"HTTP/1.1 200 OK\r\n") == 4
    assert answers.count(b'"body":"abc"') == 3
    assert answers.endswith(b'{"method":"GET","path":"/last","body":""}')
    assert server.statistics().requests == 4


def test_a_request_may_come_byte_by_byte(server: HttpServer) -> None:
    whole = b"POST /slowly HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello"
    assert b'"body":"hello"' in say(server, *(bytes([byte]) for byte in whole))


def test_a_client_that_waits_to_be_told_to_go_on_is_told(server: HttpServer) -> None:
    with connect(server) as link:
        link.sendall(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert link.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        link.sendall(b"hi")
        assert b'"body":"hi"' in link.recv(65536)


@pytest.mark.parametrize(
    ("sent", "status", "told"),
    [
        (
            b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            411,
            "expected Content-Length",
        ),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400, "got 1, 2"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", 400, "got -1"),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 1e3\r\n\r\n", 400, "got 1e3"),
        (
            b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1),
            413,
            f"limit is {BODY_BYTES_MAX}",
        ),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Origin: http://elsewhere\r\n\r\n", 403, "pages of other sites"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "expected one Host"),
        (b"GET / HTTP/1.1\r\nHost: rebound.example\r\n\r\n", 400, "expected one Host"),
        (b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400, "expected one Host"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: %s\r\n\r\n" % (b"x" * 2 * HEAD_BYTES_MAX), 431, "Line too long"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 200 + b"\r\n", 431, "Too many headers"),
        (b"GET /?" + b"&".join([b"a=b"] * 20) + b" HTTP/1.1\r\n" + HOST + b"\r\n", 400, "more than 16 fields"),
        (b"BREW / HTTP/1.1\r\n" + HOST + b"\r\n", 501, "Unsupported method"),
        (b"nonsense\r\n\r\n", 400, "Bad"),
        (b"GET / HTTP/9.9\r\n\r\n", 505, "Invalid HTTP version"),
    ],
)
def test_what_is_no_good_request_is_told_so_and_hung_up(
    server: HttpServer, sent: bytes, status: int, told: str
) -> None:
    head, _, body = say(server, sent).rpartition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status) or status in (400, 505)
    assert told in json.loads(body)["error"]


@pytest.mark.parametrize("sent", [b"", b"GET", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\0" * 100_000])
def test_what_is_no_request_at_all_harms_nobody(server: HttpServer, sent: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_server, "REQUEST_SECONDS", 0.5)
        try:
            say(server, sent)
        except ConnectionError:
            pass
    assert say(server, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n").startswith(b"HTTP/1.1 200")


def test_a_request_that_does_not_come_to_its_end_is_waited_for_only_so_long(
    server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_SECONDS", 0.5)
    begun = time.monotonic()
    with connect(server) as link:
        link.sendall(b"GET / HTTP/1.1\r\n")
        while not hung_up(link):  # a byte each time, so that no single read takes long
            assert time.monotonic() - begun < 10
    assert time.monotonic() - begun < 5


def hung_up(link: socket.socket) -> bool:
    """Say one more byte, and tell whether nobody listens."""
    try:
        link.sendall(b"X")
        link.settimeout(0.05)
        return link.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_one_connection_too_many_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    server = HttpServer("127.0.0.1:0", echo, connections_max=2)
    try:
        links = [connect(server) for _ in range(2)]
        for link in links:
            link.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
            assert link.recv(65536).startswith(b"HTTP/1.1 200")
        assert say(server).endswith(b'{"error": "too many connections"}')
        assert (server.statistics().connections, server.statistics().refused) == (2, 1)
        links.pop().close()
        deadline = time.monotonic() + 60
        while server.statistics().connections > 1:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert say(server, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n").startswith(b"HTTP/1.1 200")
        links.pop().close()
    finally:
        server.close()


def test_a_mistake_of_the_service_is_told_to_the_client_and_ends_nothing(server: HttpServer) -> None:
    answers = say(server, b"GET /fail HTTP/1.1\r\n" + HOST + b"\r\n" + b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
    assert b'{"error":"the service has failed"}' in answers
    assert b"a mistake" not in answers
    assert answers.count(b"HTTP/1.1 200") == 1


def test_closing_hangs_up_and_lets_go_of_the_address() -> None:
    server = HttpServer("127.0.0.1:0", echo)
    with connect(server) as link:
        link.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        link.recv(65536)
        server.close()
        assert link.recv(1) == b""
    again = HttpServer(server.address, echo)
    assert say(again, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n").startswith(b"HTTP/1.1 200")
    again.close()


def test_other_machines_are_listened_to_with_tls_or_if_that_is_meant(tmp_path: Path) -> None:
    with pytest.raises(InsecureError, match="can be reached from other machines"):
        HttpServer("0.0.0.0:0", echo)
    with pytest.raises(AddressError):
        HttpServer("nowhere", echo)
    HttpServer("0.0.0.0:0", echo, insecure=True).close()
    HttpServer("0.0.0.0:0", echo, identity=Authority(tmp_path).issue("replica")).close()


def test_with_tls_clients_of_the_authority_are_answered_and_others_are_not(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("ours", "theirs")]
    for folder in folders:
        folder.mkdir()
    ours, theirs = map(Authority, folders)
    server = HttpServer("127.0.0.1:0", echo, identity=ours.issue("replica"))
    host, _, port = server.address.rpartition(":")

    def ask(context: ssl.SSLContext) -> int:
        connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status
        finally:
            connection.close()

    try:
        assert ask(ours.issue("client").dialling_context()) == 200
        stranger = theirs.issue("client").dialling_context()
        stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ask(stranger)
        assert b"200" not in _say_plainly(server)
        threads = [threading.Thread(target=ask, args=(ours.issue("client").dialling_context(),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        server.close()


def test_silent_connections_to_a_server_by_tls_are_so_many_and_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HANDSHAKE_SECONDS", 600.0)  # so that they do not leave by themselves
    authority = Authority(tmp_path)
    server = HttpServer("127.0.0.1:0", echo, identity=authority.issue("replica"))
    host, _, port = server.address.rpartition(":")
    context = authority.issue("client").dialling_context()
    with contextlib.ExitStack() as stack:
        stack.callback(server.close)
        for _ in range(3 * STRANGERS_MAX):
            stack.enter_context(connect(server))
        client = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)
        with contextlib.closing(client):
            client.request("GET", "/")
            assert client.getresponse().status == 200
            wait_until(lambda: server.statistics().connections <= STRANGERS_MAX + 1, "the others were sent away", 20)


def test_a_network_of_ipv6_has_the_room_of_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "FROM_ONE_ADDRESS_MAX", 2)
    server = HttpServer("127.0.0.1:0", echo)
    accept = server._server.process_request  # noqa: SLF001 - the one machine there is has no network of IPv6

    def come(request: socket.socket, address: tuple[str, int]) -> None:
        accept(request, (f"2001:db8::{address[1]:x}", address[1]))

    monkeypatch.setattr(server._server, "process_request", come)  # noqa: SLF001 - as above
    with contextlib.ExitStack() as stack:
        stack.callback(server.close)
        for _ in range(3):
            stack.enter_context(connect(server))
        wait_until(lambda: server.statistics().accepted == 3, "all have come")
        assert (server.statistics().connections, server.statistics().refused) == (2, 1)


def test_who_is_revoked_is_answered_no_more_on_any_connection_and_others_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path))
    authority = RealAuthority.create()
    for name in ("replica", "honest", "thief"):
        authority.issue(name, ("127.0.0.1",))
    server = HttpServer("127.0.0.1:0", echo, identity=Identity.named("replica"))
    host, _, port = server.address.rpartition(":")

    def dialled(name: str) -> http.client.HTTPSConnection:
        context = contexts[name]
        return http.client.HTTPSConnection(host, int(port), context=context, timeout=20)

    def ask(connection: http.client.HTTPSConnection) -> int:
        connection.request("GET", "/")
        answer = connection.getresponse()
        answer.read()
        return answer.status

    contexts = {name: Identity.named(name).dialling_context() for name in ("honest", "thief")}
    honest, thief = dialled("honest"), dialled("thief")
    try:
        assert ask(honest) == ask(thief) == 200
        authority.revoke("thief")
        assert ask(honest) == 200, "its connection stays"
        with pytest.raises((OSError, http.client.HTTPException)):
            ask(thief)
        with contextlib.closing(dialled("thief")) as again, pytest.raises((OSError, http.client.HTTPException)):
            ask(again)
        (tmp_path / "authority" / "revoked.pem").write_bytes(b"half of a li")
        assert ask(honest) == 200
        with contextlib.closing(dialled("honest")) as another, pytest.raises((OSError, http.client.HTTPException)):
            ask(another)
    finally:
        honest.close()
        thief.close()
        server.close()


def test_whose_certificate_expires_is_answered_no_more_on_the_connection_that_he_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ECHOIC_HOME", str(tmp_path))
    authority = RealAuthority.create()
    authority.issue("replica", ("127.0.0.1",))
    server = HttpServer("127.0.0.1:0", echo, identity=Identity.named("replica"))
    host, _, port = server.address.rpartition(":")
    expires = time.time() + 4
    context = issue_brief(authority, "brief", 4).dialling_context()
    client = http.client.HTTPSConnection(host, int(port), context=context, timeout=20)

    def ask() -> bytes:
        client.request("GET", "/")
        return client.getresponse().read()

    try:
        assert ask()
        time.sleep(max(0.0, expires - time.time()))
        with pytest.raises((OSError, http.client.HTTPException)):
            ask()
    finally:
        client.close()
        server.close()


def _say_plainly(server: HttpServer) -> bytes:
    try:
        return say(server, b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
    except ConnectionError:
        return b""
