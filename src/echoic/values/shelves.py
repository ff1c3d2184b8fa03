"""Shelves: which values there are, where each is, and who has to leave when memory is full.

The bookkeeping of a store, apart from what a store is asked. Everything is counted before it is there and discounted
after it is gone, so that `heap_bytes + shared_bytes <= budget_bytes` holds at every moment and in every thread.

    in the heap, unpinned  ->  `_unused`, in the order of last use: the first leaves first
    pinned, stuck, leaving ->  not in `_unused`

A value that leaves is taken out of `_unused` under the lock and written without it. What may have happened meanwhile is
looked at when it is written: it was released (the file goes), pinned (it stays, and has a file already), or nothing (it
goes from the heap).
"""

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeAlias, TypeVar

from echoic.errors import EchoicError, LimitExceededError
from echoic.values.sharing import SharedMemory
from echoic.values.spilling import Extent, SpillFolder
from echoic.values.stored import Stored, StoreStatistics
from echoic.wire import Buffer

__all__ = ["Encode", "Found", "Held", "Shelves"]

T = TypeVar("T")
Encode: TypeAlias = Callable[[T], Sequence[Buffer]]

SHARED_VALUES_MAX: Final = 256
"""Each takes a descriptor, of which a process often has no more than 1024."""


@dataclass(frozen=True, slots=True, eq=False)
class Held(Generic[T]):
    """An object in the heap, whatever it is: also None, and also one that is a `Stored` itself."""

    value: T


@dataclass(frozen=True, slots=True, eq=False)
class Found(Generic[T]):
    """Where a value was when it was looked for; all of it stays good when the value goes elsewhere."""

    content: Held[T] | Stored | None
    extent: Extent | None
    shared: SharedMemory | None
    is_bytes: bool
    size: int


@dataclass(slots=True, eq=False)
class Entry(Generic[T]):
    """A value and where it is; touched under the lock only."""

    # Invariant: it has content or an extent, and heap_bytes only with content.
    handle: int
    content: Held[T] | Stored | None
    extent: Extent | None
    size: int
    is_bytes: bool
    heap_bytes: int
    shared: SharedMemory | None = None
    pins: int = 0
    released: bool = False
    gone: bool = False
    """It is not on the shelves any more."""
    leaving: bool = False
    """Somebody is writing it to a file."""
    stuck: bool = False
    """It cannot be encoded, so it never leaves the heap."""


