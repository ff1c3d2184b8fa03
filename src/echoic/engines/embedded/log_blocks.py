"""The bytes of a member's log: files made of blocks, each with checksums of its own.

    file   := header of 64 bytes | blocks, one right behind the other
    header := "echoicG1" or "echoicS1" | version u32 | 0 u32 | life u64 | number u64 | salt u64 | index u64 | term u64
              | 0 u32 | checksum u32 of the 60 bytes before it, which is the seed of the blocks
    block  := head of 48 bytes | body
    head   := "eGR1" | kind u32 | body bytes u32 | heads bytes u32 | offset u64 | first u64 | synced u64
              | checksum u32 of the body | checksum u32 of the 44 bytes before it

Numbers are little-endian. A checksum is a CRC-32C that continues from the seed, and the header has a salt that is drawn
for every file, so bytes of another file, or of one that had this name before, are never taken for blocks of this one.
`offset` is where the block begins, so a block that was written to a wrong place is not taken for one of that place.

The head has a checksum of its own for two reasons. A length is believed only when it has been checked, so nothing is
ever set aside for a length that chance has written. And `synced`, which says how many bytes of the file were known to
be on the disk when the block was written, can be believed even if the body is torn: `find_claim` looks for such heads
behind a broken place, to tell damage from the end of a write that did not finish. The four letters at the beginning of
each head are there to be found by that search.
"""

import re
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import google_crc32c
import msgspec

from echoic.errors import JournalError
from echoic.wire import Buffer
from echoic.wire.frames import checksum, size_of

__all__ = [
    "BLOCK_HEAD_BYTES",
    "BODY_BYTES_MAX",
    "FILE_HEADER_BYTES",
    "SEGMENT_MAGIC",
    "SNAPSHOT_MAGIC",
    "Block",
    "BlockKind",
    "FileHeader",
    "encode_block",
    "encode_file_header",
    "find_claim",
    "parse_block",
    "parse_file_header",
]

SEGMENT_MAGIC: Final = b"echoicG1"
SNAPSHOT_MAGIC: Final = b"echoicS1"
VERSION: Final = 1
MARKER: Final = b"eGR1"
MARKERS: Final = re.compile(re.escape(MARKER))
HEADER: Final = struct.Struct("<8sIIQQQQQI")
HEAD: Final = struct.Struct("<4sIIIQQQI")
CHECKSUM: Final = struct.Struct("<I")
FILE_HEADER_BYTES: Final = HEADER.size + CHECKSUM.size
BLOCK_HEAD_BYTES: Final = HEAD.size + CHECKSUM.size
BODY_BYTES_MAX: Final = 1024 * 1024 * 1024
"""Of what is written. What is read may not be longer than the rest of its file."""


class BlockKind(IntEnum):
    """What a block holds."""

    STATE = 1
    BALLOT = 2
    APPEND = 3
    MARK = 4
    BODY = 5
    SUMMARY = 6
    CHUNK = 7
    END = 8


KINDS: Final = {int(kind): kind for kind in BlockKind}


class FileHeader(msgspec.Struct, frozen=True):
    """What a file says of itself. `index` and `term` are those of a snapshot, and 0 in a segment."""

    life: int
    number: int
    salt: int
    index: int = 0
    term: int = 0


class Block(msgspec.Struct, frozen=True):
    """A block as it lies in its file."""

    kind: BlockKind
    offset: int
    first: int
    synced: int
    heads_bytes: int
    body: memoryview

    @property
    def end(self) -> int:
        """Where the next block begins."""
        return self.offset + BLOCK_HEAD_BYTES + len(self.body)


def encode_file_header(magic: bytes, header: FileHeader) -> tuple[bytes, int]:
    """Return the first bytes of a file, and the seed of its blocks."""
    plain = HEADER.pack(magic, VERSION, 0, header.life, header.number, header.salt, header.index, header.term, 0)
    seed = google_crc32c.value(plain)
    return plain + CHECKSUM.pack(seed), seed


def parse_file_header(magic: bytes, data: memoryview, path: str) -> tuple[FileHeader, int]:
    """Return what a file says of itself, and the seed of its blocks.

    Raises:
        JournalError: This is not the beginning of such a file.
    """
    if len(data) < FILE_HEADER_BYTES:
        raise JournalError(f"a file of the log has {len(data)} bytes, its header needs {FILE_HEADER_BYTES} - at {path}")
    plain = bytes(data[: HEADER.size])
    found, version, zero, life, number, salt, index, term, reserved = HEADER.unpack(plain)
    if found != magic:
        raise JournalError(f"a file of the log begins with {found!r}, expected {magic!r} - at {path}")
    (seed,) = CHECKSUM.unpack_from(data, HEADER.size)
    if google_crc32c.value(plain) != seed:
        raise JournalError(f"the header of a file of the log is damaged - at {path}")
    if version != VERSION or zero or reserved:
        raise JournalError(f"a file of the log has version {version}, expected {VERSION} - at {path}")
    return FileHeader(life, number, salt, index, term), seed


def encode_block(
    kind: BlockKind,
    body: Sequence[Buffer],
    *,
    seed: int,
    offset: int,
    synced: int = 0,
    first: int = 0,
    heads_bytes: int = 0,
) -> tuple[list[Buffer], int]:
    """Return the buffers of a block, for one gathering write, and how many bytes they have; the body is not copied."""
    size, value = 0, seed
    for piece in body:
        size += size_of(piece)
        # The library takes only `bytes`; anything else is copied for it, a little at a time.
        value = google_crc32c.extend(value, piece) if type(piece) is bytes else checksum([piece], value)
    plain = HEAD.pack(MARKER, kind, size, heads_bytes, offset, first, synced, value)
    head = plain + CHECKSUM.pack(google_crc32c.extend(seed, plain))
    return [head, *body], BLOCK_HEAD_BYTES + size


def parse_block(data: memoryview, offset: int, seed: int) -> Block | None:
    """Return the block at an offset, None if there is no whole and sound one."""
    head = _parse_head(data, offset, seed)
    if head is None:
        return None
    kind, size, heads_bytes, first, synced, value = head
    start = offset + BLOCK_HEAD_BYTES
    if size > len(data) - start or heads_bytes > size or kind not in KINDS:
        return None
    body = data[start : start + size]
    if checksum([body], seed) != value:
        return None
    return Block(KINDS[kind], offset, first, synced, heads_bytes, body)


def find_claim(data: memoryview, broken: int, seed: int) -> int | None:
    """Return where a block behind a broken place says that the place was on the disk, None if no block says so."""
    for match in MARKERS.finditer(data, broken):
        head = _parse_head(data, match.start(), seed)
        if head is not None and head[4] > broken:
            return match.start()
    return None


def _parse_head(data: memoryview, offset: int, seed: int) -> tuple[int, int, int, int, int, int] | None:
    """Return kind, body bytes, heads bytes, first, synced and the body's checksum, if there is a sound head."""
    if len(data) - offset < BLOCK_HEAD_BYTES:
        return None
    plain = bytes(data[offset : offset + HEAD.size])
    marker, kind, size, heads_bytes, place, first, synced, value = HEAD.unpack(plain)
    (own,) = CHECKSUM.unpack_from(data, offset + HEAD.size)
    if marker != MARKER or place != offset or google_crc32c.extend(seed, plain) != own:
        return None
    return kind, size, heads_bytes, first, synced, value
