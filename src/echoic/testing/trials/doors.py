"""Every door of the product: whatever listens, open in this process, with an honest guest for each.

    hub, group, intake      a hub by itself, one whose group is joined, one that takes rows of a pipeline
    bus, Java, transfer, console            `tool_doors`
    viewer, metrics, foxglove, counters     what is served to browsers and to others' programs

The parts above this one are asked for by name when they are opened: trials use all of the product, and nothing of the
product uses trials. The bridge to Foxglove needs a package that not everybody has; without it there is one door less.
"""

import http.client
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from http import HTTPStatus
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from echoic.formats import event
from echoic.hub import Hub, IntakeClient
from echoic.hub.intake_book import Attempt
from echoic.hub.intake_messages import CarriedPart, bodies_of
from echoic.links import dial, parse_address
from echoic.testing.trials.knocking import HOST, PAUSE_SECONDS, SECONDS, Door, await_that, masked, require, upgrade
from echoic.testing.trials.tool_doors import tool_doors
from echoic.wire import Batch

__all__ = ["open_doors"]

TOKEN: Final = "0123456789abcdef0123456789abcdef"


@event
class Word:
    """What honest guests say."""

    number: int
    text: str


@contextmanager
def open_doors() -> Iterator[list[Door]]:
    """Open every door.

    Raises:
        EchoicError: One cannot be opened.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="echoic-doors-")))
        names = stack.enter_context(Hub(HOST, name="names"))
        doors = [_hub(stack, names), _group(stack), _intake(stack, names, folder)]
        doors += [*tool_doors(stack), _viewer(stack, names), _metrics(stack, names), _counters(stack)]
        if find_spec("foxglove") is not None:
            doors.append(_foxglove(stack, names))
        yield doors


def _hub(stack: ExitStack, names: Hub) -> Door:
    hub = stack.enter_context(Hub(HOST, names=names.address, name="hub"))
    channel = hub.create("words", Word)
    source = channel.source()

    def visit() -> None:
        heard = threading.Event()

        def said() -> bool:
            source.submit(Word(1, "hello"))
            return heard.wait(PAUSE_SECONDS)

        with Hub(HOST, name="guest") as guest, guest.open(channel.id, Word).subscribe(lambda _: heard.set()):
            await_that(said, "an event arrives")

    return Door("hub", hub.address, visit)


def _group(stack: ExitStack) -> Door:
    hub = stack.enter_context(Hub(HOST, name="member"))
    group = stack.enter_context(hub.join("words", Word, me="n1", peers={"n1": hub.address}))
    heard: list[Word] = []
    group.subscribe(lambda said, _: heard.append(said))

    def visit() -> None:
        before = len(heard)
        group.submit(Word(2, "all"))
        await_that(lambda: len(heard) > before, "an event is ordered")
        with closing(dial(hub.address, polled=True)) as connection:
            connection.handshake(SECONDS)

    return Door("group", hub.address, visit)


def _intake(stack: ExitStack, names: Hub, folder: Path) -> Door:
    hub = stack.enter_context(Hub(HOST, names=names.address, name="intake"))
    stack.enter_context(hub.intake("rows", folder / "rows", Word))
    epochs = iter(range(1, 1_000_000))

    def visit() -> None:
        epoch = next(epochs)
        with Hub(HOST, names=names.address, name="pipeline") as guest, closing(IntakeClient(guest, "rows")) as client:
            bodies = list(bodies_of(Batch.of([Word(epoch, "row")], Word)))
            for index, body in enumerate(bodies):
                client.stage(Attempt("trial", epoch, 0, 1), index, body)
            client.commit("trial", epoch, [CarriedPart(0, 1, len(bodies))])

    return Door("intake", hub.address, visit)


def _viewer(stack: ExitStack, names: Hub) -> Door:
    hub = stack.enter_context(Hub(HOST, names=names.address, name="eyes"))
    viewer = stack.enter_context(import_module("echoic.viewer").Viewer(hub, HOST, token=TOKEN))
    headers = {"Authorization": f"Bearer {TOKEN}"}

    def visit() -> None:
        require(b"<html" in _got(viewer.address, "/", headers), "the page is not served")
        require(_spoken(viewer.address, "/feed", headers, '{"type": "Look", "number": 1, "page": ""}'), "no answer")

    return Door("viewer", viewer.address, visit, "/feed", headers)


def _metrics(stack: ExitStack, names: Hub) -> Door:
    hub = stack.enter_context(Hub(HOST, names=names.address, name="metrics"))
    server = stack.enter_context(import_module("echoic.interop.metrics").start_metrics(hub, HOST))
    address = urlsplit(server.url).netloc
    return Door("metrics", address, lambda: require(b"echoic_hub_up" in _got(address, "/metrics"), "no metrics"))


def _foxglove(stack: ExitStack, names: Hub) -> Door:
    hub = stack.enter_context(Hub(HOST, names=names.address, name="bridge"))
    bridge = stack.enter_context(import_module("echoic.interop.foxglove").Bridge(hub, (), HOST))
    address = urlsplit(bridge.url).netloc
    protocol = {"Sec-WebSocket-Protocol": "foxglove.sdk.v1"}
    return Door("foxglove", address, lambda: require(_spoken(address, "/", protocol, ""), "no answer"), "/", protocol)


def _counters(stack: ExitStack) -> Door:
    hub = stack.enter_context(Hub(HOST, name="replica"))
    service = import_module("echoic.replicas").CounterService(hub, me="n1", peers={"n1": hub.address}, listen=HOST)
    stack.callback(service.close)
    return Door("counters", service.address, lambda: require(b"leader" in _got(service.address, "/"), "no state"))


def _got(address: str, path: str, headers: dict[str, str] | None = None) -> bytes:
    """Return what HTTP gives at an address.

    Raises:
        OSError: Nothing.
    """
    with closing(http.client.HTTPConnection(*parse_address(address), timeout=SECONDS)) as connection:
        connection.request("GET", path, headers=headers or {})
        response = connection.getresponse()
        found = response.read()
        return found if response.status == HTTPStatus.OK else b""


def _spoken(address: str, path: str, headers: dict[str, str], text: str) -> bool:
    """Return whether something comes over a WebSocket when a text was said.

    Raises:
        OSError: Nothing comes.
    """
    with socket.create_connection(parse_address(address), SECONDS) as connection:
        connection.sendall(upgrade(address, path, headers))
        received = b""
        while b"\r\n\r\n" not in received:
            received += _more(connection)
        if text:
            connection.sendall(masked(text.encode(), binary=False))
        rest = received.partition(b"\r\n\r\n")[2]
        return bool(rest or _more(connection))


def _more(connection: socket.socket) -> bytes:
    received = connection.recv(4096)
    if not received:
        raise ConnectionError("it hung up")
    return received
