"""A middlebox that forwards no more and keeps both its connections open: its own system even confirms what is sent.

Keepalive is answered, so only the side that has something to send can notice, when nothing is taken from it any more.
The other side must believe it when it comes back, whichever of the two had dialled.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Self

import pytest

from echoic.links import parse_address
from tests.system.processes import Process, Start, processes, wait_until

pytestmark = pytest.mark.system


class Proxy:
    """Forwards connections to an address, until it falls silent."""

    def __init__(self, address: str) -> None:
        self._target = parse_address(address)
        self._listening = socket.create_server(("127.0.0.3", 0))
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self.forwards = threading.Event()
        self.forwards.set()
        self.address = "{}:{}".format(*self._listening.getsockname())

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.forwards.set()
        for each in (self._listening, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for each in (self._listening, *self._sockets):
            each.close()

    def _start(self, target: object, *arguments: socket.socket) -> None:
        self._threads.append(threading.Thread(target=target, args=arguments))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                self._sockets.append(near)
                far = socket.create_connection(self._target)
                self._sockets.append(far)
                self._start(self._forward, near, far)
                self._start(self._forward, far, near)

    def _forward(self, start: socket.socket, end: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := start.recv(65536):
                self.forwards.wait()
                end.sendall(data)
            end.shutdown(socket.SHUT_WR)


@pytest.fixture
def start() -> Iterator[Start]:
    with processes() as start:
        yield start


def seen(sink: Process) -> int:
    return sink.ask()["next"].get("1", 0)


def test_a_silent_proxy_is_noticed_and_gone_around(start: Start) -> None:
    source = start(
        "publish",
        channel="ticks",
        create=True,
        producer=1,
        size=4000,
        pause=0.01,
        pause_every=20,
        listen="127.0.0.2:0",
    )
    with Proxy(source.started["address"]) as proxy:
        sink = start("watch", channel=f"echoic://{proxy.address}/ticks", listen="127.0.0.2:0")
        wait_until(lambda: seen(sink) > 500, "events flow through the proxy")
        proxy.forwards.clear()
        wait_until(lambda: source.ask()["links"] != [True], "the source notices")
        before = seen(sink)
        wait_until(lambda: seen(sink) > before + 500, "events flow again")
        submitted = source.ask("halt")["submitted"]
        wait_until(lambda: seen(sink) == submitted, "everything arrives")
        told = sink.ask()
        assert told["problems"] == told["gaps"] == []
        assert len(told["spans"]["1"]) == 1
        assert told["first"]["1"] + told["counted"]["1"] == submitted
