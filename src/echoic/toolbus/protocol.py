"""The words between a tool and its bus. This module is pure: bytes in, messages out.

A connection carries the frames of `echoic.wire` with the kind TOOL, and each frame is one message:

    0      1       2           4             8
    | kind | flags | 0 (u16)   | transaction | one list of values in SAF, or nothing where there are none
      u8     u8                  u32           (CHUNK: bytes as they are)

    tool                                                           bus
      HELLO [echoic-tool(1,1), name, instance, token, [features], offer]  --->
                                             <---  INTERFACE [version, signature([..],[..],[..]), message bytes max]
      ACCEPT []       or       REFUSE [reason]                     --->
                                             <---  WELCOME [number]       or, at any time before, REFUSE [reason]
      VALUE VOID EVENT REQUEST ...                                 --->
                                             <---  EVAL DO ACK_EVENT RESPONSE TERMINATE ...

The transaction joins a question and its answer. Who asks chooses it, each side counts for itself from 1: a VALUE has
the number of its EVAL, a VOID that of its DO, an ACK_EVENT that of its EVENT, a RESPONSE that of its REQUEST. A tool
that keeps no numbers sends 0, which stands for the question that is open. The number is what tells the late answer to
an eval that was cancelled from the answer to the next one.

Frames of this house rather than a framing of our own, since everything about them is done: limits that are enforced
before memory is set aside, checksums where bytes leave the machine in the clear, hostile streams. They are simple
enough for a tool in C (`examples/toolbus`). SAF rather than the text of terms, since it needs no escaping, writes a
shared term once, and is read without a parser.

Values that are moved by reference have kinds of their own, 48 to 57, which `references/words.py` tells, and flags:

    REFERRING   1  a message of the conversation: `<reference(K)>` in its values stands for the K-th PUT since the last
                   message with this flag, counted from 0; a placeholder of that form that is meant as such is put
                   into another, `<reference(<reference(0)>)>`
    LAST        2  CHUNK: no more follow
    WITH_VALUE  4  PUT: its value follows, in CHUNKs of the same transaction

A kind has the flags that make sense for it, and a message with another is refused. A receiver skips the kinds that it
does not know; flags are sent to those only who said that they understand references. A tool whose connection broke
says with `resume(number,epoch,heard)` in its HELLO that it comes back, and how much it has heard (`sessions.py`).
`docs/reference/tool-protocol.md` is the same for who writes a tool.
"""

import enum
import struct
from dataclasses import dataclass
from typing import Final

from echoic.errors import MalformedFrameError, ProtocolVersionError
from echoic.scripts.running.messages import FromTool, ToTool
from echoic.terms import UNDEFINED, Term, TermList, Value
from echoic.terms.saf import decode_saf, encode_saf
from echoic.wire.frames import Buffer, Frame, FrameKind, encode_frame

__all__ = [
    "FROM_TOOL",
    "HELLO_BYTES_MAX",
    "LAST",
    "MESSAGE_BYTES_MAX",
    "NO_INSTANCE",
    "REFERENCES",
    "REFERRING",
    "TO_TOOL",
    "VERSION",
    "VERSION_MIN",
    "WITH_VALUE",
    "Hello",
    "Message",
    "MessageKind",
    "Resumption",
    "decode_hello",
    "decode_interface",
    "decode_message",
    "encode_hello",
    "encode_interface",
    "encode_message",
    "message_of",
    "text_of",
]

VERSION: Final = 1
VERSION_MIN: Final = 1
HEAD: Final = struct.Struct("<BBHI")
HELLO_BYTES_MAX: Final = 1024 * 1024
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
NAME_CHARACTERS_MAX: Final = 256
TOKEN_CHARACTERS_MAX: Final = 8192
REASON_CHARACTERS_MAX: Final = 16 * 1024
FEATURES_MAX: Final = 64
NO_INSTANCE: Final = -1
GREETING: Final = "echoic-tool"
RESUME: Final = "resume"
REFERENCES: Final = "references"
"""The feature of a tool that takes and gives large values by reference."""
REFERRING: Final = 1
LAST: Final = 2
WITH_VALUE: Final = 4


