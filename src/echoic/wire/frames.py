"""Frames: how a byte stream is cut into messages.

    0        4     5      6         8         12         16
    | length | kind | flags | 0 (u16) | channel | checksum | payload, then zeros to a multiple of 8
      u32      u8     u8                u32       u32        length bytes

Everything outside a record is little-endian. Headers and payloads start at multiples of 8, so that the records of a
received batch lie aligned where they are and a NumPy view of them costs nothing. `channel` is the sender's number for
the channel a frame is about, 0 when it is about none. With flag 1 set, `checksum` is the CRC-32C of the header's first
twelve bytes and the payload; plain TCP and files set it, links inside one machine need not.

A frame of a kind this version does not know is skipped and counted: a newer peer may say more than we understand.
A length above the limit is refused when its header has arrived, before anything is set aside for it.
"""

import enum
import struct
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import google_crc32c
import msgspec
import numpy

from echoic.errors import EncodeError, LimitExceededError, MalformedFrameError

__all__ = ["Buffer", "Frame", "FrameKind", "FrameReader", "FrameStatistics", "checksum", "encode_frame", "size_of"]

Buffer: TypeAlias = bytes | bytearray | memoryview

HEADER: Final = struct.Struct("<IBBHII")
HEADER_BYTES: Final = 16
CHECKED_HEADER_BYTES: Final = 12  # what stands before the checksum itself
CHECKSUM: Final = 1
PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
PAYLOAD_BYTES_MAX_UNAUTHENTICATED: Final = 1024 * 1024
CHECKSUM_CHUNK_BYTES: Final = 65_536
LARGE_BYTES: Final = 65_536  # from here on a frame gets memory of its own, into which its pieces are put ...
BELIEVED_BYTES: Final = 16_384  # ... when so much of it has arrived
PADDING: Final = tuple(bytes(-length % 8) for length in range(8))


class FrameKind(enum.IntEnum):
    """What a frame's payload is."""

    HELLO = 1
    FORMATS = 2
    MEMBERSHIP = 3
    EVENTS = 4
    ACKS = 5
    CREDITS = 6
    PARAMETERS = 7
    CODE = 8
    VALUES = 9
    CONTROL = 10
    CALLS = 11
    REPLIES = 12
    SHARED = 13
    RUNS = 14
    GROUP = 15
    TOOL = 16
    LARGE = 17
    CHUNK = 18
    MORE = 19
    RELEASE = 20


KINDS: Final = {int(kind): kind for kind in FrameKind}


class Frame(msgspec.Struct, frozen=True):
    """One received frame; the payload is a view of the bytes that were received."""

    kind: FrameKind
    channel: int
    payload: memoryview


class FrameStatistics(msgspec.Struct, frozen=True):
    """What a reader has seen so far."""

    frames: int
    skipped: int
    bytes: int
    pending_bytes: int


def size_of(buffer: Buffer) -> int:
    """Return how many bytes a buffer has, which for a view of larger elements is not its length."""
    return buffer.nbytes if isinstance(buffer, memoryview) else len(buffer)


def checksum(buffers: Iterable[Buffer], value: int = 0) -> int:
    """Return the CRC-32C of the buffers one after the other, continuing from `value`.

    The library takes only `bytes`; copying 64 KiB at a time stays in the cache and costs about a third of the
    checksum itself.
    """
    for buffer in buffers:
        view = memoryview(buffer).cast("B")
        for start in range(0, len(view), CHECKSUM_CHUNK_BYTES):
            value = google_crc32c.extend(value, bytes(view[start : start + CHECKSUM_CHUNK_BYTES]))
    return value


def encode_frame(
    kind: FrameKind,
    payload: Sequence[Buffer],
    *,
    channel: int = 0,
    checked: bool = False,
    payload_bytes_max: int = PAYLOAD_BYTES_MAX,
) -> list[Buffer]:
    """Return the buffers of a frame around `payload`, for one gathering write; the payload is not copied.

    Raises:
        EncodeError: The payload is longer than the receiver accepts.
    """
    length = sum(size_of(buffer) for buffer in payload)
    if length > payload_bytes_max:
        raise EncodeError(f"a payload has {length} bytes, limit is {payload_bytes_max}; send smaller batches")
    flags = CHECKSUM if checked else 0
    header = HEADER.pack(length, kind, flags, 0, channel, 0)
    if checked:
        value = checksum([header[:CHECKED_HEADER_BYTES], *payload])
        header = HEADER.pack(length, kind, flags, 0, channel, value)
    padding = PADDING[length & 7]
    return [header, *payload, padding] if padding else [header, *payload]


def with_checksum(frame: Buffer) -> bytes:
    """Return a frame that was encoded without a checksum with one."""
    length, kind, _, _, channel, _ = HEADER.unpack_from(frame)
    header = HEADER.pack(length, kind, CHECKSUM, 0, channel, 0)
    payload = memoryview(frame)[HEADER_BYTES : HEADER_BYTES + length]
    value = checksum([header[:CHECKED_HEADER_BYTES], payload])
    return HEADER.pack(length, kind, CHECKSUM, 0, channel, value) + memoryview(frame)[HEADER_BYTES:]


