"""The words about values that are moved by reference: REG PUT GET ACK FIN END of the thesis, and four more. Pure.

    kind           from        values
    REG      48    bus         [tool, epoch, lease milliseconds, threshold, key, version]
    PUT      49    who has it  [transaction, variable, source, [endpoints], [path], kind, name, count, size, token,
                               route, epoch]
    GET      50    who asks    [request, variable, source, [path], [endpoints], token, route, asker, epoch, nonce]
    ACK      51    tool        [transaction]
    FIN      52    bus         [variable, ...]
    END      53    either      []
    CHUNK    54    who has it  bytes
    MORE     55    who asks    [request, chunks]
    NAK      56    who has it  [request, reason]
    SEEN     57    either      [count]

The fields of the thesis' tables are all there. Its address of four bytes and its port are a list of endpoints, which
can say IPv6, host names and sockets of one machine as well; its signature is kind, name, count and size, and the path
of the part of the value that is meant. What is added: an epoch, so that a number of an earlier bus is not taken for one
of this, the token that the owner wants to see (`tokens.py`), and the route by which who asks wants to have the value,
which the answer repeats. A transaction, or the request of a GET, MORE and NAK, stands in the head of the message too:
CHUNKs have no other place for it.

    bus               owner                      who asks
     REG --------------->                           |         before WELCOME, to tools that know "references"
      <------------- PUT, VALUE(referring)          |         the value stays with its owner
     PUT, DO(referring) --------------------------->
                       <------------------------ GET          directly, with the token of the bus's PUT
                      PUT, CHUNK ... CHUNK(last) --->
      <------------------------------------------ ACK
     FIN --------------->                           |         nobody refers to it any more

A decoder trusts nothing: every number has a range, every list and text a greatest length, and what is not as told here
is a `MalformedFrameError`. Values behind those told here are of a later version, and are ignored.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from echoic.errors import MalformedFrameError
from echoic.terms import Reference, ReferenceKind, TermList, Value
from echoic.terms.term import utf_8_size
from echoic.toolbus.protocol import LAST, WITH_VALUE, Message, MessageKind
from echoic.toolbus.references.routes import Route
from echoic.wire.frames import Buffer, size_of

__all__ = [
    "CHUNK_BYTES_MAX",
    "FINISHED_MAX",
    "PATH_MAX",
    "PUTS_MAX",
    "Chunk",
    "Get",
    "More",
    "Put",
    "Refusal",
    "Registration",
    "decode_acknowledgement",
    "decode_chunk",
    "decode_finished",
    "decode_get",
    "decode_more",
    "decode_put",
    "decode_refusal",
    "decode_registration",
    "decode_seen",
    "encode_acknowledgement",
    "encode_chunk",
    "encode_end",
    "encode_finished",
    "encode_get",
    "encode_more",
    "encode_put",
    "encode_refusal",
    "encode_registration",
    "encode_seen",
]

VERSION: Final = 1
ENDPOINTS_MAX: Final = 8
ENDPOINT_CHARACTERS_MAX: Final = 256
PATH_MAX: Final = 64
NAME_BYTES_MAX: Final = 64 * 1024
TOKEN_BYTES_MAX: Final = 64
REASON_BYTES_MAX: Final = 1024
FINISHED_MAX: Final = 4096
CHUNK_BYTES_MAX: Final = 4 * 1024 * 1024
PUTS_MAX: Final = 16_384
"""So many may come before the message that refers to them."""
CHUNKS_MAX: Final = 1024
"""So much credit can be given at once."""
SHORT_MAX: Final = 2**32 - 1
LONG_MAX: Final = 2**63 - 1
COUNT_MAX: Final = 2**32 - 1
INFINITE: Final = -1
MEASURED: Final = -2


@dataclass(frozen=True, slots=True)
class Registration:
    """REG: what a tool is to its bus."""

    tool: int
    epoch: int
    """Of the run of the bus: with it, the number of a tool is unique."""
    lease_ms: int
    """How long a tool that was cut off may stay away; 0 where it may not."""
    threshold_bytes: float | None
    """From this size on values go by reference; None where that is measured, infinity where none do."""
    key: bytes
    """With which tokens for values of this tool are made."""
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Put:
    """PUT: where a value is, or, with chunks behind it, that it comes."""

    transaction: int
    variable: int
    source: int
    """The tool whose variable it is."""
    endpoints: tuple[str, ...]
    path: tuple[int, ...]
    kind: ReferenceKind
    name: str
    count: int
    size: int
    """Bytes of the content. Exact for strings and blobs and where the value follows, else about what it takes."""
    token: bytes = b""
    """With which it can be had; in an answer to a relayed GET its nonce, in what a tool tells the bus nothing."""
    route: Route = Route.DIRECT
    """Of an answer: that of the GET."""
    epoch: int = 0
    with_value: bool = False

    @classmethod
    def of(
        cls, reference: Reference, transaction: int = 0, endpoints: tuple[str, ...] = (), token: bytes = b""
    ) -> "Put":
        """Return what tells a reference, and where its value can be had."""
        return cls(
            transaction,
            reference.variable,
            reference.owner,
            endpoints,
            reference.path,
            reference.kind,
            reference.name,
            reference.count,
            reference.size,
            token,
            epoch=reference.epoch,
        )

    @property
    def reference(self) -> Reference:
        """The reference that this tells."""
        return Reference(
            self.source,
            self.variable,
            self.path,
            self.kind,
            self.size,
            name=self.name,
            count=self.count,
            epoch=self.epoch,
        )


@dataclass(frozen=True, slots=True)
class Get:
    """GET: a value is wanted."""

    request: int
    """What its chunks will have as transaction; chosen by who asks."""
    variable: int
    source: int
    path: tuple[int, ...]
    endpoints: tuple[str, ...]
    """Where who asks can be reached, for an owner that cannot."""
    token: bytes
    route: Route
    asker: int
    epoch: int = 0
    nonce: bytes = b""
    """What an owner that comes by itself shows as the token of its PUT."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """CHUNK: the next bytes of a value."""

    transaction: int
    body: Buffer
    last: bool


@dataclass(frozen=True, slots=True)
class More:
    """MORE: so many chunks more may be sent."""

    request: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """NAK: a value cannot be had."""

    request: int
    reason: str


def encode_registration(registration: Registration) -> Message:
    """Return a registration as the message that comes before a WELCOME."""
    threshold = registration.threshold_bytes
    if threshold is None:
        threshold = MEASURED
    elif math.isinf(threshold):
        threshold = INFINITE
    values = (
        registration.tool,
        registration.epoch,
        registration.lease_ms,
        int(threshold),
        registration.key,
        registration.version,
    )
    return Message(MessageKind.REG, 0, values)


def decode_registration(message: Message) -> Registration:
    """Return what a bus says that this tool is.

    Raises:
        MalformedFrameError: It does not say so.
    """
    tool, epoch, lease, threshold, key, version = _fields(message, MessageKind.REG, 6)
    bytes_min = _number(threshold, "threshold", MEASURED, LONG_MAX)
    return Registration(
        _number(tool, "tool"),
        _number(epoch, "epoch"),
        _number(lease, "lease"),
        None if bytes_min == MEASURED else math.inf if bytes_min == INFINITE else bytes_min,
        _blob(key, "key", TOKEN_BYTES_MAX),
        _number(version, "version", 1),
    )


def encode_put(put: Put) -> Message:
    """Return a PUT as a message."""
    values = (
        put.transaction,
        put.variable,
        put.source,
        TermList(*put.endpoints),
        TermList(*put.path),
        put.kind.value,
        put.name,
        put.count,
        put.size,
        put.token,
        int(put.route),
        put.epoch,
    )
    return Message(MessageKind.PUT, put.transaction, values, WITH_VALUE if put.with_value else 0)


def decode_put(message: Message) -> Put:
    """Return where a value is said to be.

    Raises:
        MalformedFrameError: It is not said.
    """
    fields = _fields(message, MessageKind.PUT, 12)
    transaction, variable, source, endpoints, path, kind, name, count, size, token, route, epoch = fields
    return Put(
        _transaction(message, transaction),
        _number(variable, "variable"),
        _number(source, "source"),
        _endpoints(endpoints),
        _path(path),
        _kind(kind),
        _text(name, "name", NAME_BYTES_MAX),
        _number(count, "count", 0, COUNT_MAX),
        _number(size, "size"),
        _blob(token, "token", TOKEN_BYTES_MAX),
        _route(route),
        _number(epoch, "epoch"),
        bool(message.flags & WITH_VALUE),
    )


def encode_get(get: Get) -> Message:
    """Return a GET as a message."""
    values = (
        get.request,
        get.variable,
        get.source,
        TermList(*get.path),
        TermList(*get.endpoints),
        get.token,
        int(get.route),
        get.asker,
        get.epoch,
        get.nonce,
    )
    return Message(MessageKind.GET, get.request, values)


def decode_get(message: Message) -> Get:
    """Return what is asked for.

    Raises:
        MalformedFrameError: Nothing is.
    """
    fields = _fields(message, MessageKind.GET, 10)
    request, variable, source, path, endpoints, token, route, asker, epoch, nonce = fields
    return Get(
        _transaction(message, request),
        _number(variable, "variable"),
        _number(source, "source"),
        _path(path),
        _endpoints(endpoints),
        _blob(token, "token", TOKEN_BYTES_MAX),
        _route(route),
        _number(asker, "asker"),
        _number(epoch, "epoch"),
        _blob(nonce, "nonce", TOKEN_BYTES_MAX),
    )


def encode_acknowledgement(transaction: int) -> Message:
    """Return that everything of a transaction is there, as an ACK."""
    return Message(MessageKind.ACK, transaction, (transaction,))


def decode_acknowledgement(message: Message) -> int:
    """Return the transaction that an ACK is for.

    Raises:
        MalformedFrameError: It is for none.
    """
    (transaction,) = _fields(message, MessageKind.ACK, 1)
    return _transaction(message, transaction)


def encode_finished(variables: Iterable[int]) -> list[Message]:
    """Return that nobody refers to these variables any more, as one FIN or several."""
    every = tuple(variables)
    return [
        Message(MessageKind.FIN, 0, every[start : start + FINISHED_MAX]) for start in range(0, len(every), FINISHED_MAX)
    ]


def decode_finished(message: Message) -> tuple[int, ...]:
    """Return the variables that a FIN is about.

    Raises:
        MalformedFrameError: They are too many, or one is none.
    """
    variables = _fields(message, MessageKind.FIN, 0)
    if len(variables) > FINISHED_MAX:
        raise MalformedFrameError(f"a FIN has {len(variables)} variables, limit is {FINISHED_MAX}")
    return tuple(_number(variable, "variable") for variable in variables)


def encode_end() -> Message:
    """Return that nothing more will be said."""
    return Message(MessageKind.END)


def encode_chunk(chunk: Chunk) -> Message:
    """Return the next bytes of a value as a message; they are not copied."""
    return Message(MessageKind.CHUNK, chunk.transaction, (), LAST if chunk.last else 0, chunk.body)


def decode_chunk(message: Message) -> Chunk:
    """Return the next bytes of a value; they are a view of what was received.

    Raises:
        MalformedFrameError: They are too many, or none though more follow.
    """
    if message.kind is not MessageKind.CHUNK:
        raise MalformedFrameError(f"expected CHUNK, got {message.kind.name}")
    size, last = size_of(message.body), bool(message.flags & LAST)
    if size > CHUNK_BYTES_MAX or not (size or last):
        raise MalformedFrameError(f"a CHUNK has {size} bytes, limits are 1, or 0 for the last, and {CHUNK_BYTES_MAX}")
    return Chunk(message.transaction, message.body, last)


def encode_more(more: More) -> Message:
    """Return credit for chunks as a message."""
    return Message(MessageKind.MORE, more.request, (more.request, more.chunks))


def decode_more(message: Message) -> More:
    """Return how many chunks more are wanted.

    Raises:
        MalformedFrameError: It is not said, or they are too many.
    """
    request, chunks = _fields(message, MessageKind.MORE, 2)
    return More(_transaction(message, request), _number(chunks, "number of chunks", 1, CHUNKS_MAX))


def encode_refusal(refusal: Refusal) -> Message:
    """Return that a value cannot be had as a NAK."""
    reason = refusal.reason.encode(errors="replace")[:REASON_BYTES_MAX].decode(errors="ignore")
    return Message(MessageKind.NAK, refusal.request, (refusal.request, reason))


def decode_refusal(message: Message) -> Refusal:
    """Return why a value cannot be had.

    Raises:
        MalformedFrameError: It is not said.
    """
    request, reason = _fields(message, MessageKind.NAK, 2)
    return Refusal(_transaction(message, request), _text(reason, "reason", REASON_BYTES_MAX))


def encode_seen(count: int) -> Message:
    """Return how many messages of the other side have arrived as a message."""
    return Message(MessageKind.SEEN, 0, (count,))


def decode_seen(message: Message) -> int:
    """Return how many messages the other side has received.

    Raises:
        MalformedFrameError: It is not said.
    """
    (count,) = _fields(message, MessageKind.SEEN, 1)
    return _number(count, "count")


def _fields(message: Message, kind: MessageKind, count: int) -> tuple[Value, ...]:
    """Return the first values of a message that must be of a kind, all of them for a count of 0."""
    if message.kind is not kind:
        raise MalformedFrameError(f"expected {kind.name}, got {message.kind.name}")
    if len(message.values) < count:
        raise MalformedFrameError(f"a {kind.name} has {len(message.values)} values, expected {count}")
    return message.values[:count] if count else message.values


def _number(value: Value, what: str, low: int = 0, high: int = LONG_MAX) -> int:
    if type(value) is not int:  # a truth value is none
        raise MalformedFrameError(f"the {what} is a `{type(value).__name__}`, expected an integer")
    if not low <= value <= high:
        raise MalformedFrameError(f"the {what} has {value.bit_length()} bits, limits are {low} and {high}")
    return value


def _transaction(message: Message, value: Value) -> int:
    number = _number(value, "transaction", 0, SHORT_MAX)
    if number != message.transaction:
        raise MalformedFrameError(
            f"a {message.kind.name} has the transaction {number}, the head of its message says {message.transaction}"
        )
    return number


def _text(value: Value, what: str, bytes_max: int) -> str:
    if not isinstance(value, str):
        raise MalformedFrameError(f"the {what} is a `{type(value).__name__}`, expected a string")
    if len(value) > bytes_max or utf_8_size(value) > bytes_max:
        raise MalformedFrameError(f"the {what} has {len(value)} characters, limit is {bytes_max} bytes")
    return value


def _blob(value: Value, what: str, bytes_max: int) -> bytes:
    if not isinstance(value, bytes):
        raise MalformedFrameError(f"the {what} is a `{type(value).__name__}`, expected a blob")
    if len(value) > bytes_max:
        raise MalformedFrameError(f"the {what} has {len(value)} bytes, limit is {bytes_max}")
    return value


def _list(value: Value, what: str, length_max: int) -> tuple[Value, ...]:
    if not isinstance(value, TermList):
        raise MalformedFrameError(f"the {what} is a `{type(value).__name__}`, expected a list")
    if len(value) > length_max:
        raise MalformedFrameError(f"the {what} has {len(value)} elements, limit is {length_max}")
    return value.elements


def _endpoints(value: Value) -> tuple[str, ...]:
    elements = _list(value, "list of endpoints", ENDPOINTS_MAX)
    return tuple(_text(element, "endpoint", ENDPOINT_CHARACTERS_MAX) for element in elements)


def _path(value: Value) -> tuple[int, ...]:
    return tuple(_number(index, "step of the path", 0, COUNT_MAX) for index in _list(value, "path", PATH_MAX))


def _kind(value: Value) -> ReferenceKind:
    try:
        return ReferenceKind(_text(value, "kind", 16))
    except ValueError as error:
        raise MalformedFrameError(f"`{value}` is not a kind of value that goes by reference") from error


def _route(value: Value) -> Route:
    number = _number(value, "route")
    try:
        return Route(number)
    except ValueError as error:
        raise MalformedFrameError(f"{number} is not a route, expected 0 to {max(Route):d}") from error
