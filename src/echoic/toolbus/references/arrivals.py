"""Arrivals: what the bus says to a tool, in order, although some of it waits for values.

    PUT  PUT  DO(referring)  CANCEL  EVAL          from the bus
     |    |
    fetch fetch   ...  both there:  ACK, then DO, CANCEL, EVAL are heard

A PUT tells where a value is, and it is fetched at once. The message that refers to it is heard when all its values are
there, with the values in their places, and whatever came behind waits for it: a CANCEL must not overtake the EVAL that
it is about. Then the bus learns by an ACK that the values have arrived, so that it may forget them (thesis,
"Reachability").

Mostly nothing waits, and messages are heard in the thread that reads the connection. Only what has to wait is heard by
a thread of its own, which begins with the first such message.
"""

import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, TypeAlias

from echoic.errors import EchoicError, LimitExceededError, MalformedFrameError, MalformedTermError
from echoic.terms import Annotated, Reference, Term, TermList, Value, with_values
from echoic.toolbus.protocol import REFERRING, Message, MessageKind
from echoic.toolbus.references.cutting import lost_value, unsign, value_from
from echoic.toolbus.references.transfer import Assembly
from echoic.toolbus.references.words import PUTS_MAX, Put, decode_chunk, decode_put
from echoic.values import Variable

__all__ = ["Arrivals", "Coming"]

WAITING_MAX: Final = 65_536
log: Final = logging.getLogger("echoic.toolbus")

Coming: TypeAlias = Future[Variable[Value]]
"""A value that is on its way, or there."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A message, and the values that it waits for."""

    message: Message
    puts: Sequence[tuple[Put, Coming]]


class Arrivals:
    """Brings messages and their values together."""

    def __init__(
        self,
        fetch: Callable[[Put], Coming],
        acknowledge: Callable[[int], None],
        hear: Callable[[Message], None],
        name: str,
    ) -> None:
        """Begin.

        Args:
            fetch: Begins to fetch a value; never fails.
            acknowledge: Tells the bus that all values of a transaction are there.
            hear: Takes messages, one at a time, with nothing but values in them.
            name: Of the thread.
        """
        self._fetch = fetch
        self._acknowledge = acknowledge
        self._hear = hear
        self._name = name
        self._puts: list[tuple[Put, Coming]] = []
        self._inline: tuple[Put, Assembly, Coming] | None = None
        self._queue: deque[Waiting | Callable[[], None]] = deque()
        self._running = self._busy = False
        self._changed = threading.Condition()

    def take(self, message: Message) -> None:
        """Take what the bus says, in the thread that reads its connection.

        Raises:
            MalformedFrameError: It refers to what was not told, or a value is not what was announced.
            LimitExceededError: Too much waits.
        """
        if message.kind is MessageKind.PUT:
            self._take_put(decode_put(message))
        elif message.kind is MessageKind.CHUNK:
            self._take_chunk(message)
        elif message.flags & REFERRING:
            if self._inline is not None:
                raise MalformedFrameError(f"{message.kind.name} came in the midst of the value of a PUT")
            puts, self._puts = self._puts, []
            self._take_waiting(Waiting(message, puts))
        else:
            self._take_waiting(Waiting(message, ()))

    def end(self, act: Callable[[], None]) -> None:
        """Do something when all that came before was heard."""
        with self._changed:
            if self._busy or self._queue:
                self._queue.append(act)
                return
        act()

    def _take_put(self, put: Put) -> None:
        if len(self._puts) >= PUTS_MAX:
            raise LimitExceededError(f"{len(self._puts)} PUTs came without a message, limit is {PUTS_MAX}")
        if not put.with_value:
            self._puts.append((put, self._fetch(put)))
            return
        if self._inline is not None:
            raise MalformedFrameError("a PUT came in the midst of the value of another")
        coming: Coming = Future()
        self._inline = (put, Assembly(put.size), coming)
        self._puts.append((put, coming))

    def _take_chunk(self, message: Message) -> None:
        chunk = decode_chunk(message)
        if self._inline is None:
            return  # of a fetch that was given up
        put, assembly, coming = self._inline
        if chunk.transaction != put.transaction:
            raise MalformedFrameError(f"a CHUNK of {chunk.transaction} came in the midst of {put.transaction}")
        assembly.write(chunk.body)
        if chunk.last:
            self._inline = None
            value = _content(put, assembly)
            coming.set_result(Variable((put.epoch, put.source, put.variable, put.path), value, put.size))

    def _take_waiting(self, waiting: Waiting) -> None:
        with self._changed:
            if self._busy or self._queue or not all(coming.done() for _, coming in waiting.puts):
                if len(self._queue) >= WAITING_MAX:
                    raise LimitExceededError(f"{len(self._queue)} messages wait for values, limit is {WAITING_MAX}")
                self._queue.append(waiting)
                self._changed.notify()
                if not self._running:
                    self._running = True
                    threading.Thread(target=self._run, name=self._name, daemon=True).start()
                return
        self._deliver(waiting)

    def _run(self) -> None:
        """Hear what waits, until something ends it."""
        while True:
            with self._changed:
                self._busy = False
                self._changed.wait_for(lambda: bool(self._queue))
                entry = self._queue.popleft()
                self._busy = True
            if not isinstance(entry, Waiting):
                entry()
                return
            try:
                self._deliver(entry)
            except EchoicError as error:
                log.warning("%s could not be heard: %s", entry.message.kind.name, error)
            del entry  # its values may be large, and the next one may take long to come

    def _deliver(self, waiting: Waiting) -> None:
        """Have a message heard, with its values."""
        message = waiting.message
        if message.flags & REFERRING:
            puts = [(put, coming.result()) for put, coming in waiting.puts]
            message = _whole(message, puts)
            if puts:
                self._acknowledge(puts[0][0].transaction)
        self._hear(message)


def _content(put: Put, assembly: Assembly) -> Value:
    """Return a value that came whole, `lost-value(...)` if it is not what was said: the bus has not looked into it."""
    try:
        return value_from(put.kind, [assembly.done()])
    except (MalformedTermError, LimitExceededError) as error:
        return lost_value(str(error))


def _whole(message: Message, puts: Sequence[tuple[Put, Variable[Value]]]) -> Message:
    """Return a message with values where it refers to them.

    Raises:
        MalformedFrameError: It refers to what was not told.
    """
    references = [put.reference for put, _ in puts]
    found: dict[Reference, Value] = {
        reference: variable.value for reference, (_, variable) in zip(references, puts, strict=True)
    }
    skeleton = TermList(*unsign(message.values, references))
    whole = with_values(skeleton, found)
    values = whole.elements if isinstance(whole, TermList) else (whole,)
    _tie(values, [variable for _, variable in puts])
    return Message(message.kind, message.transaction, values)


def _tie(values: Sequence[Value], variables: Sequence[Variable[Value]]) -> None:
    """Keep variables, by which others in this process find values, as long as the message that has the values."""
    for value in values:
        if isinstance(value, Term | TermList | Annotated):
            weakref.finalize(value, _forget, tuple(variables)).atexit = False
            return


def _forget(variables: object) -> None:
    """Do nothing: what was given is let go of."""
