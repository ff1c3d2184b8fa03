"""Tools, buses and networks made by hand: they say every word of the protocol when a test wants it, or not at all.

    Puppet      a tool at a real bus                PuppetBus   a bus for one real tool
    DataPort    where a puppet's values are fetched, with a list of all who asked
    Meter       a wire between a tool and its bus that counts bytes, and can be cut

Nothing here uses more of the product than its frames and words, over plain TCP sockets.
"""

import contextlib
import dataclasses
import queue
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Self

from echoic.errors import EchoicError
from echoic.links import parse_address
from echoic.terms import UNDEFINED, Placeholder, ReferenceKind, Term, Value, parse_text
from echoic.toolbus.protocol import (
    MESSAGE_BYTES_MAX,
    REFERENCES,
    REFERRING,
    Hello,
    Message,
    MessageKind,
    decode_hello,
    encode_hello,
    encode_interface,
    encode_message,
    message_of,
)
from echoic.toolbus.references.routes import Route
from echoic.toolbus.references.words import (
    Chunk,
    Get,
    Put,
    Registration,
    decode_finished,
    decode_get,
    decode_put,
    decode_registration,
    encode_acknowledgement,
    encode_chunk,
    encode_get,
    encode_put,
    encode_registration,
)
from echoic.wire import FrameReader

SECONDS: Final = 60.0
CHUNK: Final = 64 * 1024
WINDOWS: Final = {Route.DIRECT: 16, Route.RELAYED: 0, Route.STREAMED: 4}
"""So many chunks may be sent before the first MORE."""
REQUEST: Final = 0x8000_0000
"""The highest bit tells the number of a request from that of a delivery."""


def framed(*messages: Message) -> bytes:
    """Return messages as bytes."""
    return b"".join(bytes(piece) for message in messages for piece in encode_message(message))


def place(number: int) -> Placeholder:
    """Return what stands in a message for the value of a PUT before it."""
    return Placeholder(Term("reference", number))


