"""A segment made again from the sound blocks of a damaged one.

The sequence numbers of what is lost stay lost: a POSITIONS block with the next number that is there says so, and
readers report a hole. Where a source's numbers leave some out, a GAP block says which. A type whose description is
lost is described by what other segments say of it; without that its batches cannot be read, and are lost too.

The blocks' checksums are made anew, since `synced` means other offsets. The header gets another time, by a nanosecond:
blocks of the former file then do not fit this one, should a disk ever bring back a sector of it.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from echoic.recorder.blocks import (
    BlockHead,
    BlockKind,
    SegmentHeader,
    encode_block,
    encode_segment_header,
)
from echoic.recorder.index import IndexBuilder
from echoic.recorder.scanning import Scan, payload_of
from echoic.recorder.standing import Standing, encode_gap
from echoic.wire import Buffer
from echoic.wire.batch import HEADER
from echoic.wire.frames import size_of

__all__ = ["Rebuilding"]

PORTION_PIECES: Final = 4096
REASON: Final = "lost in a damaged part of the journal"


class Rebuilding:
    """Makes the bytes of a segment.

    Invariant: what was made so far would be found sound, and ends before the event `sequence`.
    """

    def __init__(self, header: SegmentHeader, before: Standing, formats: dict[int, bytes]) -> None:
        """Begin a segment.

        Args:
            header: What the segment is to say of itself.
            before: Where the sources go on before it, if its own first block does not say.
            formats: Every known descriptor, by token.
        """
        start, self.seed = encode_segment_header(header)
        self.sequence = header.sequence
        self.time_ns = header.time_ns
        self.size = 0
        self.lost: list[tuple[int, int]] = []
        self.standing = Standing()
        self.builder = IndexBuilder(self.seed, header.sequence)
        self._before = before
        self._formats = formats
        self._tokens: set[int] = set()
        self._pieces: list[Buffer] = []
        self._add_pieces([start])

    def portions(self, found: Scan | None, data: memoryview, upto: int, sealed: bool) -> Iterator[list[Buffer]]:
        """Yield all of the bytes, in portions.

        Args:
            found: What is sound in the damaged segment.
            data: Its bytes.
            upto: With which sequence the next segment begins, or this one goes on.
            sealed: Whether another segment follows.
        """
        first = next(found.heads(data), None) if found is not None else None
        if first is not None and first[1].kind is not BlockKind.POSITIONS:
            first = None
        self._add_positions(payload_of(data, *first) if first else self._before.encode())
        for offset, head in found.heads(data) if found is not None else ():
            if first is None or offset != first[0]:
                self._keep(head, payload_of(data, offset, head), upto)
            if len(self._pieces) >= PORTION_PIECES:
                yield self._take()
        if self.sequence < upto:
            self._jump(upto)
        kind = BlockKind.SEAL if sealed else BlockKind.COMMIT
        self._add(BlockHead(kind, self.sequence, self.time_ns, self.size), [])
        yield self._take()

    def _keep(self, head: BlockHead, payload: memoryview, upto: int) -> None:
        """Take over a block, unless it is superfluous or contradicts what is there."""
        self.time_ns = head.time_ns
        match head.kind:
            case BlockKind.BATCH | BlockKind.GAP:
                self._keep_events(head, payload, upto)
            case BlockKind.POSITIONS if self.sequence < head.sequence <= upto:
                self._jump(head.sequence)
            case _:
                return  # descriptions are added where they are needed, marks at the end

    def _keep_events(self, head: BlockHead, payload: memoryview, upto: int) -> None:
        end = head.sequence + head.count
        known = self.standing.positions.get(head.source, head.first)
        if head.sequence < self.sequence or head.first < known or end > upto:
            return
        if head.kind is BlockKind.BATCH and not self._describe(HEADER.unpack_from(payload)[0], head):
            return
        if head.sequence > self.sequence:
            self._jump(head.sequence)
        if head.first > known:
            gap = msgspec.structs.replace(head, kind=BlockKind.GAP, first=known, count=0, synced=0)
            self._add(gap, [encode_gap(head.first - known, REASON)])
        self._add(msgspec.structs.replace(head, synced=0), [payload])
        self.sequence = end

    def _describe(self, token: int, head: BlockHead) -> bool:
        """Have a type described before its first batch, if anything describes it."""
        if token in self._tokens:
            return True
        descriptor = self._formats.get(token)
        if descriptor is None:
            return False
        self._add(BlockHead(BlockKind.FORMAT, self.sequence, head.time_ns), [descriptor])
        self._tokens.add(token)
        return True

    def _jump(self, sequence: int) -> None:
        """Say that the events before a sequence are lost."""
        self.lost.append((self.sequence, sequence - 1))
        self.sequence = sequence
        self._add_positions(self.standing.encode())

    def _add_positions(self, payload: Buffer) -> None:
        self._add(BlockHead(BlockKind.POSITIONS, self.sequence, self.time_ns), [payload])

    def _add(self, head: BlockHead, payload: list[Buffer]) -> None:
        if payload:
            self.standing.apply(head, payload[0])
        pieces = encode_block(head, payload, self.seed)
        self.builder.add(head, sum(map(size_of, pieces)))
        self._add_pieces(pieces)

    def _add_pieces(self, pieces: list[Buffer]) -> None:
        self._pieces += pieces
        self.size += sum(map(size_of, pieces))

    def _take(self) -> list[Buffer]:
        pieces, self._pieces = self._pieces, []
        return pieces
