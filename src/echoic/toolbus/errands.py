"""Errands: the events and requests of a tool, from the first word to the answer.

Of the same name one is under way at a time: the next is sent when the one before is acknowledged, as the tools of the
Java ToolBus do. So a script that acknowledges late slows a tool down instead of being flooded by it, and the order is
kept.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Final, Literal

from echoic.errors import ClosedError, EchoicError, LimitExceededError, UnreachableError
from echoic.terms import Annotated, Term, Value
from echoic.toolbus.protocol import Message, MessageKind

__all__ = ["Errands", "Pending"]

WAITING_MAX: Final = 10_000
Say = Callable[[Message], None]
ErrandKind = Literal[MessageKind.EVENT, MessageKind.REQUEST]


class Pending:
    """Something a tool has sent and waits for: `await` it, or `wait` for it.

    An event gives what the script says with its acknowledgement, None where it says nothing; a request the response.
    """

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self.future: Final[Future[Value | None]] = Future()

    @property
    def done(self) -> bool:
        """Whether the answer is there, or will never be."""
        return self.future.done()

    def wait(self, timeout: float | None = None) -> Value | None:
        """Wait for the answer; not in a handler of the same tool if the script answers only after that handler's value.

        Raises:
            ClosedError: The tool was disconnected before.
            UnreachableError: There was no answer for so many seconds.
        """
        try:
            return self.future.result(timeout)
        except FutureTimeout:
            raise UnreachableError(f"`{self.name}` was not answered within {timeout:g} seconds") from None

    def __await__(self) -> Generator[object, None, Value | None]:
        return asyncio.wrap_future(self.future).__await__()


class Errands:
    """What is under way from a tool to its bus."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._lock = threading.RLock()
        self._last = 0
        self._closed = ""
        self._queues: dict[tuple[MessageKind, str], deque[tuple[Message, Pending]]] = {}
        self._open: dict[int, tuple[MessageKind, str]] = {}

    def send(self, kind: ErrandKind, name: str, values: tuple[Value, ...]) -> Pending:
        """Send an event or a request, or keep it until the one of its name before it is answered.

        Raises:
            ClosedError: The tool is not connected.
            LimitExceededError: Too many of this name wait.
        """
        pending = Pending(name)
        with self._lock:
            if self._closed:
                raise ClosedError(f"`{name}` cannot be sent: {self._closed}")
            self._last = self._last % 0xFFFF_FFFF + 1
            queue = self._queues.setdefault((kind, name), deque())
            if len(queue) >= WAITING_MAX:
                raise LimitExceededError(f"{len(queue)} of `{name}` wait to be acknowledged, limit is {WAITING_MAX}")
            queue.append((Message(kind, self._last, values), pending))
            if len(queue) == 1:
                self._open[self._last] = (kind, name)
                self._say(queue[0][0])
        return pending

    def answered(self, message: Message) -> None:
        """Learn of an ACK_EVENT or RESPONSE, and send what waited for it."""
        kind = MessageKind.EVENT if message.kind is MessageKind.ACK_EVENT else MessageKind.REQUEST
        with self._lock:
            key = self._open.pop(message.transaction, None) or self._guess(kind, message.values)
            queue = self._queues.get(key) if key is not None else None
            if key is None or not queue:
                return
            asked, pending = queue.popleft()
            self._open.pop(asked.transaction, None)
            if queue:
                self._open[queue[0][0].transaction] = key
                self._say(queue[0][0])
            else:
                del self._queues[key]
        if kind is MessageKind.EVENT:
            _resolve(pending, message.values[1] if len(message.values) > 1 else None)
        else:
            _resolve(pending, message.values[0] if message.values else None)

    def close(self, reason: str) -> None:
        """Send nothing more; whoever waits learns why."""
        with self._lock:
            self._closed = reason or "the tool is closed"
            waiting = [pending for queue in self._queues.values() for _, pending in queue]
            self._queues.clear()
            self._open.clear()
        for pending in waiting:
            _resolve(pending, ClosedError(f"`{pending.name}` was not answered: {self._closed}"))

    def _guess(self, kind: MessageKind, values: tuple[Value, ...]) -> tuple[MessageKind, str] | None:
        """Return what an answer without a number is for: of its name, else the oldest."""
        first = values[0] if values else None
        if isinstance(first, Annotated):
            first = first.value
        if isinstance(first, Term) and (kind, first.name) in self._queues:
            return kind, first.name
        if kind is MessageKind.EVENT:
            return None
        return next((key for key in self._open.values() if key[0] is kind), None)


def _resolve(pending: Pending, answer: Value | EchoicError | None) -> None:
    """Give an answer to whoever waits, who may have given up."""
    if not pending.future.set_running_or_notify_cancel():
        return
    if isinstance(answer, EchoicError):
        pending.future.set_exception(answer)
    else:
        pending.future.set_result(answer)
