"""A tool's way to a bus in another process: dial, greet, and then a thread that hears."""

import threading
import time
from collections.abc import Callable
from typing import Final

from echoic.errors import ClosedError, EchoicError, UnreachableError
from echoic.links import Connection, Identity, dial
from echoic.toolbus.greeting import ToolGreeting
from echoic.toolbus.protocol import MESSAGE_BYTES_MAX, Hello, Message, encode_message, message_of
from echoic.wire import Frame, FrameReader
from echoic.wire.frames import Buffer

__all__ = ["RemoteSpeaker", "dial_bus"]

WRITABLE_MILLISECONDS: Final = 100


class RemoteSpeaker:
    """A tool's end of a connection whose greeting is done."""

    def __init__(self, connection: Connection, greeting: ToolGreeting, reader: FrameReader, early: list[Frame]) -> None:
        self.number: Final = greeting.number
        self._connection = connection
        self._message_bytes_max = greeting.message_bytes_max
        self._reader = reader
        self._early = early
        self._sending = threading.Lock()
        self._closed = False

    def say(self, message: Message) -> None:
        """Send a message; waits while the bus has too much to hear.

        Raises:
            ClosedError: There is no bus any more.
            EncodeError: The message is longer than the bus accepts.
        """
        frame = encode_message(message, checked=self._connection.checked, message_bytes_max=self._message_bytes_max)
        with self._sending:
            try:
                _send(self._connection, frame, None)
            except OSError as error:
                raise ClosedError(f"the connection to the bus broke: {error.strerror or error}") from error

    def close(self) -> None:
        """Hang up."""
        if not self._closed:
            self._closed = True
            self._connection.finish()
            self._connection.close()

    def listen(self, hear: Callable[[Message], None], end: Callable[[str], None]) -> None:
        """Hear what the bus says, in a thread of its own, until it ends."""
        threading.Thread(target=self._listen, args=(hear, end), name="echoic-tool-hear", daemon=True).start()

    def _listen(self, hear: Callable[[Message], None], end: Callable[[str], None]) -> None:
        reason = "the bus closed the connection"
        try:
            frames = self._early
            while True:
                for frame in frames:
                    message = message_of(frame)
                    if message is not None:
                        hear(message)
                data = self._connection.receive()
                if data == b"":
                    break
                frames = self._reader.receive(data) if data is not None else []
        except (EchoicError, OSError) as error:
            if not self._closed:
                reason = f"the connection to the bus broke: {error}"
        end(reason)


def dial_bus(address: str, hello: Hello, identity: Identity | None, timeout: float) -> RemoteSpeaker:
    """Connect to a bus and greet it.

    Raises:
        AddressError: It is not an address.
        UnreachableError: Nobody answers there, or not in time.
        RefusedError: The bus does not want this tool; the message says why.
        RemoteError: It is not a bus.
    """
    connection = dial(address, identity, timeout=timeout)
    deadline = time.monotonic() + timeout
    reader = FrameReader(payload_bytes_max=MESSAGE_BYTES_MAX)
    greeting = ToolGreeting(hello)
    frames: list[Frame] = []
    try:
        _send(connection, encode_message(greeting.opening, checked=connection.checked), deadline)
        while not greeting.done:
            if frames:
                for answer in greeting.receive(message_of(frames.pop(0))):
                    _send(connection, encode_message(answer, checked=connection.checked), deadline)
                continue
            data = connection.receive()
            if data == b"":
                raise UnreachableError(f"the bus at {address} hung up during the greeting")
            if time.monotonic() > deadline:
                raise UnreachableError(f"the bus at {address} did not answer within {timeout:g} seconds")
            frames = reader.receive(data) if data is not None else []
    except OSError as error:
        connection.close()
        raise UnreachableError(f"the connection to {address} broke: {error.strerror or error}") from error
    except EchoicError:
        connection.close()
        raise
    return RemoteSpeaker(connection, greeting, reader, frames)


def _send(connection: Connection, pieces: list[Buffer], deadline: float | None) -> None:
    """Send all bytes of a frame.

    Raises:
        OSError: The connection is broken.
        UnreachableError: The other side does not take it before the deadline.
    """
    sent = connection.send(pieces)
    size = sum(map(len, pieces))
    if sent == size:
        return
    rest = memoryview(b"".join(pieces))[sent:]
    while rest:
        connection.writable(WRITABLE_MILLISECONDS)
        rest = rest[connection.send([rest]) :]
        if rest and deadline is not None and time.monotonic() > deadline:
            raise UnreachableError(f"{connection.peer} does not listen")
