"""A small HTTP/1.1 server for a replicated service: what it serves is a function from a request to an answer.

    client --- connection, kept alive ---> thread of its own ---> answer(Request) -> Answer ---> JSON

It is the one of Python's standard library, which has a thread for each connection; a replica's thread waits for the
group anyhow. What is added are limits, since whoever can connect may send anything:

    connections     so many at once, in all and from one address; for one more, who came first and has not asked for
                    anything leaves, and if there is nobody it is told 503 and hung up
    handshakes      64 at a time, shared out by address, as at every door (`links.strangers`)
    head, body      so many bytes; more is refused before it is read
    time            the first request must be there some seconds after the connection, and others after their first
                    byte, also if they come byte by byte; an answer must be taken as fast; a connection that has asked
                    for something is kept for longer
    browsers        a page from elsewhere cannot use the reader's browser to get here: what has an Origin is refused,
                    and so is a Host that is neither an address nor the name that is listened at
    certificates    the files of an identity are read again when they have changed; who is revoked, or whose certificate
                    has expired, gets no answer more, also on a connection that he has already

Errors are JSON as well: {"error": "..."}.
"""

import contextlib
import http.client
import io
import ipaddress
import logging
import socket
import socketserver
import ssl
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, urlsplit

import msgspec

from echoic.errors import InsecureError, UnreachableError
from echoic.links import (
    Credentials,
    Identity,
    Strangers,
    check_exposure,
    credentials_of,
    format_address,
    is_loopback,
    origin_of,
)
from echoic.trust import Revocations

__all__ = ["Answer", "HttpServer", "HttpStatistics", "Request"]

BODY_BYTES_MAX: Final = 4096
HEAD_BYTES_MAX: Final = 32 * 1024
QUERY_FIELDS_MAX: Final = 16
CONNECTIONS_MAX: Final = 1024
FROM_ONE_ADDRESS_MAX: Final = 256
HANDSHAKE_SECONDS: Final = 5.0
IDLE_SECONDS: Final = 60.0
REQUEST_SECONDS: Final = 10.0
BACKLOG: Final = 128
POLL_SECONDS: Final = 0.1
CLOSE_SECONDS: Final = 2.0
BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\nConnection: close\r\n"
    b'Content-Length: 33\r\n\r\n{"error": "too many connections"}'
)
log: Final = logging.getLogger("echoic.replicas")


class Request(msgspec.Struct, frozen=True):
    """What a client wants."""

    method: str
    path: str
    """Still with its percent signs."""
    query: dict[str, str]
    headers: dict[str, str]
    """By their names in lower case."""
    body: bytes


class Answer(msgspec.Struct, frozen=True):
    """What it gets: a status, and something that becomes JSON, or bytes as they are."""

    status: int
    body: object
    headers: dict[str, str] = {}


class HttpStatistics(msgspec.Struct, frozen=True):
    """What a server has done."""

    address: str
    connections: int
    """That are open."""
    accepted: int
    refused: int
    """Connections that were one too many."""
    requests: int


Responder: TypeAlias = Callable[[Request], Answer]


class HttpServer:
    """Listens at an address and answers, in threads of its own, until it is closed.

    Args:
        listen: Where, HOST:PORT; port 0 takes a free one.
        respond: Called with each request, by many threads at once.
        identity: Certificate, key and authority for TLS; clients must have a certificate of that authority.
        context: In its place, how TLS is spoken with clients that need no certificate.
        any_host: Whether clients may call it by any name, and not by addresses and that name alone.
        insecure: Accept that strangers can read and write, on addresses that other machines reach.
        connections_max: How many connections there may be at once.

    Raises:
        AddressError: `listen` is not an address.
        InsecureError: It can be reached from other machines, without TLS.
        UnreachableError: It cannot be listened at.
    """

    def __init__(
        self,
        listen: str,
        respond: Responder,
        *,
        identity: Identity | None = None,
        context: ssl.SSLContext | None = None,
        insecure: bool = False,
        any_host: bool = False,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        host, port = check_exposure(listen, secure=identity is not None or context is not None, insecure=insecure)
        try:
            tls = _Tls(context, identity)
            self._server = _Server((host, port), respond, tls, connections_max, any_host=any_host)
        except OSError as error:
            raise UnreachableError(f"cannot listen at {listen}: {error.strerror or error}") from error
        self.address: Final = format_address(host, self._server.server_port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_SECONDS,), name="echoic-http", daemon=True
        )
        self._thread.start()

    def statistics(self) -> HttpStatistics:
        """Return what it has done."""
        server = self._server
        return HttpStatistics(self.address, len(server.open), server.accepted, server.refused, server.requests)

    def close(self) -> None:
        """Listen no more, and hang up."""
        self._server.shutdown()
        self._server.server_close()
        self._server.hang_up()
        self._thread.join(CLOSE_SECONDS)


