"""The segment that is being written.

    add  -> | pending blocks |   in memory, encoded; payloads are not copied
    sync -> | blocks | fdatasync     one gathering write
    sync -> | MARK                   nothing new: what was synced is marked, by a write that is not synced itself

A segment has its name only when its first bytes are on the disk (`whole_file`). These are the header, the STATE, what
was taken over from a former file of the same number, and a MARK.

A block says how much was on the disk before it, and so marks the sync before it; if nothing follows, a MARK does. It
costs a tiny write and no sync: a process that is killed leaves it behind, and the next sync makes it durable. It tells
a flipped bit from a torn write.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from echoic.engines.embedded.log_blocks import (
    SEGMENT_MAGIC,
    Block,
    BlockKind,
    FileHeader,
    encode_block,
    encode_file_header,
)
from echoic.engines.embedded.log_contents import Previous, State, encode_state
from echoic.engines.embedded.whole_file import whole_file
from echoic.recorder import File, Storage
from echoic.wire import Buffer

__all__ = ["SegmentFile", "begin_segment", "segment_path"]

SUFFIX: Final = ".segment"
PENDING_BYTES_MAX: Final = 4 * 1024 * 1024


def segment_path(number: int) -> str:
    """Return what a segment is called."""
    return f"{number:020}{SUFFIX}"


class SegmentFile:
    """Appends blocks to one file. Whatever it is asked for may raise OSError, and then nobody knows what is there.

    Invariant: the file has `size` bytes less what is pending; the first `synced` are known to be on the disk. If they
    are all, they are not marked yet.
    """

    def __init__(self, file: File, header: FileHeader) -> None:
        start, self._seed = encode_file_header(SEGMENT_MAGIC, header)
        self.number: Final = header.number
        self.path: Final = segment_path(header.number)
        self.size = len(start)
        self.synced = 0
        self.dirty = True
        """Whether anything was added since the last sync; a mark does not count."""
        self._file = file
        self._pieces: list[Buffer] = [start]
        self._pending_bytes = len(start)

    def add(self, kind: BlockKind, body: Sequence[Buffer], first: int = 0, heads_bytes: int = 0) -> None:
        """Add a block; it is written when there is enough for a write, or when it is synced.

        Raises:
            OSError: The storage cannot do it.
        """
        pieces, size = encode_block(
            kind,
            body,
            seed=self._seed,
            offset=self.size,
            synced=self.synced,
            first=first,
            heads_bytes=heads_bytes,
        )
        self._pieces += pieces
        self._pending_bytes += size
        self.size += size
        self.dirty = True
        if self._pending_bytes > PENDING_BYTES_MAX:
            self.flush()

    def flush(self) -> None:
        """Give everything to the operating system.

        Raises:
            OSError: The storage cannot do it.
        """
        pieces, self._pieces, self._pending_bytes = self._pieces, [], 0
        if pieces:
            self._file.append(pieces)

    def sync(self) -> None:
        """Put everything on the disk; if there is nothing new, mark what was put there.

        Raises:
            OSError: The storage cannot do it.
        """
        if self.dirty:
            self.flush()
            self._file.sync()
            self.synced = self.size
            self.dirty = False
        elif self.synced == self.size:
            self._mark()

    def _mark(self) -> None:
        self.add(BlockKind.MARK, ())
        self.flush()
        self.dirty = False

    def pass_on(self) -> None:
        """Give everything to the operating system alone.

        Raises:
            OSError: The storage cannot do it.
        """
        self.flush()
        self.dirty = False

    def settle(self) -> None:
        """Put everything on the disk, with a mark of it.

        Raises:
            OSError: The storage cannot do it.
        """
        if self.dirty:
            self.sync()
        self.sync()
        self._file.sync()

    def ending(self) -> Previous:
        """Return what the next segment says of this one."""
        return Previous(self.size, self._seed)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def seal_beginning(self) -> None:
        """Put the first bytes of the file on the disk, with a mark that says so.

        The mark is written before what it says is true; the file gets its name only when it is.

        Raises:
            OSError: The storage cannot do it.
        """
        self.synced = self.size
        self._mark()
        self._file.sync()


def begin_segment(
    storage: Storage, header: FileHeader, state: State, blocks: Iterable[Block] = (), *, durable: bool = True
) -> SegmentFile:
    """Make a segment, and give it its name, in place of one that has it.

    Args:
        storage: Where it is made.
        header: What it says of itself.
        state: From where it goes on.
        blocks: What it begins with, taken over from another file.
        durable: Whether it is on the disk afterwards, or only with the operating system.

    Raises:
        OSError: The storage cannot do it; it has, or has not, the name.
    """
    path = segment_path(header.number)
    with whole_file(storage, path, durable=durable) as file:
        segment = SegmentFile(file, header)
        segment.add(BlockKind.STATE, [encode_state(state)])
        for block in blocks:
            segment.add(block.kind, [block.body], block.first, block.heads_bytes)
        if durable:
            segment.seal_beginning()
        else:
            segment.pass_on()
    return segment
