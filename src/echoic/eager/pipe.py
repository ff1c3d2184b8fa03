"""Messages between the hub and a confined process, over two pipes.

    0          4          8
    | head     | body     | head bytes: one message, msgpack | body bytes: a batch, a parcel, values, as they are
    | u32      | u32      |

A batch stays the bytes that it is: nothing of it passes msgpack, and what arrives is a view of what was read. The hub
asks, the other one answers, never two at a time; so for the hub bytes behind an answer are a breach, and there is no
queue. The hub itself may send several messages of which only the last is answered.

The hub does not trust what it reads. Both lengths are compared with limits before anything is allocated for them; the
head's limit is low, since small msgpack can become large objects (an empty list of one byte takes 56). It waits for
readiness only, and never longer than its deadline, on the way out too: a process that reads nothing, or sends half an
answer, or a byte every now and then, comes to the deadline like any other that does not answer.
"""

import os
import select
import struct
import time
from typing import Final

import msgspec

from echoic.errors import ModulatorError
from echoic.wire import Buffer

__all__ = ["BODY_BYTES_MAX", "HEAD_BYTES_MAX", "Deadline", "Pipe"]

BODY_BYTES_MAX: Final = 16 * 1024 * 1024
HEAD_BYTES_MAX: Final = 256 * 1024
HEADER: Final = struct.Struct("<II")
READ_BYTES: Final = 64 * 1024

encode: Final = msgspec.msgpack.Encoder().encode


class Deadline:
    """A time until which something must have happened."""

    def __init__(self, seconds: float, what: str) -> None:
        self._until = time.monotonic() + seconds
        self._text = f"it took longer than {seconds:g} s, the limit of {what}"

    def left_ms(self) -> int:
        """Return how many milliseconds are left, at least one.

        Raises:
            ModulatorError: None are.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise ModulatorError(self._text)
        return int(left * 1000) + 1


class Pipe:
    """One end of a pair of pipes.

    Args:
        reading: The descriptor to read from.
        writing: The descriptor to write to. With deadlines, both must be non-blocking.
        alone: Whether messages come one at a time, so that something behind one is a breach; that saves a read.
    """

    def __init__(self, reading: int, writing: int, *, alone: bool) -> None:
        self._first_bytes = READ_BYTES if alone else HEADER.size
        self._reading = reading
        self._writing = writing
        self._readable = select.poll()
        self._readable.register(reading, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(writing, select.POLLOUT)

    def send(self, message: msgspec.Struct, body: list[Buffer], deadline: Deadline | None = None) -> None:
        """Send one message.

        Raises:
            ModulatorError: The other end is gone or does not read, or the message is too large.
        """
        head, body_bytes = encode(message), sum(map(len, body))
        check_sizes(len(head), body_bytes)
        data = memoryview(b"".join((HEADER.pack(len(head), body_bytes), head, *body)))
        while data:
            try:
                data = data[os.write(self._writing, data) :]
            except BlockingIOError:
                self._wait(self._writable, deadline)
            except OSError as error:
                raise ModulatorError(f"its process does not read: {error.strerror}") from error

    def receive(self, deadline: Deadline | None = None) -> tuple[bytes, memoryview]:
        """Return the head and the body of the next message.

        Raises:
            ModulatorError: The other end is gone, sends nothing in time, or what it sends is no message.
        """
        data = bytearray()
        while len(data) < HEADER.size:
            data += self._read(self._first_bytes - len(data), deadline)
        head_bytes, body_bytes = HEADER.unpack_from(data)
        check_sizes(head_bytes, body_bytes)
        size = HEADER.size + head_bytes + body_bytes
        while len(data) < size:
            data += self._read(min(size - len(data), 16 * READ_BYTES), deadline)
        if len(data) > size:
            raise ModulatorError(f"its process sent {len(data) - size} bytes behind an answer")
        view = memoryview(data)
        return bytes(view[HEADER.size : HEADER.size + head_bytes]), view[HEADER.size + head_bytes :]

    def silent(self) -> bool:
        """Tell whether there is nothing to read, which is so whenever nothing was asked."""
        return not self._readable.poll(0)

    def _read(self, size: int, deadline: Deadline | None) -> bytes:
        while True:
            if deadline is not None:
                self._wait(self._readable, deadline)
            try:
                data = os.read(self._reading, size)
            except BlockingIOError:
                continue
            except OSError as error:
                raise ModulatorError(f"its process cannot be read: {error.strerror}") from error
            if not data:
                raise ModulatorError("its process has ended")
            return data

    def _wait(self, poll: select.poll, deadline: Deadline | None) -> None:
        """Wait for readiness, of which a closed end is one kind.

        Raises:
            ModulatorError: The deadline came first.
        """
        while not poll.poll(None if deadline is None else deadline.left_ms()):
            pass


def check_sizes(head_bytes: int, body_bytes: int) -> None:
    """Refuse what is too large to be a message.

    Raises:
        ModulatorError: A part is.
    """
    if head_bytes > HEAD_BYTES_MAX:
        raise ModulatorError(f"a message has {head_bytes} bytes of values, limit is {HEAD_BYTES_MAX}")
    if body_bytes > BODY_BYTES_MAX:
        raise ModulatorError(f"a message has {body_bytes} bytes of events, limit is {BODY_BYTES_MAX}")
