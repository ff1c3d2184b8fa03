"""The segment that is being written.

    append -> | pending blocks |          in memory, encoded, with their checksums
    commit -> | blocks | sync | COMMIT |  one gathering write, one fdatasync, and the mark of it, not synced itself

Nothing is done per event, and per batch little more than its checksum. The mark is worth a second, tiny write and not a
second sync: readers see it at once, and the next sync makes it durable. If it is lost the blocks before it are sound
nevertheless, and are marked when the journal is next opened.

A write that fails (a full disk) is cut off again and the blocks stay pending. If it cannot be cut off, or a sync fails,
nobody knows what is on the disk, and the segment is `failed`: it must be opened anew, which reads what is there.
"""

from collections.abc import Sequence

from echoic.errors import JournalError
from echoic.formats import Format
from echoic.recorder.blocks import (
    SEGMENT_HEADER_BYTES,
    BlockHead,
    BlockKind,
    SegmentHeader,
    encode_block,
    encode_segment_header,
)
from echoic.recorder.catalog import Catalog
from echoic.recorder.index import IndexBuilder
from echoic.recorder.mending import Mended
from echoic.recorder.standing import Standing
from echoic.recorder.storage import File
from echoic.wire import Buffer
from echoic.wire.frames import size_of

__all__ = ["SegmentWriter", "begin_segment"]


class SegmentWriter:
    """Appends blocks to one file.

    Invariant: the file has `size` bytes, of which `synced` are known to be on the disk; `pending` follow.
    """

    def __init__(self, mended: Mended, path: str, index: File | None, *, durable: bool) -> None:
        self.path = path
        self.first = mended.header.sequence
        self.sequence = mended.sequence
        self.size = self.synced = mended.size
        self.pending_bytes = 0
        self.failed = False
        self._file = mended.file
        self._seed = mended.header.seed
        self._tokens = mended.tokens
        self._builder = mended.builder
        self._index = index
        self._durable = durable
        self._pieces: list[Buffer] = []
        self._mark_due = not mended.marked
        self._mark_synced = mended.marked

    def describe(self, format: Format, now_ns: int) -> None:
        """Have a type described before its first batch."""
        if format.token not in self._tokens:
            self.add(BlockHead(BlockKind.FORMAT, self.sequence, now_ns, self.synced), [format.descriptor])
            self._tokens.add(format.token)

    def add(self, head: BlockHead, payload: Sequence[Buffer]) -> None:
        """Add a block to what the next commit writes.

        Raises:
            JournalError: The payload is larger than a block can be.
        """
        pieces = encode_block(head, payload, self._seed)
        size = sum(map(size_of, pieces))
        self._pieces += pieces
        self.pending_bytes += size
        self.sequence += head.count
        self._builder.add(head, size)

    def commit(self, now_ns: int) -> None:
        """Put everything pending on the disk, and mark it.

        Raises:
            JournalError: It could not be written and is still pending; or the segment is `failed`.
        """
        self._check()  # a sync that failed has left nothing pending, but nothing durable either
        if self._pieces:
            self._write(self._pieces)
            self.size += self.pending_bytes
            self._pieces, self.pending_bytes = [], 0
            self._sync()
            self.synced = self.size
            self._mark_due = True
        if self._mark_due:
            self._mark(now_ns)
            self._write_index()

    def settle(self, now_ns: int) -> bool:
        """Make the mark of the last commit durable too; return whether it is, or has to be tried again later.

        Raises:
            JournalError: The segment is `failed`.
        """
        self._check()
        if self._mark_due and not self._pieces:
            self._mark(now_ns)
        if not self._mark_synced and not self._mark_due:
            self._sync()
            self._mark_synced = True
        return not self._mark_due

    def seal(self, now_ns: int) -> None:
        """End the segment, durably. Nothing may be pending.

        Raises:
            JournalError: It could not be written; the segment goes on unless it is `failed`.
        """
        head = BlockHead(BlockKind.SEAL, self.sequence, now_ns, self.synced)
        pieces = encode_block(head, (), self._seed)
        self._write(pieces)
        self.size += head.block_bytes
        self._sync()
        self._builder.add(head, head.block_bytes)
        self._write_index()

    def close(self) -> None:
        """Let go of the files."""
        self._file.close()
        if self._index is not None:
            self._index.close()
            self._index = None

    def _mark(self, now_ns: int) -> None:
        """Write the mark of what is on the disk; without room for it, it is written later."""
        head = BlockHead(BlockKind.COMMIT, self.sequence, now_ns, self.synced)
        self._mark_due, self._mark_synced = True, False
        try:
            self._write(encode_block(head, (), self._seed))
        except JournalError:
            return  # the events are on the disk all the same; if this was the end, `failed` says so
        self._mark_due = False
        self.size += head.block_bytes
        self._builder.add(head, head.block_bytes)

    def _write(self, pieces: Sequence[Buffer]) -> None:
        self._check()
        try:
            self._file.append(pieces)
        except OSError as error:
            self._cut_back()
            raise JournalError(f"cannot write the journal: {error.strerror or error} - at {self.path}") from error

    def _cut_back(self) -> None:
        try:
            self._file.truncate(self.size)
        except OSError:
            self.failed = True

    def _sync(self) -> None:
        if not self._durable:
            return
        try:
            self._file.sync()
        except OSError as error:
            self.failed = True
            raise JournalError(
                f"cannot sync the journal, what is on the disk is not known any more and it must be opened again: "
                f"{error.strerror or error} - at {self.path}"
            ) from error

    def _check(self) -> None:
        if self.failed:
            raise JournalError(f"writing failed before, the journal must be opened again - at {self.path}")

    def _write_index(self) -> None:
        """Write what is known by now; the index is a hint, so when this fails the segment goes on without."""
        entries = self._builder.take()
        if not entries or self._index is None:
            return
        try:
            self._index.append(entries)
        except OSError:
            self._index.close()
            self._index = None


def begin_segment(catalog: Catalog, path: str, header: SegmentHeader, standing: Standing, *, durable: bool) -> Mended:
    """Write a segment without events under a temporary name, durably.

    Raises:
        OSError: The storage cannot do it; nothing remains.
    """
    start, seed = encode_segment_header(header)
    head = BlockHead(BlockKind.POSITIONS, header.sequence, header.time_ns)
    pieces = [start, *encode_block(head, [standing.encode()], seed)]
    size = sum(map(size_of, pieces))
    file = catalog.begin(path, pieces, sync=durable)
    builder = IndexBuilder(seed, header.sequence)
    builder.add(head, size - SEGMENT_HEADER_BYTES)
    named = SegmentHeader(header.journal, header.partition, header.sequence, header.time_ns, seed)
    state = size, header.sequence, False, True
    return Mended(file, named, size, *state, standing, set(), builder, [], header.time_ns, [])
