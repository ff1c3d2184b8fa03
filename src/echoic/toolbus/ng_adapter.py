"""An entrance for tools that speak the protocol of the Java ToolBus: a listener of its own, beside that of the bus.

    with Bus.from_script("calc.tb") as bus, NgEntrance(bus) as entrance:
        bus.run()

    tool calc is { command = "java CalcTool" kind = "ng" }        is started with the port of the entrance

This protocol has no tokens. A tool that says it was started is believed if one of that name and number was, for this
entrance, and is not there yet; so keep the entrance on loopback. One that comes by itself has no name of its own: it
may be what a file of rights gives to `anonymous`, for as long as it does.
"""

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from echoic.errors import EchoicError, EncodeError, MalformedTermError, RefusedError, UnreachableError
from echoic.links import Connection, check_exposure
from echoic.scripts.running.messages import FromTool, ToTool
from echoic.terms import Term, Value
from echoic.toolbus.doorkeeper import Doorkeeper
from echoic.toolbus.guest import NOBODY, OURS, Guest
from echoic.toolbus.limits import BusLimits
from echoic.toolbus.line import Audience
from echoic.toolbus.ng_protocol import (
    NgOperation,
    NgReader,
    encode_ng_operation,
    encode_ng_term,
    ng_operation_of,
    said_by_ng,
)
from echoic.toolbus.outgoing import Outgoing
from echoic.toolbus.protocol import HELLO_BYTES_MAX, NO_INSTANCE

if TYPE_CHECKING:
    from echoic.toolbus.bus import Bus

__all__ = ["NG_KIND", "NgEntrance"]

NG_KIND: Final = "ng"


class NgLine:
    """A conversation with a tool of the Java ToolBus."""

    def __init__(self, connection: Connection, name: str, guest: Guest, audience: Audience, limits: BusLimits) -> None:
        self.name: Final = name
        self.guest: Final = guest
        self._connection = connection
        self._audience = audience
        self._limits = limits
        self._closed = False
        self._close_by = 0.0
        self._cancelled = 0
        self._outgoing = Outgoing(connection, f"echoic-bus-write-{name}", limits.queue_bytes_max, self._lose)

    def welcome(self, number: int) -> None:
        """Tell the tool its number."""
        self._say(lambda: encode_ng_term(Term(self.name, number)))

    def tell(self, kind: ToTool, transaction: int, values: tuple[Value, ...]) -> None:  # noqa: ARG002 - there are none
        """Say something to the tool."""
        if kind is ToTool.CANCEL:
            self._cancelled += 1  # it will answer nevertheless
            return
        told = ng_operation_of(kind, values)
        if told is None:
            self._audience.trouble(self, f"tools of the Java ToolBus cannot be told `{kind}`")
        else:
            self._say(lambda: encode_ng_operation(*told))

    def close(self) -> None:
        """Say that nothing more comes when everything is written; `serve` ends when the tool has hung up too."""
        if not self._closed:
            self._closed = True
            self._close_by = time.monotonic() + self._limits.grace_seconds
            self._outgoing.finish(self._limits.grace_seconds)

    def dismiss(self, reason: str, *, fault: bool) -> None:  # noqa: ARG002 - here nobody comes back
        """Hang up on a tool that may not stay; in any thread."""
        self._lose(reason)

    def serve(self, reader: NgReader) -> None:
        """Hear what the tool says, in the thread of the caller, until it is gone."""
        pending: list[NgOperation] = []
        try:
            while True:
                for operation, value in reader.take_frames(pending):
                    if operation is NgOperation.END:
                        self._gone("it ended the conversation")
                        return
                    self._hear(operation, value)
                data = self._connection.receive()
                if data == b"" or (self._closed and time.monotonic() > self._close_by):
                    break
                reader.receive(data or b"")
            self._gone("it closed its connection")
        except (EchoicError, OSError) as error:
            self._gone((error.strerror if isinstance(error, OSError) else None) or str(error))
        finally:
            self._connection.close()

    def _hear(self, operation: NgOperation, value: Value) -> None:
        said = said_by_ng(operation, value)
        if self._closed:
            return
        if said is None:
            if operation is not NgOperation.CONNECT:
                self._audience.trouble(self, f"it said {operation.name}, which tools do not say")
            return
        kind, values = said
        if kind is FromTool.VALUE and self._cancelled:
            self._cancelled -= 1
            return
        self._audience.heard(self, kind, 0, values)

    def _say(self, encode: Callable[[], bytes]) -> None:
        try:
            data = encode()
        except EncodeError as error:
            self._lose(f"it cannot be told what the script says: {error}")
            return
        if not self._outgoing.put([data]):
            self._lose("it does not take what it is told")

    def _lose(self, reason: str) -> None:
        self._gone(reason)
        self._connection.close()

    def _gone(self, reason: str) -> None:
        if not self._closed:
            self._closed = True
            self._audience.gone(self, reason)


