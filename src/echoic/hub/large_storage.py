"""Large events in the hub's value store: in memory while there is room, beyond that in files.

    sends     put once -> the store -> read piece by piece for each peer -> dropped when the last one has it
    receives  the store's `Incoming`, written piece by piece -> one piece of memory, or a mapped file, for the handlers

Finalizers drop (`echoic.channels.large`), and a finalizer may run while the very thread holds a lock of the store. So
what is dropped is noted, and given back when something else is put, and some times a second.
"""

from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from echoic.channels import EVENT_BYTES_MAX, LargeRules
from echoic.errors import LocalError
from echoic.values import Incoming, StoreStatistics, ValueStore
from echoic.wire import Buffer
from echoic.wire.frames import PAYLOAD_BYTES_MAX, size_of

__all__ = ["LargeStorage", "slices"]

EVENT_BYTES_UTMOST: Final = 2**31  # batches and credits count in 32 bits


class LargeStorage:
    """What the channels know as `Storage`."""

    def __init__(self, store: "ValueStore[bytes] | None" = None, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        """Use a store, which others may use as well, or one for large events alone.

        Args:
            store: Where large events lie.
            event_bytes_max: How many bytes an event may have with its headers.

        Raises:
            LocalError: They are fewer than fit into a frame, or more than can be counted.
        """
        if not PAYLOAD_BYTES_MAX <= event_bytes_max <= EVENT_BYTES_UTMOST:
            raise LocalError(
                f"event_bytes_max is {event_bytes_max}, expected {PAYLOAD_BYTES_MAX} to {EVENT_BYTES_UTMOST}"
            )
        self.rules: Final = LargeRules(event_bytes_max)
        self._store: Final[ValueStore[bytes]] = store if store is not None else ValueStore()
        self._dropped: deque[int] = deque()

    def put(self, pieces: Sequence[Buffer]) -> int:
        """Keep bytes; return their handle.

        Raises:
            LimitExceededError: There is room neither in memory nor in files.
        """
        self.settle()
        return self._store.put_pieces([piece if _lasts(piece) else bytes(piece) for piece in pieces])

    def read(self, handle: int, start: int, end: int) -> Sequence[Buffer]:
        """Return some of the bytes."""
        return slices(self._store.pieces(handle), start, end)

    def drop(self, handle: int) -> None:
        """Note that bytes are needed no more."""
        self._dropped.append(handle)

    def settle(self) -> None:
        """Give back what was dropped."""
        while self._dropped:
            try:
                handle = self._dropped.popleft()
            except IndexError:  # another thread was faster
                return
            self._store.release(handle)

    def receive(self, size: int) -> "StoredAssembly":
        """Return room for an event that arrives.

        Raises:
            LimitExceededError: There is room neither in memory nor in files.
        """
        self.settle()
        return StoredAssembly(self._store, self._store.receive(size))

    def statistics(self) -> StoreStatistics:
        """Return how the store stands."""
        self.settle()
        return self._store.statistics()


class StoredAssembly:
    """An event that arrives into a store, which counts what has arrived."""

    def __init__(self, store: "ValueStore[bytes]", incoming: Incoming) -> None:
        self._store = store
        self._incoming = incoming

    def write(self, piece: Buffer) -> None:
        """Take the next piece.

        Raises:
            LimitExceededError: There is no room for it.
        """
        self._incoming.write(piece)

    def whole(self) -> memoryview:
        """Return all that was written, which lasts as long as somebody looks at it; the store counts it no more."""
        handle = self._incoming.done()
        pieces = self._store.pieces(handle)
        self._store.release(handle)
        return memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))

    def abandon(self) -> None:
        """Forget what was written."""
        self._incoming.abandon()


def slices(pieces: Sequence[Buffer], start: int, end: int) -> list[Buffer]:
    """Return the bytes from `start` to `end` of what lies in pieces, without copying them."""
    begins = accumulate(map(size_of, pieces), initial=0)
    cut = (
        memoryview(piece).cast("B")[max(start - begin, 0) : max(end - begin, 0)]
        for begin, piece in zip(begins, pieces, strict=False)
    )
    return [piece for piece in cut if len(piece)]


def _lasts(piece: Buffer) -> bool:
    """Whether nobody can change a piece while it lies in the store."""
    return isinstance(piece, bytes) or (isinstance(piece, memoryview) and isinstance(piece.obj, bytes))