class MessageKind(enum.IntEnum):
    """What a message is; the numbers are those on the wire."""

    HELLO = 1
    INTERFACE = 2
    ACCEPT = 3
    REFUSE = 4
    WELCOME = 5

    VALUE = 16
    VOID = 17
    EVENT = 18
    REQUEST = 19
    DISCONNECT = 20
    STATISTICS = 21
    TROUBLE = 25
    """Something went wrong in the tool: [where, what]. For people; the bus warns and goes on."""

    EVAL = 32
    DO = 33
    CANCEL = 34
    ACK_EVENT = 35
    RESPONSE = 36
    TERMINATE = 37
    GET_STATISTICS = 38

    REG = 48
    PUT = 49
    GET = 50
    ACK = 51
    FIN = 52
    END = 53
    CHUNK = 54
    """A part of a value, as bytes."""
    MORE = 55
    NAK = 56
    SEEN = 57


KINDS: Final = {int(kind): kind for kind in MessageKind}
FLAGS: Final = {
    **{kind: REFERRING for kind in MessageKind if MessageKind.VALUE <= kind < MessageKind.REG},
    MessageKind.PUT: WITH_VALUE,
    MessageKind.CHUNK: LAST,
}
"""The flags that a message of a kind may have."""

FROM_TOOL: Final = {
    MessageKind.VALUE: FromTool.VALUE,
    MessageKind.VOID: FromTool.VOID,
    MessageKind.EVENT: FromTool.EVENT,
    MessageKind.REQUEST: FromTool.REQUEST,
    MessageKind.DISCONNECT: FromTool.DISCONNECT,
    MessageKind.STATISTICS: FromTool.STATISTICS,
}
"""What a machine is told, by the message that says it; TROUBLE is not for machines."""

TO_TOOL: Final = {
    ToTool.EVAL: MessageKind.EVAL,
    ToTool.DO: MessageKind.DO,
    ToTool.CANCEL: MessageKind.CANCEL,
    ToTool.ACK_EVENT: MessageKind.ACK_EVENT,
    ToTool.RESPONSE: MessageKind.RESPONSE,
    ToTool.TERMINATE: MessageKind.TERMINATE,
    ToTool.STATISTICS: MessageKind.GET_STATISTICS,
}
"""What a machine tells, as a message."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message, either way."""

    kind: MessageKind
    transaction: int = 0
    values: tuple[Value, ...] = ()
    flags: int = 0
    body: Buffer = b""
    """What a CHUNK has in the place of values; a view of what was received, so whoever keeps it copies it."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """That a tool comes back whose connection broke (`sessions.py`)."""

    number: int
    epoch: int
    heard: int
    """How many messages of the bus it has heard."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Who a tool is."""

    name: str
    instance: int = NO_INSTANCE
    """What its launcher gave it; none where it comes by itself."""
    token: str = ""
    """What proves that it is the instance that was started, or, without a certificate, which tools it may be."""
    features: tuple[str, ...] = ()
    offer: Value = UNDEFINED
    """Its interface, `signature([..],[..],[..])`; `undefined` where it does not say, and judges for itself."""
    version_min: int = VERSION_MIN
    version_max: int = VERSION
    resumption: Resumption | None = None


def encode_message(
    message: Message, *, checked: bool = False, message_bytes_max: int = MESSAGE_BYTES_MAX
) -> list[Buffer]:
    """Return the buffers of a message's frame, for one gathering write.

    Raises:
        EncodeError: The message is longer than its receiver accepts.
    """
    payload: list[Buffer] = [HEAD.pack(message.kind, message.flags, 0, message.transaction)]
    if message.kind is MessageKind.CHUNK:
        payload.append(message.body)
    elif message.values:
        payload.append(encode_saf(TermList(*message.values)))
    return encode_frame(FrameKind.TOOL, payload, checked=checked, payload_bytes_max=message_bytes_max)


def message_of(frame: Frame) -> Message | None:
    """Return the message of a frame, None for a kind of message that this version does not know.

    Raises:
        MalformedFrameError: It is not a frame of a tool, or no message is in it.
        MalformedTermError: Its values are not in SAF.
        LimitExceededError: Its values are more than is accepted.
    """
    if frame.kind is not FrameKind.TOOL:
        raise MalformedFrameError(f"expected a TOOL frame, got {frame.kind.name}")
    return decode_message(frame.payload)


