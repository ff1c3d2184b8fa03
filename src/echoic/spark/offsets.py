"""Pure. Positions in a journal as Spark keeps them, and what may be read between two of them.

An offset is for each partition the sequence number of the next event: {"0": 17, "1": 4}. Spark writes it into its
checkpoint as JSON and takes two for the same if their texts are, so the keys are sorted, and where nothing has come the
very offset that was given is returned.

    start {"0": 10, "1": 0}     heads {"0": 90, "1": 20}     limit 50 rows
    end   {"0": 50, "1": 10}    each partition gets its share of the limit, by how much waits in it
    parts  0: 10..30, 30..50    1: 0..10                     for executors, in the order of the sequence

All of a partition's events lie between two offsets once, and a batch that is tried again is cut anew from the same two
offsets: how it is cut does not matter, which events it has never changes.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec

from echoic.errors import PipelineError
from echoic.spark.options import Boundary

__all__ = ["ROWS_MIN", "Offset", "Range", "between", "checked", "limited", "offset_of", "placed", "split", "within"]

Offset: TypeAlias = dict[str, int]
"""For each partition the sequence number of the next event."""

ROWS_MIN: Final = 65_536
"""How many events are worth a task of their own."""


class Range(msgspec.Struct, frozen=True):
    """Events of a partition, from `start` on and before `end`."""

    partition: int
    start: int
    end: int

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.end - self.start


def offset_of(positions: Sequence[int]) -> Offset:
    """Return the positions of all partitions, in their order, as an offset."""
    return {key: positions[int(key)] for key in sorted(str(partition) for partition in range(len(positions)))}


def checked(offset: object, partitions: int, name: str) -> tuple[int, ...]:
    """Return the positions that an offset tells.

    Raises:
        PipelineError: It is none of a journal with so many partitions.
    """
    if not isinstance(offset, Mapping) or set(offset) != {str(partition) for partition in range(partitions)}:
        raise PipelineError(
            f"the checkpoint has the offset {str(offset)[:200]}, the journal of `{name}` has {partitions} partitions: "
            "it belongs to another journal"
        )
    positions = tuple(offset[str(partition)] for partition in range(partitions))
    if not all(type(position) is int and position >= 0 for position in positions):
        raise PipelineError(f"an offset has sequence numbers, got {str(offset)[:200]} - at channel `{name}`")
    return positions


def placed(
    boundary: Boundary, firsts: Sequence[int], heads: Sequence[int], times: Sequence[int], name: str
) -> tuple[int, ...]:
    """Return where reading begins or ends.

    Args:
        boundary: What was asked for; partitions that it does not name count from their first event.
        firsts: The first sequence number of each partition that is there.
        heads: The next of each.
        times: For each the first event at the time asked for; looked at only if one was.
        name: The channel, for messages.

    Raises:
        PipelineError: It names a partition that is not there.
    """
    if boundary.kind == "earliest":
        return tuple(firsts)
    if boundary.kind == "latest":
        return tuple(heads)
    if boundary.kind == "time":
        return tuple(times)
    positions = list(firsts)
    for partition, sequence in boundary.positions:
        if partition >= len(positions):
            raise PipelineError(f"there is no partition {partition}, the journal of `{name}` has {len(positions)}")
        positions[partition] = sequence
    return tuple(positions)


def within(
    start: Sequence[int], firsts: Sequence[int], heads: Sequence[int], name: str, *, skip: bool
) -> tuple[int, ...]:
    """Return where reading can begin.

    Args:
        start: Where it should.
        firsts: The first sequence number of each partition that is there.
        heads: The next of each.
        name: The channel, for messages.
        skip: Whether to go on with what is there where events were removed.

    Raises:
        PipelineError: Events were removed that were not read, or never were there.
    """
    for partition, (position, first, head) in enumerate(zip(start, firsts, heads, strict=True)):
        if position > head:
            raise PipelineError(
                f"reading is to go on at event {position} of partition {partition}, the journal of `{name}` ends at "
                f"{head}: it is another journal, or was cut short"
            )
        if position < first and not skip:
            raise PipelineError(
                f"events {position} to {first - 1} of partition {partition} were removed from the journal of `{name}` "
                "before they were read: set the option `onLoss` to `skip` to go on without them"
            )
    return tuple(map(max, start, firsts))


def limited(start: Sequence[int], heads: Sequence[int], rows_max: int) -> tuple[int, ...]:
    """Return where a batch ends that has at most so many events.

    Each partition gets its share by how much waits in it, so that none is left behind; what rounding leaves over goes
    to those that wait most.
    """
    waiting = [max(head - position, 0) for position, head in zip(start, heads, strict=True)]
    total = sum(waiting)
    if total <= rows_max:
        return tuple(map(max, start, heads))
    shares = [count * rows_max // total for count in waiting]
    left = rows_max - sum(shares)
    for partition in sorted(range(len(shares)), key=lambda each: shares[each] - waiting[each])[:left]:
        shares[partition] += 1
    return tuple(position + share for position, share in zip(start, shares, strict=True))


def between(start: Sequence[int], end: Sequence[int]) -> list[Range]:
    """Return what lies between two offsets, for each partition in which there is anything."""
    pairs = enumerate(zip(start, end, strict=True))
    return [Range(partition, first, last) for partition, (first, last) in pairs if last > first]


def split(ranges: Sequence[Range], parts: int, rows_min: int = ROWS_MIN) -> list[Range]:
    """Return ranges cut into about so many parts of about the same size, but none smaller than is worth it."""
    total = sum(each.rows for each in ranges)
    found: list[Range] = []
    for each in ranges:
        share = -(-parts * each.rows // total)
        pieces = max(min(share, each.rows // rows_min), 1)
        borders = [each.start + each.rows * piece // pieces for piece in range(pieces + 1)]
        found += [Range(each.partition, *pair) for pair in pairwise(borders)]
    return found
