"""A small proxy between two hubs, which resets every connection when it is told to."""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Final, Self

from echoic.links import format_address, parse_address

__all__ = ["Proxy"]

CHUNK_BYTES: Final = 65_536
RESET: Final = struct.pack("ii", 1, 0)
JOIN_SECONDS: Final = 5.0


class Proxy:
    """Forwards connections from one loopback address to the same port of another."""

    def __init__(self, target: str, host: str) -> None:
        """Listen at `host`, with the port of `target`, where connections are forwarded to."""
        self._target = parse_address(target)
        self._listening = socket.create_server((host, self._target[1]))
        self.address: Final = format_address(host, self._target[1])
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self.resets = 0

    def __enter__(self) -> Self:
        """Begin to forward."""
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        """Forward no more."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.reset()

    def reset(self) -> None:
        """Reset every connection there is."""
        with self._lock:
            sockets, self._sockets = self._sockets, set()
            self.resets += bool(sockets)
        for each in sockets:
            with contextlib.suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _start(self, act: Callable[..., None], *ends: socket.socket) -> None:
        threading.Thread(target=act, args=ends, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    near.close()
                    continue
                for each in (near, far):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._sockets |= {near, far}
                self._start(self._forward, near, far)
                self._start(self._forward, far, near)

    def _forward(self, start: socket.socket, end: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := start.recv(CHUNK_BYTES):
                end.sendall(data)
        with self._lock:
            self._sockets -= {start, end}
        for each in (start, end):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
