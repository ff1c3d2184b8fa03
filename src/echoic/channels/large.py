"""Events that are too large for a frame: the frame that tells of one, and where its bytes lie until all have got them.

    LARGE   payload := handle u64 | size u64 | kind u32 | events u32 | head     in place of an EVENTS or CALLS frame
    CHUNK   payload := handle u64 | offset u64 | bytes
    MORE    payload := handle u64 | end u64                                     send me the bytes before `end`
    RELEASE payload := handle u64                                               I need no more of it

A frame is written and read in one piece, so its length is what everybody else on the link waits for; and it is kept
for each peer until that has got it. So the batch of a large event is put into a storage once, and each peer is told
where; it fetches the bytes when it can take them (`transfers`). `head` is what stands before the batch in the frame
that a LARGE stands for, which is put together again from both.

A `Large` is the sender's side of one such event. It stands where the frame of any other would: in a run that waits for
credit, and in the list of what a neighbour has been told of. Nobody counts them. When the last one has let go of it,
its bytes are dropped.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import count
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from echoic.channels.fanout import cost_of
from echoic.errors import EncodeError, LimitExceededError
from echoic.wire import Batch, Buffer, FrameKind, Hello, encode_frame
from echoic.wire.frames import PAYLOAD_BYTES_MAX, size_of

if TYPE_CHECKING:
    from echoic.channels.concentrator import Concentrator
    from echoic.channels.member import Member

__all__ = [
    "EVENT_BYTES_MAX",
    "LARGE_FEATURE",
    "LARGE_HEAD",
    "Assembly",
    "HeapStorage",
    "Large",
    "LargeRules",
    "Storage",
    "event_limit",
    "frame_of",
    "keep_large",
]

LARGE_FEATURE: Final = "large-events"
LARGE_HEAD: Final = Struct("<QQII")
EVENT_BYTES_MAX: Final = 256 * 1024 * 1024
CHUNK_BYTES: Final = 256 * 1024
WINDOW_BYTES: Final = 2 * 1024 * 1024


class LargeRules(msgspec.Struct, frozen=True):
    """What a hub does with large events."""

    event_bytes_max: int = EVENT_BYTES_MAX
    """How many bytes an event may have with its headers, sent or received."""
    frame_bytes_max: int = PAYLOAD_BYTES_MAX
    """From how many on it is fetched."""
    chunk_bytes: int = CHUNK_BYTES
    window_bytes: int = WINDOW_BYTES
    """How many bytes of one are under way at a time: a small event of another channel waits for no more."""


def event_limit(hello: Hello) -> int:
    """Return how large an event a peer takes, by what it says of itself."""
    told = hello.event_bytes_max
    if LARGE_FEATURE not in hello.features or told is msgspec.UNSET:
        return PAYLOAD_BYTES_MAX
    return max(told, PAYLOAD_BYTES_MAX)


class Assembly(Protocol):
    """Room for an event that arrives in pieces. Memory grows with what has arrived, not with what was announced."""

    def write(self, piece: Buffer) -> None:
        """Take the next piece.

        Raises:
            LimitExceededError: There is no room for it; the rest is of no use.
        """

    def whole(self) -> memoryview:
        """Return all that was written, in one piece. It is called once."""

    def abandon(self) -> None:
        """Forget what was written."""


class Storage(Protocol):
    """Where the bytes of large events lie while others fetch them. Threads may share it."""

    def put(self, pieces: Sequence[Buffer]) -> int:
        """Keep bytes; return a handle that is not 0 and was never given before.

        Raises:
            LimitExceededError: There is no room.
        """

    def read(self, handle: int, start: int, end: int) -> Sequence[Buffer]:
        """Return some of the bytes."""

    def drop(self, handle: int) -> None:
        """Note that bytes are needed no more. A finalizer calls this, in the middle of anything: it must not lock."""

    def receive(self, size: int) -> Assembly:
        """Return room for an event that arrives.

        Raises:
            LimitExceededError: There is none.
        """


class Large:
    """An event that others fetch. Its length is that of the frame that it stands for, and so what it costs."""

    __slots__ = ("__weakref__", "_cost", "_storage", "frame", "handle", "size")

    def __init__(self, storage: Storage, pieces: Sequence[Buffer]) -> None:
        """Put the bytes of a batch into a storage.

        Raises:
            LimitExceededError: There is no room.
        """
        self._storage = storage
        self.handle: Final = storage.put(pieces)
        self.size: Final = sum(map(size_of, pieces))
        self.frame = b""
        """What tells of it."""
        self._cost = 0

    def address(self, kind: FrameKind, head: bytes, events: int, channel: int) -> None:
        """Say which frame it stands for."""
        payload = [LARGE_HEAD.pack(self.handle, self.size, kind, events), head]
        self.frame = b"".join(encode_frame(FrameKind.LARGE, payload, channel=channel))
        self._cost = cost_of(len(head) + self.size)

    def read(self, start: int, end: int) -> Sequence[Buffer]:
        """Return some of the bytes."""
        return self._storage.read(self.handle, start, end)

    def __len__(self) -> int:
        return self._cost

    def __del__(self) -> None:
        handle = getattr(self, "handle", 0)  # there is none when there was no room
        if handle:
            self._storage.drop(handle)


def frame_of(
    core: "Concentrator", member: "Member", kind: FrameKind, head: bytes, batch: Batch, large: Large | None
) -> bytes | Large:
    """Return what is sent of events: a frame, or what stands for one that would be too large.

    Args:
        core: Whose neighbours get it.
        member: The channel.
        kind: EVENTS or CALLS.
        head: What stands before the batch.
        batch: The events.
        large: The batch, if it was put into the storage already.

    Raises:
        EncodeError: Somebody cannot be sent so much; nothing was done.
        LimitExceededError: There is no room for it.
    """
    if large is None:
        payload, limit = [head, *batch.buffers()], core.rules.frame_bytes_max
        try:
            return b"".join(encode_frame(kind, payload, channel=member.number, payload_bytes_max=limit))
        except EncodeError:
            size = sum(map(size_of, payload))
        if size <= PAYLOAD_BYTES_MAX and _takes_frames_only(core, member):
            return b"".join(encode_frame(kind, payload, channel=member.number))
        _admit(core, member, size)
        large = Large(core.storage, payload[1:])
    else:
        _admit(core, member, len(head) + large.size)
    large.address(kind, head, batch.count, member.number)
    return large


def keep_large(core: "Concentrator", member: "Member", batch: Batch) -> Large | None:
    """Return a batch that others must fetch, put into the storage, so that this need not be done under a lock.

    None when it fits into a frame, or nobody is sent it.

    Raises:
        EncodeError: Somebody cannot be sent so much.
        LimitExceededError: There is no room for it.
    """
    if not member.fanout.targets or not batch.format.variable or batch.record_bytes <= PAYLOAD_BYTES_MAX:
        return None
    pieces = batch.buffers()
    _admit(core, member, sum(map(size_of, pieces)))
    return Large(core.storage, pieces)


def _takes_frames_only(core: "Concentrator", member: "Member") -> bool:
    """Whether somebody who gets the events of a channel does not know how to fetch them."""
    known = core.neighbours
    return bool(member.keepings) or any(
        hub not in known or known[hub].event_bytes_max <= PAYLOAD_BYTES_MAX for hub in member.fanout.targets
    )


def _admit(core: "Concentrator", member: "Member", size: int) -> None:
    """Refuse an event that somebody who must get it does not take.

    Raises:
        EncodeError: Who that is, and what the limit is.
    """
    limit = core.rules.event_bytes_max
    if size > limit:
        raise EncodeError(f"an event has {size} bytes with its headers, limit is {limit}")
    if member.keepings:
        raise EncodeError(
            f"an event has {size} bytes with its headers, limit is {PAYLOAD_BYTES_MAX} for what is recorded, as "
            f"`{member.name}` is"
        )
    for hub in member.fanout.targets:
        neighbour = core.neighbours.get(hub)
        if neighbour is not None and size > neighbour.event_bytes_max:
            raise EncodeError(
                f"an event has {size} bytes with its headers, limit is {neighbour.event_bytes_max} for the hub at "
                f"{neighbour.address}"
            )


class HeapStorage:
    """Large events in memory, up to a limit: for simulations, and for a concentrator of which nothing else is said."""

    def __init__(self, bytes_max: int = 4 * EVENT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._handles = count(1)
        self._kept: dict[int, bytes] = {}
        self._dropped: deque[int] = deque()
        self.arriving_bytes = 0

    def put(self, pieces: Sequence[Buffer]) -> int:
        """Keep bytes."""
        self.check(sum(map(size_of, pieces)))
        handle = next(self._handles)
        self._kept[handle] = b"".join(pieces)
        return handle

    def read(self, handle: int, start: int, end: int) -> Sequence[Buffer]:
        """Return some of the bytes."""
        return [memoryview(self._kept[handle])[start:end]]

    def drop(self, handle: int) -> None:
        """Note that bytes are needed no more."""
        self._dropped.append(handle)

    def receive(self, size: int) -> "HeapAssembly":
        """Return room for an event that arrives."""
        self.check(size)
        return HeapAssembly(self)

    def kept(self) -> Mapping[int, bytes]:
        """Return what is kept."""
        while self._dropped:
            del self._kept[self._dropped.popleft()]
        return self._kept

    def check(self, size: int) -> None:
        """See whether there is room.

        Raises:
            LimitExceededError: There is none.
        """
        total = sum(map(len, self.kept().values())) + self.arriving_bytes + size
        if total > self._bytes_max:
            raise LimitExceededError(f"large events would take {total} bytes, limit is {self._bytes_max}")


class HeapAssembly:
    """An event that arrives into memory."""

    def __init__(self, storage: HeapStorage) -> None:
        self._storage = storage
        self._arrived = bytearray()

    def write(self, piece: Buffer) -> None:
        """Take the next piece."""
        self._storage.check(size_of(piece))
        self._arrived += piece
        self._storage.arriving_bytes += size_of(piece)

    def whole(self) -> memoryview:
        """Return all that was written."""
        self._storage.arriving_bytes -= len(self._arrived)
        return memoryview(bytes(self._arrived))

    def abandon(self) -> None:
        """Forget what was written."""
        self._storage.arriving_bytes -= len(self._arrived)
        self._arrived = bytearray()
