"""The viewer: a page for browsers, and its feed, served by a thread of its own.

    with Hub(names="127.0.0.1:7400") as hub, Viewer(hub) as viewer:
        print(viewer.url)                        http://127.0.0.1:8470/?token=...

uvicorn serves, with a loop of its own; its signal handlers, its log and everything that needs the main thread are left
out, so that a viewer can be a part of any program. It listens on this machine alone unless told otherwise, and where
others can reach it only by TLS, or when that is said to be meant. `guard` says who may come in, `doorway` how long
strangers may take, and `grants` what those may see and do who have a signed token.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from echoic.errors import InsecureError, LocalError, UnreachableError
from echoic.hub import Hub
from echoic.links import STRANGERS_MAX, Identity, check_exposure, format_address, parse_address, serving_context
from echoic.trust import Issuers, read_private
from echoic.viewer.crew import Crew
from echoic.viewer.doorway import CONNECTIONS_MAX, HEAD_BYTES_MAX, Doorway, Feed, serve_by_gate, visit_of
from echoic.viewer.editing import Desk
from echoic.viewer.guard import ADMISSION, TRY_AGAIN_LATER, Guard, Guarded
from echoic.viewer.observing import Observer
from echoic.viewer.session import Session
from echoic.viewer.shares import Shares
from echoic.viewer.watching import Shelf

__all__ = ["Viewer", "ViewerStatistics", "kept_token"]

LISTEN: Final = "127.0.0.1:8470"
STATIC: Final = Path(__file__).with_name("static")
BROWSERS_MAX: Final = 32
THREADS: Final = BROWSERS_MAX + 4
REQUEST_BYTES_MAX: Final = 64 * 1024
TOKEN_BYTES: Final = 24
TOKEN_CHARACTERS_MIN: Final = 22  # 128 bits as base64
TOKEN_CHARACTERS_MAX: Final = 200
FILE_BYTES_MAX: Final = 1000
PING_SECONDS: Final = 20.0
BACKLOG: Final = 128
START_SECONDS: Final = 10.0
CLOSE_SECONDS: Final = 3.0
PART_SECONDS: Final = 1.0
log: Final = logging.getLogger("echoic.viewer")


class ViewerStatistics(msgspec.Struct, frozen=True):
    """Who looks."""

    browsers: int
    """Tabs that are open."""
    watches: int
    """What they have open."""
    opened: int
    """Tabs so far."""
    refused: int
    """Tabs that were one too many."""
    waiting_bytes: int
    """Events that tabs have yet to read."""
    failures: int
    """How often the channels could not be surveyed for a reason that nobody expects."""
    crowded: int = 0
    """Tabs that do not read their answers."""


class Viewer:
    """Serves the page of a hub's channels until it is closed.

    Args:
        hub: Who looks for the channels; it stays open when the viewer is closed.
        listen: Where browsers reach the page; port 0 takes a free one.
        token: Who has it may look; one is drawn if nothing is said.
        certificate: A PEM file for TLS, which addresses that other machines can reach need.
        key: Its key.
        identity: In their place, an identity of `echoic keys issue`. Then signed tokens open the page (`issuers`), and
            no token is drawn.
        issuers: Reads signed tokens; those of the authority on this machine if there is an identity. Where the hub has
            rights, these must allow what a signed token grants.
        insecure: Accept instead that others can read along.
        on_browser: Called with the number of open tabs whenever one comes or goes, in the thread that serves.

    Raises:
        AddressError: `listen` is not an address.
        InsecureError: It can be reached from other machines, without TLS; or the certificate cannot be used.
        LocalError: The token is too short to be one.
        UnreachableError: It cannot be listened at.
    """

    def __init__(  # noqa: PLR0913 - every one has a default, and is named by the caller
        self,
        hub: Hub,
        listen: str = LISTEN,
        *,
        token: str = "",
        certificate: str | Path | None = None,
        key: str | Path | None = None,
        identity: Identity | None = None,
        issuers: Issuers | None = None,
        insecure: bool = False,
        on_browser: Callable[[int], object] | None = None,
    ) -> None:
        secure = certificate is not None or identity is not None
        host, _ = check_exposure(
            listen, secure=secure, insecure=insecure, remedy="identity=..., or certificate=... and key=..."
        )
        issuers = Issuers() if identity is not None and issuers is None else issuers
        drawn = "" if issuers is not None else secrets.token_urlsafe(TOKEN_BYTES)
        self.token: Final = _checked_token(token or drawn) if token or drawn else ""
        """Who has it may do everything; "" where there are only signed tokens."""
        context = serving_context(certificate, key) if certificate is not None else None
        if identity is not None:
            context = identity.serving_context()
        self._socket = _listening(listen)
        port = self._socket.getsockname()[1]
        self.address: Final = format_address(host, port)
        self._guard = Guard(self.token, host, port, secure=context is not None, issuers=issuers, rules=hub.decide)
        self.url: Final = f"{self._guard.scheme}://{self.address}/" + (f"?token={self.token}" if self.token else "")
        self._desk, self._shelf = Desk(hub), Shelf()
        self._sessions: set[Session] = set()
        self._opened = self._refused = 0
        self._on_browser = on_browser
        self._crew = Crew(THREADS)
        self._tabs = Shares(BROWSERS_MAX, "tabs are open")
        self._observer = Observer(hub)
        self._server = _Server(self._configuration(context), self._part)
        self._thread = threading.Thread(target=self._serve, name="echoic-viewer", daemon=True)
        self._closed = False
        self._thread.start()
        if not self._server.ready.wait(START_SECONDS):
            self.close()
            raise UnreachableError(f"the page could not be served at {self.address}")

    def statistics(self) -> ViewerStatistics:
        """Return who looks."""
        sessions = list(self._sessions)
        watches = sum(len(session.watches) for session in sessions)
        waiting = sum(session.waiting_bytes for session in sessions)
        failures = self._observer.failures
        crowded = sum(session.crowded for session in sessions)
        return ViewerStatistics(len(sessions), watches, self._opened, self._refused, waiting, failures, crowded)

    def close(self) -> None:
        """Tell the tabs, and serve no more. Takes some seconds at most, whatever they do."""
        if self._closed:
            return
        self._closed = True
        self._server.should_exit = True
        self._thread.join(CLOSE_SECONDS)
        self._observer.close()
        self._crew.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _configuration(self, context: ssl.SSLContext | None) -> uvicorn.Config:
        app = Starlette(
            routes=[
                WebSocketRoute("/feed", self._feed),
                Mount("/", StaticFiles(directory=STATIC, html=True)),
            ]
        )
        config = uvicorn.Config(
            Guarded(app, self._guard),
            loop="asyncio",
            http=Doorway,
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            ws=Feed,
            ws_max_size=REQUEST_BYTES_MAX,
            ws_ping_interval=PING_SECONDS,
            ws_ping_timeout=PING_SECONDS,
            ws_per_message_deflate=False,  # events are numbers: it would cost more than it saves on one machine
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            limit_concurrency=CONNECTIONS_MAX + STRANGERS_MAX + 1,  # the doorway has the limits that count
            timeout_graceful_shutdown=1,
        )
        config.load()
        if context is not None:
            config.ssl = context
        return config

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        except OSError as error:
            log.error("the page cannot be served any more: %s", error)  # noqa: TRY400 - the reason is enough

    async def _feed(self, websocket: WebSocket) -> None:
        """Serve a tab."""
        admission = websocket.scope[ADMISSION]
        crowd = self._tabs.take(admission.grant.who)
        if crowd:
            self._refused += 1
            await websocket.accept()
            await websocket.close(TRY_AGAIN_LATER, crowd)
            return
        try:
            await self._serve_tab(Session(websocket, self._desk, self._shelf, self._observer, self._crew, admission))
        finally:
            self._tabs.give_back(admission.grant.who)

    async def _serve_tab(self, session: Session) -> None:
        self._sessions.add(session)
        self._opened += 1
        try:
            self._tell()
            await session.run()
        finally:
            self._sessions.discard(session)
            self._tell()

    def _tell(self) -> None:
        if self._on_browser is not None:
            self._on_browser(len(self._sessions))

    async def _part(self) -> None:
        """Take leave of all tabs."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(session.part() for session in list(self._sessions))), PART_SECONDS)

    def __repr__(self) -> str:
        return f"<Viewer at {self.address}>"


