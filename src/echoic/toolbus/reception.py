"""Where tools come in: a listener, and a greeting before anything else is said.

A stranger has a few seconds to say who it is, and there is room for so many strangers at a time. Each is greeted in a
thread of its own, which goes on as the one that hears the tool.
"""

import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.errors import EchoicError, RefusedError, UnreachableError
from echoic.links import Connection, Identity
from echoic.terms import UNDEFINED, Value
from echoic.toolbus.custody import Custody
from echoic.toolbus.doorkeeper import Doorkeeper
from echoic.toolbus.greeting import BusGreeting, refusal
from echoic.toolbus.leases import Leases
from echoic.toolbus.limits import BusLimits
from echoic.toolbus.line import Audience
from echoic.toolbus.protocol import (
    HELLO_BYTES_MAX,
    NO_INSTANCE,
    Hello,
    Message,
    encode_message,
    message_of,
)
from echoic.toolbus.remote import RemoteLine
from echoic.toolbus.visitors import Visitors
from echoic.trust import Issuers
from echoic.wire import Frame, FrameReader

if TYPE_CHECKING:
    from echoic.wire.frames import Buffer

__all__ = ["Reception", "say"]

LINGER_SECONDS: Final = 1.0

Admit = Callable[[Hello], Value]


class Reception:
    """Greets tools and takes them in."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that a bus consists of
        self,
        listen: str,
        identity: Identity | None,
        limits: BusLimits,
        admit: Admit,
        audience: Audience,
        on_refused: Callable[[Hello, str], None],
        custody: Custody,
        leases: Leases,
        issuers: Issuers | None = None,
    ) -> None:
        """Listen.

        Args:
            listen: Where; port 0 takes a free one.
            identity: Makes it TLS.
            limits: On strangers and messages.
            admit: Returns what the script expects of a tool, or raises RefusedError.
            audience: Goes on with tools that have greeted.
            on_refused: Called when a greeting fails after the tool was admitted.
            custody: Knows where values are.
            leases: Knows who may come back.
            issuers: Reads the tokens of tools that show no certificate; without it they must show one.

        Raises:
            AddressError: `listen` is not an address.
            InsecureError: The files of the identity cannot be used.
            UnreachableError: It cannot be listened at.
        """
        self._doorkeeper = Doorkeeper(listen, identity, limits, self._welcome, visitors=issuers is not None)
        self._secure = identity is not None
        self._visitors = Visitors(issuers, identity.revoked if identity is not None else None)
        self.address: Final = self._doorkeeper.address
        self._limits = limits
        self._admit = admit
        self._audience = audience
        self._on_refused = on_refused
        self._custody = custody
        self._leases = leases

    def start(self) -> None:
        """Begin to accept."""
        self._doorkeeper.start()

    def close(self) -> None:
        """Accept no more."""
        self._doorkeeper.close()
        self._visitors.close()

    def _welcome(self, connection: Connection, known: Callable[[], None]) -> None:
        """Greet a stranger, and go on with the tool that it is."""
        deadline = time.monotonic() + self._limits.hello_seconds
        reader = FrameReader(payload_bytes_max=HELLO_BYTES_MAX)
        visiting = self._secure and connection.credentials is None
        greeting = BusGreeting(lambda hello: self._admit_any(hello, visiting=visiting), self._limits.message_bytes_max)
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
        hello = greeting.hello
        if hello is None:
            raise RefusedError("a greeting ended without a hello")
        known()
        reader.payload_bytes_max = self._limits.message_bytes_max
        line = self._line_of(connection, hello)
        if visiting and hello.resumption is None and hello.instance == NO_INSTANCE:
            line.signed_token = hello.token
        if line.signed_token or connection.credentials is not None:
            self._visitors.follow(connection, hello, line.signed_token)
        try:
            line.serve(reader, early)
        finally:
            self._visitors.forget(connection)

    def _admit_any(self, hello: Hello, *, visiting: bool) -> Value:
        """Return the interface for a tool; one that comes back had it before.

        Who has shown no certificate where one could be shown has a token that lets it be this tool, or was started by
        this bus, which `_admit` looks at.

        Raises:
            RefusedError: It is not admitted.
        """
        if hello.resumption is not None:
            self._leases.check(hello)
            return UNDEFINED
        if visiting and hello.instance == NO_INSTANCE:
            self._visitors.check(hello.name, hello.token)
        return self._admit(hello)

    def _line_of(self, connection: Connection, hello: Hello) -> RemoteLine:
        """Return the line of a tool, which may have been here before."""
        number = hello.instance if hello.resumption is None else hello.resumption.number
        line = self._leases.take(number)
        if isinstance(line, RemoteLine):
            if hello.resumption is None:
                line.begin_anew(connection)
                return line
            if line.signed_token:
                self._recheck(line, hello)
            try:
                line.resume(connection, hello.resumption.heard)
            except EchoicError as error:
                line.expire(f"it came back, and cannot go on: {error}")
                raise
            return line
        if hello.resumption is not None:
            raise RefusedError(f"tool `{hello.name}` comes back too late")
        line = RemoteLine(connection, hello, self._audience, self._limits, self._custody, self._leases)
        self._audience.arrived(line, None if hello.instance == NO_INSTANCE else hello.instance)
        return line

    def _recheck(self, line: RemoteLine, hello: Hello) -> None:
        """See that the token by which a tool came at first still holds.

        Raises:
            RefusedError: It does not, and the tool is lost.
        """
        try:
            self._visitors.check(hello.name, line.signed_token)
        except RefusedError as error:
            line.expire(f"it came back, and may not go on: {error}")
            raise


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
