"""A tool at the other end of a connection, as its bus sees it."""

import logging
import threading
import time
from collections.abc import Sequence
from typing import Final

from echoic.errors import EchoicError, EncodeError, MalformedFrameError
from echoic.links import Connection
from echoic.scripts.running.messages import ToTool
from echoic.terms import Value
from echoic.toolbus.limits import BusLimits
from echoic.toolbus.line import Audience
from echoic.toolbus.outgoing import Outgoing
from echoic.toolbus.protocol import (
    FROM_TOOL,
    TO_TOOL,
    Hello,
    Message,
    MessageKind,
    encode_message,
    message_of,
)
from echoic.wire import Frame, FrameReader

__all__ = ["RemoteLine"]

STRAY_MAX: Final = 100
"""So many messages that make no sense are warned about; whoever sends more is lost."""
log: Final = logging.getLogger("echoic.toolbus")


class RemoteLine:
    """A conversation over a connection whose greeting is done."""

    def __init__(self, connection: Connection, hello: Hello, audience: Audience, limits: BusLimits) -> None:
        self.name: Final = hello.name
        self._connection = connection
        self._audience = audience
        self._limits = limits
        self._closed = False
        self._close_by = 0.0
        self._stray = 0
        self._outgoing = Outgoing(connection, f"echoic-bus-write-{hello.name}", limits.queue_bytes_max, self._lose)

    def welcome(self, number: int) -> None:
        """Tell the tool its number."""
        self._say(Message(MessageKind.WELCOME, 0, (number,)))

    def tell(self, kind: ToTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Say something to the tool."""
        self._say(Message(TO_TOOL[kind], transaction, values))

    def close(self) -> None:
        """Say that nothing more comes when everything is written; `serve` ends when the tool has hung up too."""
        if not self._closed:
            self._closed = True
            self._close_by = time.monotonic() + self._limits.grace_seconds
            self._outgoing.finish(self._limits.grace_seconds)

    def serve(self, reader: FrameReader, early: Sequence[Frame]) -> None:
        """Hear what the tool says, in the thread of the caller, until it is gone."""
        audience, connection = self._audience, self._connection
        try:
            frames = list(early)
            while True:
                for frame in frames:
                    self._hear(message_of(frame))
                data = connection.receive()
                if data == b"" or (self._closed and time.monotonic() > self._close_by):
                    break
                frames = reader.receive(data) if data is not None else []
            if not self._closed:
                audience.gone(self, "it closed its connection")
        except (EchoicError, OSError) as error:
            if not self._closed:
                audience.gone(self, (error.strerror if isinstance(error, OSError) else None) or str(error))
        finally:
            connection.close()

    def _hear(self, message: Message | None) -> None:
        if message is None or self._closed:
            return  # of a later version, or too late
        kind = FROM_TOOL.get(message.kind)
        if kind is not None:
            self._audience.heard(self, kind, message.transaction, message.values)
            return
        if message.kind is MessageKind.TROUBLE:
            self._audience.trouble(
                self, ": ".join(str(value) for value in message.values[:2] if isinstance(value, str))
            )
            return
        self._stray += 1
        if self._stray > STRAY_MAX:
            raise MalformedFrameError(
                f"it said {self._stray} things that tools do not say, {message.kind.name} the last"
            )
        self._audience.trouble(self, f"it said {message.kind.name}, which tools do not say once they are connected")

    def _say(self, message: Message) -> None:
        try:
            frame = encode_message(
                message, checked=self._connection.checked, message_bytes_max=self._limits.message_bytes_max
            )
        except EncodeError as error:
            self._lose(f"it was told {message.kind.name} with too much in it: {error}")
            return
        if not self._outgoing.put(frame) and not self._closed:
            self._lose(
                f"it does not take what it is told: {self._outgoing.queued_bytes} bytes wait, limit is "
                f"{self._limits.queue_bytes_max}"
            )

    def _lose(self, reason: str) -> None:
        """Give the tool up; in whatever thread noticed, which must not wait."""
        if self._closed:
            return
        self._closed = True
        self._audience.gone(self, reason)
        threading.Thread(target=self._connection.close, name=f"echoic-bus-close-{self.name}", daemon=True).start()