class _Server(uvicorn.Server):
    """Says when it serves, and takes leave before it ends."""

    def __init__(self, config: uvicorn.Config, part: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self.ready: Final = threading.Event()
        self._part = part

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        serve_by_gate(asyncio.get_running_loop())
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._part()
        connections = list(self.server_state.connections)
        await super().shutdown(sockets)
        for connection in connections:
            visit = visit_of({"state": connection.app_state})
            if visit is not None:
                visit.hang_up()  # what a tab has not read by now would keep its socket open for ever
        for server in self.servers:
            await server.wait_closed()  # once more, until what was hung up on has closed


def kept_token(path: str | Path) -> str:
    """Return the token that a file holds; draw one, and write it there for its owner alone, if there is no file.

    Raises:
        InsecureError: Others can read the file or write it, or it is somebody else's: they would know the token.
        LocalError: It cannot be read or written.
    """
    file = Path(path)
    try:
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w", encoding="ascii") as made:
                made.write(secrets.token_urlsafe(TOKEN_BYTES) + "\n")
        return (read_private(file, bytes_max=FILE_BYTES_MAX, own=True) or b"").decode("ascii").strip()
    except InsecureError as error:
        raise InsecureError(f"{error}; unless nobody has read it, remove it, and another token is drawn") from error
    except (OSError, ValueError) as error:
        raise LocalError(f"cannot read or write the token in {file}: {error}") from error


def _checked_token(token: str) -> str:
    plain = token.isascii() and token.replace("-", "").replace("_", "").isalnum()
    if not plain or not TOKEN_CHARACTERS_MIN <= len(token) <= TOKEN_CHARACTERS_MAX:
        raise LocalError(
            f"a token has {TOKEN_CHARACTERS_MIN} to {TOKEN_CHARACTERS_MAX} letters, digits, - and _, got one of "
            f"{len(token)} characters"
        )
    return token


def _listening(listen: str) -> socket.socket:
    host, port = parse_address(listen)
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        raise UnreachableError(f"cannot listen at {listen}: {error.strerror or error}") from error
    return made
