"""Compression of several events into one.

Events of one type have much in common: names repeat, times differ in their last bytes, padding is zero. Alone they are
too short for that to show, so a hundred are compressed together; with fewer, the last ones leave after a period.

zlib is what every Python has and what takes a tenth of a second for some megabytes. LZMA makes the same data about a
third smaller and takes twenty times as long, which a source does not have, and needs a limit on the memory of the
decompressor besides. What arrives is not believed: decompression stops at a limit.
"""

import zlib
from collections.abc import Sequence
from typing import Final, cast

from echoic.eager.modulator import Demodulator
from echoic.eager.ready.arguments import check_whole
from echoic.eager.ready.bundles import Unpacking, pack, token_of
from echoic.eager.ready.gathering import Gathering
from echoic.errors import LimitExceededError, MalformedBatchError
from echoic.formats import event, uint32, uint64

__all__ = ["Compress", "Compressed", "Decompress"]

COUNT: Final = 100
PERIOD_NS: Final = 20_000_000
LEVEL: Final = 6
BYTES_MAX: Final = 64 << 20


@event
class Compressed:
    """Several events, compressed."""

    count: uint32
    data: bytes


class Compress(Gathering):
    """Compress events into events of type `Compressed`; `Decompress` makes events of them again.

    Args:
        declared: The event type of the sink; sources that have the same need not describe theirs in every event.
        count: How many events are compressed together.
        period_ns: How long an event waits for others at most; 0 for as long as it takes.
        level: From 1, the fastest, to 9, the smallest.

    Raises:
        LocalError: An argument is out of range.
    """

    output = Compressed

    token: uint64
    level: int

    def __init__(
        self, declared: object | None = None, *, count: int = COUNT, period_ns: int = PERIOD_NS, level: int = LEVEL
    ) -> None:
        self.gather(count, period_ns, token=token_of(declared), level=check_whole("level", level, 1, 9))

    @classmethod
    def pair(
        cls, declared: object | None = None, *, count: int = COUNT, period_ns: int = PERIOD_NS, level: int = LEVEL
    ) -> "tuple[Compress, Decompress]":
        """Return a modulator that compresses and the demodulator for it; the arguments are those of both.

        Raises:
            LocalError: An argument is out of range.
        """
        return cls(declared, count=count, period_ns=period_ns, level=level), Decompress(declared)

    def joined(self, events: Sequence[object]) -> object:
        """Return several events as one that is compressed."""
        return Compressed(len(events), zlib.compress(pack(events, self.token), self.level))


class Decompress(Demodulator):
    """Make the events again that `Compress` has compressed.

    Args:
        declared: The event type in which to receive them; without one, as the source has them.
        bytes_max: How many bytes one compressed event may become.
    """

    def __init__(self, declared: object | None = None, *, bytes_max: int = BYTES_MAX) -> None:
        self._unpacking: Final = Unpacking(declared)
        self._bytes_max: Final = bytes_max

    def enqueue(self, event: object) -> None:
        """Queue the events of a compressed one.

        Raises:
            LimitExceededError: They are too large.
            MalformedBatchError: They were not compressed by `Compress`.
        """
        compressed = cast("Compressed", event)
        for each in self._unpacking.unpack(decompressed(compressed.data, self._bytes_max), compressed.count):
            super().enqueue(each)


def decompressed(data: bytes, bytes_max: int) -> bytes:
    """Return what was compressed.

    Raises:
        LimitExceededError: It is longer than `bytes_max`.
        MalformedBatchError: The bytes are not compressed, or not completely.
    """
    work = zlib.decompressobj()
    try:
        plain = work.decompress(data, bytes_max + 1)
    except zlib.error as error:
        raise MalformedBatchError(f"an event of {len(data)} bytes is not compressed: {error}") from error
    if len(plain) > bytes_max:
        raise LimitExceededError(f"{len(data)} compressed bytes become more than {bytes_max}, which is the limit")
    if not work.eof or work.unused_data:
        raise MalformedBatchError(f"an event of {len(data)} compressed bytes does not end where they do")
    return plain
