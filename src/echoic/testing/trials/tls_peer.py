"""A peer that writes down every byte it is told, on the wire and decrypted.

It speaks TLS as it is told to, or none, says its piece as soon as TLS lets it, and listens until the other side ends
the connection or nothing comes for a while.
"""

import contextlib
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Final

__all__ = ["HEARD_BYTES_MAX", "Heard", "converse"]

HEARD_BYTES_MAX: Final = 1 << 20
RECEIVE_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Heard:
    """What the other side has said."""

    wire: bytes = b""
    """All bytes as they came."""
    said: bytes = b""
    """What they say once decrypted; the same as `wire` without TLS."""
    ended: bool = False
    """Whether the other side has ended the connection, and not this one's patience."""


def converse(
    plain: socket.socket,
    context: ssl.SSLContext | None,
    piece: bytes,
    seconds: float,
    *,
    listening: bool = False,
    enough: int = HEARD_BYTES_MAX,
) -> Heard:
    """Say a piece over a connected socket, and return what is heard.

    Args:
        plain: Where; it is closed.
        context: How to speak TLS; None to speak plainly.
        piece: What to say.
        seconds: For how long to listen.
        listening: Whether this side was dialled.
        enough: After how many bytes that say something nothing more need be heard.
    """
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secret = context.wrap_bio(incoming, outgoing, listening) if context is not None else None
    wire, said, ended, begun = bytearray(), bytearray(), False, False
    deadline = time.monotonic() + seconds
    with plain:
        while not ended and len(wire) < HEARD_BYTES_MAX:
            try:
                if secret is not None:
                    begun = _step(secret, begun, piece, said)
                elif not begun:
                    outgoing.write(piece)
                    begun = True
            except (ssl.SSLError, OSError):
                ended = True  # it has refused us, or speaks no TLS
            with contextlib.suppress(OSError):
                plain.settimeout(seconds)
                plain.sendall(outgoing.read())
            left = deadline - time.monotonic()
            if left <= 0 or ended or len(said) >= enough:
                break
            data = _receive(plain, left)
            if data is None:
                break
            wire += data
            ended = not data
            incoming.write(data)
            if secret is None:
                said += data
    return Heard(bytes(wire), bytes(said), ended)


def _step(secret: ssl.SSLObject, begun: bool, piece: bytes, said: bytearray) -> bool:
    """Go on with TLS as far as it goes, and return whether the piece is said."""
    try:
        if not begun:
            secret.do_handshake()
            secret.write(piece)
            begun = True
        while data := secret.read(RECEIVE_BYTES):
            said += data
    except ssl.SSLWantReadError:
        pass
    return begun


def _receive(plain: socket.socket, seconds: float) -> bytes | None:
    """Return the next bytes, b"" at the end, None when none came in time."""
    plain.settimeout(seconds)
    try:
        return plain.recv(RECEIVE_BYTES)
    except TimeoutError:
        return None
    except OSError:
        return b""
