"""Correspondence: what one tool says about values, and what it says with references in it.

PUT                         the tool keeps a value: a Reference stands for it from then on
PUT with value, CHUNK ...   the bus keeps it, as the bytes that came
VALUE, EVENT ... referring  `<reference(K)>` in it is the K-th of those
ACK GET MORE NAK            for the custody, or for another tool
"""

import dataclasses
from typing import TYPE_CHECKING

from echoic.errors import LimitExceededError, MalformedFrameError
from echoic.toolbus.custody import Custody
from echoic.toolbus.protocol import LAST, REFERRING, Message, MessageKind
from echoic.toolbus.references.cutting import lost_value, unsign
from echoic.toolbus.references.exchange import REQUEST_BIT
from echoic.toolbus.references.words import PUTS_MAX, Put, decode_acknowledgement, decode_put

if TYPE_CHECKING:
    from echoic.terms import Value
    from echoic.values import Incoming

__all__ = ["Correspondence"]


class Correspondence:
    """What one tool says, with references in the place of what it has kept; by the thread that hears the tool."""

    def __init__(self, custody: Custody, number: int) -> None:
        self._custody = custody
        self._number = number
        self._puts: list[Value] = []
        self._coming: Put | None = None
        self._incoming: Incoming | None = None

    def hear(self, message: Message) -> Message | None:
        """Return a message as the machine has to hear it, None if it was about values only.

        Raises:
            MalformedFrameError: Its words make no sense.
            MalformedTermError: It refers to what was not put.
        """
        match message.kind:
            case MessageKind.PUT | MessageKind.CHUNK if message.transaction & REQUEST_BIT:
                self._custody.pass_on(self._number, message)
            case MessageKind.MORE | MessageKind.NAK:
                self._custody.pass_on(self._number, message)
            case MessageKind.PUT:
                self._put(decode_put(message))
            case MessageKind.CHUNK:
                self._take(message)
            case MessageKind.GET:
                self._custody.get(self._number, message)
            case MessageKind.ACK:
                self._custody.acknowledged(self._number, decode_acknowledgement(message))
            case _ if message.flags & REFERRING:
                puts, self._puts = self._puts, []
                return dataclasses.replace(message, values=unsign(message.values, puts), flags=0)
            case _:
                return message
        return None

    def close(self) -> None:
        """Forget what was not finished."""
        if self._incoming is not None:
            self._incoming.abandon()
            self._incoming = None
        self._puts.clear()

    def _put(self, put: Put) -> None:
        if put.source != self._number:
            raise MalformedFrameError(f"tool {self._number} puts a value of tool {put.source}")
        if len(self._puts) >= PUTS_MAX or self._coming is not None:
            raise MalformedFrameError(f"a message refers to more than {PUTS_MAX} values, or one came in another")
        if not put.with_value:
            self._puts.append(self._custody.arrive(put))
            return
        self._coming = put
        try:
            self._incoming = self._custody.member.receive(put.size)
        except LimitExceededError as error:
            self._lose(error)

    def _take(self, message: Message) -> None:
        put, incoming = self._coming, self._incoming
        if put is None:
            raise MalformedFrameError("a part of a value came, and no value before it")
        last = bool(message.flags & LAST)
        if last:
            self._coming = None
        if incoming is None:
            return  # of a value that is lost already
        try:
            incoming.write(message.body)
            if last:
                self._incoming = None
                self._puts.append(self._custody.adopt(put, incoming.done()))
        except LimitExceededError as error:
            self._lose(error)

    def _lose(self, error: LimitExceededError) -> None:
        """Have no value where there is no room for it: that is not the fault of the tool."""
        if self._incoming is not None:
            self._incoming.abandon()
            self._incoming = None
        self._puts.append(lost_value(f"the bus had no room for it: {error}"))
