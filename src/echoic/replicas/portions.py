"""Portions: neighbouring events of a log with who sent them; and how they travel to a member that was away.

    | u32 length | first, ((sender, events), ...), descriptor, batch (msgpack) | u32 length | ...
    |<------ chunk, 1 MiB at most ------>|<------ chunk, cut anywhere ------->|<- ...

A portion brings the descriptor of its type along, so that a member with another machine, another database or another
version of the type takes it over by the rules of type extension, as it does what the group delivers. What comes from
another member is not believed: lengths have a limit, and counts and numbers must agree.
"""

import struct
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

import msgspec

from echoic.errors import LimitExceededError, MalformedBatchError
from echoic.formats import Registry
from echoic.wire import Batch, Decoder, parse_batch

__all__ = ["Portion", "Senders", "decode_portions", "encode_portions"]

Senders: TypeAlias = tuple[tuple[str, int], ...]
"""Who sent how many events, one behind the other."""

CHUNK_BYTES_MAX: Final = 1024 * 1024
PORTION_BYTES_MAX: Final = 256 * 1024 * 1024  # a few of the largest events that there can be
LENGTH: Final = struct.Struct("<I")


class Portion(msgspec.Struct, frozen=True, eq=False):
    """Some events, one behind the other. There is at least one."""

    first: int
    """The sequence number of the first."""
    senders: Senders
    batch: Batch

    @property
    def last(self) -> int:
        """The sequence number of the last event."""
        return self.first + self.batch.count - 1

    def to(self, decoder: Decoder) -> "Portion":
        """Return the same events as another type has them.

        Raises:
            IncompatibleTypesError: The types do not match.
            MalformedBatchError: A record contradicts its type.
        """
        return Portion(self.first, self.senders, self.batch.to(decoder))

    def after(self, sequence: int) -> "Portion | None":
        """Return what comes after an event: all of it, a part, or None."""
        if self.first > sequence:
            return self
        if self.last <= sequence:
            return None
        known = sequence + 1 - self.first
        _, rest = self.batch.parts((known, self.batch.count - known))
        return Portion(sequence + 1, _senders_after(self.senders, known), rest)


class _Travelling(msgspec.Struct, frozen=True, array_like=True):
    first: int
    senders: Senders
    descriptor: bytes
    batch: bytes


_decoder: Final = msgspec.msgpack.Decoder(_Travelling)


def encode_portions(portions: Iterable[Portion]) -> Iterator[bytes]:
    """Yield portions as chunks of 1 MiB at most.

    Raises:
        MalformedBatchError: A batch contradicts its type.
    """
    waiting = bytearray()
    for portion in portions:
        batch = b"".join(portion.batch.buffers())
        body = msgspec.msgpack.encode(
            _Travelling(portion.first, portion.senders, portion.batch.format.descriptor, batch)
        )
        waiting += LENGTH.pack(len(body)) + body
        while len(waiting) >= CHUNK_BYTES_MAX:
            yield bytes(waiting[:CHUNK_BYTES_MAX])
            del waiting[:CHUNK_BYTES_MAX]
    if waiting:
        yield bytes(waiting)


def decode_portions(chunks: Iterable[bytes]) -> Iterator[Portion]:
    """Yield the portions that chunks hold, wherever they are cut.

    Raises:
        LimitExceededError: A portion is too long.
        MalformedBatchError: The chunks are not those of portions, or end in the middle of one.
    """
    waiting = bytearray()
    for chunk in chunks:
        waiting += chunk
        while len(waiting) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(waiting)
            if length > PORTION_BYTES_MAX:
                raise LimitExceededError(f"a portion of a log has {length} bytes, limit is {PORTION_BYTES_MAX}")
            if len(waiting) < LENGTH.size + length:
                break
            body = bytes(memoryview(waiting)[LENGTH.size : LENGTH.size + length])
            del waiting[: LENGTH.size + length]
            yield _portion_of(body)
    if waiting:
        raise MalformedBatchError(f"the state of a log ends in the middle of a portion, {len(waiting)} bytes are left")


def _portion_of(body: bytes) -> Portion:
    try:
        told = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedBatchError(f"a portion of a log of {len(body)} bytes cannot be read: {error}") from error
    registry = Registry(formats_max=1)
    registry.add_descriptor(told.descriptor)
    batch = parse_batch(told.batch, registry)
    counts = [events for _, events in told.senders]
    if told.first < 1 or min(counts, default=0) < 1 or sum(counts) != batch.count:
        raise MalformedBatchError(
            f"a portion of a log begins at {told.first} and has {batch.count} events, its senders have {sum(counts)}"
        )
    return Portion(told.first, told.senders, batch)


def _senders_after(senders: Senders, known: int) -> Senders:
    """Return who sent what is left behind the first so many events."""
    rest = []
    for sender, events in senders:
        gone = min(events, known)
        known -= gone
        if events > gone:
            rest.append((sender, events - gone))
    return tuple(rest)
