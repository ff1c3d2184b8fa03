"""The page by TLS under attack: what strangers do to a hub, and more connections that stay than it has room for.

Some say nothing. The others ask for a tab without the token, are refused, and do not take leave: a server that waits
until they do has no room, or has lost sight of them.

A browser that has the token asks for the page meanwhile and must be answered. The page has room for 64 strangers from
when they are accepted, before TLS has cost anything (`links.gate`); whoever counted later would have all of them.
"""

import http.client
import socket
import ssl
import time
from contextlib import ExitStack, closing, suppress
from importlib import import_module
from pathlib import Path
from typing import Final

import msgspec

from echoic.errors import LocalError
from echoic.hub import Hub
from echoic.links import STRANGERS_MAX, Identity, parse_address
from echoic.testing.charter import Charter, environment_of
from echoic.testing.trials.connections import returned
from echoic.testing.trials.onslaught import ASSAIL
from echoic.testing.trials.trial import BY_THE_CLOCK, Figure
from echoic.testing.trials.vital_signs import MEGABYTE, VitalSigns, signs_of
from echoic.testing.trials.workers import Conversation, wait_until, workers

__all__ = ["ROLE", "PageSiege", "be_the_page", "besiege_page", "judge_page", "page_figures"]

PAGE: Final = f"{__name__}:be_the_page"
ROLE: Final = "page"
TOKEN: Final = "0123456789abcdef0123456789abcdef"
RATE: Final = 60.0
SILENT: Final = 300
REFUSED: Final = 128
CONNECT_SECONDS: Final = 5.0
UPGRADE: Final = (
    b"GET /feed HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
ANSWER_BYTES: Final = 4096
REQUEST_SECONDS_MAX: Final = 5.0
PAUSE_SECONDS: Final = 0.3
GROWTH_BYTES_MAX: Final = 64 * MEGABYTE
DESCRIPTORS_MAX: Final = STRANGERS_MAX + 16
"""A few are the browser's, and those of who has just been sent away."""
RETURN_SECONDS_MAX: Final = 20.0


class PageSiege(msgspec.Struct, frozen=True):
    """What came of the strangers at the page."""

    request_seconds: list[float]
    """How long a browser took to be answered during the attack; much if it was not."""
    strangers: int
    before: VitalSigns
    peak: VitalSigns
    after: VitalSigns


def besiege_page(charter: Charter, rounds: int, seed: int, target: str = PAGE) -> PageSiege:
    """Attack a page by TLS."""
    trusting = ssl.create_default_context(cafile=str(charter.folder / "authority" / "authority.pem"))
    with workers() as start, ExitStack() as stack:
        page = start(target, environment_of(charter, ROLE) | {"ECHOIC_RIGHTS": ""})
        address = page.started["address"]
        for _ in range(3):
            ask(address, trusting)
        before = signs_of(page.pid)
        strangers = start(ASSAIL, address=address, seed=seed, rate=RATE)
        strangers.ask("begin")
        for _ in range(SILENT):
            stack.enter_context(socket.create_connection(parse_address(address), CONNECT_SECONDS))
        for _ in range(REFUSED):
            be_refused(address, trusting, stack)
        seconds, signs = list[float](), list[VitalSigns]()
        for _ in range(rounds):
            seconds.append(ask(address, trusting))
            signs.append(signs_of(page.pid))
            time.sleep(PAUSE_SECONDS)
        made = strangers.ask("rest")["made"]
        stack.close()
        with suppress(LocalError):  # what has not returned is seen below
            wait_until(lambda: returned(before, signs_of(page.pid)), "all is as before", RETURN_SECONDS_MAX)
        peak = VitalSigns(
            max(each.resident_bytes for each in signs),
            max(each.descriptors for each in signs),
            max(each.threads for each in signs),
        )
        return PageSiege(seconds, made + SILENT + REFUSED, before, peak, signs_of(page.pid))


def be_the_page(conversation: Conversation) -> None:
    """Serve the page that is attacked; this runs in a worker."""
    viewer = import_module("echoic.viewer")
    with Hub("127.0.0.1:0") as hub, viewer.Viewer(hub, "127.0.0.1:0", token=TOKEN, **_by_tls()) as page:
        conversation.say(address=page.address)
        for _ in conversation.questions():
            conversation.say(ok=True)


def be_refused(address: str, trusting: ssl.SSLContext, stack: ExitStack) -> None:
    """Ask for a tab without the token, and stay when it is refused."""
    plain = stack.enter_context(socket.create_connection(parse_address(address), CONNECT_SECONDS))
    with suppress(OSError):  # it may be sent away before
        made = stack.enter_context(trusting.wrap_socket(plain, server_hostname=parse_address(address)[0]))
        made.sendall(UPGRADE % address.encode())
        made.recv(ANSWER_BYTES)


def ask(address: str, trusting: ssl.SSLContext) -> float:
    """Return how long a browser takes to be given the page, trying again if it is sent away; much if it is not."""
    began = time.perf_counter()
    while (passed := time.perf_counter() - began) < 2 * REQUEST_SECONDS_MAX:
        connection = http.client.HTTPSConnection(address, timeout=REQUEST_SECONDS_MAX, context=trusting)
        try:
            with closing(connection):
                connection.request("GET", "/", headers={"Authorization": f"Bearer {TOKEN}"})
                if connection.getresponse().status == http.HTTPStatus.OK:
                    return time.perf_counter() - began
        except (OSError, http.client.HTTPException):
            continue
    return passed


def judge_page(siege: PageSiege) -> list[str]:
    """Return what is wrong."""
    problems, slowest = list[str](), max(siege.request_seconds)
    if slowest > REQUEST_SECONDS_MAX:
        problems.append(
            f"a browser waited {slowest:.1f} s for the page, limit is {REQUEST_SECONDS_MAX:g}{BY_THE_CLOCK}"
        )
    growth = siege.peak.resident_bytes - siege.before.resident_bytes
    if growth > GROWTH_BYTES_MAX:
        problems.append(f"strangers made the page grow by {growth} bytes, limit is {GROWTH_BYTES_MAX}")
    held = siege.peak.descriptors - siege.before.descriptors
    if held > DESCRIPTORS_MAX:
        problems.append(f"the page held {held} connections of strangers, limit is {DESCRIPTORS_MAX}")
    if not returned(siege.before, siege.after):
        problems.append(f"strangers left something at the page: {siege.before} before, {siege.after} after")
    return problems


def page_figures(siege: PageSiege) -> dict[str, Figure]:
    """Return what was measured."""
    return {
        "page_strangers": siege.strangers,
        "page_request_seconds_max": round(max(siege.request_seconds), 2),
        "page_growth_mb": round((siege.peak.resident_bytes - siege.before.resident_bytes) / MEGABYTE, 1),
    }


def _by_tls() -> dict[str, Path]:
    """Return how the page speaks TLS: as the identity in the environment."""
    identity = Identity.of_environment()
    if identity is None:
        raise LocalError("the page is attacked by TLS, and nothing says as whom it is served")
    return {"certificate": identity.certificate, "key": identity.key}
