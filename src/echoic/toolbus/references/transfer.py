"""Transfer: how the words about values, and the values themselves, go over a connection.

    Link         a connection between two processes, for GET PUT CHUNK MORE NAK of all tools in them
    frame_of     a message for a link as bytes, through shared memory where there is some
    messages_of  the messages of frames
    chunks_of    the content of a value in chunks
    Assembly     chunks put together again

A value travels in chunks: nobody needs memory for a second copy, other requests go in between, and whoever asks can
stop the flow. It gives *credit*: so many chunks may be sent before it says MORE. On a link of two processes that is
16 chunks of 512 KiB, enough to keep both busy; through a bus it is 4 of 64 KiB, since what waits there is the bus's
memory.

Between processes of one machine a chunk lies in the ring of the link (`echoic.links.ring`), so it is copied three
times: into the ring, out of it, and to its place in the value. Measured, median of 1, 5 and 50 MB between two processes
on a small, busy machine: 0.56, 2.0 and 25 ms with chunks of 128 KiB, 0.50, 1.9 and 23 with 256 KiB, 0.45, 1.3 and 21
with 512 KiB, 0.44, 1.6 and 26 with 1 MiB.

What takes longest is memory: giving 50 MB to a process in pages of 4 KiB took 45 to 90 ms, five times as long as
copying them. So the memory of a large value is asked for in large pages, which is a hint that the system may ignore,
and which made it 11 ms. The value grows in its place: `io.BytesIO` writes into the `bytes` object that it was made of,
if nobody else has it, and gives it back without a copy. No page of it exists before something arrived for it.
"""

import ctypes
import io
import mmap
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from echoic.errors import EchoicError, LimitExceededError, MalformedFrameError, UnreachableError
from echoic.links import SHARED_BYTES_MIN, Connection
from echoic.toolbus.outgoing import Outgoing
from echoic.toolbus.protocol import Message, encode_message, message_of
from echoic.toolbus.references.words import CHUNK_BYTES_MAX
from echoic.wire import Buffer, Frame, FrameKind, FrameReader
from echoic.wire.frames import size_of

__all__ = [
    "LINK_CHUNK_BYTES",
    "LINK_WINDOW",
    "STREAM_CHUNK_BYTES",
    "STREAM_WINDOW",
    "VALUE_BYTES_MAX",
    "Assembly",
    "Link",
    "LinkEvents",
    "chunks_of",
    "frame_of",
    "messages_of",
]

LINK_CHUNK_BYTES: Final = 512 * 1024
LINK_WINDOW: Final = 16
STREAM_CHUNK_BYTES: Final = 64 * 1024
STREAM_WINDOW: Final = 4
VALUE_BYTES_MAX: Final = 8 * 1024**3
"""Of one value that is fetched."""
QUEUE_BYTES_MAX: Final = 64 * 1024 * 1024
STRANGER_BYTES_MAX: Final = 64 * 1024
FRAME_BYTES_MAX: Final = CHUNK_BYTES_MAX + 4096
STRANGER_SECONDS: Final = 5.0
LARGE_PAGES_FROM: Final = 4 * 1024 * 1024
_libc: Final = ctypes.CDLL(None)


class LinkEvents(Protocol):
    """What a link tells its exchange."""

    def heard(self, link: "Link", message: Message) -> None:
        """Take a message, in the thread that reads the link.

        Raises:
            EchoicError: The link is not worth keeping.
        """

    def gone(self, link: "Link", reason: str) -> None:
        """Learn that a link is dead."""


