"""A tool at the other end of a connection, as its bus sees it.

With a lease a conversation outlives its connection (`sessions.py`): what is said meanwhile is kept, and the tool is
lost only if it does not come back in time, or if it was its own fault.
"""

import threading
import time
from collections.abc import Sequence
from typing import Final

from echoic.errors import EchoicError, EncodeError, MalformedFrameError
from echoic.links import Connection
from echoic.scripts.running.messages import ToTool
from echoic.terms import Value
from echoic.toolbus.correspondence import Correspondence
from echoic.toolbus.custody import Custody
from echoic.toolbus.guest import NOBODY
from echoic.toolbus.leases import Leases
from echoic.toolbus.limits import BusLimits
from echoic.toolbus.line import Audience
from echoic.toolbus.outgoing import Outgoing
from echoic.toolbus.protocol import FROM_TOOL, REFERENCES, TO_TOOL, Hello, Message, MessageKind, encode_message
from echoic.toolbus.references.transfer import messages_of
from echoic.toolbus.references.words import decode_seen, encode_end, encode_seen
from echoic.toolbus.sessions import Session
from echoic.toolbus.shares import Seat
from echoic.wire import Frame, FrameReader
from echoic.wire.frames import Buffer, size_of

__all__ = ["RemoteLine"]

STRAY_MAX: Final = 100
"""So many messages that make no sense are warned about; whoever sends more is lost."""


