"""A tool's way to a bus in another process: dial, greet, and then a thread that hears.

    say    --> Member.outgoing: large values stay here, PUTs tell where --> _send --> the bus
    relay  --> GET ACK CHUNK ... of the member ----------------------------^
    the bus --> _hear --> Member.hear: FIN, GET, what was asked for
                    +---> Arrivals: messages, with their values, in order --> the tool's service

Everything that goes out passes `_send`, and everything that comes in passes `_hear`. The PUTs of a message and the
message itself are said without another PUT between (`_saying`); what else is said may go in between.

A bus that gives a lease is dialled again when the connection breaks, until the lease is over. Who wants to say
something meanwhile waits. Then both sides say again what the other has not heard (`sessions.py`), and nobody else
notices.

Large frames do not go through shared memory here: a ring is as large as many values, and it is the bus whose memory is
to stay small. Values between tools do (`references/transfer.py`).
"""

import contextlib
import dataclasses
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from echoic.errors import ClosedError, EchoicError, InsecureError, UnreachableError
from echoic.links import Connection, Identity, Visitor, dial, format_address, is_loopback, parse_address
from echoic.toolbus.greeting import ToolGreeting
from echoic.toolbus.protocol import (
    MESSAGE_BYTES_MAX,
    NO_INSTANCE,
    Hello,
    Message,
    MessageKind,
    Resumption,
    encode_message,
    message_of,
)
from echoic.toolbus.references.arrivals import Arrivals
from echoic.toolbus.references.exchange import Exchange
from echoic.toolbus.references.member import Member
from echoic.toolbus.references.tokens import resumption_token
from echoic.toolbus.references.transfer import messages_of
from echoic.toolbus.references.words import (
    Registration,
    decode_registration,
    decode_seen,
    encode_acknowledgement,
    encode_end,
)
from echoic.toolbus.sessions import Session
from echoic.trust import is_signed
from echoic.wire import Frame, FrameReader
from echoic.wire.frames import Buffer, size_of

__all__ = ["Exchanging", "RemoteSpeaker", "dial_bus"]

WRITABLE_MILLISECONDS: Final = 100
END_SECONDS: Final = 1.0
"""For saying that nothing more comes, to a bus that may not listen."""
TOGETHER_MAX: Final = 64
"""So many PUTs are written at once."""
LINGER_SECONDS: Final = 10.0
"""So long a tool that was closed stays for what the bus still needs of it."""
AGAIN_SECONDS_MIN: Final = 0.02
AGAIN_SECONDS_MAX: Final = 0.5
EVERY_INTERFACE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not listened at
log: Final = logging.getLogger("echoic.toolbus")


@dataclass(frozen=True, slots=True)
class Exchanging:
    """How a tool takes part in the exchange of large values."""

    threshold: float | None = None
    """From so many bytes on values go by reference; None leaves that to the bus."""
    data_listen: str | None = None
    """Where others fetch values; "" for nowhere, None for where the bus can be reached from here."""
    exchange: Exchange | None = None
    """With which tools values are shared; None for those of this process."""
    insecure: bool = False
    """Whether values may go to and from tools on other machines in the clear, where the bus speaks no TLS."""


