"""What a journal has and gets, batch after batch: `spark.readStream.format("echoic")`.

Spark keeps where it is (`offsets`) in its checkpoint and asks what there is. While nothing has come, the question is
answered after up to 200 ms: that costs a fiftieth of a processor, where a source that answers at once is asked a
hundred times a second. What comes meanwhile is answered at once.

A batch that was begun is tried again after a crash with the same two offsets, and a journal keeps what it has, so it
has the same events. Nothing is told to the journal when Spark is done with them: others may read it as well, and what
is removed from it, and when, is for its recorder to decide.

Code with static variables would begin anew in every batch, at borders that depend on how fast events come. So it is
refused, unless that is what is wanted: counting per batch, for instance.
"""

from collections.abc import Iterator

import pyarrow
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from echoic.errors import PipelineError
from echoic.recorder import Journal
from echoic.spark.batch_reader import parts_of, read_part
from echoic.spark.offsets import Offset, between, checked, limited, offset_of, within
from echoic.spark.options import SourceOptions
from echoic.spark.positions import rows_of_bytes, start_of
from echoic.spark.reading import Reading, reading_of

__all__ = ["StreamReader"]

WAIT_SECONDS = 0.2


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what comes."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        """Decide what is read.

        Raises:
            PipelineError: The code remembers events, and nobody has said that it may forget them with each batch.
            EchoicError: The journal cannot be read, or does not have what is asked for.
        """
        self.reading: Reading = reading_of(options, schema)
        self._final: tuple[int, ...] | None = None
        if options.statics != "batch" and self.reading.stateful:
            raise PipelineError(
                "the code has static variables, which begin anew in each batch of a stream: set the option `statics` "
                "to `batch` if that is what you want, or derive the channel at its sources and record that"
            )

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return where a query begins that has no checkpoint.

        Raises:
            EchoicError: There is no such place, or the journal cannot be read.
        """
        journal = self.reading.open()
        return offset_of(start_of(journal, self.reading.options, journal.heads))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return how much a batch may have."""
        options = self.reading.options
        if options.rows_max:
            return ReadMaxRows(options.rows_max)
        return ReadMaxBytes(options.bytes_max) if options.bytes_max else ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return where the next batch ends; the same as `start` if nothing has come for a while.

        Raises:
            EchoicError: The checkpoint belongs to another journal, or this one cannot be read.
        """
        journal = self.reading.open()
        positions = checked(start, journal.partitions, journal.name)
        heads = self._final or self._heads(journal, positions)
        readable = self._readable(journal, positions)
        end = limited(readable, heads, self._rows_max(journal, readable, heads, limit))
        return start if end == positions else offset_of(end)

    def reportLatestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return how far the journal is, by which Spark tells how much waits.

        Raises:
            EchoicError: The journal cannot be read.
        """
        return offset_of(self.reading.open().heads)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read what there is at this moment, and no more.

        Raises:
            EchoicError: The journal cannot be read.
        """
        self._final = self.reading.open().heads

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the parts of a batch.

        Raises:
            EchoicError: It is not in the journal, or not any more.
        """
        journal = self.reading.open()
        positions = self._readable(journal, checked(start, journal.partitions, journal.name))
        ranges = between(positions, checked(end, journal.partitions, journal.name))
        return list(parts_of(self.reading, ranges))

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yield the events of a part.

        Raises:
            EchoicError: They cannot be read.
        """
        return read_part(self.reading, partition)

    def commit(self, end: Offset) -> None:
        """Do nothing: what a journal keeps is for its recorder to decide."""

    def _heads(self, journal: Journal, positions: tuple[int, ...]) -> tuple[int, ...]:
        """Return how far the journal is, after a while if that is no farther."""
        heads = journal.heads
        if heads == positions and journal.shelf.wait(heads, WAIT_SECONDS):
            heads = journal.heads
        return heads

    def _readable(self, journal: Journal, positions: tuple[int, ...]) -> tuple[int, ...]:
        skip = self.reading.options.on_loss == "skip"
        return within(positions, journal.firsts, journal.heads, journal.name, skip=skip)

    def _rows_max(self, journal: Journal, start: tuple[int, ...], heads: tuple[int, ...], limit: ReadLimit) -> int:
        """Return how many events a batch may have; every one that is there, if Spark wants all."""
        rows = sum(max(head - position, 0) for head, position in zip(heads, start, strict=True))
        bytes_max = limit.max_bytes if isinstance(limit, ReadMaxBytes) else 0
        if isinstance(limit, ReadMaxRows):
            rows, bytes_max = min(rows, limit.max_rows), self.reading.options.bytes_max
        return min(rows, rows_of_bytes(journal, start, heads, bytes_max)) if bytes_max else rows