class Conversation:
    """One end of a TCP connection with messages."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.all: list[Message] = []
        """All that was heard, in order."""
        self.closed = threading.Event()
        self._heard: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._reading = threading.Event()
        self._reading.set()
        threading.Thread(target=self._read, daemon=True).start()

    def say(self, *messages: Message) -> None:
        self.socket.sendall(framed(*messages))

    def hear(self, *kinds: MessageKind, seconds: float = SECONDS) -> Message:
        """Return the next message of some kinds; others before it are only to be found in `all`."""
        deadline = time.monotonic() + seconds
        while True:
            message = self._heard.get(timeout=max(0.001, deadline - time.monotonic()))
            if not kinds or message.kind in kinds:
                return message

    def silent(self, kind: MessageKind, seconds: float = 0.3) -> bool:
        """Whether no message of a kind comes for a while. A little while: it decides no test, it only gives faults a
        chance to be seen."""
        with contextlib.suppress(queue.Empty):
            self.hear(kind, seconds=seconds)
            return False
        return True

    def count(self, kind: MessageKind) -> int:
        return sum(message.kind is kind for message in list(self.all))

    @property
    def finished(self) -> list[int]:
        """The variables of all FINs."""
        every = [message for message in list(self.all) if message.kind is MessageKind.FIN]
        return [variable for message in every for variable in decode_finished(message)]

    def stop_reading(self) -> None:
        """Take nothing more from the network."""
        self._reading.clear()

    def go_on_reading(self) -> None:
        self._reading.set()

    def close(self) -> None:
        self._reading.set()
        hang_up(self.socket)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _read(self) -> None:
        reader = FrameReader(payload_bytes_max=MESSAGE_BYTES_MAX)
        with contextlib.suppress(OSError, EchoicError):
            while self._reading.wait() and (data := self.socket.recv(1 << 16)):
                for frame in reader.receive(data):
                    message = message_of(frame)
                    if message is not None:
                        self.all.append(message)
                        self._heard.put(message)
        self.closed.set()


class Puppet(Conversation):
    """A tool that says what a test wants it to say."""

    def __init__(self, address: str, name: str, *, features: tuple[str, ...] = (REFERENCES,), **hello: object) -> None:
        super().__init__(socket.create_connection(parse_address(address), timeout=SECONDS))
        self.socket.settimeout(None)
        self.say(encode_hello(Hello(name, features=features, offer=UNDEFINED, **hello)))  # type: ignore[arg-type]
        self.hear(MessageKind.INTERFACE)
        self.say(Message(MessageKind.ACCEPT))
        (self.number,) = self.hear(MessageKind.WELCOME).values
        self.port: DataPort | None = None
        self._variables = 0
        if REFERENCES in features:
            while not self.count(MessageKind.REG):
                self.hear()
            registered = next(message for message in self.all if message.kind is MessageKind.REG)
            self.registration: Registration = decode_registration(registered)

    def offer(self, *contents: bytes) -> "DataPort":
        """Open a port where each of these can be fetched, as variables 1, 2 and so on, whole and as path (0,)."""
        self.port = DataPort({number + 1: content for number, content in enumerate(contents)})
        return self.port

    def put(
        self,
        variable: int,
        size: int,
        *,
        kind: ReferenceKind = ReferenceKind.STR,
        path: tuple[int, ...] = (0, 0),
        endpoints: tuple[str, ...] | None = None,
    ) -> Message:
        """Return a PUT of a value that stays here."""
        if endpoints is None:
            endpoints = (self.port.address,) if self.port is not None else ()
        epoch = self.registration.epoch
        return encode_put(Put(0, variable, self.number, endpoints, path, kind, "", 0, size, b"", Route.DIRECT, epoch))

    def refer(self, kind: MessageKind, text: str, *puts: Message, transaction: int = 0) -> None:
        """Say a term, given as text in which `<reference(0)>` is the value of the first of the PUTs."""
        self.say(*puts, Message(kind, transaction, (parse_text(text),), REFERRING))

    def answer(self, text: str, *puts: Message) -> None:
        """Hear an eval, and answer it."""
        asked = self.hear(MessageKind.EVAL)
        if puts:
            self.refer(MessageKind.VALUE, text, *puts, transaction=asked.transaction)
        else:
            self.say(Message(MessageKind.VALUE, asked.transaction, (parse_text(text),)))

    def told(self, kind: MessageKind) -> tuple[Message, list[Put]]:
        """Return the next message of a kind, and the PUTs before it."""
        puts: list[Put] = []
        while True:
            message = self.hear(kind, MessageKind.PUT)
            if message.kind is kind:
                return message, puts
            puts.append(decode_put(message))

    def acknowledge(self, put: Put) -> None:
        """Say that a value has arrived."""
        self.say(encode_acknowledgement(put.transaction))


class PuppetBus(Conversation):
    """A bus for one tool."""

    def __init__(self, listening: socket.socket, registration: Registration, interface: Value = UNDEFINED) -> None:
        listening.settimeout(SECONDS)
        accepted, _ = listening.accept()
        accepted.settimeout(None)
        super().__init__(accepted)
        self.hello = decode_hello(self.hear(MessageKind.HELLO))
        self.say(encode_interface(self.hello, interface, MESSAGE_BYTES_MAX))
        self.hear(MessageKind.ACCEPT)
        self.say(encode_registration(registration), Message(MessageKind.WELCOME, 0, (registration.tool,)))
        self._transaction = 0

    def ask(self, text: str) -> tuple[Message, list[Put]]:
        """Ask an eval, and return its value with the PUTs before it."""
        self._transaction += 1
        self.say(Message(MessageKind.EVAL, self._transaction, (parse_text(text),)))
        puts: list[Put] = []
        while True:
            message = self.hear(MessageKind.VALUE, MessageKind.PUT)
            if message.kind is MessageKind.VALUE:
                return message, puts
            puts.append(decode_put(message))


def hang_up(connected: socket.socket) -> None:
    """Close a socket, and wake whoever waits for it."""
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
    connected.close()


def listen() -> tuple[socket.socket, str]:
    """Return a socket that listens, and its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    return listening, f"127.0.0.1:{listening.getsockname()[1]}"


