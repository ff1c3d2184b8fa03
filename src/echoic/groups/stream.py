"""The stream: what packs are made of, and how delivered packs become numbered messages.

    pack := kind u8 | 0 0 0 | count u32 | batch of `count` messages         kind 2, a batch as channels have it
            kind u8 | 0 0 0 | 0     u32 | descriptor                        kind 1, ahead of the first batch of a type

A pack is one batch in natural data representation: the records of its messages one after the other, not a message each
inside of another. All of a pack's messages are of one type, which is described once in the order, so whoever reads the
order from there on can read them. Messages are numbered in the order, from 1, the same at every member.
"""

import struct
from collections.abc import Sequence
from typing import Final

import msgspec

from echoic.errors import EchoicError, MalformedBatchError, MalformedFrameError
from echoic.formats import Format, Registry
from echoic.wire import Batch, Buffer, parse_batch
from echoic.wire.bounds import bounds_of

__all__ = ["PACK_HEADER_BYTES", "Stream", "StreamSummary", "encode_description", "encode_pack"]

HEAD: Final = struct.Struct("<B3xI")
PACK_HEADER_BYTES: Final = HEAD.size
DESCRIPTION: Final = 1
BATCH: Final = 2
DESCRIPTIONS_MAX: Final = 1024


def encode_description(format: Format) -> bytes:
    """Return the pack that tells of a type."""
    return HEAD.pack(DESCRIPTION, 0) + format.descriptor


def encode_pack(format: Format, records: Sequence[bytes]) -> bytes:
    """Return the pack of some messages, given as records of a type."""
    offsets = bounds_of(records) if format.variable else None
    batch = Batch(format, len(records), list(records), offsets)
    return b"".join([HEAD.pack(BATCH, len(records)), *batch.buffers()])


class StreamSummary(msgspec.Struct, frozen=True, array_like=True):
    """What must be known of a stream to go on with it: how many messages there were, and the types described."""

    sequence: int = 0
    descriptors: tuple[bytes, ...] = ()


_decoder: Final = msgspec.msgpack.Decoder(StreamSummary)


class Stream:
    """The messages of a group, in order. Deterministic: the same packs give the same numbers everywhere."""

    def __init__(self, sequence: int = 0) -> None:
        self.sequence = sequence
        """The number of the last message."""
        self._registry = Registry()
        self._descriptors: dict[bytes, None] = {}

    def deliver(self, payload: Buffer) -> Batch | None:
        """Take the next pack, and return its messages, whose last has the number `sequence` then; None if it has none.

        Raises:
            MalformedBatchError: It is not a pack. It counts as none, here as everywhere.
            EchoicError: A type cannot be described so, or was not described.
        """
        if len(payload) < PACK_HEADER_BYTES:
            raise MalformedBatchError(f"a pack has {len(payload)} bytes, its header needs {PACK_HEADER_BYTES}")
        kind, count = HEAD.unpack_from(payload)
        body = memoryview(payload)[PACK_HEADER_BYTES:]
        if kind == DESCRIPTION:
            self._describe(bytes(body))
            return None
        if kind != BATCH:
            raise MalformedBatchError(f"a pack is of kind {kind}, expected {DESCRIPTION} or {BATCH}")
        batch = parse_batch(body, self._registry)
        if batch.count != count:
            raise MalformedBatchError(f"a pack has {batch.count} messages, its header says {count}")
        self.sequence += count
        return batch

    def summary(self) -> bytes:
        """Return what another needs to go on from here."""
        return msgspec.msgpack.encode(StreamSummary(self.sequence, tuple(self._descriptors)))

    def restore(self, summary: bytes) -> int:
        """Go on from where another is; return the number of the last message there.

        Raises:
            MalformedFrameError: This is not what `summary` returns.
        """
        try:
            found = _decoder.decode(summary)
            self._registry, self._descriptors = Registry(), {}
            for descriptor in found.descriptors:
                self._describe(descriptor)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, EchoicError) as error:
            raise MalformedFrameError(f"a summary of {len(summary)} bytes cannot be read: {error}") from error
        self.sequence = found.sequence
        return found.sequence

    def _describe(self, descriptor: bytes) -> None:
        if len(self._descriptors) >= DESCRIPTIONS_MAX and descriptor not in self._descriptors:
            raise MalformedBatchError(f"more than {DESCRIPTIONS_MAX} types were described")
        self._registry.add(Format.from_descriptor(descriptor))
        self._descriptors[descriptor] = None