class RemoteSpeaker:
    """A tool's end of a connection whose greeting is done."""

    def __init__(
        self,
        greeted: "Greeted",
        join: Callable[[Registration, "RemoteSpeaker"], Member],
        dial_again: Callable[[Resumption, str], "Greeted"],
    ) -> None:
        """Begin.

        Args:
            greeted: The connection to the bus, and what was said on it so far.
            join: Makes this a member of the exchange of large values, if the bus wants that.
            dial_again: Connects to the bus anew, as one that was there before and shows a token.
        """
        greeting = greeted.greeting
        self.number: Final = greeting.number
        self.member: Member | None = None
        self._dial_again = dial_again
        self._registration: Registration | None = None
        self._session: Session | None = None
        self._connection = greeted.connection
        self._message_bytes_max = greeting.message_bytes_max
        self._reader = greeted.reader
        self._early = greeted.early
        self._join = join
        self._arrivals: Arrivals | None = None
        self._saying = threading.Lock()
        self._sending = threading.RLock()
        self._changed = threading.Condition(self._sending)
        self._listener: threading.Thread | None = None
        self._hung_up = threading.Event()
        self._hung_up.set()
        self._away = self._closed = self._over = self._ending = False
        if greeting.registration is not None:
            self._register(greeting.registration)

    def say(self, message: Message) -> None:
        """Send a message; waits while the bus has too much to hear.

        Raises:
            ClosedError: There is no bus any more.
            EncodeError: The message is longer than the bus accepts.
        """
        if self.member is None or not message.values or message.kind is MessageKind.TROUBLE:
            self._send(message)
            return
        parts = self.member.outgoing(message)
        first = next(parts)
        if first is message:
            self._send(message)
            return
        with self._saying:
            together = [first]
            for part in parts:
                together.append(part)
                if len(together) >= TOGETHER_MAX or part.body:
                    self._send(*together)
                    together.clear()
            if together:
                self._send(*together)

    def relay(self, number: int, message: Message) -> None:  # noqa: ARG002 - the bus knows for whom it is
        """Send what belongs to the exchange of values.

        Raises:
            ClosedError: There is no bus any more.
        """
        self._send(message)

    def close(self) -> None:
        """Hang up, when what was said has been sent."""
        if self._closed:
            return
        self._closed = True
        if self.member is not None and self._sending.acquire(timeout=END_SECONDS):
            try:
                with contextlib.suppress(EchoicError, OSError):  # it is gone, or does not listen
                    deadline = time.monotonic() + END_SECONDS
                    end = encode_message(encode_end(), checked=self._connection.checked)
                    _send(self._connection, end, deadline)
            finally:
                self._sending.release()
        if self.member is not None and self.member.statistics().kept and threading.current_thread() != self._listener:
            self._hung_up.wait(LINGER_SECONDS)  # the bus may still need what is kept here
        self._connection.finish()
        self._connection.close()
        if self.member is not None:
            self.member.close()

    @property
    def closed(self) -> bool:
        """Whether this side has hung up."""
        return self._closed

    def listen(self, hear: Callable[[Message], None], end: Callable[[str], None]) -> None:
        """Hear what the bus says, in a thread of its own, until it ends."""
        thread = threading.Thread(target=self._listen, args=(hear, end), name="echoic-tool-hear", daemon=True)
        self._listener = thread
        self._hung_up.clear()
        thread.start()

    def _register(self, registration: Registration) -> None:
        """Be what the bus says that this tool is."""
        if self.member is None:
            self._registration = registration
            self._session = Session() if registration.lease_ms else None
            self.member = self._join(registration, self)

    def _send(self, *messages: Message) -> None:
        """Send messages; with a lease, waits while there is no connection.

        Raises:
            ClosedError: There is no bus any more.
            EncodeError: The message is longer than the bus accepts.
        """
        limit = self._message_bytes_max
        checked = self._connection.checked
        frames = [encode_message(message, checked=checked, message_bytes_max=limit) for message in messages]
        with self._changed:
            if self._away and threading.current_thread() is self._listener:
                self._keep(messages, frames)  # whoever waits here waits for this thread to come back
                return
            self._changed.wait_for(lambda: not self._away or self._over)
            if self._over:
                raise ClosedError("the connection to the bus broke, and it did not let this tool come back")
            self._keep(messages, frames)
            try:
                _send(self._connection, [piece for frame in frames for piece in frame], None)
            except OSError as error:
                if self._session is None or not self._session.resumable or self._closed:
                    raise ClosedError(f"the connection to the bus broke: {error.strerror or error}") from error
                self._away = True  # it is kept, and is said again when the tool is back
                self._connection.close()

    def _keep(self, messages: Sequence[Message], frames: Sequence[list[Buffer]]) -> None:
        """Keep what is about to be said until the bus has heard it, where there is a lease."""
        if self._session is not None:
            for message, frame in zip(messages, frames, strict=True):
                self._session.say(message, sum(map(size_of, frame)))

    def _listen(self, hear: Callable[[Message], None], end: Callable[[str], None]) -> None:
        while True:
            reason, fault = self._listen_once(hear)
            if fault or not self._come_back():
                break
        self._hung_up.set()
        with self._changed:
            self._over = True
            self._changed.notify_all()
        if self._arrivals is not None:
            self._arrivals.end(lambda: end(reason))
        else:
            end(reason)

    def _listen_once(self, hear: Callable[[Message], None]) -> tuple[str, bool]:
        """Hear what the bus says on one connection; return why that is over, and whether it was meant to be."""
        reason = "the bus closed the connection"
        try:
            frames = self._early
            while True:
                for message in messages_of(frames):
                    self._hear(message, hear)
                data = self._connection.receive()
                if data == b"":
                    return reason, self._ending
                frames = self._reader.receive(data) if data is not None else []
        except OSError as error:
            return reason if self._closed else f"the connection to the bus broke: {error}", self._ending
        except EchoicError as error:
            return f"the connection to the bus broke: {error}", True

    def _come_back(self) -> bool:
        """Connect again within the lease; whether that was possible."""
        session, registration = self._session, self._registration
        with self._changed:
            if session is None or registration is None or not session.resumable or self._closed:
                return False
            self._away = True
            self._connection.close()
        token = resumption_token(registration.key, number=self.number, epoch=registration.epoch)
        deadline = time.monotonic() + registration.lease_ms / 1000
        pause = AGAIN_SECONDS_MIN
        while time.monotonic() < deadline:
            try:
                greeted = self._dial_again(Resumption(self.number, registration.epoch, session.heard), token)
            except EchoicError as error:
                log.debug("tool %d cannot come back yet: %s", self.number, error)
                if self.closed:
                    break
                time.sleep(pause)
                pause = min(2 * pause, AGAIN_SECONDS_MAX)
                continue
            with self._changed:
                if self.closed:
                    greeted.connection.close()
                    return False
                self._connection, self._reader, self._early = greeted.connection, greeted.reader, greeted.early
            return True
        return False

    def _hear(self, message: Message, hear: Callable[[Message], None]) -> None:
        """Take one message of the bus.

        Raises:
            EchoicError: It is not what a bus says.
        """
        if self._session is not None:
            if message.kind is MessageKind.SEEN:
                self._learn_seen(decode_seen(message))
                return
            seen = self._session.hear(message)
            if seen is not None:
                self._send(seen)
        if message.kind is MessageKind.REG:
            self._register(decode_registration(message))
        elif self.member is None:
            hear(message)
        elif message.kind is MessageKind.END:
            self._ending = True
        elif not self.member.hear(message):
            if self._arrivals is None:
                name = f"echoic-tool-arrivals-{self.number}"
                self._arrivals = Arrivals(self.member.fetch_variable, self._acknowledge, hear, name)
            self._arrivals.take(message)

    def _learn_seen(self, count: int) -> None:
        """Learn how much the bus has heard; after a break, say the rest again."""
        with self._changed:
            if self._session is None:
                return
            if not self._away:
                self._session.seen(count)
                return
            for message in self._session.again(count):
                checked, limit = self._connection.checked, self._message_bytes_max
                _send(self._connection, encode_message(message, checked=checked, message_bytes_max=limit), None)
            self._away = False
            self._changed.notify_all()

    def _acknowledge(self, transaction: int) -> None:
        """Tell the bus that all values of a message are here."""
        with contextlib.suppress(ClosedError):  # whoever hears finds that out as well
            self._send(encode_acknowledgement(transaction))


