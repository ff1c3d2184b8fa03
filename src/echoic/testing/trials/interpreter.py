"""One who stands between two hubs, and lets each hear the other in a dialect."""

import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final, Self

from echoic.links import parse_address
from echoic.testing.trials.dialect import Dialect
from echoic.wire import FrameReader

__all__ = ["HOST", "Interpreter"]

HOST: Final = "127.0.0.2"
"""Of this machine, and without the shortcuts that 127.0.0.1 has."""
RECEIVE_BYTES: Final = 65_536


class Interpreter:
    """A proxy for connections to one hub: from `with` on until its end."""

    def __init__(self, address: str, dialled: Dialect, dialler: Dialect) -> None:
        """Listen in place of a hub.

        Args:
            address: Where the hub is.
            dialled: How it is heard by those who dial it.
            dialler: How it hears them.
        """
        self._to = parse_address(address)
        self._dialled, self._dialler = dialled, dialler
        self._listener = socket.create_server((HOST, 0))
        self._sockets: list[socket.socket] = []
        self.address: Final = f"{HOST}:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                dialler, _ = self._listener.accept()
                dialled = socket.create_connection(self._to)
                self._sockets += [dialler, dialled]
                self._start(partial(carry, dialler, dialled, self._dialler))
                self._start(partial(carry, dialled, dialler, self._dialled))

    def _start(self, role: Callable[[], None]) -> None:
        threading.Thread(target=role, name="echoic-interpreter", daemon=True).start()


def carry(one: socket.socket, other: socket.socket, dialect: Dialect) -> None:
    """Carry frames until one of both hangs up."""
    reader = FrameReader()
    with contextlib.suppress(OSError):
        while data := one.recv(RECEIVE_BYTES):
            for frame in reader.receive(data):
                other.sendall(b"".join(dialect.say(frame)))
        other.shutdown(socket.SHUT_WR)
