"""What is sound in a segment, and what is not.

    | header | POSITIONS | FORMAT | BATCH | COMMIT | BATCH ##### BATCH | COMMIT | BATCH ###
                                                   damage: a later mark       torn: behind the last mark,
                                                   says it was on the disk    it was never acknowledged

Every block is checked: its checksum, that its sequence and its source's number continue, that its payload is what its
kind has. After a broken block the next sound one is searched at multiples of 8. If the length in the broken head leads
to the block that must follow, that is it; otherwise NumPy sifts the bytes for what may be a head, and only those are
checksummed, within a budget, so that bytes made to look like heads cannot keep anybody busy for long.

Two things may continue anywhere: what follows a broken stretch, and a POSITIONS block in the middle, with which
`recover` says that the sequence numbers before it are lost for good.

The largest `synced` of all sound blocks, also of those behind a broken place, decides between damage and a torn end.
In a segment that is not the last nothing is a torn end: it was synced before the next was made.
"""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec
import numpy

from echoic.errors import EchoicError
from echoic.formats import Format
from echoic.recorder.blocks import (
    BLOCK_HEAD_BYTES,
    BLOCK_PAYLOAD_BYTES_MAX,
    HEAD,
    KINDS,
    SEGMENT_HEADER_BYTES,
    BlockHead,
    BlockKind,
    SegmentHeader,
    parse_block,
)
from echoic.recorder.catalog import U64_MAX
from echoic.recorder.standing import SOURCES_MAX, Standing, gap_count
from echoic.wire.batch import HEADER, HEADER_BYTES

__all__ = ["Flaw", "Scan", "likely_heads", "payload_of", "peek", "scan"]

FLAWS_MAX: Final = 1_000
SIFTED_BYTES: Final = 1024 * 1024
SEARCH_BYTES_MIN: Final = 64 * 1024 * 1024
SEARCH_FACTOR: Final = 4  # so many times the segment may be checksummed while searching
GAP_BYTES_MIN: Final = 8


