"""Doors, and how to knock at them: somewhere that listens, an honest guest, and the first words of a WebSocket."""

import base64
import secrets
import socket
import struct
import time
from collections.abc import Callable
from typing import Final

import msgspec

from echoic.errors import UnreachableError
from echoic.links import parse_address

__all__ = ["HOST", "PAUSE_SECONDS", "SECONDS", "Door", "await_that", "masked", "require", "upgrade"]

HOST: Final = "127.0.0.1:0"
SECONDS: Final = 20.0
PAUSE_SECONDS: Final = 0.01
SHORT_BYTES: Final = 126
MEDIUM_BYTES: Final = 1 << 16


class Door(msgspec.Struct, frozen=True):
    """Somewhere to knock."""

    name: str
    address: str
    """HOST:PORT, or the path of a Unix socket."""
    visit: Callable[[], None]
    """Be an honest guest; raises EchoicError or OSError if that is not possible."""
    websocket: str = ""
    """The path at which it speaks WebSocket, if it does."""
    headers: dict[str, str] = {}
    """What it takes to come in there."""

    def connect(self) -> socket.socket:
        """Return a socket that is connected to it.

        Raises:
            OSError: Nobody is there.
        """
        if not self.address.startswith("/"):
            return socket.create_connection(parse_address(self.address), SECONDS)
        made = socket.socket(socket.AF_UNIX)
        made.settimeout(SECONDS)
        made.connect(self.address)
        return made


def require(fact: bool, otherwise: str) -> None:
    """See that something is so.

    Raises:
        UnreachableError: It is not.
    """
    if not fact:
        raise UnreachableError(otherwise)


def await_that(fact: Callable[[], object], what: str) -> None:
    """Wait until something is so.

    Raises:
        UnreachableError: It is not, after `SECONDS`.
    """
    deadline = time.monotonic() + SECONDS
    while not fact():
        require(time.monotonic() < deadline, f"not within {SECONDS:g} s: {what}")
        time.sleep(PAUSE_SECONDS)


def upgrade(address: str, path: str, headers: dict[str, str]) -> bytes:
    """Return the request that begins a WebSocket."""
    key = base64.b64encode(secrets.token_bytes(16)).decode()
    lines = {
        "Host": address,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Version": "13",
        **headers,
    }
    told = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"GET {path} HTTP/1.1\r\n{told}\r\n".encode()


def masked(payload: bytes, *, binary: bool) -> bytes:
    """Return a whole message of a WebSocket, as clients send it."""
    kind, size = bytes([0x82 if binary else 0x81]), len(payload)
    if size < SHORT_BYTES:
        head = bytes([0x80 | size])
    elif size < MEDIUM_BYTES:
        head = bytes([0x80 | SHORT_BYTES]) + struct.pack(">H", size)
    else:
        head = bytes([0xFF]) + struct.pack(">Q", size)
    return kind + head + bytes(4) + payload  # a mask of zeros leaves it as it is