@dataclass(frozen=True, slots=True)
class Greeted:
    """A connection to a bus that has welcomed a tool."""

    connection: Connection
    greeting: ToolGreeting
    reader: FrameReader
    early: list[Frame]
    """What came behind the welcome."""


def dial_bus(
    address: str,
    hello: Hello,
    identity: Identity | Visitor | None,
    timeout: float,
    exchanging: Exchanging | None = None,
) -> RemoteSpeaker:
    """Connect to a bus and greet it.

    Raises:
        AddressError: It is not an address.
        InsecureError: There is a signed token to show, which anybody could read, since no authority is named.
        UnreachableError: Nobody answers there, or not in time.
        RefusedError: The bus does not want this tool; the message says why.
        RemoteError: It is not a bus.
    """

    def dial_again(resumption: Resumption, token: str) -> Greeted:
        again = dataclasses.replace(hello, instance=NO_INSTANCE, token=token, resumption=resumption)
        return _greet(address, again, identity, timeout)

    return RemoteSpeaker(_greet(address, hello, identity, timeout), _joiner(address, identity, exchanging), dial_again)


def _greet(address: str, hello: Hello, identity: Identity | Visitor | None, timeout: float) -> Greeted:
    """Connect to a bus and greet it; raises what `dial_bus` does."""
    if identity is None and is_signed(hello.token):
        raise InsecureError(
            f"the token would go to {address} in the clear, and whoever reads it may use it; name the authority of the "
            "bus by TB_AUTHORITY or `identity=Visitor.of_authority()`"
        )
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
    return Greeted(connection, greeting, reader, frames)