class RemoteLine:
    """A conversation over a connection whose greeting is done."""

    def __init__(
        self,
        connection: Connection,
        hello: Hello,
        audience: Audience,
        limits: BusLimits,
        custody: Custody,
        leases: Leases,
    ) -> None:
        """Begin.

        Args:
            connection: To the tool.
            hello: What it has said of itself.
            audience: The bus.
            limits: On messages and queues.
            custody: Knows where values are.
            leases: Knows who may come back.
        """
        self.name: Final = hello.name
        self.guest = NOBODY
        """Who it is, and what has proved that; who comes back must be the same."""
        self.seat = Seat()
        """What it takes of its name's share."""
        self._number = 0
        self._audience = audience
        self._limits = limits
        self._custody = custody
        self._leases = leases
        self._refers = REFERENCES in hello.features
        self._correspondence: Correspondence | None = None
        self._session: Session | None = None
        self._saying = threading.RLock()
        self._closed = False
        self._suspended = False
        self._reason, self._fault = "", False
        self._close_by = 0.0
        self._stray = 0
        self._connection, self._outgoing = self._taken_over(connection)

    # What the bus says

    def welcome(self, number: int) -> None:
        """Tell the tool its number, and what it needs for exchanging values with others."""
        with self._saying:
            self._number = number
            self._suspended = False
            if self._refers and self._custody.enabled:
                self._correspondence = Correspondence(self._custody, number)
                self._session = Session(purse=self.seat) if self._leases.seconds else None
                self.say(self._custody.join(number, self))
            self.say(Message(MessageKind.WELCOME, 0, (number,)))

    def tell(self, kind: ToTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Say something to the tool."""
        self.say(Message(TO_TOOL[kind], transaction, values))

    def say(self, message: Message) -> None:
        """Send a message, in any thread; it is kept where the tool may come back for it."""
        try:
            with self._saying:
                taken = self._put(message)
        except EncodeError as error:
            self._lose(f"it was told {message.kind.name} with too much in it: {error}")
            return
        if self._suspended and self._session is not None and not self._session.resumable:
            self._lose("more was said to it than is kept until it comes back")
        elif not taken:
            waiting, limit = self._outgoing.queued_bytes, self._limits.queue_bytes_max
            self._give_up(f"it does not take what it is told: {waiting} bytes wait, limit is {limit}", fault=True)

    def close(self) -> None:
        """Say that nothing more comes when everything is written; `serve` ends when the tool has hung up too."""
        with self._saying:
            if self._closed:
                return
            if self._correspondence is not None:
                self.say(encode_end())
            self._closed = True
            self._close_by = time.monotonic() + self._limits.grace_seconds
            self._leases.take(self._number)
            self._outgoing.finish(self._limits.grace_seconds)
            if self._suspended:  # nobody hears any more who would notice that it is over
                self._suspended = False
                if self._correspondence is not None:
                    self._correspondence.close()
                self._leave()

    def _put(self, message: Message) -> bool:
        """Write a message, or keep it, which takes as much; while holding the lock."""
        if self._closed:
            return True
        frame = self._frame_of(message)
        if self._session is not None:
            self._session.say(message, sum(map(size_of, frame)))
        return self._suspended or bool(self._reason) or self._outgoing.put(frame)

    def _frame_of(self, message: Message) -> list[Buffer]:
        checked, limit = self._connection.checked, self._limits.message_bytes_max
        return encode_message(message, checked=checked, message_bytes_max=limit)

    # What the tool says

    def serve(self, reader: FrameReader, early: Sequence[Frame]) -> None:
        """Hear what the tool says, in the thread of the caller, until its connection is over."""
        connection = self._connection
        try:
            frames = list(early)
            while True:
                for message in messages_of(frames):
                    self._hear(message)
                data = connection.receive()
                if data == b"" or (self._closed and time.monotonic() > self._close_by):
                    break
                frames = reader.receive(data) if data is not None else []
            reason, fault = "it closed its connection", False
        except OSError as error:
            reason, fault = error.strerror or str(error), False
        except EchoicError as error:
            reason, fault = str(error), True
        finally:
            connection.close()
        self._over(reason, fault=fault)

    def _hear(self, said: Message) -> None:
        if self._session is not None:
            if said.kind is MessageKind.SEEN:
                with self._saying:
                    self._session.seen(decode_seen(said))
                return
            seen = self._session.hear(said)
            if seen is not None:
                self.say(seen)
        if said.kind is MessageKind.END:
            if not self._closed:
                self._audience.leaving(self, self._hang_up)
            return
        # What is said about values matters until the end: others may wait for them.
        message = said if self._correspondence is None else self._correspondence.hear(said)
        if message is None or self._closed:
            return
        kind = FROM_TOOL.get(message.kind)
        if kind is not None:
            self._audience.heard(self, kind, message.transaction, message.values)
        elif message.kind is MessageKind.TROUBLE:
            texts = (str(value) for value in message.values[:2] if isinstance(value, str))
            self._audience.trouble(self, ": ".join(texts))
        else:
            self._stray += 1
            if self._stray > STRAY_MAX:
                raise MalformedFrameError(
                    f"it said {self._stray} things that tools do not say, {message.kind.name} the last"
                )
            self._audience.trouble(self, f"it said {message.kind.name}, which tools do not say once they are connected")

    # The end of a connection, and of the conversation

    def dismiss(self, reason: str, *, fault: bool) -> None:
        """Hang up on a tool that may not stay, and with a fault not wait for it to come back; in any thread."""
        if not self._reason and not self._closed:
            self._reason = reason
        self._fault = self._fault or fault
        self._connection.close()

    def _hang_up(self) -> None:
        """Let a tool go that wants to: it closes the connection then."""
        self._outgoing.finish(self._limits.grace_seconds)

    def _broken(self, reason: str) -> None:
        self._give_up(reason, fault=False)

    def _give_up(self, reason: str, *, fault: bool) -> None:
        """Give a connection up, in whatever thread noticed, which must not wait: who hears goes on."""
        if not self._reason and not self._closed:
            self._reason, self._fault = reason, fault
            threading.Thread(target=self._connection.close, name=f"echoic-bus-close-{self.name}", daemon=True).start()

    def _lose(self, reason: str) -> None:
        """Give up a tool that cannot be told what it should be, be it here or away."""
        with self._saying:
            away = self._suspended
            if not away:
                self._give_up(reason, fault=True)
        if away:
            self._leases.take(self._number)
            self.expire(reason)

    def _over(self, reason: str, *, fault: bool) -> None:
        """Wait for the tool to come back, or lose it; why it was given up, if it was, says more than how that ended."""
        with self._saying:
            reason, fault = self._reason or reason, fault or self._fault
            closed = self._closed
            resumable = self._session is not None and self._session.resumable
            self._suspended = resumable and not fault and not closed
            self._closed = not self._suspended
        if self._suspended:
            self._leases.cut_off(self._number, self, reason)
            self._audience.cut_off(self)
            return
        if self._correspondence is not None:
            self._correspondence.close()
        self._leave()
        if not closed:
            self._audience.gone(self, reason)

    @property
    def number(self) -> int:
        """The number that the machine gave it."""
        return self._number

    @property
    def epoch(self) -> int:
        """Of the bus, as the tool was told."""
        return self._custody.epoch

    @property
    def resumption_token(self) -> str:
        """What the tool shows when it comes back."""
        return self._custody.resumption_token(self._number)

    def expire(self, reason: str) -> None:
        """Learn that the tool did not come back."""
        with self._saying:
            if not self._suspended:
                return
            self._suspended, self._closed = False, True
        if self._correspondence is not None:
            self._correspondence.close()
        self._leave()
        self._audience.gone(self, reason)

    def _leave(self) -> None:
        """Give back what was kept for the tool, and its seat."""
        with self._saying:
            if self._session is not None:
                self._session.forget()
            self.seat.leave()

    def resume(self, connection: Connection, heard: int) -> None:
        """Go on where the other connection broke, with a tool that has heard so much; `serve` comes next.

        Raises:
            MalformedFrameError: It cannot have heard that. The tool is still away.
        """
        with self._saying:
            session = self._session
            if session is None:
                raise MalformedFrameError("a conversation without a lease does not go on")
            said = (Message(MessageKind.WELCOME, 0, (self._number,)), encode_seen(session.heard), *session.again(heard))
            again = [piece for message in said for piece in self._frame_of(message)]
            # What was kept may be more than the queue takes, and all of it is said at once.
            self._connection, self._outgoing = self._taken_over(connection, more_bytes=sum(map(size_of, again)))
            self._suspended = False
            self._outgoing.put(again)

    def begin_anew(self, connection: Connection) -> None:
        """Go on with a tool that was started again, and remembers nothing; `welcome` and `serve` come next."""
        with self._saying:
            self._connection, self._outgoing = self._taken_over(connection)
            if self._session is not None:
                self._session.forget()
            self._session = None
            if self._correspondence is not None:
                self._correspondence.close()
        self._audience.returned(self)

    def _taken_over(self, connection: Connection, more_bytes: int = 0) -> tuple[Connection, Outgoing]:
        self._reason, self._fault = "", False
        queue_bytes_max = self._limits.queue_bytes_max + more_bytes
        return connection, Outgoing(connection, f"echoic-bus-write-{self.name}", queue_bytes_max, self._broken)
