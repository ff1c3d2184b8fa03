"""Where tools come in: a listener, and a greeting before anything else is said.

A stranger has a few seconds to say who it is, and there is room for so many strangers at a time. Each is greeted in a
thread of its own, which goes on as the one that hears the tool.

    HELLO --> who is it? --> may it be that? --> is there such a tool, and does it fit? --> is there room? --> line
              Visitors       HouseRules          Admission                                  Shares

A tool that comes back is asked the first two again.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from echoic.errors import EchoicError, RefusedError, UnreachableError
from echoic.links import Connection
from echoic.terms import UNDEFINED, Value
from echoic.toolbus.admission import Admission
from echoic.toolbus.custody import Custody
from echoic.toolbus.doorkeeper import Doorkeeper
from echoic.toolbus.greeting import BusGreeting, refusal
from echoic.toolbus.guest import NOBODY, Guest
from echoic.toolbus.leases import Leases
from echoic.toolbus.line import Audience
from echoic.toolbus.options import BusOptions
from echoic.toolbus.protocol import HELLO_BYTES_MAX, NO_INSTANCE, Hello, Message, encode_message, message_of
from echoic.toolbus.remote import RemoteLine
from echoic.toolbus.shares import Seat, Shares
from echoic.toolbus.visitors import STRANGER, Visitors
from echoic.wire import Frame, FrameReader

if TYPE_CHECKING:
    from echoic.wire.frames import Buffer

__all__ = ["Reception", "say"]

LINGER_SECONDS: Final = 1.0
log: Final = logging.getLogger("echoic.toolbus")


@dataclass(slots=True)
class Caller:
    """Somebody at the other end of a connection, and who it turns out to be."""

    connection: Connection
    guest: Guest | None = None
    seat: Seat | None = None
    """What a tool takes that is here for the first time; its line has it afterwards."""


class Reception:
    """Greets tools and takes them in."""

    def __init__(
        self,
        options: BusOptions,
        admission: Admission,
        audience: Audience,
        on_refused: Callable[[Hello, str], None],
        custody: Custody,
        leases: Leases,
    ) -> None:
        """Listen.

        Args:
            options: Where to listen and as whom, whom to believe, and limits on strangers and messages.
            admission: Says what the script expects of a tool, and whether it may be one.
            audience: Goes on with tools that have greeted.
            on_refused: Called when a greeting fails after the tool was admitted.
            custody: Knows where values are.
            leases: Knows who may come back.

        Raises:
            AddressError: `listen` is not an address.
            InsecureError: The files of the identity cannot be used.
            UnreachableError: It cannot be listened at.
        """
        identity, issuers, limits = options.identity, options.issuers, options.limits
        self._doorkeeper = Doorkeeper(options.listen, identity, limits, self._welcome, visitors=issuers is not None)
        self._secure = identity is not None
        self.visitors: Final = Visitors(issuers, identity, admission.rules)
        self._shares = Shares(limits)
        self.address: Final = self._doorkeeper.address
        self._limits = limits
        self._admission = admission
        self._audience = audience
        self._on_refused = on_refused
        self._custody = custody
        self._leases = leases

    def start(self) -> None:
        """Begin to accept."""
        self.visitors.start()
        self._doorkeeper.start()

    def close(self) -> None:
        """Accept no more."""
        self._doorkeeper.close()
        self.visitors.close()

    def _welcome(self, connection: Connection, known: Callable[[], None]) -> None:
        """Greet a stranger, and go on with the tool that it is."""
        caller = Caller(connection)
        reader = FrameReader(payload_bytes_max=HELLO_BYTES_MAX)
        try:
            line, early = self._greet(caller, reader)
        finally:
            if caller.seat is not None:
                caller.seat.leave()  # nobody has sat down
        known()
        reader.payload_bytes_max = self._limits.message_bytes_max
        try:
            self.visitors.follow(connection, line)
            line.serve(reader, early)
        finally:
            self.visitors.forget(connection)

    def _greet(self, caller: Caller, reader: FrameReader) -> tuple[RemoteLine, list[Frame]]:
        """Return the line of a tool, and what it has said behind its greeting.

        Raises:
            EchoicError: It is none, or may not be; it was told why.
            OSError: The connection broke.
        """
        connection = caller.connection
        deadline = time.monotonic() + self._limits.hello_seconds
        greeting = BusGreeting(lambda hello: self._admit_any(hello, caller), self._limits.message_bytes_max)
        early: list[Frame] = []
        try:
            while not greeting.done:
                if not early:
                    early = _await_frames(connection, reader, deadline)
                    continue
                for answer in greeting.receive(message_of(early.pop(0))):
                    say(connection, answer, deadline)
        except (EchoicError, OSError) as error:
            if greeting.hello is not None and greeting.hello.resumption is None:
                self._on_refused(greeting.hello, str(error))
            with contextlib.suppress(EchoicError, OSError):  # it may be gone, or never have been a tool
                say(connection, refusal(str(error)), time.monotonic() + 1)
                connection.finish()
                _let_read(connection)
            raise
        if greeting.hello is None or caller.guest is None:
            raise RefusedError("a greeting ended without a hello")
        return self._line_of(caller, caller.guest, greeting.hello), early

    def _admit_any(self, hello: Hello, caller: Caller) -> Value:
        """Return the interface for a tool; one that comes back had it before.

        Raises:
            RefusedError: It is not admitted.
        """
        if hello.resumption is not None:
            caller.guest = self._recognize(hello, caller.connection)
            return UNDEFINED
        guest = caller.guest = self._identify(hello, caller.connection)
        interface = self._admission.admit(hello, guest, caller.connection.peer)
        caller.seat = self._shares.take(guest.account)
        return interface

    def _identify(self, hello: Hello, connection: Connection) -> Guest:
        """Return who somebody is, before it is told anything of the script.

        Raises:
            RefusedError: It has not proved what this bus wants proved.
        """
        shown, started = connection.credentials, hello.instance != NO_INSTANCE
        guest = NOBODY if shown is None else self.visitors.by_certificate(shown)
        if started:
            with self._like_to_strangers(connection):
                self._admission.check_started(hello)
            return replace(guest, started=True)
        if self._secure and shown is None:
            return self.visitors.by_token(hello.name, hello.token)
        return guest

    def _recognize(self, hello: Hello, connection: Connection) -> Guest:
        """Return who somebody is that comes back: who it was, by a proof that still holds.

        Who shows the secret of another's conversation, and not what that one had proved itself by, changes nothing for
        it. Who it is itself, and has lost what let it in, does not come back any more, unless that may yet change
        (`Visitors.check_return`).

        Raises:
            RefusedError: It was never here, or may not be any more.
        """
        shown = connection.credentials
        with self._like_to_strangers(connection):
            line = self._leases.check(hello)
            if not isinstance(line, RemoteLine) or line.name != hello.name or not line.guest.is_proved_by(shown):
                raise RefusedError(f"tool `{hello.name}` comes back as another than it was")
        guest = replace(line.guest, credentials=shown)
        try:
            self.visitors.check(guest, line.name, connection.peer)
        except RefusedError as error:
            if self._leases.take(line.number) is line:
                line.expire(f"it came back, and may not go on: {error}")
            raise
        self.visitors.check_return(guest)
        return guest

    @contextlib.contextmanager
    def _like_to_strangers(self, connection: Connection) -> Iterator[None]:
        """Tell who has not proved anything why it is refused as one tells all of them."""
        try:
            yield
        except RefusedError as error:
            if not self._secure or connection.credentials is not None:
                raise
            log.info("refused a stranger at %s: %s", connection.peer, error)
            raise RefusedError(STRANGER) from error

    def _line_of(self, caller: Caller, guest: Guest, hello: Hello) -> RemoteLine:
        """Return the line of a tool, which may have been here before.

        Raises:
            EchoicError: It has come back too late, or cannot go on.
        """
        connection, back = caller.connection, hello.resumption
        line = self._leases.take(hello.instance if back is None else back.number)
        if isinstance(line, RemoteLine):
            line.guest = guest
            if back is None:
                line.begin_anew(connection)
                return line
            try:
                line.resume(connection, back.heard)
            except EchoicError as error:
                line.expire(f"it came back, and cannot go on: {error}")
                raise
            return line
        if back is not None:
            raise RefusedError(f"tool `{hello.name}` comes back too late")
        line = RemoteLine(connection, hello, self._audience, self._limits, self._custody, self._leases)
        line.guest = guest
        if caller.seat is not None:
            line.seat, caller.seat = caller.seat, None
        self._audience.arrived(line, hello.instance if guest.started else None)
        return line


def say(connection: Connection, message: Message, deadline: float) -> None:
    """Send a message, whole, before a deadline.

    Raises:
        UnreachableError: The other side does not take it.
        OSError: The connection broke.
    """
    data: Buffer = b"".join(encode_message(message, checked=connection.checked))
    while data:
        data = memoryview(data)[connection.send([data]) :]
        if data:
            connection.writable(100)
            if time.monotonic() > deadline:
                raise UnreachableError(f"{connection.peer} does not listen")


def _let_read(connection: Connection) -> None:
    """Wait a little until the other side has hung up: what it has not read would be lost if this side did at once."""
    deadline = time.monotonic() + LINGER_SECONDS
    while time.monotonic() < deadline and connection.receive() != b"":
        pass


def _await_frames(connection: Connection, reader: FrameReader, deadline: float) -> list[Frame]:
    """Return the next frames of a stranger, none where it takes its time.

    Raises:
        UnreachableError: It hung up, or took too long.
    """
    data = connection.receive()
    if data == b"":
        raise UnreachableError(f"{connection.peer} hung up before it said who it is")
    if time.monotonic() > deadline:
        raise UnreachableError(f"{connection.peer} took too long to say who it is")
    return reader.receive(data) if data is not None else []
