"""A value on its way in: chunks are taken as they come, and memory grows with what came, not with what was announced.

The size is a peer's word. It decides where the value will be (memory, or a file when it is larger than the memory that
the store may use), and how many bytes are taken at most; room is counted chunk by chunk. When memory runs out on the
way, and nothing else can leave it, what has come so far goes to a file and the rest follows it.

Chunks that are `bytes`, or views of most of some `bytes`, are kept as they are; others are copied, since their buffer
may be used again or keep much more alive than the chunk. Small chunks are joined: a peer who sends single bytes must
not make an object of each.
"""

from types import TracebackType
from typing import Final, Protocol, Self

from echoic.errors import ClosedError, MalformedFrameError
from echoic.values.spilling import Extent
from echoic.values.stored import Stored
from echoic.wire import Buffer
from echoic.wire.frames import size_of

__all__ = ["Incoming", "Keeper"]

SMALL_BYTES: Final = 4096
JOINED_BYTES: Final = 64 * 1024


class Keeper(Protocol):
    """What a value that arrives needs of its store."""

    def take_room(self, size: int) -> bool:
        """Count bytes that come into memory; return whether there is room."""

    def return_room(self, size: int) -> None:
        """Count bytes that leave memory."""

    def reserve_extent(self, size: int) -> Extent:
        """Return room in a file."""

    def keep_arrived(self, arrived: Stored | Extent, heap_bytes: int) -> int:
        """Take over a value, for whose bytes in memory there is room already; return its handle."""


class Incoming:
    """A value that arrives; one thread at a time writes to it. As a context, it abandons what is not done."""

    def __init__(self, keeper: Keeper, size: int, extent: Extent | None) -> None:
        self.size: Final = size
        self.received = 0
        self._keeper = keeper
        self._extent = extent
        self._pieces: list[Buffer] = []
        self._small = bytearray()
        self._heap_bytes = 0  # Invariant: what the store counts for it
        self._closed = False

    def write(self, chunk: Buffer) -> None:
        """Take the next bytes.

        Raises:
            MalformedFrameError: They are more than was announced; the value is abandoned.
            LimitExceededError: There is room neither in memory nor in a file; the value is abandoned.
            ClosedError: It is done or abandoned.
        """
        self._check_open()
        size = size_of(chunk)
        if self.received + size > self.size:
            self.abandon()
            raise MalformedFrameError(f"{self.received + size} bytes came of a value of {self.size}")
        try:
            self._place(chunk, size)
        except BaseException:
            self.abandon()
            raise
        self.received += size

    def done(self) -> int:
        """Hand the value to its store; return its handle.

        Raises:
            MalformedFrameError: Bytes are missing; the value is abandoned.
            LimitExceededError: The store has too many values; the value is abandoned.
            ClosedError: It is done or abandoned.
        """
        self._check_open()
        try:
            if self.received != self.size:
                raise MalformedFrameError(f"{self.received} bytes came of a value of {self.size}")
            self._join_small()
            arrived = self._extent or Stored(tuple(self._pieces), self.size)
            handle = self._keeper.keep_arrived(arrived, self._heap_bytes)
        except BaseException:
            self.abandon()
            raise
        self._closed = True
        self._pieces = []
        self._extent = None
        return handle

    def abandon(self) -> None:
        """Forget what came; does nothing when it is done or abandoned."""
        if self._closed:
            return
        self._closed = True
        self._forget_heap()
        if self._extent is not None:
            self._extent.release()
            self._extent = None  # with it goes the mapping of its file

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abandon()

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedError("this value is done or abandoned: nothing more can come of it")

    def _place(self, chunk: Buffer, size: int) -> None:
        if self._extent is None and not self._keeper.take_room(size):
            self._extent = self._keeper.reserve_extent(self.size)
            self._extent.append([*self._pieces, self._small])
            self._forget_heap()
        if self._extent is not None:
            self._extent.append([chunk])
            return
        self._heap_bytes += size
        if size < SMALL_BYTES:
            self._small += chunk
            if len(self._small) >= JOINED_BYTES:
                self._join_small()
            return
        self._join_small()
        self._pieces.append(_keepable(chunk))

    def _join_small(self) -> None:
        if self._small:
            self._pieces.append(bytes(self._small))
            self._small = bytearray()

    def _forget_heap(self) -> None:
        self._pieces = []
        self._small = bytearray()
        self._keeper.return_room(self._heap_bytes)
        self._heap_bytes = 0


def _keepable(chunk: Buffer) -> Buffer:
    """Return the chunk, or a copy when its memory could change or is much larger than the chunk."""
    if isinstance(chunk, bytes):
        return chunk
    if isinstance(chunk, memoryview) and isinstance(chunk.obj, bytes) and len(chunk.obj) <= 2 * chunk.nbytes:
        return chunk
    return bytes(chunk)
