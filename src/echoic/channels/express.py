"""Express mode (JECho, section 5): a lone synchronous event, and its answer, without detours.

Most synchronous events are one record in one frame that arrives in one piece, and their answer is one frame of 24 bytes.
Both are made and taken apart here by a single `struct` call each, with the same meaning as `Concentrator.call` and
`Concentrator.receive` have, and whatever is not exactly so is left to them. It saves two thirds of the time that Python
adds to a round trip.

    CALLS    header 16 | sequence, source, call 24 | token, count 1, flags 16 | (offsets 8) | record
    REPLIES  header 16 | call 8
"""

import struct
from typing import TYPE_CHECKING, Final

from echoic.channels.effects import Delivery
from echoic.channels.member import REPLY, Call, Member
from echoic.errors import EchoicError
from echoic.formats import Format
from echoic.wire import FrameKind, encode_frame, parse_batch
from echoic.wire.frames import PADDING, PAYLOAD_BYTES_MAX

if TYPE_CHECKING:
    from echoic.channels.fanout import Target
    from echoic.channels.neighbour import Neighbour
    from echoic.channels.session import Session

__all__ = ["REPLY_BYTES", "CallLane", "decode_reply", "encode_reply", "receive_call"]

REPLY_FRAME: Final = struct.Struct("<IBBHIIQ")
REPLY_BYTES: Final = REPLY_FRAME.size
CALL_FRAME: Final = struct.Struct("<IBBHIIQQQQII")
CALL_FRAME_VARIABLE: Final = struct.Struct("<IBBHIIQQQQIIII")
CALL_START: Final = struct.Struct("<IBBHIIQQQ")
HEADER_BYTES: Final = 16
BATCH_START: Final = 40
CALLS: Final = int(FrameKind.CALLS)
REPLIES: Final = int(FrameKind.REPLIES)
OFFSETS: Final = 1


def encode_reply(number: int, call: int, failures: bytes = b"") -> bytes:
    """Return the frame that says that all sinks have handled a synchronous event, and which of them failed."""
    if not failures:
        return REPLY_FRAME.pack(8, REPLIES, 0, 0, number, 0, call)
    return b"".join(encode_frame(FrameKind.REPLIES, [REPLY.pack(call), failures], channel=number))


def decode_reply(data: bytes) -> int:
    """Return the number of the call that a whole frame answers without failures, 0 if it does not."""
    length, kind, flags, _, _, _, call = REPLY_FRAME.unpack(data)
    return call if kind == REPLIES and length == 8 and not flags else 0


def receive_call(neighbour: "Neighbour", data: bytes) -> Delivery | None:
    """Take a synchronous event that is one whole frame and just the one that is due; None, and nothing done, if not.

    The caller counts the frame in the session.
    """
    size = len(data)
    if size < BATCH_START + HEADER_BYTES:
        return None
    length, kind, flags, reserved, channel, _, first, source, call = CALL_START.unpack_from(data)
    if kind != CALLS or flags or reserved or HEADER_BYTES + length + (-length & 7) != size:
        return None
    binding = neighbour.bindings.get(channel)
    if binding is None or binding.member is None or not binding.wanted:
        return None
    member = binding.member
    if member.positions.get(source) != first:
        return None
    try:
        batch = parse_batch(memoryview(data)[BATCH_START : HEADER_BYTES + length], neighbour.registry)
    except EchoicError:
        return None  # the long way says what is wrong
    member.positions[source] = first + batch.count
    member.events_in += batch.count
    member.bytes_in += length
    return Delivery(member, batch, source, first, neighbour.id, channel, length, call)


class CallLane:
    """Makes the synchronous events of one source for the hubs that have sinks, as long as these stay the same.

    It can be used while every one of them wants all events and knows the format.
    """

    __slots__ = ("_format", "_member", "_source", "hubs", "sessions", "targets", "waiting")

    def __init__(self, member: Member, source: int, format: Format, neighbours: "dict[str, Neighbour]") -> None:
        self.targets: Final[dict[str, Target]] = member.fanout.targets
        self.hubs: Final = tuple(self.targets)
        self.sessions: Final[tuple[Session, ...]] = tuple(neighbours[hub].session for hub in self.hubs)
        self.waiting: Final = {hub: target.sink for hub, target in self.targets.items()}
        self._member = member
        self._source = source
        self._format = format

    @classmethod
    def open(cls, member: Member, source: int, format: Format, neighbours: "dict[str, Neighbour]") -> "CallLane | None":
        """Return a lane if one can be used now."""
        targets = member.fanout.targets
        if not targets or any(target.sink.slow != "block" for target in targets.values()):
            return None
        if any(format.token not in neighbours[hub].announced for hub in targets):
            return None
        return cls(member, source, format, neighbours)

    def post(self, record: bytes, number: int) -> Call | None:
        """Put an event into the outboxes of all hubs; None, and nothing done, when the lane cannot be used any more."""
        member, size = self._member, len(record)
        if member.fanout.targets is not self.targets or size > PAYLOAD_BYTES_MAX // 2:
            return None
        first = member.sources[self._source]
        channel, token = member.number, self._format.token
        if self._format.variable:
            head = CALL_FRAME_VARIABLE.pack(
                size + 48, CALLS, 0, 0, channel, 0, first, self._source, number, token, 1, OFFSETS, 0, size
            )
            frame = head + record
        else:
            head = CALL_FRAME.pack(size + 40, CALLS, 0, 0, channel, 0, first, self._source, number, token, 1, 0)
            frame = head + record + PADDING[size & 7]
        for session in self.sessions:
            session.post(frame)
        member.bytes_out += len(frame)
        member.pass_over(self._source, 1)
        return Call(self.waiting.copy())
