"""Rings: large frames pass through memory that both processes see, and only their position through the socket.

One ring per direction, each in a memory file (memfd) that its writer makes and the reader gets over the Unix socket:

    0        8                 4096                                    4096 + 64 MiB
    | tail   | unused          | frame | frame |  ...  | free          |
      u64, written by the reader  ^ tail           ^ head, known to the writer alone

Positions count bytes from the beginning of time, so that a frame lies at its position modulo the size of the ring. A
frame is never cut: one that does not fit before the end begins at the next multiple of the size. So does one for which
there is room in the first 16 MiB, since memory that was just used is in the cache: frames of 100 KB, 1 MB and 10 MB
moved 5.3, 9.4 and 10.2 GB/s, and 3.4, 6.0 and 5.6 when all of the ring was used in turn. For every frame in the ring
the stream has a frame of the kind SHARED with its position and length, which also gives the order of memory accesses:
a system call lies between writing a frame and reading it.

Neither side believes the other. The writer takes a tail outside of what it has written for the nearest sensible one;
a reader that lies about it damages only its own frames. The reader reads no number from the memory at all. It knows
which two positions the next frame can have, refuses every other, and copies the frame before anybody looks at it, since
the writer could change it at any time. Before mapping a peer's memory file it makes sure that it can never shrink
(touching a page that is gone would kill the process) and that it has the one right size, which is no multiple of a
huge page, because huge pages can be missing when they are touched.

The alternatives: a memory file for each frame moved 2.2 GB/s, a ring 10 to 15; a view instead of a copy for the reader
would be faster, but then the reader's handlers decide how long the writer has no room, and a hostile writer can change
what was already checked.

`SHARED_BYTES_MIN` is where the two ways break even. Interleaved on a busy machine, GB/s of frames of 16, 32, 64, 128
and 256 KB: 1.0, 1.5, 1.5, 1.6, 1.5 through the socket and 0.7, 1.3, 1.7, 3.0, 4.5 through the ring.
"""

import contextlib
import fcntl
import mmap
import os
import struct
import threading
from collections.abc import Sequence
from typing import Final

from echoic.errors import MalformedFrameError
from echoic.wire import Buffer, FrameKind, encode_frame

__all__ = ["RING_BYTES", "SHARED_BYTES_MIN", "RingReader", "RingWriter"]

SHARED_BYTES_MIN: Final = 64 * 1024
RING_BYTES: Final = 64 * 1024 * 1024
NEAR_BYTES: Final = 16 * 1024 * 1024
DATA_START: Final = 4096
MEMORY_BYTES: Final = DATA_START + RING_BYTES
FRAME_ALIGNMENT: Final = 64
SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
PLACE: Final = struct.Struct("<QQ")


