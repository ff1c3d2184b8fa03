"""Where tools come in: a listener, and a greeting before anything else is said.

A stranger has a few seconds to say who it is, and there is room for so many strangers at a time. Each is greeted in a
thread of its own, which goes on as the one that hears the tool.
"""

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from echoic.errors import EchoicError, RefusedError, UnreachableError
from echoic.links import Connection, Identity, Listener
from echoic.terms import Value
from echoic.toolbus.greeting import BusGreeting, refusal
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
from echoic.wire import Frame, FrameReader

if TYPE_CHECKING:
    from echoic.wire.frames import Buffer

__all__ = ["Doorkeeper", "Reception", "say"]

ACCEPT_MILLISECONDS: Final = 200
LINGER_SECONDS: Final = 1.0
log: Final = logging.getLogger("echoic.toolbus")

Admit = Callable[[Hello], Value]


class Doorkeeper:
    """Accepts connections at an address, and gives each a thread, as long as there are not too many strangers."""

    def __init__(
        self,
        listen: str,
        identity: Identity | None,
        limits: BusLimits,
        welcome: Callable[[Connection, Callable[[], None]], None],
        name: str = "echoic-bus",
    ) -> None:
        """Listen.

        Args:
            listen: Where; port 0 takes a free one.
            identity: Makes it TLS.
            limits: How many strangers there may be, and how long they may take.
            welcome: Goes on with a connection; calls what it is given when the stranger is none any more.
            name: With which the names of threads begin.

        Raises:
            AddressError: `listen` is not an address.
            InsecureError: The files of the identity cannot be used.
            UnreachableError: It cannot be listened at.
        """
        self._listener = Listener(listen, identity)
        self.address: Final = self._listener.address
        self._limits = limits
        self._welcome = welcome
        self._name = name
        self._strangers: deque[Connection] = deque()
        self._closed = False

    def start(self) -> None:
        """Begin to accept."""
        threading.Thread(target=self._accept_all, name=f"{self._name}-accept", daemon=True).start()

    def close(self) -> None:
        """Accept no more, and send away who has not said who it is."""
        self._closed = True
        self._listener.close()
        for stranger in list(self._strangers):
            stranger.close()

    def _accept_all(self) -> None:
        while not self._closed:
            connection = self._listener.accept(ACCEPT_MILLISECONDS)
            if connection is None:
                continue
            self._strangers.append(connection)
            if len(self._strangers) > self._limits.strangers_max:
                self._strangers.popleft().close()  # who came last may go on
            greeting = threading.Thread(target=self._greet, args=(connection,), name=f"{self._name}-hear", daemon=True)
            try:
                greeting.start()
            except RuntimeError as error:  # the system has no more threads, perhaps for a moment
                log.warning("cannot greet %s: %s", connection.peer, error)
                self._known(connection)
                connection.close()

    def _greet(self, connection: Connection) -> None:
        try:
            connection.handshake(self._limits.hello_seconds)
            self._welcome(connection, lambda: self._known(connection))
        except (EchoicError, OSError) as error:
            log.warning("refused a tool at %s: %s", connection.peer, error)
            connection.close()
        finally:
            self._known(connection)

    def _known(self, connection: Connection) -> None:
        with contextlib.suppress(ValueError):  # it was sent away, or is known already
            self._strangers.remove(connection)


class Reception:
    """Greets tools and takes them in."""

    def __init__(
        self,
        listen: str,
        identity: Identity | None,
        limits: BusLimits,
        admit: Admit,
        audience: Audience,
        on_refused: Callable[[Hello, str], None],
    ) -> None:
        """Listen.

        Args:
            listen: Where; port 0 takes a free one.
            identity: Makes it TLS.
            limits: On strangers and messages.
            admit: Returns what the script expects of a tool, or raises RefusedError.
            audience: Goes on with tools that have greeted.
            on_refused: Called when a greeting fails after the tool was admitted.

        Raises:
            AddressError: `listen` is not an address.
            InsecureError: The files of the identity cannot be used.
            UnreachableError: It cannot be listened at.
        """
        self._doorkeeper = Doorkeeper(listen, identity, limits, self._welcome)
        self.address: Final = self._doorkeeper.address
        self._limits = limits
        self._admit = admit
        self._audience = audience
        self._on_refused = on_refused

    def start(self) -> None:
        """Begin to accept."""
        self._doorkeeper.start()

    def close(self) -> None:
        """Accept no more."""
        self._doorkeeper.close()

    def _welcome(self, connection: Connection, known: Callable[[], None]) -> None:
        """Greet a stranger, and go on with the tool that it is."""
        deadline = time.monotonic() + self._limits.hello_seconds
        reader = FrameReader(payload_bytes_max=HELLO_BYTES_MAX)
        greeting = BusGreeting(self._admit, self._limits.message_bytes_max)
        early: list[Frame] = []
        try:
            while not greeting.done:
                if not early:
                    early = _await_frames(connection, reader, deadline)
                    continue
                for answer in greeting.receive(message_of(early.pop(0))):
                    say(connection, answer, deadline)
        except (EchoicError, OSError) as error:
            if greeting.hello is not None:
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
        line = RemoteLine(connection, hello, self._audience, self._limits)
        self._audience.arrived(line, None if hello.instance == NO_INSTANCE else hello.instance)
        line.serve(reader, early)


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