class _Tls:
    """How TLS is spoken, if it is, and who may go on with it."""

    def __init__(self, context: ssl.SSLContext | None, identity: Identity | None) -> None:
        self._context, self._identity = context, identity
        self._revocations = Revocations(identity.revoked if identity is not None else None)
        self.context()  # what is wrong with the files is told at once

    def context(self) -> ssl.SSLContext | None:
        """Return how to begin; by the files of the identity as they are at this moment.

        Raises:
            InsecureError: One of them is missing, or is not what it should be.
        """
        return self._context if self._identity is None else self._identity.listening_context()

    def holds(self, credentials: Credentials | None) -> bool:
        """Whether the certificate of a client, if it has shown one, is neither expired nor revoked."""
        if credentials is None:
            return True
        return not credentials.expired(time.time()) and not self._revocations.lists(credentials.serial)


class _Arrival(msgspec.Struct, frozen=True, eq=False):
    """A connection, and where it comes from."""

    socket: socket.socket
    peer: str
    origin: str


class _Server(ThreadingHTTPServer):
    """Counts connections, and has no more than so many."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = BACKLOG

    def __init__(
        self,
        address: tuple[str, int],
        respond: Responder,
        tls: _Tls,
        connections_max: int,
        *,
        any_host: bool,
    ) -> None:
        self.respond: Final = respond
        self.tls: Final = tls
        self.host: Final = address[0]
        self.any_host: Final = any_host
        self.open: Final[dict[socket.socket, _Arrival]] = {}
        self.heard: Final[set[socket.socket]] = set()
        """Those that have asked for something."""
        self.accepted = self.refused = self.requests = 0
        self._connections_max = connections_max
        self._strangers: Strangers[_Arrival] = Strangers()
        self._counting = threading.Lock()
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, _Conversation)

    def server_bind(self) -> None:
        """Bind, without asking a name server what this machine is called."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; what TLS has to say at its beginning is left to its thread."""
        accepted, address = super().get_request()
        try:
            context = self.tls.context()
            if context is not None:
                accepted = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        except InsecureError as error:  # files that are being replaced, perhaps
            log.warning("cannot speak TLS: %s", error)
            accepted.close()
            raise ConnectionAbortedError(str(error)) from error
        return accepted, address

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - as socketserver has it
        """Begin a thread for a connection, unless it is one too many."""
        host = str(client_address[0])
        peer = format_address(host, client_address[1])
        arrival = _Arrival(request, peer, origin_of(peer))
        leaving = None
        with self._counting:
            self.accepted += 1
            others = sum(other.origin == arrival.origin for other in self.open.values())
            crowd = not is_loopback(host) and others >= FROM_ONE_ADDRESS_MAX
            room = not crowd and (len(self.open) < self._connections_max or self._makes_room())
            if room:
                self.open[request] = arrival
                leaving = self._strangers.admit(arrival) if isinstance(request, ssl.SSLSocket) else None
            else:
                self.refused += 1
        if leaving is not None:
            _end(leaving.socket)
        if room:
            super().process_request(request, client_address)
            return
        with contextlib.suppress(OSError):
            request.settimeout(POLL_SECONDS)
            if not isinstance(request, ssl.SSLSocket):
                request.sendall(BUSY)
        self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - as socketserver has it
        """Let go of a connection."""
        self.greet(request)
        with self._counting:
            self.open.pop(request, None)
            self.heard.discard(request)
        super().shutdown_request(request)

    def greet(self, request: socket.socket) -> None:
        """Count a connection as a stranger's no more."""
        with self._counting:
            arrival = self.open.get(request)
        if arrival is not None:
            self._strangers.leave(arrival)

    def _makes_room(self) -> bool:
        """Hang up on who came first and has not asked for anything; whether there was somebody. The lock is held."""
        idle = next((each for each in self.open if each not in self.heard), None)
        if idle is None:
            return False
        self._strangers.leave(self.open.pop(idle))
        _end(idle)
        return True

    def hang_up(self) -> None:
        """End all connections; their threads notice."""
        with self._counting:
            left = list(self.open)
        for each in left:
            _end(each)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401, ARG002 - as socketserver has it
        """Say why a conversation has failed, unless the client has simply gone."""
        log.debug("a conversation with %s has ended", client_address, exc_info=True)


