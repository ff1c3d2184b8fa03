"""A flood of hostile frames, many thousands made at once.

To try a billion frames they must cost little more than their parsing, so NumPy makes them, a batch at a time. Every
frame is a header, a piece of one sample, perhaps a piece of another, and zeros:

    | header | piece of a sample | piece of another | zeros to 8 |
      fields of its own, right or hostile

A frame is damaged *below* its checksum first: cut, spliced, a byte changed, a boundary number put where an integer may
stand; then it is sealed, so that all of it reaches whoever reads payloads. Frames are then joined to streams of up to
`STREAM_FRAMES_MAX`. All frames of a stream but the last are whole; the last one is damaged *above* its checksum, in
header or payload, or cut off. So every frame of a stream is looked at: nothing comes behind what ends it.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import google_crc32c
import msgspec
import numpy
from numpy.typing import NDArray

from echoic.testing.mutation import BOUNDARIES

__all__ = ["FrameFlood", "Stream"]

BATCH_FRAMES: Final = 8192
STREAM_FRAMES_MAX: Final = 64
HEADER_BYTES: Final = 16
FLAGS_AT: Final = 5
SAMPLE_BYTES_MAX: Final = 96  # the frame layer looks at a payload no closer than its checksum does
ZEROS: Final = 16  # what headers are made from, and what is behind a payload
CUT, SPLICED, DAMAGED, NUMBERED = 0.1, 0.15, 0.4, 0.3
SEALED: Final = 0.2  # of frames that have a checksum
HEADER: Final = numpy.dtype(
    [("length", "<u4"), ("kind", "u1"), ("flags", "u1"), ("reserved", "<u2"), ("channel", "<u4"), ("checksum", "<u4")]
)
KINDS_END: Final = 24  # a few behind the last that there is

Numbers: TypeAlias = NDArray[Any]


class Stream(msgspec.Struct, frozen=True, gc=False):
    """What one connection brings: whole frames, and one at the end that is not as it was sent."""

    data: bytes
    whole: int
    """How many frames there are before the last."""
    sealed: bool
    """Whether the last one has a checksum, which it also had before it was damaged."""
    cut: bool
    """Whether the last one was cut off, and not changed."""


class FrameFlood:
    """Makes streams of hostile frames from samples of payloads, with a seeded generator."""

    def __init__(self, random: numpy.random.Generator, samples: Sequence[bytes]) -> None:
        """Start a flood.

        Args:
            random: Where chance comes from.
            samples: Payloads that are right.
        """
        kept = [bytes(sample[:SAMPLE_BYTES_MAX]) for sample in samples if sample]
        self._random = random
        self._pool = numpy.frombuffer(bytes(ZEROS) + b"".join(kept), numpy.uint8)
        self._sizes = numpy.array([len(sample) for sample in kept])
        self._starts = ZEROS + numpy.cumsum(self._sizes) - self._sizes

    def next_streams(self) -> list[Stream]:
        """Return the streams of the next `BATCH_FRAMES` frames."""
        random = self._random
        starts, sizes = self._pieces()
        lengths = sizes[:, 1] + sizes[:, 2]
        ends = numpy.cumsum(sizes.sum(axis=1))
        places = ends - sizes.sum(axis=1)
        data = self._pool[_gather(starts, sizes, int(ends[-1]))]
        self._damage(data, places + HEADER_BYTES, lengths)
        sealed = random.random(BATCH_FRAMES) < SEALED
        self._seal(data, places, lengths, sealed)
        return self._streams(data, places, lengths, ends, sealed)

    def _pieces(self) -> tuple[Numbers, Numbers]:
        """Draw where in the pool the four pieces of each frame begin, and how long they are."""
        random = self._random
        one, other = random.integers(len(self._sizes), size=(2, BATCH_FRAMES))
        starts, sizes = numpy.zeros((2, BATCH_FRAMES, 4), numpy.int64)
        sizes[:, 0] = HEADER_BYTES
        starts[:, 1], sizes[:, 1] = self._starts[one], self._sizes[one]
        way = random.random(BATCH_FRAMES)
        shortened = way < CUT + SPLICED
        sizes[shortened, 1] = (random.random(shortened.sum()) * (sizes[shortened, 1] + 1)).astype(numpy.int64)
        spliced = (way >= CUT) & shortened
        skipped = (random.random(spliced.sum()) * (self._sizes[other[spliced]] + 1)).astype(numpy.int64)
        starts[spliced, 2] = self._starts[other[spliced]] + skipped
        sizes[spliced, 2] = self._sizes[other[spliced]] - skipped
        sizes[:, 3] = -(sizes[:, 1] + sizes[:, 2]) & 7
        return starts, sizes

    def _damage(self, data: Numbers, places: Numbers, lengths: Numbers) -> None:
        """Change a byte of many payloads, and put a boundary number into others."""
        random = self._random
        way = random.random(BATCH_FRAMES)
        changed = (way < DAMAGED) & (lengths > 0)
        at = places[changed] + (random.random(changed.sum()) * lengths[changed]).astype(numpy.int64)
        data[at] ^= random.integers(1, 256, size=len(at), dtype=numpy.uint8)
        numbered = (way >= DAMAGED) & (way < DAMAGED + NUMBERED) & (lengths >= 4)
        at = places[numbered] + (random.random(numbered.sum()) * (lengths[numbered] // 4)).astype(numpy.int64) * 4
        numbers = random.choice(numpy.array(BOUNDARIES, "<u4"), len(at))
        numbers = numpy.where(random.random(len(at)) < 0.5, numbers, numbers.byteswap())
        data[at[:, None] + numpy.arange(4)] = numbers.view(numpy.uint8).reshape(-1, 4)

    def _seal(self, data: Numbers, places: Numbers, lengths: Numbers, sealed: Numbers) -> None:
        """Write the headers; those of some frames have a checksum."""
        random = self._random
        headers = numpy.zeros(BATCH_FRAMES, HEADER)
        headers["length"] = lengths
        headers["kind"] = random.integers(1, KINDS_END, size=BATCH_FRAMES)
        headers["flags"] = sealed
        headers["channel"] = random.integers(2**32, size=BATCH_FRAMES, dtype=numpy.uint32)
        plain, frames = headers.tobytes(), data.tobytes()
        extend, values = google_crc32c.extend, []
        for number in numpy.flatnonzero(sealed).tolist():
            start = int(places[number]) + HEADER_BYTES
            value = extend(0, plain[16 * number : 16 * number + 12])
            values.append(extend(value, frames[start : start + int(lengths[number])]))
        headers["checksum"][sealed] = values
        data[places[:, None] + numpy.arange(HEADER_BYTES)] = headers.view(numpy.uint8).reshape(-1, HEADER_BYTES)

    def _streams(
        self, data: Numbers, places: Numbers, lengths: Numbers, ends: Numbers, sealed: Numbers
    ) -> list[Stream]:
        """Join frames to streams, and spoil the last of each."""
        random = self._random
        counts = random.integers(1, STREAM_FRAMES_MAX + 1, size=BATCH_FRAMES)
        borders = numpy.cumsum(counts)
        borders = numpy.append(borders[borders < BATCH_FRAMES], BATCH_FRAMES)
        lasts = borders - 1
        cut = random.random(len(lasts)) < 0.3
        spoilt = lasts[~cut]
        reach = HEADER_BYTES + numpy.where(random.random(len(spoilt)) < 0.5, 0, lengths[spoilt])
        at = places[spoilt] + (random.random(len(spoilt)) * reach).astype(numpy.int64)
        data[at] ^= random.integers(1, 256, size=len(at), dtype=numpy.uint8)
        stops = ends[lasts].copy()
        stops[cut] = places[lasts[cut]] + (random.random(cut.sum()) * (ends - places)[lasts[cut]]).astype(numpy.int64)
        flagged = sealed[lasts] & (data[places[lasts] + FLAGS_AT] == 1)
        frames, streams, first = data.tobytes(), [], 0
        for last, stop, was_sealed, was_cut in zip(
            lasts.tolist(), stops.tolist(), flagged.tolist(), cut.tolist(), strict=True
        ):
            streams.append(Stream(frames[int(places[first]) : stop], last - first, was_sealed, was_cut))
            first = last + 1
        return streams


def _gather(starts: Numbers, sizes: Numbers, total: int) -> Numbers:
    """Return for every byte of the frames where it stands in the pool."""
    flat = sizes.ravel()
    begins = numpy.cumsum(flat) - flat
    index: Numbers = numpy.repeat((starts.ravel() - begins).astype(numpy.int32), flat)
    index += numpy.arange(total, dtype=numpy.int32)
    return index