class SharedMemory:
    """A memory file that is mapped when it is first needed."""

    def __init__(self, descriptor: int) -> None:
        """Take over a file descriptor."""
        self.closed = False
        self._descriptor = descriptor

    def open(self) -> tuple[memoryview, memoryview]:
        """Map the file and return its counters and its data.

        Raises:
            OSError: There is no memory for it, or its maker does not let us.
        """
        view = memoryview(mmap.mmap(self._descriptor, MEMORY_BYTES))
        os.close(self._descriptor)  # the mapping has one of its own
        self._descriptor = -1
        return view[:DATA_START].cast("Q"), view[DATA_START:]

    def close(self) -> None:
        """Close the file; the mapping goes with the last view of it."""
        self.closed = True
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RingWriter:
    """The end of a ring that places frames."""

    def __init__(self) -> None:
        """Make the memory, of which no page exists before it is written to.

        Raises:
            OSError: The system has no more files or no memory files.
        """
        descriptor = os.memfd_create("echoic", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, MEMORY_BYTES)
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
        except OSError:
            os.close(descriptor)
            raise
        self.descriptor: Final = descriptor
        self._memory = SharedMemory(descriptor)
        self._views: tuple[memoryview, memoryview] | None = None
        self._head = self._tail = 0
        self._lock = threading.Lock()

    def place(self, frame: Sequence[Buffer], size: int) -> bytes | None:
        """Copy a frame of `size` bytes into the ring; return the frame that says where, None when there is no room."""
        if not SHARED_BYTES_MIN <= size <= RING_BYTES:
            return None
        with self._lock:
            if self._memory.closed:
                return None
            if self._views is None:
                try:
                    self._views = self._memory.open()
                except OSError:
                    return None
            counters, data = self._views
            position = self._position_for(size, counters[0])
            if position is None:
                return None
            at = position % RING_BYTES
            for piece in frame:
                view = memoryview(piece).cast("B")
                data[at : at + len(view)] = view
                at += len(view)
            self._head = _round_up(position + size, FRAME_ALIGNMENT)
        return b"".join(encode_frame(FrameKind.SHARED, [PLACE.pack(position, size)]))

    def close(self) -> None:
        """Give the memory back."""
        with self._lock:
            self._views = None
            self._memory.close()

    def _position_for(self, size: int, tail: int) -> int | None:
        """Return where the next frame goes, None when there is no room for it."""
        tail = max(self._tail, min(tail, self._head))
        front = _round_up(self._head, RING_BYTES)
        if tail == self._head:
            tail = front
        # Invariant: what lies from tail to head may still be read by the peer, and is at most the whole ring.
        self._tail = tail
        room_end = tail + RING_BYTES
        end = self._head % RING_BYTES + size
        if (tail == front or end > NEAR_BYTES) and front + size <= room_end:
            return front
        return self._head if end <= RING_BYTES and self._head + size <= room_end else None


class RingReader:
    """The end of a ring that takes frames out."""

    def __init__(self, descriptor: int) -> None:
        """Take over the memory file that a peer has sent, when it is safe to touch.

        Raises:
            ConnectionAbortedError: It can shrink, has the wrong size, or is no memory file; it has been closed.
        """
        problem = _find_problem(descriptor)
        if problem:
            os.close(descriptor)
            raise ConnectionAbortedError(f"the peer's shared memory is refused: {problem}")
        self._memory = SharedMemory(descriptor)
        self._views: tuple[memoryview, memoryview] | None = None
        self._expected = 0
        self._lock = threading.Lock()

    def take(self, payload: Buffer) -> bytes:
        """Return a copy of the frame that the payload of a SHARED frame speaks of, and free its room.

        Raises:
            MalformedFrameError: The next frame cannot be there.
            OSError: The memory is closed or cannot be mapped.
        """
        if len(payload) != PLACE.size:
            raise MalformedFrameError(f"a shared frame's place has {len(payload)} bytes, expected {PLACE.size}")
        position, length = PLACE.unpack(payload)
        with self._lock:
            if self._memory.closed:
                raise ConnectionAbortedError("the shared memory was closed by this side")
            if position not in (self._expected, _round_up(self._expected, RING_BYTES)):
                raise MalformedFrameError(f"a shared frame is at {position}, expected it at {self._expected}")
            at = position % RING_BYTES
            if not 0 < length <= RING_BYTES - at:
                raise MalformedFrameError(f"a shared frame has {length} bytes at {at}, limit is {RING_BYTES - at}")
            if self._views is None:
                self._views = self._memory.open()
            counters, data = self._views
            frame = bytes(data[at : at + length])
            self._expected = _round_up(position + length, FRAME_ALIGNMENT)
            counters[0] = self._expected
        return frame

    def close(self) -> None:
        """Give the memory back."""
        with self._lock:
            self._views = None
            self._memory.close()


def _find_problem(descriptor: int) -> str:
    """Return what makes a peer's memory unsafe to map, "" when nothing does."""
    seals = 0
    with contextlib.suppress(OSError):  # files that have no seals at all
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    if not seals & fcntl.F_SEAL_SHRINK:
        return "it is not sealed against shrinking"
    size = os.fstat(descriptor).st_size
    return "" if size == MEMORY_BYTES else f"it has {size} bytes, expected {MEMORY_BYTES}"


def _round_up(position: int, unit: int) -> int:
    return -(-position // unit) * unit