class _Incoming(io.RawIOBase):
    """Reads from a socket, within a time and a number of bytes for each request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._deadline = 0.0
        self._bytes_left = 0
        self._idle = self._first = True

    def readable(self) -> bool:
        """Say that this is for reading."""
        return True

    def await_request(self) -> None:
        """Begin to wait for a request."""
        self._idle = True
        self._deadline = time.monotonic() + (REQUEST_SECONDS if self._first else IDLE_SECONDS)
        self._first = False
        self._bytes_left = HEAD_BYTES_MAX

    def await_body(self) -> None:
        """Go on to the body of the request."""
        self._bytes_left = BODY_BYTES_MAX

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever can be written to
        """Read what is there.

        Raises:
            TimeoutError: Nothing was there in time.
            http.client.LineTooLong: There was too much of it.
        """
        if self._bytes_left <= 0:
            raise http.client.LineTooLong("head of a request")
        self._connection.settimeout(max(0.001, self._deadline - time.monotonic()))
        count = self._connection.recv_into(buffer)
        self._bytes_left -= count
        if self._idle:
            self._idle = False
            self._deadline = time.monotonic() + REQUEST_SECONDS
        return count


class _Conversation(BaseHTTPRequestHandler):
    """A connection: requests and answers, one after the other."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024
    server: _Server
    _credentials: Credentials | None = None

    def setup(self) -> None:
        """Begin; with TLS, by proving to each other who we are."""
        if isinstance(self.request, ssl.SSLSocket):
            self.request.settimeout(HANDSHAKE_SECONDS)
            self.request.do_handshake()
            self.server.greet(self.request)
            shown = self.request.getpeercert()
            self._credentials = credentials_of(shown) if shown else None
        super().setup()
        self._incoming = _Incoming(self.connection)
        self.rfile = io.BufferedReader(self._incoming)

    def finish(self) -> None:
        """End; what cannot be told any more is not."""
        with contextlib.suppress(OSError):
            super().finish()

    def handle_one_request(self) -> None:
        """Read a request and answer it."""
        self._incoming.await_request()
        try:
            super().handle_one_request()
        except (OSError, http.client.LineTooLong):
            self.close_connection = True  # the client is gone, or sends without end

    def handle_expect_100(self) -> bool:
        """Tell a client that waits for it to go on."""
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Answer what the base class finds wrong."""
        self.close_connection = True
        self._send(Answer(code, {"error": message or HTTPStatus(code).phrase}))

    def version_string(self) -> str:
        """Return what the server is called, and no versions."""
        return "echoic"

    def log_message(self, format: str, *values: object) -> None:
        """Say nothing of each request."""

    def _serve(self) -> None:
        if not self.server.tls.holds(self._credentials):
            self.close_connection = True
            return
        self.server.requests += 1
        self.server.heard.add(self.request)
        refusal = self._refusal()
        if refusal is not None:
            self.close_connection = True  # what follows may be the body of what was refused
            self._send(refusal)
            return
        length = int(self.headers.get("Content-Length", "0"))
        self._incoming.await_body()
        body = self.rfile.read(length) if length else b""
        if len(body) < length:
            self.close_connection = True
            return
        target = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            query = dict(parse_qsl(target.query, max_num_fields=QUERY_FIELDS_MAX))
        except ValueError:
            self._send(_error(HTTPStatus.BAD_REQUEST, f"a query has more than {QUERY_FIELDS_MAX} fields"))
            return
        try:
            answer = self.server.respond(Request(self.command, target.path, query, headers, body))
        except Exception:  # a mistake of ours, which the client is told of, and the log
            log.exception("%s %s has failed", self.command, self.path)
            answer = Answer(HTTPStatus.INTERNAL_SERVER_ERROR, {"error": "the service has failed"})
        self._send(answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = _serve  # noqa: N815 - the base's names

    def _refusal(self) -> Answer | None:
        """Return what to say to a request that is not even read."""
        headers = self.headers
        lengths = headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in headers:
            return _error(HTTPStatus.LENGTH_REQUIRED, "expected Content-Length, got Transfer-Encoding")
        if len(lengths) > 1 or not all(each.isascii() and each.isdigit() and len(each) < 10 for each in lengths):
            return _error(HTTPStatus.BAD_REQUEST, f"expected one Content-Length, got {', '.join(lengths)[:60]}")
        if lengths and int(lengths[0]) > BODY_BYTES_MAX:
            told = f"the body has {lengths[0]} bytes, limit is {BODY_BYTES_MAX}"
            return _error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)
        if "Origin" in headers:
            return _error(HTTPStatus.FORBIDDEN, "pages of other sites are not answered")
        if not self._host_is_known(headers.get_all("Host", [])):
            return _error(HTTPStatus.BAD_REQUEST, "expected one Host, an address or the name that is listened at")
        return None

    def _host_is_known(self, hosts: list[str]) -> bool:
        if len(hosts) == 1 and self.server.any_host:
            return True
        if len(hosts) != 1:
            return not hosts and self.request_version == "HTTP/1.0"
        try:
            host = urlsplit(f"//{hosts[0]}").hostname or ""
            if host in {"localhost", self.server.host}:
                return True
            ipaddress.ip_address(host)
        except ValueError:
            return False
        return True

    def _send(self, answer: Answer) -> None:
        body = answer.body if isinstance(answer.body, bytes) else msgspec.json.encode(answer.body)
        self.connection.settimeout(REQUEST_SECONDS)
        self.send_response(answer.status)
        if "Content-Type" not in answer.headers:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()


def _end(connection: socket.socket) -> None:
    """Hang up; the thread of the connection notices."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _error(status: int, message: str) -> Answer:
    return Answer(status, {"error": message})
