"""The doors of what is served to browsers and to others' programs, for trial 19.

    replicated service    clients need a certificate, as at a hub
    page, metrics,        whoever speaks TLS 1.3 is heard, since browsers and scrapers have no certificates: those who
    bridge to Foxglove    do not are refused as everywhere
    tokens at the page    {none, revoked, expired, forged, ...} are told that a token is needed and nothing else, at the
                          page and at its feed; a good one opens it, and shows nothing if the rights deny its name all

The parts above this one are asked for by name, as `doors` says; without Foxglove's package there is one door less.
"""

import contextlib
import http.client
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from echoic.hub import Hub
from echoic.links import Identity
from echoic.rights import parse_rights
from echoic.testing.trials.knocking import SECONDS
from echoic.testing.trials.tls_doors import CHANNEL, HUB_NAME, LOOPBACK, SECRETS, Door, HiddenEvent, Opened
from echoic.testing.trials.tls_papers import Papers
from echoic.testing.trials.tls_tokens import bad_tokens
from echoic.trust import ALL_RIGHTS, Issuers

__all__ = ["OPEN_DOORS", "SERVED_DOORS", "Page", "open_page", "page_problems"]

TOKEN: Final = "0123456789abcdef0123456789abcdef"
DENIED: Final = "mallory"
RULES: Final = f"allow * * *\ndeny {DENIED} * *"
ANSWER: Final = b"HTTP/1.1 "
REQUEST: Final = b"GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n"
UPGRADE: Final = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
PLACE: Final = "at the page"


@contextlib.contextmanager
def service_link(identity: Identity) -> Iterator[Opened]:
    """Give a replicated service, whose clients have certificates."""
    with ExitStack() as stack:
        hub = stack.enter_context(_hub(identity))
        service = import_module("echoic.replicas").CounterService(
            hub, me="n1", peers={"n1": hub.address}, listen=LOOPBACK, identity=identity
        )
        stack.callback(service.close)
        yield _opened(service.address, "/")


@contextlib.contextmanager
def page_link(identity: Identity) -> Iterator[Opened]:
    """Give the page."""
    with _hub(identity) as hub:
        viewer = import_module("echoic.viewer")
        with viewer.Viewer(hub, LOOPBACK, token=TOKEN, certificate=identity.certificate, key=identity.key) as page:
            yield _opened(page.address, "/", f"Authorization: Bearer {TOKEN}\r\n")


@contextlib.contextmanager
def metrics_link(identity: Identity) -> Iterator[Opened]:
    """Give the metrics of a hub."""
    with _hub(identity) as hub:
        metrics = import_module("echoic.interop.metrics")
        with metrics.start_metrics(hub, LOOPBACK, certificate=(identity.certificate, identity.key)) as server:
            yield _opened(urlsplit(server.url).netloc, "/metrics")


@contextlib.contextmanager
def foxglove_link(identity: Identity) -> Iterator[Opened]:
    """Give the bridge to Foxglove."""
    with Hub(LOOPBACK, name="names") as names, Hub(LOOPBACK, names=names.address, name=HUB_NAME) as hub:
        foxglove = import_module("echoic.interop.foxglove")
        with foxglove.Bridge(hub, (), LOOPBACK, certificate=(identity.certificate, identity.key)) as bridge:
            upgrade = {**UPGRADE, "Sec-WebSocket-Protocol": "foxglove.sdk.v1"}
            yield _opened(urlsplit(bridge.url).netloc, "/", "".join(f"{k}: {v}\r\n" for k, v in upgrade.items()))


SERVED_DOORS: Final[dict[str, Door]] = {"replicated service": service_link}
OPEN_DOORS: Final[dict[str, Door]] = {"page": page_link, "metrics": metrics_link}
if find_spec("foxglove") is not None:
    OPEN_DOORS["bridge to Foxglove"] = foxglove_link


@dataclass(frozen=True, slots=True)
class Page:
    """A page that signed tokens open, and who believes its authority."""

    address: str
    trusting: ssl.SSLContext

    def asked(self, token: str, path: str = "/") -> tuple[int, bytes]:
        """Return what is answered to who shows a token; for the feed, whether it is opened.

        Raises:
            OSError: Nothing is.
            http.client.HTTPException: Nothing that can be understood.
        """
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if path == "/feed":
            headers |= UPGRADE | {"Origin": f"https://{self.address}"}
        connection = http.client.HTTPSConnection(self.address, timeout=SECONDS, context=self.trusting)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, b"" if response.status == HTTPStatus.SWITCHING_PROTOCOLS else response.read()


@contextlib.contextmanager
def open_page(
    papers: Papers, issuers: Callable[[Path], Issuers] = Issuers, rules: str | None = RULES
) -> Iterator[Page]:
    """Give a page that signed tokens open, and whose hub goes by rules."""
    rights = parse_rights(rules) if rules is not None else None
    viewer = import_module("echoic.viewer").Viewer
    trusting = ssl.create_default_context(cafile=str(papers.good.authority))
    with Hub(LOOPBACK, name=HUB_NAME, rights=rights) as hub:
        hub.create(CHANNEL, HiddenEvent)
        with viewer(hub, LOOPBACK, identity=papers.good, issuers=issuers(papers.authority.folder)) as page:
            yield Page(page.address, trusting)


def page_problems(
    papers: Papers, open_door: Callable[[Papers], AbstractContextManager[Page]] = open_page
) -> Iterator[tuple[str, str]]:
    """Yield every cell of tokens at the page with what is wrong in it, "" if nothing is."""
    with open_door(papers) as page:
        for kind, token in bad_tokens(papers.authority).items():
            for path in ("/", "/feed"):
                yield f"{kind} token for {path} {PLACE}", _refusal_problem(*page.asked(token, path))
        good = papers.authority.issue_token("somebody", ALL_RIGHTS, ["*"], 600)
        for path, status in (("/", HTTPStatus.OK), ("/feed", HTTPStatus.SWITCHING_PROTOCOLS)):
            found = page.asked(good, path)[0]
            yield f"good token for {path} {PLACE}", "" if found == status else f"it was answered {found}"
        denied = papers.authority.issue_token(DENIED, ALL_RIGHTS, ["*"], 600)
        yield f"denied name {PLACE}", _feed_problem(page, denied, "Failed")
        yield f"allowed name {PLACE}", _feed_problem(page, good, "Description")


def _refusal_problem(status: int, body: bytes) -> str:
    if status != HTTPStatus.FORBIDDEN:
        return f"it was answered {status}"
    told = [word for word in SECRETS if word.encode() in body]
    return f"the refusal tells {told}" if told else ""


def _feed_problem(page: Page, token: str, expected: str) -> str:
    """Return what is wrong with the answer to who asks for the channel in the feed."""
    connect = import_module("websockets.sync.client").connect
    headers = {"Authorization": f"Bearer {token}"}
    address = f"wss://{page.address}/feed"
    with connect(address, additional_headers=headers, ssl=page.trusting, open_timeout=SECONDS) as feed:
        feed.send(f'{{"type": "Describe", "number": 1, "channel": "{CHANNEL}"}}')
        while '"number":1' not in (said := str(feed.recv(SECONDS))):
            continue  # what is told once a second
    return "" if f'"type":"{expected}"' in said else f"it was answered {said[:80]}"


def _hub(identity: Identity) -> Hub:
    return Hub(LOOPBACK, name=HUB_NAME, identity=identity)


def _opened(address: str, path: str, headers: str = "") -> Opened:
    request = REQUEST % (path.encode(), address.encode(), headers.encode())
    return Opened(address, request, SECRETS, ANSWER)