class Flaw(msgspec.Struct, frozen=True):
    """Something wrong with a file of a journal."""

    path: str
    offset: int
    end_offset: int
    what: str
    kind: Literal["damage", "torn", "hint"] = "damage"
    """`torn`: the end of a write that was never acknowledged; `hint`: of an index, which nobody relies on."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.what} - at {self.path}, bytes {self.offset} to {self.end_offset}"


class Scan(msgspec.Struct, frozen=True):
    """What a segment has."""

    header: SegmentHeader
    end: int
    """The offset behind the last block to keep: all of them, but for a torn end."""
    synced: int
    """What was known to be on the disk; what is broken before it is damage."""
    sequence: int
    """That of the next event."""
    sealed: bool
    flaws: tuple[Flaw, ...]
    broken: tuple[tuple[int, int], ...]
    """The damaged stretches before `end`, from and to."""

    def heads(self, data: memoryview) -> Iterator[tuple[int, BlockHead]]:
        """Yield offset and head of every block to keep. They were found sound, so no checksum is made again."""
        offset = SEGMENT_HEADER_BYTES
        for start, stop in (*self.broken, (self.end, self.end)):
            while offset < start:
                head = peek(data, offset)
                yield offset, head
                offset += head.block_bytes
            offset = stop


def peek(data: memoryview, offset: int) -> BlockHead:
    """Return the head of a block that is known to be sound."""
    size, kind, sequence, source, first, time_ns, synced, count = HEAD.unpack_from(data, offset)
    return BlockHead(BlockKind(kind), sequence, time_ns, synced, source, first, count, size)


def payload_of(data: memoryview, offset: int, head: BlockHead) -> memoryview:
    """Return the payload of a block."""
    start = offset + BLOCK_HEAD_BYTES
    return data[start : start + head.payload_bytes]


def likely_heads(data: memoryview, start: int) -> Iterator[int]:
    """Yield the places, at multiples of 8 from one on, where a head may be, by its length and kind alone."""
    last = len(data) - BLOCK_HEAD_BYTES
    for begin in range(start, last + 1, SIFTED_BYTES):
        sifted = data[begin : min(begin + SIFTED_BYTES, last + 8)]
        words = numpy.frombuffer(sifted[: len(sifted) & ~7], "<u4").reshape(-1, 2)
        room = numpy.minimum(last - begin - 8 * numpy.arange(len(words)), BLOCK_PAYLOAD_BYTES_MAX)
        likely = (words[:, 1] - 1 < len(BlockKind)) & (words[:, 0] <= room)
        for place in numpy.flatnonzero(likely).tolist():
            yield begin + 8 * place


def scan(data: memoryview, header: SegmentHeader, path: str, *, last: bool) -> Scan:
    """Look at every byte of a segment.

    Args:
        data: All of its bytes.
        header: What its first bytes say.
        path: Its name, for people.
        last: Whether it is the last of its partition, where the end may be torn.
    """
    return Walk(data, header, path).result(last=last)


class Walk:
    """One way through a segment."""

    def __init__(self, data: memoryview, header: SegmentHeader, path: str) -> None:
        self._data = data
        self._header = header
        self._path = path
        self._expected = header.sequence
        self._standing = Standing()
        self._tokens: set[int] = set()
        self._broken: list[tuple[int, int, str, int]] = []  # from, to, what, the sequence before it
        self._lost = False  # whether a broken stretch was just left, so that anything later may follow
        self._sealed = False
        self._synced = 0
        self._budget = SEARCH_FACTOR * len(data) + SEARCH_BYTES_MIN

    def result(self, *, last: bool) -> Scan:
        """Go all the way, then tell damage from a torn end."""
        self._walk()
        size = len(self._data)
        torn = [place for place in self._broken if last and place[0] >= self._synced]
        damage = self._broken[: len(self._broken) - len(torn)]
        flaws = [Flaw(self._path, start, stop, what) for start, stop, what, _ in damage]
        end, sequence, sealed = size, self._expected, self._sealed
        if torn:
            end, _, what, sequence = torn[0]
            flaws.append(Flaw(self._path, end, size, what, "torn"))
            sealed = False
        elif not last and not self._sealed:
            flaws.append(Flaw(self._path, size, size, "the segment is not sealed although another follows it"))
        stretches = tuple((start, stop) for start, stop, _, _ in damage)
        return Scan(self._header, end, self._synced, sequence, sealed, tuple(flaws), stretches)

    def _walk(self) -> None:
        data, seed, size = self._data, self._header.seed, len(self._data)
        offset = SEGMENT_HEADER_BYTES
        while offset < size:
            head = parse_block(data, offset, seed)
            wrong = "a block is broken" if head is None else self._wrong_with(head, offset)
            if head is not None and not wrong:
                self._take(head, offset)
                offset += head.block_bytes
                continue
            start, offset = offset, self._search(offset)
            self._add_broken(start, offset, wrong)
        if not self._synced and not self._broken:
            self._add_broken(SEGMENT_HEADER_BYTES, size, "the segment has no first block")
        self._synced = max(self._synced, SEGMENT_HEADER_BYTES + 1)

    def _add_broken(self, start: int, stop: int, what: str) -> None:
        self._lost = True
        if self._broken and self._broken[-1][1] == start:
            start, _, what, sequence = self._broken.pop()
        else:
            sequence = self._expected
        self._broken.append((start, stop, what, sequence))

    def _take(self, head: BlockHead, offset: int) -> None:
        """Go on behind a sound block."""
        payload = payload_of(self._data, offset, head)
        self._standing.apply(head, payload)
        if head.kind is BlockKind.FORMAT:
            self._tokens.add(Format.from_descriptor(bytes(payload)).token)
        self._expected = head.sequence + head.count
        self._sealed = head.kind is BlockKind.SEAL
        self._lost = False
        # A segment is synced with its first block before it gets its name.
        claimed = head.synced if offset > SEGMENT_HEADER_BYTES else offset + head.block_bytes
        self._synced = max(self._synced, claimed)

    def _wrong_with(self, head: BlockHead, offset: int) -> str:
        """Return what a block with the right checksum contradicts, empty if nothing."""
        if self._sealed:
            return "a block follows the seal"
        if offset == SEGMENT_HEADER_BYTES and head.kind is not BlockKind.POSITIONS:
            return f"the first block is a {head.kind.name}, expected POSITIONS"
        if head.synced > offset:
            return f"a block says that {head.synced} bytes are on the disk, there are {offset} before it"
        may_jump = self._lost or (head.kind is BlockKind.POSITIONS and offset > SEGMENT_HEADER_BYTES)
        if head.sequence < self._expected or (head.sequence > self._expected and not may_jump):
            return f"a block has sequence {head.sequence}, expected {self._expected}"
        if head.sequence + head.count > U64_MAX or (head.count and head.kind is not BlockKind.BATCH):
            return f"a {head.kind.name} block has {head.count} events from sequence {head.sequence}"
        payload = payload_of(self._data, offset, head)
        if any(self._data[offset + BLOCK_HEAD_BYTES + head.payload_bytes : offset + head.block_bytes]):
            return "a block is not followed by zeros"
        return self._wrong_payload(head, payload) or self._wrong_number(head, payload)

    def _wrong_payload(self, head: BlockHead, payload: memoryview) -> str:
        size = len(payload)
        match head.kind:
            case BlockKind.FORMAT:
                return _wrong_format(payload)
            case BlockKind.BATCH if size < HEADER_BYTES or not head.count:
                return f"a BATCH block has {size} bytes and {head.count} events"
            case BlockKind.BATCH:
                token, count, _ = HEADER.unpack_from(payload)
                if count != head.count:
                    return f"a batch of {count} events is in a block of {head.count}"
                known = token in self._tokens or self._broken  # it may have been described in what is broken
                return "" if known else f"a batch is of the type {token:016x}, which was not described before"
            case BlockKind.GAP:
                return "" if size >= GAP_BYTES_MIN and gap_count(payload) else f"a GAP block has {size} bytes"
            case BlockKind.POSITIONS:
                return "" if not size % 16 and size <= 16 * SOURCES_MAX else f"a POSITIONS block has {size} bytes"
            case _:
                return f"a {head.kind.name} block has {size} bytes, expected 0" if size else ""

    def _wrong_number(self, head: BlockHead, payload: memoryview) -> str:
        """Check that a source goes on where it was; behind a broken stretch it may be further on."""
        if head.kind is BlockKind.BATCH:
            count = head.count
        elif head.kind is BlockKind.GAP:
            count = gap_count(payload)
        else:
            return ""
        known = self._standing.positions.get(head.source, head.first)
        if head.first + count > U64_MAX or head.first < known or (head.first > known and not self._broken):
            return f"a block has events of source {head.source} from number {head.first} on, expected {known}"
        return ""

    def _search(self, broken: int) -> int:
        """Return where the next block that may follow is, the end of the segment if there is none."""
        follower = self._follower(broken) if self._budget > 0 else len(self._data)
        if follower is not None:
            return follower
        size = len(self._data)
        if len(self._broken) >= FLAWS_MAX:
            return size
        for offset in likely_heads(self._data, broken + 8):
            if self._budget <= 0:
                return size
            if self._is_block(offset, self._expected):
                return offset
        return size

    def _follower(self, broken: int) -> int | None:
        """Return where the length in a broken head leads, if the block that must follow is there."""
        if len(self._data) - broken < BLOCK_HEAD_BYTES:
            return None
        size, kind, sequence, *_, count = HEAD.unpack_from(self._data, broken)
        if sequence != self._expected or kind not in KINDS:
            return None
        follower = broken + BLOCK_HEAD_BYTES + size + (-size & 7)
        plausible = (
            self._is_head(follower, sequence + count) and peek(self._data, follower).sequence == sequence + count
        )
        return follower if plausible and self._is_block(follower, sequence + count) else None

    def _is_head(self, offset: int, sequence: int) -> bool:
        """Whether there may be a head, before anything is spent on its checksum."""
        room = len(self._data) - offset - BLOCK_HEAD_BYTES
        if room < 0:
            return False
        size, kind, found, _, _, _, synced, _ = HEAD.unpack_from(self._data, offset)
        return size <= room and kind in KINDS and found >= sequence and synced <= offset and not synced % 8

    def _is_block(self, offset: int, sequence: int) -> bool:
        if not self._is_head(offset, sequence):
            return False
        self._budget -= peek(self._data, offset).block_bytes
        return parse_block(self._data, offset, self._header.seed) is not None


def _wrong_format(payload: memoryview) -> str:
    try:
        Format.from_descriptor(bytes(payload))
    except EchoicError as error:
        return f"a FORMAT block describes no type: {error}"
    return ""
