"""Value store: the large values of a process, in memory while there is room and in files when there is not.

A value is put once, is never changed, is got by its handle, and is released by whoever put it. It comes in one of two
kinds and can be in three places, in several of them at once:

    object (`put`)            --+     +-- heap     as it came: a term is never encoded for as long as it stays there
    bytes (`put_pieces`,      --+-----+-- file     encoded, in a spill file, mapped when it is read
           `receive`)                 +-- shared   encoded, in sealed memory that other processes can map

Memory has a budget: heap and shared together are at most `budget_bytes`, always. When something comes for which there
is no room, the values used least recently leave the heap, each encoded into a file; when none can leave, what comes
goes to a file itself, as does a value that is larger than the budget. An object that is read when it is in a file
comes back to the heap; its file stays, so that leaving again costs nothing. Bytes stay where they are, for the system
keeps mapped pages in memory by itself. When neither memory nor files have room, whoever puts is told so by an error,
at once; Plasma's fixed store that is full, and owners who wait for room that never comes, are what users of such
systems complain of most.

Pins: what is pinned stays in the heap if it is there, and stays alive when it is released, for those who have pinned
it already, until the last of them unpins it. A handle is never used again, and a view that was handed out stays good
for as long as somebody has it, whatever becomes of the value.

    put -> [heap] -> leaves: encode, write -> [file] -> read: decode -> [heap, file] -> leaves: nothing to do -> [file]
                     (without the lock; whoever reads meanwhile finds it in the heap)

The lock is held for bookkeeping alone: encoding, decoding, reading and writing happen outside of it, and values are
let go of outside too, for a large term takes long to take apart. `release` and its like must not be called by
finalizers, which may run in the middle of anything.

The sizes are what the caller says, since only he knows what a term takes; all that is promised is promised in these
sizes.

Measured (Python 3.11, one core of a small, busy machine): 2.5 us to put, 1.5 us to get, 0.6 us to release; values of
1 MiB spill at 4 GB/s into the system's cache of files; chunks of 256 KiB arrive in a file at 2.4 GB/s, and in memory
without a copy; a value of 50 MiB is shared at 2.6 GB/s, once, and opened in 0.2 ms.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar

from echoic.errors import EncodeError, MalformedFrameError
from echoic.values.incoming import Incoming
from echoic.values.sharing import SharedPlace
from echoic.values.shelves import Encode, Held, Shelves
from echoic.values.spilling import SpillFolder
from echoic.values.stored import Stored, StoreStatistics
from echoic.values.writing import total_of
from echoic.wire import Buffer

__all__ = ["ValueStore"]

T = TypeVar("T")
Decode: TypeAlias = Callable[[Sequence[Buffer]], T]

BUDGET_BYTES: Final = 256 * 1024 * 1024
FILE_BYTES_MAX: Final = 8 * 1024 * 1024 * 1024
VALUES_MAX: Final = 1_000_000


class ValueStore(Generic[T]):
    """The large values of a process, by handles. Threads may share it."""

    def __init__(
        self,
        *,
        encode: Encode[T] | None = None,
        decode: Decode[T] | None = None,
        budget_bytes: int = BUDGET_BYTES,
        spill: Path | None = None,
        file_bytes_max: int = FILE_BYTES_MAX,
        values_max: int = VALUES_MAX,
    ) -> None:
        """Make an empty store, which takes neither files nor descriptors before it needs them.

        Args:
            encode: Makes bytes of an object that has to leave memory or is shared; an object of which it makes an
                error of ours stays in memory. Without it, objects that are no bytes stay there.
            decode: Makes the object of these bytes again; without it, an object that left comes back as `Stored`.
            budget_bytes: How many bytes of values there are in memory at most.
            spill: The folder for files, which get no names in it; by default the system's for temporary files, which is
                of little use where that is memory itself.
            file_bytes_max: How many bytes of it are used at most.
            values_max: How many values there are at most.
        """
        self._encode: Encode[T] = encode or _as_bytes
        self._decode = decode
        files = SpillFolder(spill or Path(tempfile.gettempdir()), file_bytes_max)
        self._shelves: Shelves[T] = Shelves(self._encode, files, budget_bytes, values_max)
        self._budget_bytes = budget_bytes

    def put(self, value: T, size: int) -> int:
        """Keep an object that takes `size` bytes, as it is; return its handle. It must not change from now on.

        Raises:
            LimitExceededError: There is room neither in memory nor in files, or there are too many values.
            EncodeError: There is no room in memory, and it cannot be encoded.
        """
        if size < 0:
            raise EncodeError(f"a value has {size} bytes, expected none or more")
        if self._shelves.take_room(size):
            try:
                return self._shelves.add(Held(value), None, size, is_bytes=False, heap_bytes=size)
            except BaseException:
                self._shelves.return_room(size)
                raise
        return self._put_into_file(self._encode(value), size, is_bytes=False)

    def put_pieces(self, pieces: Sequence[Buffer]) -> int:
        """Keep bytes that lie in pieces, which are not joined; return their handle. They must not change from now on.

        Raises:
            LimitExceededError: There is room neither in memory nor in files, or there are too many values.
        """
        size = total_of(pieces)
        if self._shelves.take_room(size):
            try:
                return self._shelves.keep_arrived(Stored(tuple(pieces), size), size)
            except BaseException:
                self._shelves.return_room(size)
                raise
        return self._put_into_file(pieces, size, is_bytes=True)

    def receive(self, size: int) -> Incoming:
        """Return where to write a value of `size` bytes that arrives in chunks.

        Raises:
            MalformedFrameError: No value has so few bytes.
            LimitExceededError: No place has so many bytes.
        """
        if size < 0:
            raise MalformedFrameError(f"a value of {size} bytes is announced, expected none or more")
        extent = self._shelves.reserve_extent(size) if size > self._budget_bytes else None
        return Incoming(self._shelves, size, extent)

    def get(self, handle: int) -> T | Stored:
        """Return a value: the object that was put, or `Stored` when it is bytes.

        Raises:
            LookupError: There is no such value.
        """
        found = self._shelves.find(handle)
        if isinstance(found.content, Held):
            return found.content.value
        if isinstance(found.content, Stored):
            return found.content
        if found.extent is None:
            raise LookupError(f"the value {handle} is nowhere")
        stored = Stored((found.extent.view(),), found.extent.size)
        if found.is_bytes or self._decode is None:
            return stored
        return self._shelves.bring_back(handle, self._decode(stored.pieces), found.size)

    def pieces(self, handle: int, encode: Encode[T] | None = None) -> Sequence[Buffer]:
        """Return a value as bytes in pieces.

        Args:
            handle: The value.
            encode: What makes bytes of an object, in place of the store's own; bytes are given as they are.

        Raises:
            LookupError: There is no such value.
            EncodeError: It cannot be encoded.
        """
        found = self._shelves.find(handle)
        if not found.is_bytes and (encode is not None or found.extent is None):
            value = found.content.value if isinstance(found.content, Held) else self._decoded(handle)
            return (encode or self._encode)(value)
        if isinstance(found.content, Stored):
            return found.content.pieces
        if found.extent is None:
            raise LookupError(f"the value {handle} is nowhere")
        return (found.extent.view(),)

    def size(self, handle: int) -> int:
        """Return how many bytes a value has, as was said when it was put.

        Raises:
            LookupError: There is no such value.
        """
        return self._shelves.find(handle).size

    def pin(self, handle: int) -> None:
        """Keep a value where it is, and alive also when it is released, until it is unpinned as often.

        Raises:
            LookupError: There is no such value, or it was released.
        """
        self._shelves.pin(handle)

    def unpin(self, handle: int) -> None:
        """Undo one `pin`.

        Raises:
            LookupError: There is no such value, or it is not pinned.
        """
        self._shelves.unpin(handle)

    @contextlib.contextmanager
    def pinned(self, handle: int) -> Iterator[None]:
        """Pin a value for the time of a `with`.

        Raises:
            LookupError: There is no such value, or it was released.
        """
        self._shelves.pin(handle)
        try:
            yield
        finally:
            self._shelves.unpin(handle)

    def release(self, handle: int) -> None:
        """Forget a value, at once or when it is not pinned any more; does nothing when it was forgotten already."""
        self._shelves.release(handle)

    def clear(self) -> None:
        """Forget all values; those that are pinned go when they are unpinned."""
        for handle in self._shelves.handles():
            self._shelves.release(handle)

    def share(self, handle: int) -> SharedPlace | None:
        """Return where other processes of this user can map a value, in the store's own encoding.

        The copy takes memory of the budget until the value is released; None says that there is no room for it.

        Raises:
            LookupError: There is no such value.
            EncodeError: It cannot be encoded.
        """
        memory = self._shelves.find(handle).shared
        if memory is None:
            pieces = self.pieces(handle)
            memory = self._shelves.share(handle, pieces, total_of(pieces))
        return None if memory is None else memory.place

    def statistics(self) -> StoreStatistics:
        """Return how the store stands."""
        return self._shelves.statistics()

    def _put_into_file(self, pieces: Sequence[Buffer], size: int, *, is_bytes: bool) -> int:
        extent = self._shelves.spill(pieces)
        try:
            return self._shelves.add(None, extent, size, is_bytes=is_bytes, heap_bytes=0)
        except BaseException:
            extent.release()
            raise

    def _decoded(self, handle: int) -> T:
        value = self.get(handle)
        if isinstance(value, Stored):
            raise EncodeError(f"the value {handle} has left memory, and nothing can make an object of it again")
        return value


def _as_bytes(value: object) -> Sequence[Buffer]:
    if isinstance(value, bytes | bytearray | memoryview):
        return (value,)
    raise EncodeError(f"a value of the type `{type(value).__name__}` has to leave memory, and nothing encodes it")
