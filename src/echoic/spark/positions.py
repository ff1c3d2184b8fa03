"""Where in a journal reading begins and ends, which needs a look into it."""

from collections.abc import Sequence

from echoic.recorder import Hole, Journal
from echoic.spark.offsets import placed, within
from echoic.spark.options import Boundary, SourceOptions

__all__ = ["end_of", "rows_of_bytes", "start_of"]

SAMPLE_BYTES = 1024 * 1024


def start_of(journal: Journal, options: SourceOptions, heads: Sequence[int]) -> tuple[int, ...]:
    """Return where reading begins.

    Raises:
        PipelineError: That is at events that are not there, or not there any more.
        JournalError: The journal cannot be read.
    """
    firsts = journal.firsts
    asked = placed(options.start, firsts, heads, _times(journal, options.start, heads, options), journal.name)
    return within(asked, firsts, heads, journal.name, skip=options.on_loss == "skip")


def end_of(journal: Journal, options: SourceOptions, heads: Sequence[int]) -> tuple[int, ...]:
    """Return where reading ends: at the latest where the journal does.

    Raises:
        PipelineError: It is to end in a partition that is not there.
        JournalError: The journal cannot be read.
    """
    asked = placed(options.end, heads, heads, _times(journal, options.end, heads, options), journal.name)
    return tuple(map(min, asked, heads)) if options.end.kind != "earliest" else journal.firsts


def rows_of_bytes(journal: Journal, start: Sequence[int], heads: Sequence[int], bytes_max: int) -> int:
    """Return about how many events have so many bytes, judged by those that come next; at least 1.

    Raises:
        JournalError: The journal cannot be read.
    """
    rows = size = 0
    for partition, (position, head) in enumerate(zip(start, heads, strict=True)):
        chunk = journal.shelf.chunk(partition, position, min(bytes_max, SAMPLE_BYTES)) if position < head else None
        if chunk is not None:
            rows += max(chunk.end - chunk.sequence, 0)
            size += len(chunk.blocks)
    return max(rows * bytes_max // size, 1) if size and rows else bytes_max


def _times(journal: Journal, boundary: Boundary, heads: Sequence[int], options: SourceOptions) -> list[int]:
    """Return for each partition the first event that was recorded at a time or later, if one is asked for."""
    if boundary.kind != "time":
        return []
    found = []
    passed: list[Hole] = []
    on_hole = passed.append if options.on_loss == "skip" else None  # whoever reads it tells of it
    for partition in range(journal.partitions):
        first = next(journal.read(partition=partition, since=boundary.time_ns, on_hole=on_hole), None)
        found.append(heads[partition] if first is None else min(first.sequence, heads[partition]))
    return found
