"""One who stands between two hubs, and lets each hear the other in a dialect.

Between hubs with certificates it has those of both: to each of them it shows that of the other.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final, Self

from echoic.errors import EchoicError
from echoic.links import Connection, Identity, dial, parse_address
from echoic.links.sockets import SocketConnection
from echoic.links.tls import TlsConnection
from echoic.testing.trials.dialect import Dialect
from echoic.wire import FrameReader

__all__ = ["HOST", "Interpreter"]

HOST: Final = "127.0.0.2"
"""Of this machine, and without the shortcuts that 127.0.0.1 has."""
HANDSHAKE_SECONDS: Final = 10.0
ROOM_MILLISECONDS: Final = 100


class Interpreter:
    """A proxy for connections to one hub: from `with` on until its end."""

    def __init__(
        self,
        address: str,
        dialled: Dialect,
        dialler: Dialect,
        identities: tuple[Identity | None, Identity | None] = (None, None),
    ) -> None:
        """Listen in place of a hub.

        Args:
            address: Where the hub is.
            dialled: How it is heard by those who dial it.
            dialler: How it hears them.
            identities: Who it is, and who dials it, if they have certificates.
        """
        self._to = address
        self._dialled, self._dialler = dialled, dialler
        self._identities = identities
        self._listener = socket.create_server((HOST, 0))
        self._connections: list[Connection] = []
        self.address: Final = f"{HOST}:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._connections:
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                accepted, (host, port) = self._listener.accept()
                self._start(partial(self._join, accepted, f"{host}:{port}"))

    def _join(self, accepted: socket.socket, peer: str) -> None:
        """Carry frames between whoever has dialled and the hub, both ways."""
        with contextlib.suppress(EchoicError, OSError):  # one of them is gone, or refuses the other
            dialler, dialled = self._connect(accepted, peer)
            self._connections += [dialler, dialled]
            self._start(partial(carry, dialler, dialled, self._dialler))
            carry(dialled, dialler, self._dialled)

    def _connect(self, accepted: socket.socket, peer: str) -> tuple[Connection, Connection]:
        """Return the ways to who has dialled, and to the hub."""
        shown, behind = self._identities
        if shown is None:
            dialled = socket.create_connection(parse_address(self._to))
            return SocketConnection(accepted, peer, checked=False), SocketConnection(dialled, self._to, checked=False)
        dialler = TlsConnection(accepted, peer, shown.listening_context())
        dialler.handshake(HANDSHAKE_SECONDS)
        return dialler, dial(self._to, behind)

    def _start(self, role: Callable[[], None]) -> None:
        threading.Thread(target=role, name="echoic-interpreter", daemon=True).start()


def carry(one: Connection, other: Connection, dialect: Dialect) -> None:
    """Carry frames until one of both hangs up."""
    reader = FrameReader()
    with contextlib.suppress(OSError):
        while (data := one.receive()) != b"":
            for frame in reader.receive(data or b""):
                tell(other, b"".join(dialect.say(frame)))
        other.finish()


def tell(other: Connection, data: bytes) -> None:
    """Say all of something, however long it takes to be taken.

    Raises:
        OSError: The connection is broken or closed.
    """
    while data:
        data = data[other.send([data]) :]
        if data:
            other.writable(ROOM_MILLISECONDS)