def _joiner(
    address: str, identity: Identity | Visitor | None, exchanging: Exchanging | None
) -> Callable[[Registration, RemoteSpeaker], Member]:
    """Return what makes a tool a member of the exchange of values."""
    chosen = exchanging or Exchanging()
    listen = _where_to_listen(address, chosen.data_listen)
    own = identity if isinstance(identity, Identity) else None
    # Between tools of several machines both show a certificate; who has none gets its values by way of the bus.
    secluded = isinstance(identity, Visitor) or (
        own is None and not chosen.insecure and not is_loopback(parse_address(listen or address)[0])
    )

    def join(registration: Registration, speaker: RemoteSpeaker) -> Member:
        return Member(
            registration,
            speaker.relay,
            exchange=chosen.exchange,
            listen="" if secluded else listen,
            identity=own,
            threshold=chosen.threshold,
            secluded=secluded,
            insecure=chosen.insecure,
        )

    return join


def _where_to_listen(bus: str, wanted: str | None) -> str:
    """Return where to listen for others who fetch values: where they come by if they can reach the bus.

    A program listens no wider than it has to, so never at every interface.
    """
    if wanted == "":
        return ""
    host, port = parse_address(wanted) if wanted is not None else ("", 0)
    if host and host not in EVERY_INTERFACE:
        return format_address(host, port)
    bus_host, bus_port = parse_address(bus)
    if is_loopback(bus_host):
        return format_address("127.0.0.1", port)
    try:
        family, kind, _, _, where = socket.getaddrinfo(bus_host, bus_port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(where)  # says nothing, but chooses an interface
            return format_address(probe.getsockname()[0], port)
    except OSError:
        return ""


def _send(connection: Connection, pieces: list[Buffer], deadline: float | None) -> None:
    """Send all bytes of a frame.

    Raises:
        OSError: The connection is broken.
        UnreachableError: The other side does not take it before the deadline.
    """
    sent = connection.send(pieces)
    size = sum(map(size_of, pieces))
    if sent == size:
        return
    rest = memoryview(b"".join(pieces))[sent:]
    while rest:
        connection.writable(WRITABLE_MILLISECONDS)
        rest = rest[connection.send([rest]) :]
        if rest and deadline is not None and time.monotonic() > deadline:
            raise UnreachableError(f"{connection.peer} does not listen")
