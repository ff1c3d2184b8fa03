"""Repairs: what makes mutated input right again where a checksum or a decoder would stop it at once.

A fuzzer that is stopped by a checksum sees one branch and no more. So most mutated input is sealed again before it is
tried; some stays as it is, since checksums must be compared as well.
"""

import struct
from random import Random
from typing import Final

import google_crc32c
import msgspec

from echoic.testing.twisting import twist

__all__ = ["AS_IT_IS", "BOMBS", "seal_blocks", "seal_frames", "seal_log", "twist_json", "twist_msgpack"]

AS_IT_IS: Final = 0.15
FRAME: Final = struct.Struct("<IBBHII")
SEGMENT_BYTES: Final = 60
BLOCK: Final = struct.Struct("<I48xI")
FILE_BYTES: Final = 60
LOG_BLOCK: Final = struct.Struct("<4sII4xQ16xII")
SIZE: Final = struct.Struct("<I")
FIX_ARRAY, FIX_ARRAY_END = 0x90, 0x9F
BOMBED: Final = 0.01
MSGPACK_BOMB: Final = b"\x91" * 1500 + b"\xc0"
"""Nested deeper than Python recurses; so are the others."""
BOMBS: Final = (
    MSGPACK_BOMB,
    b"\x81\xa1x" + MSGPACK_BOMB,
    b"[" * 1500,
    b'{"x":' + b"[" * 1020 + b"]" * 1020 + b"}",
    b"x = " + b"[" * 1020 + b"]" * 1020,
    b"(" * 1500,
    b"{" * 1500,
    b"-" * 1500,
    b"f(" * 1000,
)
"""Seeds of every parser."""


def seal_frames(data: bytes, draw: Random) -> bytes:
    """Return a stream of frames with right checksums, where they have any and are whole."""
    sealed, at = bytearray(data), 0
    while len(sealed) - at >= FRAME.size:
        length, _, flags, _, _, _ = FRAME.unpack_from(sealed, at)
        end = at + FRAME.size + length
        if end > len(sealed):
            if draw.random() < 0.5:
                return bytes(sealed)
            length = len(sealed) - at - FRAME.size
            struct.pack_into("<I", sealed, at, length)
            end = len(sealed)
        if flags == 1:
            value = google_crc32c.value(bytes(sealed[at : at + 12]) + bytes(sealed[at + FRAME.size : end]))
            struct.pack_into("<I", sealed, at + 12, value)
        at = end + (-length & 7)
    return bytes(sealed)


def seal_blocks(data: bytes, draw: Random) -> bytes:
    """Return a segment of a journal with right checksums, as far as its blocks are whole."""
    if len(data) < SEGMENT_BYTES + 4:
        return data
    sealed, at = bytearray(data), SEGMENT_BYTES + 4
    seed = google_crc32c.value(bytes(sealed[:SEGMENT_BYTES]))
    struct.pack_into("<I", sealed, SEGMENT_BYTES, seed)
    while len(sealed) - at >= BLOCK.size:
        size, _ = BLOCK.unpack_from(sealed, at)
        start = at + BLOCK.size
        if start + size > len(sealed):
            size = (len(sealed) - start) & ~7
            struct.pack_into("<I", sealed, at, size)
        end = start + size + (-size & 7)
        if draw.random() >= 0.02:
            value = google_crc32c.extend(seed, bytes(sealed[at : start - 4]))
            struct.pack_into("<I", sealed, start - 4, google_crc32c.extend(value, bytes(sealed[start:end])))
        at = end
    return bytes(sealed)


def seal_log(data: bytes, draw: Random) -> bytes:
    """Return a file of a group's log with right checksums and offsets, as far as its blocks are whole."""
    if len(data) < FILE_BYTES + 4:
        return data
    sealed, at = bytearray(data), FILE_BYTES + 4
    seed = google_crc32c.value(bytes(sealed[:FILE_BYTES]))
    struct.pack_into("<I", sealed, FILE_BYTES, seed)
    while len(sealed) - at >= LOG_BLOCK.size:
        (size,) = SIZE.unpack_from(sealed, at + 8)
        start = at + LOG_BLOCK.size
        if start + size > len(sealed):
            size = len(sealed) - start
            struct.pack_into("<I", sealed, at + 8, size)
        if draw.random() >= 0.02:
            struct.pack_into("<Q", sealed, at + 16, at)
            value = google_crc32c.extend(seed, bytes(sealed[start : start + size]))
            struct.pack_into("<I", sealed, start - 8, value)
            struct.pack_into("<I", sealed, start - 4, google_crc32c.extend(seed, bytes(sealed[at : start - 4])))
        at = start + size
    return bytes(sealed)


def twist_msgpack(data: bytes, draw: Random) -> bytes:
    """Return a message in which a few values are others; the same bytes if they are none."""
    if data and FIX_ARRAY <= data[0] < FIX_ARRAY_END and draw.random() < BOMBED:
        return bytes([data[0] + 1]) + data[1:] + MSGPACK_BOMB  # one element more than this version knows of
    try:
        return msgspec.msgpack.encode(twist(draw, msgspec.msgpack.decode(data, strict=False)))
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError):
        return data


def twist_json(data: bytes, draw: Random) -> bytes:
    """Return a text of JSON in which a few values are others; the same bytes if it is none."""
    try:
        return msgspec.json.encode(twist(draw, msgspec.json.decode(data)))
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return data
