"""Which channels there are, asked over a bare socket: for `ls` and for completion, which must answer at once.

A hub is the better way to ask, but importing all that a hub can do takes longer than people wait for a list: NumPy,
LLVM, the recorder, groups. So this says the few words of the wire protocol that a list needs (6.1 and 6.3 in
docs/reference/wire-protocol.md), and no more, in the clear or by TLS (`cli.lines`). It imports nothing of the layers
below but where identities are kept, so what it knows of them is a twin: the tests compare its answers with those of a
hub.

    HELLO  ->                       which hub speaks: a number drawn for this one question
           <-  HELLO, ACKS
    ACKS   ->                       a session of its own
    Browse ->
           <-  Listing
    Farewell ->

All hubs are asked at the same time, by one thread. Who does not answer in time is left out.
"""

import contextlib
import os
import re
import selectors
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import google_crc32c
import msgspec

from echoic.cli.lines import Line, Proof, SecureLine
from echoic.errors import MalformedFrameError, UnreachableError

__all__ = ["Entry", "ask_names", "browse_all", "is_address", "parameters_of"]

ANSWER_SECONDS: Final = 3.0
HUBS_MAX: Final = 256
HEADER: Final = struct.Struct("<IBBHII")
CHECKED_HEADER_BYTES: Final = 12
COUNT: Final = struct.Struct("<QQ")
MAGIC: Final = b"ECHOIC\r\n"
HELLO, ACKS, CONTROL = 1, 5, 10
CHECKSUM: Final = 1
PAYLOAD_BYTES_MAX: Final = 16 * 1024 * 1024
ADDRESS: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\]:(\d{1,5})|([A-Za-z0-9._-]+):(\d{1,5})")
PORT_MAX: Final = 65_535


class Entry(msgspec.Struct, frozen=True):
    """A line of a listing, as `echoic.channels.ChannelEntry` has it."""

    name: str
    id: str
    type: str = ""
    sources: int = 0
    sinks: int = 0
    parent: str = ""

    @property
    def manager(self) -> str:
        """The address of the hub that manages it; "" if the id is none."""
        return self.id.removeprefix("echoic://").partition("/")[0] if self.id.startswith("echoic://") else ""


class Listing(msgspec.Struct, frozen=True, tag_field="type"):
    """The answer to `Browse`."""

    channels: list[Entry]


class Recipe(msgspec.Struct, frozen=True):
    """How a derived channel is made, as far as it matters here."""

    params: bytes = b""
    """The descriptor of its parameter block; empty if it has none."""


class Step(msgspec.Struct, frozen=True):
    """A derived channel."""

    recipe: Recipe


class Described(msgspec.Struct, frozen=True, tag_field="type"):
    """The answer to `Describe`."""

    lineage: list[Step] = []


Message: TypeAlias = dict[str, str]

_decoder: Final = msgspec.msgpack.Decoder(tuple[int, bool, Listing | Described])
_head_decoder: Final = msgspec.msgpack.Decoder(tuple[int, bool, msgspec.Raw])


def is_address(text: str) -> bool:
    """Tell whether a text is like HOST:PORT or [V6]:PORT."""
    found = ADDRESS.fullmatch(text)
    return found is not None and int(found[2] or found[4]) <= PORT_MAX


def ask_names(address: str, seconds: float = ANSWER_SECONDS, proof: Proof | None = None) -> list[Entry]:
    """Return what the name server at an address knows, and shows to who asks.

    Raises:
        UnreachableError: It does not answer; the message says what to do.
    """
    refusing: set[str] = set()
    answer = _ask_all([address], {"type": "Browse"}, seconds, proof, refusing).get(address)
    if isinstance(answer, Listing):
        return answer.channels
    if refusing:
        raise UnreachableError(f"the name server at {address} hangs up; it may want TLS: name an --identity")
    raise UnreachableError(f"nobody serves names at {address}; start `echoic up`, or pass --names HOST:PORT")


def browse_all(
    addresses: Iterable[str], seconds: float = ANSWER_SECONDS, proof: Proof | None = None
) -> Mapping[str, list[Entry]]:
    """Return which channels hubs manage, by their addresses; those that do not answer in time are left out."""
    answers = _ask_all(addresses, {"type": "Browse"}, seconds, proof)
    return {address: answer.channels for address, answer in answers.items() if isinstance(answer, Listing)}


def parameters_of(channel: Entry, seconds: float = ANSWER_SECONDS, proof: Proof | None = None) -> list[str]:
    """Return the names of a derived channel's parameters; nothing of another, or if its manager does not answer."""
    asked = {"type": "Describe", "name": channel.id.removeprefix("echoic://").partition("/")[2]}
    answer = _ask_all([channel.manager], asked, seconds, proof).get(channel.manager)
    if not isinstance(answer, Described) or not answer.lineage:
        return []
    try:
        _, _, _, records = msgspec.msgpack.decode(answer.lineage[-1].recipe.params or b"\x94\0\0\0\x90")
        return [str(field[0]) for field in records[-1][3]] if records else []
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError, RecursionError):
        return []  # this is no descriptor