class Link:
    """A connection between two processes that exchange values."""

    def __init__(
        self,
        connection: Connection,
        events: LinkEvents,
        *,
        known: bool,
        on_known: Callable[[], None] = lambda: None,
    ) -> None:
        """Begin.

        Args:
            connection: Whose end this is; nobody else uses it.
            events: Told what comes.
            known: Whether the other side has shown that it may say something: true for one that we dialled.
            on_known: Called when it has.
        """
        self.connection: Final = connection
        self.used_ns = time.monotonic_ns()
        self.open = True
        self._known = known
        self._on_known = on_known
        self._events = events
        self._reader = FrameReader(payload_bytes_max=FRAME_BYTES_MAX if known else STRANGER_BYTES_MAX)
        self._saying = threading.Lock()
        self._outgoing = Outgoing(connection, "echoic-exchange-write", QUEUE_BYTES_MAX, self._break)

    @property
    def known(self) -> bool:
        """Whether the other side has shown that it may say something."""
        return self._known

    def believe(self) -> None:
        """Accept more than a stranger may say."""
        if not self._known:
            self._known = True
            self._reader.payload_bytes_max = FRAME_BYTES_MAX
            self._on_known()

    def say(self, message: Message) -> bool:
        """Say something, without waiting; False where that is not possible any more."""
        with self._saying:
            if self._outgoing.put(frame_of(self.connection, message)):
                return True
        self.close()
        return False

    def serve(self) -> None:
        """Hear what the other side says, in the thread of the caller, until it is gone."""
        reason = "it closed the connection"
        deadline = time.monotonic() + STRANGER_SECONDS
        try:
            while self.open:
                frames = self._receive()
                if frames is None:
                    break
                for message in messages_of(self._unshared(frames)):
                    self.used_ns = time.monotonic_ns()
                    self._events.heard(self, message)
                if not self._known and time.monotonic() > deadline:
                    raise UnreachableError(f"{self.connection.peer} took too long to say what it wants")
        except (EchoicError, OSError) as error:
            reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        finally:
            self.close()
            self._events.gone(self, reason)

    def close(self) -> None:
        """Hang up; whoever serves it notices."""
        self.open = False
        self.connection.close()

    def _receive(self) -> list[Frame] | None:
        """Return the next frames, None when the other side has hung up."""
        connection, reader = self.connection, self._reader
        room = reader.room if connection.direct else None
        if room is not None:
            count = connection.receive_into(room)
            return None if count == 0 else reader.filled(count) if count else []
        data = connection.receive()
        return None if data == b"" else reader.receive(data or b"")

    def _unshared(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """Yield frames, and of those that say that something lies in the ring what it is; a stranger has none."""
        for frame in frames:
            if frame.kind is FrameKind.SHARED and self._known:
                content = self.connection.unshare(frame.payload)
                yield from FrameReader(payload_bytes_max=FRAME_BYTES_MAX).receive(content)
            else:
                yield frame

    def _break(self, reason: str) -> None:  # noqa: ARG002 - whoever reads finds it out by itself
        self.close()


def frame_of(connection: Connection, message: Message) -> list[Buffer]:
    """Return the buffers of a message, which may lie in shared memory: they must be sent in the order of the calls.

    Raises:
        EncodeError: The message is longer than its receiver accepts.
    """
    frame = encode_message(message, checked=connection.checked)
    size = sum(map(size_of, frame))
    if size >= SHARED_BYTES_MIN and not connection.checked:
        shared = connection.share(frame, size)
        if shared is not None:
            return [shared]
    return frame


def messages_of(frames: Iterable[Frame]) -> Iterator[Message]:
    """Yield the messages of frames, but for kinds that this version does not know.

    Raises:
        MalformedFrameError: One is none.
        MalformedTermError: Its values are not in SAF.
        LimitExceededError: Its values are more than is accepted.
    """
    for frame in frames:
        message = message_of(frame)
        if message is not None:
            yield message


def chunks_of(pieces: Iterable[Buffer], chunk_bytes: int) -> Iterator[Buffer]:
    """Yield content in chunks: views of large pieces, small ones joined; nothing for no content."""
    small: list[Buffer] = []
    small_bytes = 0
    for piece in pieces:
        view = memoryview(piece).cast("B")
        at = 0
        if small:
            at = min(len(view), chunk_bytes - small_bytes)
            small.append(view[:at])
            small_bytes += at
            if small_bytes < chunk_bytes:
                continue
            yield b"".join(small)
            small, small_bytes = [], 0
        while len(view) - at >= chunk_bytes:
            yield view[at : at + chunk_bytes]
            at += chunk_bytes
        if at < len(view):
            small, small_bytes = [view[at:]], len(view) - at
    if small:
        yield small[0] if len(small) == 1 else b"".join(small)


class Assembly:
    """The content of a value that arrives in chunks."""

    def __init__(self, size: int) -> None:
        """Make room for so many bytes, none of which is memory yet.

        Raises:
            LimitExceededError: That is too much.
        """
        self.size: Final = size
        self.received = 0
        try:
            if size > VALUE_BYTES_MAX:
                raise MemoryError
            self._content = io.BytesIO(bytes(size))
        except MemoryError:
            raise LimitExceededError(f"a value has {size} bytes, limit is {VALUE_BYTES_MAX}, or memory") from None
        if size >= LARGE_PAGES_FROM:
            _ask_for_large_pages(self._content)

    def write(self, chunk: Buffer) -> None:
        """Take the next bytes.

        Raises:
            MalformedFrameError: They are more than was announced.
        """
        self.received += size_of(chunk)
        if self.received > self.size:
            raise MalformedFrameError(f"{self.received} bytes came of a value of {self.size}")
        self._content.write(chunk)

    def done(self) -> bytes:
        """Return the content.

        Raises:
            MalformedFrameError: Bytes are missing.
        """
        if self.received != self.size:
            raise MalformedFrameError(f"{self.received} bytes came of a value of {self.size}")
        return self._content.getvalue()

    def abandon(self) -> None:
        """Forget what came."""
        self._content = io.BytesIO()


def _ask_for_large_pages(content: io.BytesIO) -> None:
    """Tell the system that memory which is not there yet should come in large pages."""
    with content.getbuffer() as buffer:
        start = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
        first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
        size = (start + len(buffer) - first) // mmap.PAGESIZE * mmap.PAGESIZE
        _libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), mmap.MADV_HUGEPAGE)
