r"""Pickles that make a file when they are unpickled, wrapped in all that the product hears.

A pickle is a program for a small machine with a stack. These name a function, `io.open`, and call it with a path. They
are written out by hand, opcode by opcode, since no source of echoic imports what would write them:

    protocol 0    cio\nopen\n ( S'PATH'\n S'w'\n t R .            all of it text
    protocol 2    80 02  cio\nopen\n  X len PATH  X len w  86 R .
    protocol 4    80 04  95 frame     8c 02 io 8c 04 open 93  ...
"""

import base64
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from echoic.engines.embedded import GROUP_FEATURE
from echoic.terms import Term, TermList
from echoic.terms.saf import encode_saf
from echoic.wire import FrameKind, Hello, encode_hello
from echoic.wire.frames import encode_frame

__all__ = ["bombs", "framed_bombs", "pickle_of"]

PROTOCOLS: Final = 6
TOOL_HEAD: Final = struct.Struct("<BBHI")
TOOL_HELLO: Final = 1
TOOL_KINDS: Final = (1, 3, 16, 18, 25, 49, 50, 54)
ZLIB_LEVEL: Final = 9


def pickle_of(path: Path, protocol: int) -> bytes:
    """Return a pickle that makes a file."""
    text = str(path).encode()
    if protocol < 2:
        return b"cio\nopen\n(S'" + text + b"'\nS'w'\ntR."
    if protocol < 4:
        words = b"".join(b"X" + struct.pack("<I", len(word)) + word for word in (text, b"w"))
        return bytes([0x80, protocol]) + b"cio\nopen\n" + words + b"\x86R."
    words = b"".join(b"X" + struct.pack("<I", len(word)) + word for word in (text, b"w"))
    body = b"\x8c\x02io\x8c\x04open\x93" + words + b"\x86R."
    return bytes([0x80, protocol]) + b"\x95" + struct.pack("<Q", len(body)) + body


def bombs(path: Path, chance: random.Random) -> Iterator[bytes]:
    """Yield pickles without end, as programs that unpickle what they receive would have them."""
    while True:
        for protocol in range(PROTOCOLS):
            plain = pickle_of(path, protocol)
            yield plain
            yield struct.pack(chance.choice((">I", "<I", ">Q", "<Q")), len(plain)) + plain
            yield zlib.compress(plain, ZLIB_LEVEL)
            yield (
                b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/python-pickle\r\n"
                + (b"Content-Length: %d\r\n\r\n" % len(plain))
                + plain
            )
            letters = base64.b64encode(plain)
            yield (
                b"GET /?token=" + letters + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: session=" + letters + b"\r\n\r\n"
            )
            yield b"Ctoken\n" + plain


def framed_bombs(path: Path, chance: random.Random) -> Iterator[bytes]:
    """Yield pickles without end inside of what hubs, members, tools and browsers say."""
    while True:
        plain = pickle_of(path, chance.randrange(PROTOCOLS))
        packed = msgspec.msgpack.encode({"kind": plain, "payload": plain, "name": base64.b64encode(plain).decode()})
        hello = encode_hello(Hello(name="x", hub="0" * 16, address="127.0.0.1:1"))
        kind = chance.choice(list(FrameKind))
        yield _frame(FrameKind.HELLO, plain)
        yield _frame(FrameKind.HELLO, hello + plain)
        yield _frame(FrameKind.HELLO, hello[:8] + packed)
        yield _frame(FrameKind.HELLO, hello) + _frame(FrameKind.CONTROL, plain)
        yield _frame(FrameKind.HELLO, hello) + _frame(FrameKind.CONTROL, packed)
        yield _frame(FrameKind.HELLO, hello) + _frame(kind, plain, checked=True)
        group = encode_hello(Hello(name="x", features=(GROUP_FEATURE,), hub="0" * 16, address="127.0.0.1:1"))
        yield _frame(FrameKind.HELLO, group) + _frame(FrameKind.GROUP, chance.choice((plain, packed)))
        yield _tool(TOOL_HELLO, plain)
        yield _tool(TOOL_HELLO, encode_saf(TermList(plain, plain)))
        greeting = TermList(Term("echoic-tool", 1, 1), "calc", -1, base64.b64encode(plain).decode(), TermList(), plain)
        yield _tool(TOOL_HELLO, encode_saf(greeting))
        yield _tool(chance.choice(TOOL_KINDS), chance.choice((plain, encode_saf(TermList(plain)))))


def _frame(kind: FrameKind, payload: bytes, *, checked: bool = False) -> bytes:
    return b"".join(encode_frame(kind, [payload], checked=checked))


def _tool(kind: int, values: bytes) -> bytes:
    return _frame(FrameKind.TOOL, TOOL_HEAD.pack(kind, 0, 0, 1) + values)
