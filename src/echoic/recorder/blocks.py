"""The bytes of a journal: segments, made of blocks.

A journal keeps what arrived as it arrived: the sender's layout, no conversion. A segment is a file that only grows.

    segment := header of 64 bytes | blocks, each at a multiple of 8
    header  := "echoicJ1" | journal 16 bytes | version u32 | partition u32 | sequence u64 | time_ns i64 | 0 u64 | 0 u32
               | checksum u32 of the 60 bytes before it
    block   := head of 56 bytes | payload | zeros to 8
    head    := payload bytes u32 | kind u32 | sequence u64 | source u64 | first u64 | time_ns i64 | synced u64
               | count u32 | checksum u32 of the head's 52 bytes before it, the payload and the zeros

    FORMAT     payload: a descriptor. Each segment has those of its own batches, before the first that needs it
    BATCH      payload: a batch as on the wire; `count` events of `source`, whose first has the source's number `first`
    GAP        payload: how many events u64, reason UTF-8; events of `source` from `first` on that never arrived
    POSITIONS  payload: (source u64, next number u64) each; where every source goes on. First block of a segment
    COMMIT     no payload: everything before `synced` is on the disk
    SEAL       no payload: nothing follows, the journal goes on in the next segment

Numbers are little-endian. `sequence` counts the events of the partition: in a BATCH that of its first event, in any
other block that of the next event to come. `time_ns` is the wall clock when the block was made; clocks step, so order
is by sequence alone. A block's checksum (CRC-32C) continues from that of its segment's header, so a block that
strayed in from another file is not taken for one of this.

`synced` says how much of the segment was known to be on the disk when the block was written. What is broken before the
last such mark is damage, and named; what is broken behind it was never acknowledged: the torn end of a write.

A batch begins 56 bytes behind its block and its records 16 bytes later, so records lie at multiples of 8 and are used
where they are, in the mapped file.
"""

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import msgspec

from echoic.errors import JournalError
from echoic.wire import Buffer
from echoic.wire.frames import PADDING, PAYLOAD_BYTES_MAX, checksum, size_of

__all__ = [
    "BLOCK_HEAD_BYTES",
    "BLOCK_PAYLOAD_BYTES_MAX",
    "SEGMENT_HEADER_BYTES",
    "BlockHead",
    "BlockKind",
    "SegmentHeader",
    "encode_block",
    "encode_segment_header",
    "parse_block",
    "parse_segment_header",
]

MAGIC: Final = b"echoicJ1"
VERSION: Final = 1
SEGMENT: Final = struct.Struct("<8s16sIIQqQI")
HEAD: Final = struct.Struct("<IIQQQqQI")
CHECKSUM: Final = struct.Struct("<I")
SEGMENT_HEADER_BYTES: Final = SEGMENT.size + CHECKSUM.size
BLOCK_HEAD_BYTES: Final = HEAD.size + CHECKSUM.size
BLOCK_PAYLOAD_BYTES_MAX: Final = PAYLOAD_BYTES_MAX


class BlockKind(IntEnum):
    """What a block holds."""

    FORMAT = 1
    BATCH = 2
    GAP = 3
    POSITIONS = 4
    COMMIT = 5
    SEAL = 6


class SegmentHeader(msgspec.Struct, frozen=True):
    """What a segment says of itself. `seed` is its checksum, from which those of its blocks go on."""

    journal: bytes
    partition: int
    sequence: int
    time_ns: int
    seed: int = 0


class BlockHead(msgspec.Struct, frozen=True, gc=False):
    """What a block says of its payload."""

    kind: BlockKind
    sequence: int
    time_ns: int
    synced: int = 0
    source: int = 0
    first: int = 0
    count: int = 0
    payload_bytes: int = 0

    @property
    def block_bytes(self) -> int:
        """How many bytes the whole block has."""
        return BLOCK_HEAD_BYTES + self.payload_bytes + (-self.payload_bytes & 7)


def encode_segment_header(header: SegmentHeader) -> tuple[bytes, int]:
    """Return the first bytes of a segment, and the seed for its blocks."""
    plain = SEGMENT.pack(MAGIC, header.journal, VERSION, header.partition, header.sequence, header.time_ns, 0, 0)
    seed = checksum([plain])
    return plain + CHECKSUM.pack(seed), seed


def parse_segment_header(data: Buffer, where: str) -> SegmentHeader:
    """Return what a segment says of itself.

    Raises:
        JournalError: This is not the beginning of a segment; the message names `where`.
    """
    if len(data) < SEGMENT_HEADER_BYTES:
        raise JournalError(f"a segment has {len(data)} bytes, its header needs {SEGMENT_HEADER_BYTES} - at {where}")
    plain = bytes(data[: SEGMENT.size])
    magic, journal, version, partition, sequence, time_ns, *reserved = SEGMENT.unpack(plain)
    if magic != MAGIC:
        raise JournalError(f"this is not a segment of a journal, it begins with {magic!r} - at {where}")
    (seed,) = CHECKSUM.unpack_from(data, SEGMENT.size)
    if checksum([plain]) != seed:
        raise JournalError(f"the header of a segment is damaged - at {where}")
    if version != VERSION or any(reserved):
        raise JournalError(f"a segment has version {version}, expected {VERSION} - at {where}")
    return SegmentHeader(journal, partition, sequence, time_ns, seed)


def encode_block(head: BlockHead, payload: Sequence[Buffer], seed: int) -> list[Buffer]:
    """Return the buffers of a block, for one gathering write; the payload is not copied. Its size is found here.

    Raises:
        JournalError: The payload is larger than a block can be.
    """
    size = sum(size_of(piece) for piece in payload)
    if size > BLOCK_PAYLOAD_BYTES_MAX:
        raise JournalError(f"a block would have {size} payload bytes, limit is {BLOCK_PAYLOAD_BYTES_MAX}")
    plain = HEAD.pack(size, head.kind, head.sequence, head.source, head.first, head.time_ns, head.synced, head.count)
    padding = PADDING[size & 7]
    value = checksum([plain, *payload, padding], seed)
    pieces = [plain + CHECKSUM.pack(value), *payload]
    return [*pieces, padding] if padding else pieces


def parse_block(data: Buffer, offset: int, seed: int) -> BlockHead | None:
    """Return the head of the block at an offset, None if there is no whole and sound block."""
    room = len(data) - offset - BLOCK_HEAD_BYTES
    if room < 0:
        return None
    size, kind, sequence, source, first, time_ns, synced, count = HEAD.unpack_from(data, offset)
    padded = size + (-size & 7)
    if padded > room or size > BLOCK_PAYLOAD_BYTES_MAX or kind not in KINDS:
        return None
    (value,) = CHECKSUM.unpack_from(data, offset + HEAD.size)
    start = offset + BLOCK_HEAD_BYTES
    view = memoryview(data)
    if checksum([view[offset : offset + HEAD.size], view[start : start + padded]], seed) != value:
        return None
    return BlockHead(BlockKind(kind), sequence, time_ns, synced, source, first, count, size)


KINDS: Final = frozenset(BlockKind)