class FrameReader:
    """Cuts received bytes into frames, however the stream was cut on its way.

    Invariant: the bytes held back are fewer than one frame of the greatest permitted length, plus the last piece.
    """

    def __init__(self, *, payload_bytes_max: int = PAYLOAD_BYTES_MAX, checked: bool = False) -> None:
        """Start a stream.

        Args:
            payload_bytes_max: Longer payloads are refused; may be raised when the peer has been authenticated.
            checked: Refuse frames without a checksum.
        """
        self.payload_bytes_max = payload_bytes_max
        self._checked = checked
        self._held = bytearray()
        self._large: memoryview | None = None
        self._filled = 0
        self._error: MalformedFrameError | LimitExceededError | None = None
        self._needed = HEADER_BYTES
        self._frames = self._skipped = self._bytes = 0

    def receive(self, data: Buffer) -> list[Frame]:
        """Take the next piece of the stream and return the frames it completes.

        A `bytes` object is read where it lies; anything else is copied first, since its owner may reuse it.

        Raises:
            MalformedFrameError: The stream is not made of frames; nothing more can be read from it. Frames that were
                complete before are returned first, and the error comes with the next call.
            LimitExceededError: A frame announces more than `payload_bytes_max`, likewise.
        """
        if self._error is not None:
            raise self._error
        if self._large is not None:
            return self._fill(memoryview(data))
        self._bytes += len(data)
        if self._held or len(data) < self._needed:
            self._held += data
            if len(self._held) < self._needed:
                self._set_aside()
                return []
            stream = bytes(self._held)
        else:
            stream = data if isinstance(data, bytes) else bytes(data)
        frames: list[Frame] = []
        try:
            at = self._cut(stream, frames)
        except (MalformedFrameError, LimitExceededError) as error:
            self._error = error  # whatever was whole before it is still good, however the stream was cut
            if not frames:
                raise
            return frames
        self._held = bytearray(memoryview(stream)[at:])
        self._set_aside()
        return frames

    def _set_aside(self) -> None:
        """Give a large frame memory of its own, once enough of it has arrived for the rest to be believed."""
        held = len(self._held)
        if self._needed >= LARGE_BYTES and held >= BELIEVED_BYTES:
            self._large = numpy.empty(self._needed, numpy.uint8).data
            self._large[:held] = self._held
            self._filled, self._held = held, bytearray()

    @property
    def room(self) -> memoryview | None:
        """Where the rest of a large frame can be received without being copied again, while one is under way."""
        return self._large[self._filled :] if self._large is not None else None

    def filled(self, count: int) -> list[Frame]:
        """Return the frame that is complete after `count` bytes were received into `room`, if it is.

        Raises:
            MalformedFrameError: Its checksum is wrong.
        """
        self._bytes += count
        self._filled += count
        if self._large is None or self._filled < len(self._large):
            return []
        frames: list[Frame] = []
        large, self._large = self._large, None
        try:
            self._cut(large, frames)
        except MalformedFrameError as error:
            self._error = error
            raise
        return frames

    def _fill(self, data: memoryview) -> list[Frame]:
        """Take the next piece while a large frame is under way."""
        room = self.room
        if room is None:
            return []
        count = min(len(room), len(data))
        room[:count] = data[:count]
        frames = self.filled(count)
        if count < len(data):
            try:
                frames += self.receive(bytes(data[count:]))
            except (MalformedFrameError, LimitExceededError):
                if not frames:  # else it comes with the next call
                    raise
        return frames

    @property
    def idle(self) -> bool:
        """Whether nothing is held back, so that the next piece begins with a frame."""
        return not self._held and self._large is None and self._error is None

    def statistics(self) -> FrameStatistics:
        """Return what was read so far."""
        pending = len(self._held) if self._large is None else self._filled
        return FrameStatistics(self._frames, self._skipped, self._bytes, pending)

    def _cut(self, stream: bytes | memoryview, frames: list[Frame]) -> int:
        """Append the complete frames of `stream` and return where the first incomplete one begins."""
        view, at, size = memoryview(stream), 0, len(stream)
        while size - at >= HEADER_BYTES:
            length, kind, flags, reserved, channel, value = HEADER.unpack_from(stream, at)
            if length > self.payload_bytes_max or reserved or flags > CHECKSUM or not kind:
                self._refuse(view[at : at + HEADER_BYTES])
            end = at + HEADER_BYTES + length
            padded_end = end + (-length & 7)
            if padded_end > size:
                self._needed = padded_end - at
                return at
            payload = view[at + HEADER_BYTES : end]
            if flags:
                self._check(view[at : at + CHECKED_HEADER_BYTES], payload, value)
            elif self._checked:
                raise MalformedFrameError(f"a frame has no checksum, this stream needs one - at {self._place()}")
            known = KINDS.get(kind)
            if known is None:
                self._skipped += 1
            else:
                frames.append(Frame(known, channel, payload))
            self._frames += 1
            at = padded_end
        self._needed = HEADER_BYTES
        return at

    def _check(self, header: memoryview, payload: memoryview, expected: int) -> None:
        found = checksum((header, payload))
        if found != expected:
            raise MalformedFrameError(
                f"a payload of {len(payload)} bytes has checksum {found:08x}, its header says {expected:08x} "
                f"- at {self._place()}"
            )

    def _refuse(self, header: memoryview) -> None:
        """Raise the error that fits a header which cannot be accepted."""
        length, kind, flags, reserved, _, _ = HEADER.unpack(header)
        start = bytes(header)
        if not self._frames and (start[:4].isascii() and bytes(start[:4]).strip().isalpha()):
            raise MalformedFrameError(
                f"the stream begins with {start!r}, which is another protocol - at {self._place()}"
            )
        if reserved or flags > CHECKSUM or not kind:
            raise MalformedFrameError(
                f"a header has kind {kind}, flags {flags} and {reserved} in its reserved bytes, expected a kind above "
                f"0, flags 0 or {CHECKSUM}, and 0 - at {self._place()}"
            )
        raise LimitExceededError(
            f"peer announced {length} payload bytes, limit is {self.payload_bytes_max} - at {self._place()}"
        )

    def _place(self) -> str:
        return f"frame {self._frames}"
