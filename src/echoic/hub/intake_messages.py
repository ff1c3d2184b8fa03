"""What writers and an intake say to each other: events of a channel beside the one that is written to.

    writer -> NAME.intake     Portion{STAGE, query, epoch, partition, attempt, index, body = a batch with its type}
                              Portion{COMMIT, query, epoch, body = [(partition, attempt, portions, carried bodies)]}
                              Portion{ABORT, query, epoch}
    intake -> writer          an Answer, as the answer to a synchronous event

The answer to a synchronous event is empty when all went well, and that is also what a writer hears when nobody listens
any more because the intake has just been killed. To lose rows by such a silence would be unforgivable, so an intake
always answers in words, which travel where the problems of a handler do: a writer believes nothing else.

A body is a batch as it goes onto the wire, with the descriptor of its type in front; both are checked where they
arrive. Rows of small partitions travel inside of the commit itself: a small epoch is one message and one answer.

    0          4            8 + descriptor, to 8
    | 0 (u32)  | length u32 | descriptor | zeros | batch
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from echoic.errors import DeliveryError, MalformedBatchError
from echoic.formats import Format, Registry, event, int32, int64
from echoic.hub.intake_book import Part
from echoic.wire import Batch, parse_batch
from echoic.wire.frames import PADDING

__all__ = [
    "ABORT",
    "BODY_BYTES_MAX",
    "COMMIT",
    "STAGE",
    "Answer",
    "CarriedPart",
    "Portion",
    "answer_in",
    "batch_of_body",
    "bodies_of",
    "encode_parts",
    "intake_name",
    "parts_of",
]

STAGE: Final = 1
COMMIT: Final = 2
ABORT: Final = 3
BODY_BYTES_MAX: Final = 1024 * 1024  # but for a single event that has more
HEAD: Final = struct.Struct("<II")
MARK: Final = "intake:"
REASON_CHARACTERS_MAX: Final = 400


@event
class Portion:
    """Something that a writer tells an intake."""

    query: str
    epoch: int64
    partition: int64
    attempt: int64
    kind: int32
    index: int32
    body: bytes


class CarriedPart(msgspec.Struct, frozen=True, array_like=True):
    """A partition in a commit: the attempt that counts, its portions, and these themselves if they are few bytes."""

    partition: int
    attempt: int
    portions: int
    carried: tuple[bytes, ...] = ()

    @property
    def part(self) -> Part:
        """What is decided upon."""
        return Part(self.partition, self.attempt, self.portions)


class Answer(msgspec.Struct, frozen=True):
    """What an intake says to a portion.

    `busy` means that the epoch is committed and being published; `progress` then tells whether it goes on. `lost` means
    that something of the epoch has to be staged again, which only a writer that still has it can do.
    """

    state: Literal["done", "busy", "lost", "refused"]
    reason: str = ""
    progress: int = 0

    def text(self) -> str:
        """Return it as the answer to a synchronous event."""
        short = msgspec.structs.replace(self, reason=self.reason[:REASON_CHARACTERS_MAX])
        return MARK + msgspec.json.encode(short).decode()


_decode_answer: Final = msgspec.json.Decoder(Answer).decode
_decode_parts: Final = msgspec.msgpack.Decoder(tuple[CarriedPart, ...]).decode


def intake_name(channel: str) -> str:
    """Return the name, or the id, of the channel on which the intake of a channel listens."""
    return f"{channel}.intake"


def answer_in(error: DeliveryError) -> Answer | None:
    """Return what an intake has said, None if none has."""
    for text in error.failures.values():
        if text.startswith(MARK):
            try:
                return _decode_answer(text.removeprefix(MARK))
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                continue
    return None


def encode_parts(parts: Sequence[CarriedPart]) -> bytes:
    """Return the body of a commit."""
    return msgspec.msgpack.encode(parts)


def parts_of(body: bytes) -> tuple[CarriedPart, ...]:
    """Return what a commit names.

    Raises:
        MalformedBatchError: This is not the body of a commit.
    """
    try:
        return _decode_parts(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise MalformedBatchError(f"the body of a commit cannot be read: {error}") from error


def bodies_of(batch: Batch, bytes_max: int = BODY_BYTES_MAX) -> Iterator[bytes]:
    """Yield the bodies of portions that hold a batch; nothing for an empty one."""
    counts, bounds, start = [], batch.bounds, 0
    while start < batch.count:
        end = max(start + 1, bisect_right(bounds, bounds[start] + bytes_max) - 1)
        counts.append(end - start)
        start = end
    descriptor = batch.format.descriptor
    head = HEAD.pack(0, len(descriptor)) + descriptor + PADDING[len(descriptor) & 7]
    for part in [batch] if len(counts) == 1 else batch.parts(counts):
        yield b"".join([head, *part.buffers()])


def batch_of_body(body: bytes) -> Batch:
    """Return the batch that a portion holds; of records that differ in length, the bounds are checked.

    Raises:
        MalformedBatchError: It is not a batch.
        MalformedFormatError: It has no descriptor of a type.
        LimitExceededError: The descriptor is too long.
        UnknownFormatError: The batch is of another type than the descriptor says.
    """
    if len(body) < HEAD.size:
        raise MalformedBatchError(f"a portion has {len(body)} bytes, its head needs {HEAD.size}")
    zero, length = HEAD.unpack_from(body)
    start = HEAD.size + length + len(PADDING[length & 7])
    if zero or start > len(body):
        raise MalformedBatchError(f"a portion of {len(body)} bytes says that its type takes {length}")
    registry = Registry(formats_max=1)
    registry.add(Format.from_descriptor(body[HEAD.size : HEAD.size + length]))
    batch = parse_batch(memoryview(body)[start:], registry)
    if not batch.count:
        raise MalformedBatchError("a portion holds no event")
    if batch.format.variable:
        _ = batch.bounds
    return batch