def _ask_all(
    addresses: Iterable[str],
    message: Message,
    seconds: float,
    proof: Proof | None,
    refusing: set[str] | None = None,
) -> dict[str, Listing | Described]:
    """Ask hubs the same at the same time; return the answers that come in time, by address.

    Args:
        addresses: Of the hubs.
        message: What they are asked.
        seconds: How long they have.
        proof: Who asks; None in the clear.
        refusing: Where it is noted who is there and hangs up.
    """
    deadline = time.monotonic() + seconds
    answers: dict[str, Listing | Described] = {}
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as open_until_the_end:
        waiting = 0
        for address in list(addresses)[:HUBS_MAX]:
            question = _dialled(address, message, proof)
            if question is not None:
                open_until_the_end.callback(question.line.close)
                selector.register(question.line.connection, selectors.EVENT_READ | selectors.EVENT_WRITE, question)
                waiting += 1
        while waiting and (left := deadline - time.monotonic()) > 0:
            for key, events in selector.select(left):
                question = key.data
                if question.go_on(events):
                    if events & selectors.EVENT_WRITE:
                        selector.modify(key.fd, selectors.EVENT_READ, question)
                    continue
                selector.unregister(key.fd)
                waiting -= 1
                if question.answer is not None:
                    answers[question.address] = question.answer
                elif question.hung_up and refusing is not None:
                    refusing.add(question.address)
    return answers


class Question:
    """What is asked of one hub, and how far that is."""

    def __init__(self, address: str, line: Line, message: Message) -> None:
        self.address: Final = address
        self.line: Final = line
        self.answer: Listing | Described | None = None
        self.hung_up = False
        """Whether somebody is there, who hung up instead of saying anything that we understand."""
        self._message = message
        self._received = bytearray()
        self._begun = self._greeted = False

    def go_on(self, events: int) -> bool:
        """Do what the connection allows; tell whether there is more to come."""
        try:
            if not self._begun and events & selectors.EVENT_WRITE:
                self._begun = True
                self.line.begin()
            more = self._receive() if events & selectors.EVENT_READ else True
            if self.line.open and not self._greeted:
                self._greet()
        except ConnectionError:
            self.hung_up = self._greeted
            return False
        except (OSError, MalformedFrameError, msgspec.MsgspecError, UnicodeError, RecursionError):
            return False  # nobody is there, or nobody who speaks our language
        return more

    def _greet(self) -> None:
        self._greeted = True
        hello = {"version": 1, "name": "echoic ls", "hub": os.urandom(8).hex(), "address": self.line.home}
        self.line.send(_frame(HELLO, MAGIC + msgspec.msgpack.encode(hello)))

    def _receive(self) -> bool:
        data = self.line.receive()
        self._received += data or b""
        for kind, payload in _frames(self._received):
            if kind == ACKS and len(payload) == COUNT.size and self.answer is None:
                self._ask()
            elif kind == CONTROL and self._is_answer(payload):
                self.line.send(_framed(0, {"type": "Farewell"}))
                return False
        self.hung_up = data == b"" and self._greeted
        return data != b""

    def _ask(self) -> None:
        self.line.send(_frame(ACKS, COUNT.pack(int.from_bytes(os.urandom(8)) | 1, 0)) + _framed(1, self._message))

    def _is_answer(self, payload: bytes) -> bool:
        number, reply, _ = _head_decoder.decode(payload)
        if not reply or number != 1:
            return False
        self.answer = _decoder.decode(payload)[2]
        return True


def _dialled(address: str, message: Message, proof: Proof | None) -> Question | None:
    """Begin to connect; None where that cannot be."""
    found = ADDRESS.fullmatch(address)
    if found is None or not is_address(address):
        return None
    host = found[1] or found[3]
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, int(found[2] or found[4]), type=socket.SOCK_STREAM)[
            0
        ]
        connection = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError):  # nobody has such a name, or nobody could have it
        return None
    connection.setblocking(False)
    connection.connect_ex(place)
    line = Line(connection) if proof is None else SecureLine(connection, host, proof)
    return Question(address, line, message)


def _frame(kind: int, payload: bytes) -> bytes:
    return HEADER.pack(len(payload), kind, 0, 0, 0, 0) + payload + bytes(-len(payload) % 8)


def _framed(number: int, message: Message) -> bytes:
    return _frame(CONTROL, msgspec.msgpack.encode([number, False, message]))


def _frames(received: bytearray) -> Iterator[tuple[int, bytes]]:
    """Take the complete frames out of what was received.

    Raises:
        MalformedFrameError: This is no stream of frames.
    """
    while len(received) >= HEADER.size:
        length, kind, flags, reserved, _, checksum = HEADER.unpack_from(received)
        if not kind or reserved or flags & ~CHECKSUM or length > PAYLOAD_BYTES_MAX:
            raise MalformedFrameError(f"a frame of kind {kind} announces {length} bytes and the flags {flags}")
        end = HEADER.size + length
        if len(received) < end + -length % 8:
            return
        payload = bytes(received[HEADER.size : end])
        if flags and google_crc32c.value(bytes(received[:CHECKED_HEADER_BYTES]) + payload) != checksum:
            raise MalformedFrameError("the checksum of a frame is wrong")
        del received[: end + -length % 8]
        yield kind, payload