class NgEntrance:
    """Where tools of the Java ToolBus come in."""

    def __init__(self, bus: "Bus", listen: str = "127.0.0.1:0", *, insecure: bool = False) -> None:
        """Listen; the bus must not have started if it is to start such tools itself.

        Raises:
            AddressError: `listen` is not an address.
            InsecureError: Other machines could reach it, and nobody said that this is meant: these tools know no TLS.
            UnreachableError: It cannot be listened at.
        """
        check_exposure(listen, secure=False, insecure=insecure, remedy="a bus with identity=... to tools of echoic")
        self._bus = bus
        self._limits = bus.options.limits
        self._doorkeeper = Doorkeeper(listen, None, self._limits, self._welcome, "echoic-bus-ng")
        self.address: Final = self._doorkeeper.address
        bus.entrances[NG_KIND] = self.address
        self._doorkeeper.start()

    def close(self) -> None:
        """Let nobody in any more."""
        self._doorkeeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _welcome(self, connection: Connection, known: Callable[[], None]) -> None:
        """Greet a stranger, and go on with the tool that it is."""
        deadline = time.monotonic() + self._limits.hello_seconds
        reader = NgReader(HELLO_BYTES_MAX)
        match _await(connection, reader, reader.take_term, deadline):
            case Term(name=name, args=(int(instance), *_)):
                pass
            case _:
                raise MalformedTermError("a tool of the Java ToolBus begins with `name(id)`")
        instance = instance if instance >= 0 else NO_INSTANCE
        interface = self._bus.admission.admit_without_token(name, instance, connection.peer, self.address)
        try:
            _say(connection, encode_ng_term(interface), deadline)
            if not _await(connection, reader, reader.take_byte, deadline):
                raise RefusedError(f"tool `{name}` refuses its interface")
        except (EchoicError, OSError) as error:
            if instance != NO_INSTANCE:
                self._bus.lost_start(instance, str(error))
            raise
        known()
        guest = NOBODY if instance == NO_INSTANCE else OURS
        line = NgLine(connection, name, guest, self._bus, self._limits)
        self._bus.arrived(line, instance if guest.started else None)
        reader.bytes_max = self._limits.message_bytes_max
        try:
            self._bus.visitors.follow(connection, line)
            line.serve(reader)
        finally:
            self._bus.visitors.forget(connection)


def _await(connection: Connection, reader: NgReader, take: Callable[[], Value | None], deadline: float) -> Value | None:
    """Return what a stranger says next.

    Raises:
        UnreachableError: It hung up, or takes too long.
    """
    while (taken := take()) is None:
        data = connection.receive()
        if data == b"" or time.monotonic() > deadline:
            raise UnreachableError(f"{connection.peer} hung up, or took too long, to say which tool it is")
        reader.receive(data or b"")
    return taken


def _say(connection: Connection, data: bytes, deadline: float) -> None:
    while data:
        data = data[connection.send([data]) :]
        if data:
            connection.writable(100)
            if time.monotonic() > deadline:
                raise UnreachableError(f"{connection.peer} does not listen")