class Shelves(Generic[T]):
    """The values of a store and the places they are at. Threads may share it."""

    def __init__(self, encode: Encode[T], files: SpillFolder, budget_bytes: int, values_max: int) -> None:
        """Make empty shelves.

        Args:
            encode: Makes bytes of an object that has to leave memory.
            files: Where it goes then.
            budget_bytes: How much memory the values may take.
            values_max: How many values there may be.
        """
        self._encode = encode
        self._files = files
        self._budget_bytes = budget_bytes
        self._values_max = values_max
        self._entries: dict[int, Entry[T]] = {}
        self._unused: OrderedDict[int, Entry[T]] = OrderedDict()
        self._handles = itertools.count(1)
        self._heap_bytes = self._heap_bytes_peak = 0
        self._shared_bytes = self._shared_values = 0
        self._spilled = self._pinned = 0
        self._lock = threading.Lock()

    def take_room(self, size: int) -> bool:
        """Count bytes that come into the heap, sending away who was not used for longest; whether there is room."""
        if size > self._budget_bytes:
            return False
        while True:  # each turn takes one value out of `_unused`
            with self._lock:
                if self._heap_bytes + self._shared_bytes + size <= self._budget_bytes:
                    self._heap_bytes += size
                    self._heap_bytes_peak = max(self._heap_bytes_peak, self._heap_bytes)
                    return True
                if not self._unused:
                    return False
                _, entry = self._unused.popitem(last=False)
                entry.leaving = True
                content = entry.content
            if not self._send_away(entry, content):
                return False

    def return_room(self, size: int) -> None:
        """Count bytes that have left the heap."""
        with self._lock:
            self._heap_bytes -= size

    def reserve_extent(self, size: int) -> Extent:
        """Return room for a value in a file.

        Raises:
            LimitExceededError: There is none.
        """
        extent = self._files.reserve(size)
        with self._lock:
            self._spilled += 1
        return extent

    def spill(self, pieces: Sequence[Buffer]) -> Extent:
        """Write a value to a file.

        Raises:
            LimitExceededError: There is no room.
        """
        extent = self._files.write(pieces)
        with self._lock:
            self._spilled += 1
        return extent

    def keep_arrived(self, arrived: Stored | Extent, heap_bytes: int) -> int:
        """Take over bytes, for which there is room already; return their handle.

        Raises:
            LimitExceededError: There are too many values.
        """
        if isinstance(arrived, Extent):
            return self.add(None, arrived, arrived.size, is_bytes=True, heap_bytes=0)
        return self.add(arrived, None, arrived.size, is_bytes=True, heap_bytes=heap_bytes)

    def add(
        self, content: Held[T] | Stored | None, extent: Extent | None, size: int, *, is_bytes: bool, heap_bytes: int
    ) -> int:
        """Take over a value, for which there is room already; return its handle.

        Raises:
            LimitExceededError: There are too many values.
        """
        with self._lock:
            if len(self._entries) >= self._values_max:
                raise LimitExceededError(f"the store has {len(self._entries)} values, limit is {self._values_max}")
            entry = Entry(next(self._handles), content, extent, size, is_bytes, heap_bytes)
            self._entries[entry.handle] = entry
            self._make_unused(entry)
            return entry.handle

    def find(self, handle: int) -> Found[T]:
        """Return where a value is; it has been used last.

        Raises:
            LookupError: There is no such value.
        """
        with self._lock:
            entry = self._entry(handle)
            if handle in self._unused:
                self._unused.move_to_end(handle)
            return Found(entry.content, entry.extent, entry.shared, entry.is_bytes, entry.size)

    def bring_back(self, handle: int, value: T, size: int) -> T:
        """Keep in the heap, if there is room, what was read from a file; return it, or what another brought before."""
        with self._lock:
            entry = self._entries.get(handle)
            if entry is None:
                return value
            if isinstance(entry.content, Held):  # room for it must not be made by sending it away
                return entry.content.value
        if not self.take_room(size):
            return value
        with self._lock:
            entry = self._entries.get(handle)
            if entry is not None and entry.content is None:
                entry.content = Held(value)
                entry.heap_bytes = size
                self._make_unused(entry)
                return value
            self._heap_bytes -= size
            return entry.content.value if entry is not None and isinstance(entry.content, Held) else value

    def pin(self, handle: int) -> None:
        """Keep a value where it is, and alive, until it is unpinned as often.

        Raises:
            LookupError: There is no such value, or it was released.
        """
        with self._lock:
            entry = self._entry(handle)
            if entry.released:
                raise LookupError(f"the value {handle} was released")
            entry.pins += 1
            self._pinned += entry.pins == 1
            self._unused.pop(handle, None)

    def unpin(self, handle: int) -> None:
        """Undo one `pin`.

        Raises:
            LookupError: There is no such value, or it is not pinned.
        """
        with self._lock:
            entry = self._entry(handle)
            if not entry.pins:
                raise LookupError(f"the value {handle} is not pinned")
            entry.pins -= 1
            if entry.pins:
                return
            self._pinned -= 1
            if not entry.released:
                self._make_unused(entry)
                return
            self._remove(entry)
        self._give_back(entry)

    def release(self, handle: int) -> None:
        """Forget a value, at once or when it is not pinned any more; does nothing when it was forgotten already."""
        with self._lock:
            entry = self._entries.get(handle)
            if entry is None or entry.released:
                return
            entry.released = True
            if entry.pins:
                return
            self._remove(entry)
        self._give_back(entry)

    def handles(self) -> list[int]:
        """Return the handles of all values."""
        with self._lock:
            return list(self._entries)

    def share(self, handle: int, pieces: Sequence[Buffer], size: int) -> SharedMemory | None:
        """Put a copy of a value, `size` bytes, into memory that others can map; None when there is no room.

        Raises:
            LookupError: There is no such value.
        """
        if not self._take_shared(size):
            return None
        try:
            memory = SharedMemory(pieces, size)
        except OSError:
            self._return_shared(size)
            return None
        except BaseException:
            self._return_shared(size)
            raise
        with self._lock:
            entry = self._entries.get(handle)
            if entry is not None and entry.shared is None:
                entry.shared = memory
                return memory
            first = entry.shared if entry is not None else None
        self._return_shared(size)
        memory.close()
        if first is None:
            raise LookupError(f"the value {handle} was released")
        return first

    def statistics(self) -> StoreStatistics:
        """Return how the shelves stand."""
        with self._lock:
            return StoreStatistics(
                values=len(self._entries),
                heap_bytes=self._heap_bytes,
                heap_bytes_peak=self._heap_bytes_peak,
                shared_bytes=self._shared_bytes,
                file_bytes=self._files.bytes,
                spilled=self._spilled,
                pinned=self._pinned,
            )

    def _entry(self, handle: int) -> Entry[T]:
        entry = self._entries.get(handle)
        if entry is None:
            raise LookupError(f"there is no value {handle}: it was released, or it never was")
        return entry

    def _make_unused(self, entry: Entry[T]) -> None:
        """Let a value leave the heap when there is need."""
        if entry.content is not None and entry.heap_bytes and not (entry.pins or entry.stuck or entry.leaving):
            self._unused[entry.handle] = entry

    def _send_away(self, entry: Entry[T], content: Held[T] | Stored | None) -> bool:
        """Let a value that is marked as leaving leave the heap; return False when the files have no room for it."""
        written, stuck = None, False
        try:
            # Only who marks an entry as leaving gives it an extent.
            if entry.extent is None and content is not None:
                try:
                    pieces = content.pieces if isinstance(content, Stored) else self._encode(content.value)
                except EchoicError:
                    stuck = True
                else:
                    written = self.spill(pieces)
        except LimitExceededError:
            return False
        finally:
            with self._lock:
                kept = self._end_leaving(entry, written, stuck=stuck)
            if written is not None and not kept:
                written.release()
        return True

    def _end_leaving(self, entry: Entry[T], written: Extent | None, *, stuck: bool) -> bool:
        """Note what has become of a value that was to leave the heap; return whether it is still on the shelves."""
        entry.leaving = False
        entry.stuck = stuck
        if entry.gone:
            return False
        entry.extent = entry.extent or written
        if entry.extent is None or entry.pins:
            self._make_unused(entry)
            return True
        self._heap_bytes -= entry.heap_bytes
        entry.heap_bytes = 0
        entry.content = None
        return True

    def _remove(self, entry: Entry[T]) -> None:
        """Take a value off the shelves; what it holds is given back by `_give_back`, without the lock."""
        del self._entries[entry.handle]
        self._unused.pop(entry.handle, None)
        self._heap_bytes -= entry.heap_bytes
        entry.heap_bytes = 0
        entry.gone = True

    def _give_back(self, entry: Entry[T]) -> None:
        entry.content = None
        if entry.extent is not None:
            entry.extent.release()
        if entry.shared is not None:
            self._return_shared(entry.shared.place.size)
            entry.shared.close()

    def _take_shared(self, size: int) -> bool:
        """Count bytes that will be shared: at most half of the budget, so that the heap keeps the other half."""
        if self._shared_bytes + size > self._budget_bytes // 2 or not self.take_room(size):
            return False
        with self._lock:
            self._heap_bytes -= size
            if self._shared_bytes + size > self._budget_bytes // 2 or self._shared_values >= SHARED_VALUES_MAX:
                return False
            self._shared_bytes += size
            self._shared_values += 1
            return True

    def _return_shared(self, size: int) -> None:
        with self._lock:
            self._shared_bytes -= size
            self._shared_values -= 1