def decode_message(payload: Buffer) -> Message | None:
    """Return the message of a payload, None for a kind that this version does not know.

    Raises:
        MalformedFrameError: No message is in it.
        MalformedTermError: Its values are not in SAF.
        LimitExceededError: Its values are more than is accepted.
    """
    if len(payload) < HEAD.size:
        raise MalformedFrameError(f"a message has {len(payload)} bytes, expected {HEAD.size} at least")
    number, flags, reserved, transaction = HEAD.unpack_from(payload)
    kind = KINDS.get(number)
    if kind is None:
        return None
    allowed = FLAGS.get(kind, 0)
    if flags & ~allowed or reserved:
        raise MalformedFrameError(
            f"a message of the kind {kind.name} has flags {flags} and {reserved} in its reserved bytes, expected "
            f"{allowed} at most and 0"
        )
    if kind is MessageKind.CHUNK:
        return Message(kind, transaction, (), flags, memoryview(payload)[HEAD.size :])
    if len(payload) == HEAD.size:
        if flags:
            raise MalformedFrameError(f"a message of the kind {kind.name} has flags {flags} and no values")
        return Message(kind, transaction)
    values = decode_saf(bytes(payload[HEAD.size :]))
    if not isinstance(values, TermList):
        raise MalformedFrameError(f"a message of the kind {kind.name} has a term where a list of values is expected")
    return Message(kind, transaction, values.elements, flags)


def encode_hello(hello: Hello) -> Message:
    """Return the first message of a tool."""
    versions = Term(GREETING, hello.version_min, hello.version_max)
    values = (versions, hello.name, hello.instance, hello.token, TermList(*hello.features), hello.offer)
    back = hello.resumption
    if back is not None:
        return Message(MessageKind.HELLO, 0, (*values, Term(RESUME, back.number, back.epoch, back.heard)))
    return Message(MessageKind.HELLO, 0, values)


def decode_hello(message: Message) -> Hello:
    """Return who a tool says it is.

    Raises:
        MalformedFrameError: It does not say so.
        ProtocolVersionError: It speaks no version that this program does.
    """
    if message.kind is not MessageKind.HELLO:
        raise MalformedFrameError(f"a tool must begin with HELLO, it began with {message.kind.name}")
    match message.values:
        case (
            Term(name="echoic-tool", args=(int(low), int(high), *_)),
            str(name),
            int(instance),
            str(token),
            TermList() as features,
            offer,
            *more,  # that it comes back, or what is of a later version
        ):
            pass
        case _:
            raise MalformedFrameError("a HELLO is [echoic-tool(1,1), name, instance, token, [features], offer]")
    if low > VERSION or high < VERSION_MIN:
        raise ProtocolVersionError(
            f"the tool speaks versions {low} to {high} of the protocol, this bus {VERSION_MIN} to {VERSION}"
        )
    names = tuple(feature for feature in features if isinstance(feature, str))
    sizes = (len(name) <= NAME_CHARACTERS_MAX, len(token) <= TOKEN_CHARACTERS_MAX, len(features) <= FEATURES_MAX)
    if not name or not all(sizes):
        raise MalformedFrameError(
            f"a HELLO has a name of {len(name)} characters, a token of {len(token)} and {len(features)} features, "
            f"limits are {NAME_CHARACTERS_MAX}, {TOKEN_CHARACTERS_MAX} and {FEATURES_MAX}"
        )
    return Hello(name, instance, token, names, offer, low, high, _resumption(more))


def _resumption(more: list[Value]) -> Resumption | None:
    match more:
        case [Term(name="resume", args=(int(number), int(epoch), int(heard))), *_]:
            return Resumption(number, epoch, heard)
        case _:
            return None


def encode_interface(hello: Hello, interface: Value, message_bytes_max: int) -> Message:
    """Return the answer to a hello: the version to speak, and what the script expects of the tool."""
    return Message(MessageKind.INTERFACE, 0, (min(VERSION, hello.version_max), interface, message_bytes_max))


def decode_interface(message: Message) -> tuple[Value, int]:
    """Return what a bus answers to a hello: the interface, and how long a message to it may be.

    Raises:
        MalformedFrameError: It is not such an answer.
        ProtocolVersionError: It chose a version that this tool does not speak.
    """
    match message.values:
        case (int(version), interface, int(message_bytes_max), *_) if message.kind is MessageKind.INTERFACE:
            if not VERSION_MIN <= version <= VERSION:
                raise ProtocolVersionError(f"the bus chose version {version}, expected {VERSION_MIN} to {VERSION}")
            return interface, message_bytes_max
    raise MalformedFrameError(f"expected INTERFACE [version, signature, bytes], got {message.kind.name}")


def text_of(message: Message) -> str:
    """Return the first text of a message, as the reason of a REFUSE, not too long; empty where there is none."""
    first = message.values[0] if message.values else ""
    return first[:REASON_CHARACTERS_MAX] if isinstance(first, str) else ""
