"""Express mode (JECho, section 5): a lone synchronous event, and its answer, without detours.

Most synchronous events are one record in one frame that arrives in one piece, and their answer is one frame of 24
bytes. Both are made and taken apart here by a single `struct` call each, with the same meaning as `Concentrator.call`
and `Concentrator.receive` have, and whatever is not exactly so is left to them. It saves three quarters of the time
that Python adds to a round trip.

    CALLS    header 16 | sequence, source, call 24 | token, count 1, flags 16 | (offsets 8) | record
    REPLIES  header 16 | call 8
"""

import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels.greeting import tell_count
from echoic.channels.member import CALL_HEADER, REPLY, Call, Member
from echoic.formats import Format
from echoic.wire import FrameKind, encode_frame
from echoic.wire.batch import HEADER as BATCH_HEADER
from echoic.wire.batch import OFFSETS
from echoic.wire.frames import PADDING, PAYLOAD_BYTES_MAX

if TYPE_CHECKING:
    from echoic.channels.neighbour import Neighbour

__all__ = [
    "LANE",
    "RECORD_START",
    "REPLY_BYTES",
    "VARIABLE_START",
    "ArrivalLane",
    "CallLane",
    "decode_reply",
    "encode_reply",
]

CALLS: Final = int(FrameKind.CALLS)
REPLIES: Final = int(FrameKind.REPLIES)
REPLY_FRAME: Final = struct.Struct("<IBBHIIQ")
REPLY_BYTES: Final = REPLY_FRAME.size
REPLY_START: Final = REPLY_FRAME.pack(8, REPLIES, 0, 0, 0, 0, 0)[:8]
LENGTH: Final = struct.Struct("<I")
HEAD: Final = struct.Struct("<BBHII")
OFFSETS_OF_ONE: Final = struct.Struct("<II")
EVENT_START: Final = 16
LANE: Final = slice(4, EVENT_START)
"""What the frames of all synchronous events of a channel have in common, whatever their length."""
BATCH_START: Final = 40
RECORD_START: Final = 56
VARIABLE_START: Final = 64


def encode_reply(number: int, call: int, failures: Mapping[str, str] | None) -> bytes:
    """Return the frame that says that all sinks have handled a synchronous event, and which of them failed."""
    if not failures:
        return REPLY_FRAME.pack(8, REPLIES, 0, 0, number, 0, call)
    told = msgspec.msgpack.encode(failures)
    return b"".join(encode_frame(FrameKind.REPLIES, [REPLY.pack(call), told], channel=number))


def decode_reply(data: bytes) -> int:
    """Return the number of the call that a whole frame answers without failures, 0 if it does not."""
    return REPLY.unpack_from(data, EVENT_START)[0] if data.startswith(REPLY_START) else 0


def _holds_one(data: bytes, length: int) -> bool:
    """Tell whether a whole frame with a payload of `length` bytes holds just one record of a variable format."""
    size = length - (VARIABLE_START - EVENT_START)
    if size < 0 or data[:4] != LENGTH.pack(length):
        return False
    return data[RECORD_START:VARIABLE_START] == OFFSETS_OF_ONE.pack(0, size)


class ArrivalLane:
    """Takes the synchronous events of one channel from one neighbour, while they are records of one format."""

    __slots__ = ("_binding", "_channel", "_head", "_length", "_member", "_middle", "_neighbour", "_session", "key")

    def __init__(self, neighbour: "Neighbour", member: Member, channel: int, format: Format) -> None:
        self._neighbour = neighbour
        self._session = neighbour.session
        self._member = member
        self._channel = channel
        self._binding = neighbour.bindings.get(channel)
        self._length = 0 if format.variable else RECORD_START - EVENT_START + format.size
        self._head = LENGTH.pack(self._length) + HEAD.pack(CALLS, 0, 0, channel, 0)
        self._middle = BATCH_HEADER.pack(format.token, 1, OFFSETS if format.variable else 0)
        self.key: Final = self._head[LANE]

    def take(self, data: bytes) -> int:
        """Count the event that a whole frame holds as arrived; return its call, 0 when it is not just the one due."""
        length = self._length or len(data) - EVENT_START  # records that differ in length fill their frame
        if self._length:
            if data[:EVENT_START] != self._head or len(data) != EVENT_START + length + (-length & 7):
                return 0
        elif data[4:EVENT_START] != self._head[4:] or not _holds_one(data, length):
            return 0
        binding = self._binding
        if data[BATCH_START:RECORD_START] != self._middle or self._neighbour.bindings.get(self._channel) is not binding:
            return 0
        member = self._member
        first, source, call = CALL_HEADER.unpack_from(data, EVENT_START)
        positions = member.positions
        if positions.get(source) != first or binding is None or not binding.wanted:
            return 0
        if member.bearers and member.bearers.get(source) != self._neighbour.who:
            return 0
        if member.is_raw(source, first):  # another source's event has opened the lane
            return 0
        positions[source] = first + 1
        member.events_in += 1
        member.bytes_in += len(data)
        session = self._session
        if session.receive(length):
            tell_count(session)
        return int(call)

    def reply(self, call: int, failures: Mapping[str, str] | None) -> None:
        """Say that the event was handled, and who failed at it."""
        self._session.post(encode_reply(self._channel, call, failures))


class CallLane:
    """Makes the synchronous events of one source for the hubs that have sinks, as long as these stay the same.

    It can be used while every one of them wants all events and knows the format. What is alike in all frames is packed
    beforehand.
    """

    __slots__ = ("_head", "_member", "_middle", "_sessions", "_source", "_targets", "_variable", "_waiting", "hubs")

    def __init__(self, member: Member, source: int, format: Format, neighbours: "Mapping[str, Neighbour]") -> None:
        self._targets = member.fanout.targets
        self._sessions = tuple(neighbours[hub].session for hub in self._targets)
        self._waiting = {hub: target.sink for hub, target in self._targets.items()}
        self._member = member
        self._source = source
        self._variable = format.variable
        self._head = HEAD.pack(CALLS, 0, 0, member.number, 0)
        self._middle = BATCH_HEADER.pack(format.token, 1, OFFSETS if format.variable else 0)
        self.hubs: Final = tuple(self._targets)

    @classmethod
    def open(
        cls, member: Member, source: int, format: Format, neighbours: "Mapping[str, Neighbour]"
    ) -> "CallLane | None":
        """Return a lane if one can be used now."""
        targets = member.fanout.targets
        if not targets or member.derivations or member.keepings:
            return None
        if any(target.sink.slow != "block" for target in targets.values()):
            return None
        if any(format.token not in neighbours[hub].announced for hub in targets):
            return None
        return cls(member, source, format, neighbours)

    def post(self, record: bytes, number: int) -> Call | None:
        """Put an event into the outboxes of all hubs; None, and nothing done, when the lane cannot be used any more."""
        member, size = self._member, len(record)
        if member.fanout.targets is not self._targets or member.derivations or member.keepings:
            return None
        if size > PAYLOAD_BYTES_MAX // 2:
            return None
        event = CALL_HEADER.pack(member.pass_over(self._source, 1), self._source, number)
        if self._variable:
            offsets = OFFSETS_OF_ONE.pack(0, size)
            frame = b"".join((LENGTH.pack(size + 48), self._head, event, self._middle, offsets, record))
        else:
            frame = b"".join((LENGTH.pack(size + 40), self._head, event, self._middle, record, PADDING[size & 7]))
        for session in self._sessions:
            session.post(frame)
        member.bytes_out += len(frame)
        return Call(self._waiting.copy())
