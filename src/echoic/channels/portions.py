"""How much is done at once: events that a derivation takes, and events that go into one frame.

A kernel is not interrupted, and what it makes of a batch lies in memory until it is sent. So code that may take long,
or make much of little, gets a batch in portions, and whoever submits looks at the clock between them. By its worst case
a portion takes some 20 ms, or makes a megabyte. Most code gets every batch whole.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from echoic.wire import Batch
from echoic.wire.frames import PAYLOAD_BYTES_MAX

__all__ = [
    "BATCH_BYTES_MAX",
    "BATCH_SECONDS_MAX",
    "MADE_BYTES_MAX",
    "RECORD_BYTES_MAX",
    "Spent",
    "allowance",
    "portions",
    "sizes_of",
    "split",
]

BATCH_BYTES_MAX: Final = 8 * 1024 * 1024
RECORD_BYTES_MAX: Final = PAYLOAD_BYTES_MAX - 64
MADE_BYTES_MAX: Final = 64 * 1024 * 1024  # what one batch may become
BATCH_SECONDS_MAX: Final = 5.0  # what one batch may take, even if nobody but its source waits
PORTION_UNITS: Final = 50_000_000
PORTION_BYTES: Final = 1024 * 1024
LEAST_SHARE: Final = 16
MADE_BYTES_FEW: Final = MADE_BYTES_MAX // (4 * LEAST_SHARE)  # for which nobody need be held


@dataclass(slots=True)
class Spent:
    """What has been spent so far on one batch, by everything that is derived from it."""

    ns: int = 0
    made_bytes: int = 0


def allowance(limit: float, spent_by_others: float) -> float:
    """Return how much one derivation may spend on a batch: what others have left of the limit, but never nothing."""
    return max(limit - spent_by_others, limit / LEAST_SHARE)


def portions(batch: Batch, units_each: int, bytes_each: int) -> Iterable[Batch]:
    """Return a batch in neighbouring parts, none of which takes too much work or becomes too large.

    Args:
        batch: The events.
        units_each: What one of them costs at most.
        bytes_each: What one of them becomes at most, by and large.
    """
    count = max(1, min(PORTION_UNITS // max(units_each, 1), PORTION_BYTES // max(bytes_each, 1)))
    if batch.count <= count:
        return (batch,)
    return batch.parts(min(count, batch.count - start) for start in range(0, batch.count, count))


def split(batch: Batch) -> Iterator[Batch]:
    """Yield a batch in parts that are small enough for frames; nothing for an empty one."""
    if batch.count and len(batch.records) <= BATCH_BYTES_MAX:
        yield batch
        return
    counts, bounds, start = [], batch.bounds, 0
    while start < batch.count:
        end = max(start + 1, bisect_right(bounds, bounds[start] + BATCH_BYTES_MAX) - 1)
        counts.append(end - start)
        start = end
    yield from batch.parts(counts)


def sizes_of(batch: Batch) -> list[int]:
    """Return how many bytes each record has."""
    return [end - begin for begin, end in pairwise(batch.bounds)]
