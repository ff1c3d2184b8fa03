"""Parsers of the bridge to Foxglove, which faces the network: the head of a request, and the frames behind it."""

from collections.abc import Iterator
from random import Random
from typing import Final

from echoic.errors import EchoicError
from echoic.interop.client_frames import ClientFrames
from echoic.interop.upgrade import HEAD_END, refusal_of
from echoic.testing.parsers.parser import Target
from echoic.testing.parsers.repairs import AS_IT_IS

__all__ = ["REQUESTS", "WEBSOCKETS"]

MESSAGE_BYTES_MAX: Final = 4096
"""Small, so that short input reaches it."""
ORIGINS: Final = ("https://app.foxglove.dev",)
HEAD: Final = b"GET / HTTP/1.1\r\nHost: h:8765\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13"
MASK: Final = b"\x01\x02\x03\x04"


def _feed_websocket(data: bytes) -> None:
    """Measure a stream whole and in pieces, which must come to the same."""
    whole, cut = _measured([data]), _measured(_pieces(data))
    if whole != cut:
        raise AssertionError(f"the stream is {whole or 'taken'} as a whole, {cut or 'taken'} in pieces")
    ClientFrames(MESSAGE_BYTES_MAX).measure(data)


def _pieces(data: bytes) -> list[bytes]:
    """Return a stream in pieces that are ever longer, so that every header is cut somewhere, and none takes long."""
    pieces: list[bytes] = []
    at = 0
    while at < len(data):
        size = len(pieces) + 1
        pieces.append(data[at : at + size])
        at += size
    return pieces


def _measured(parts: list[bytes]) -> str:
    """Return why a stream is refused, "" if it is not."""
    frames = ClientFrames(MESSAGE_BYTES_MAX)
    try:
        for part in parts:
            frames.measure(part)
    except EchoicError as error:
        return str(error)
    return ""


def _websocket_seeds() -> Iterator[bytes]:
    text = b'{"op":"subscribe","subscriptions":[{"id":0,"channelId":1}]}'
    yield b"\x81" + bytes([0x80 | len(text)]) + MASK + text
    yield b"\x01\xfe\x00\x80" + MASK + bytes(128) + b"\x80\xff" + (300).to_bytes(8, "big") + MASK + bytes(300)
    yield b"\x89\x80" + MASK + b"\x02\x03abc" + b"\x8a\x02hi" + b"\x80\x00" + b"\x88\x82" + MASK + b"\x03\xe8"


def _feed_request(data: bytes) -> None:
    """Ask whether a request may come in; whoever is refused is answered, in words that can be sent."""
    head, _, _ = data.partition(HEAD_END)
    refusal_of(head + HEAD_END, ORIGINS).encode()


def _request_seeds() -> Iterator[bytes]:
    for origin in (b"", b"https://app.foxglove.dev", b"HTTPS://App.Foxglove.dev", b"https://evil.example", b"null"):
        yield HEAD + (b"\r\nOrigin: " + origin if origin else b"") + HEAD_END
    yield HEAD + b"\r\norigin:file://x\r\nORIGIN : app://x" + HEAD_END
    yield b"POST / HTTP/1.1" + HEAD_END


def _repair_request(data: bytes, draw: Random) -> bytes:
    """Return a request whose first line is right, so that its headers are looked at."""
    return data if draw.random() < AS_IT_IS else b"GET / HTTP/1.1\r\n" + data.partition(b"\r\n")[2]


WEBSOCKETS: Final = Target(_feed_websocket, _websocket_seeds)
REQUESTS: Final = Target(_feed_request, _request_seeds, _repair_request)