class DataPort:
    """Where values can be fetched; knows all who came, and may answer nobody."""

    def __init__(self, contents: Mapping[int, bytes]) -> None:
        self.contents = dict(contents)
        self.gets: list[Get] = []
        self.asking: list[Conversation] = []
        self.serving = threading.Event()
        self.serving.set()
        self._listening, self.address = listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        hang_up(self._listening)
        for each in self.asking:
            each.close()
        self.serving.set()  # last, so that who was made to wait for a value gets none

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                accepted, _ = self._listening.accept()
                asking = Conversation(accepted)
                self.asking.append(asking)
                threading.Thread(target=self._serve, args=(asking,), daemon=True).start()

    def _serve(self, asking: Conversation) -> None:
        with contextlib.suppress(queue.Empty, OSError):
            while True:
                get = decode_get(asking.hear(MessageKind.GET, seconds=60))
                self.gets.append(get)
                self.serving.wait()
                send_value(asking, get, self.contents[get.variable])


def send_value(to: Conversation, get: Get, content: bytes, token: bytes = b"") -> None:
    """Answer a GET, not faster than is wanted."""
    kind = ReferenceKind.STR
    head = Put(get.request, get.variable, get.source, (), get.path, kind, "", 0, len(content), token, with_value=True)
    to.say(encode_put(head))
    credit = WINDOWS[get.route]
    for start in range(0, max(1, len(content)), CHUNK):
        last = start + CHUNK >= len(content)
        if not credit:
            credit += to.hear(MessageKind.MORE).values[1]  # type: ignore[operator]
        to.say(encode_chunk(Chunk(get.request, content[start : start + CHUNK], last)))
        credit -= 1


def get_of(put: Put, asker: int) -> Get:
    """Return the request for what a PUT has told."""
    return Get(REQUEST | 7, put.variable, put.source, put.path, (), put.token, Route.DIRECT, asker, put.epoch)


def fetch(put: Put, asker: int, *, token: bytes | None = None, path: tuple[int, ...] | None = None) -> bytes | str:
    """Fetch a value from where a PUT says that it is; a reason, or nothing, if it cannot be had."""
    with Conversation(socket.create_connection(parse_address(put.endpoints[0]), timeout=SECONDS)) as owner:
        get = get_of(put, asker)
        get = dataclasses.replace(
            get, token=get.token if token is None else token, path=get.path if path is None else path
        )
        owner.say(encode_get(get))
        content = b""
        while True:
            try:
                message = owner.hear(MessageKind.CHUNK, MessageKind.NAK, seconds=0.1)
            except queue.Empty:
                if owner.closed.is_set():
                    return "hung up"
                continue
            if message.kind is MessageKind.NAK:
                return str(message.values[1])
            content += bytes(message.body)
            if message.flags:
                return content


class Meter:
    """A wire to an address that counts what goes through it."""

    def __init__(self, address: str) -> None:
        self._target = parse_address(address)
        self._listening, self.address = listen()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.up = 0
        """Bytes from who connected."""
        self.down = 0
        self.connected = 0
        self._flowing = threading.Event()
        self._flowing.set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def bytes(self) -> int:
        return self.up + self.down

    def cut(self) -> None:
        """Break all connections; who connects again gets through."""
        for pair in self._pairs:
            for end in pair:
                hang_up(end)
        self._pairs.clear()

    def stop(self) -> None:
        """Let nothing through, as a network that is full."""
        self._flowing.clear()

    def go(self) -> None:
        self._flowing.set()

    def close(self) -> None:
        hang_up(self._listening)
        self.cut()
        self._flowing.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    near.close()
                    continue
                self.connected += 1
                self._pairs.append((near, far))
                for end in (near, far):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._carry, args=(near, far, "up"), daemon=True).start()
                threading.Thread(target=self._carry, args=(far, near, "down"), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, way: str) -> None:
        with contextlib.suppress(OSError):
            while self._flowing.wait() and (data := source.recv(1 << 18)):
                setattr(self, way, getattr(self, way) + len(data))
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)


def quiet(sockets: Iterable[socket.socket], seconds: float = 0.2) -> bool:
    """Whether nothing comes from any of some sockets for a while."""
    return not select.select(list(sockets), [], [], seconds)[0]


def eventually(condition: Callable[[], object]) -> bool:
    """Wait until something is so."""
    deadline = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)
    return bool(condition())
