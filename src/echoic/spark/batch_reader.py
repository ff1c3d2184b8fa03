"""All that a journal has at a moment, as a table: `spark.read.format("echoic")`.

Where reading ends is decided once, when Spark plans the query, before the types are looked up: whatever is read is of a
type that is known. It is cut into parts for the executors, none of which is so small that it is not worth a task.

*Filters of Spark's own* run in the reader if the option `pushdown` is set (`pushing`). Spark refuses a reader that
offers it in a session without `spark.sql.python.filterPushdown.enabled`, even if there is nothing to push; hence the
option, and two classes.
"""

import os
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from echoic.errors import PipelineError
from echoic.spark.offsets import Range, between, split
from echoic.spark.open_journals import reopened
from echoic.spark.options import SourceOptions
from echoic.spark.positions import end_of, start_of
from echoic.spark.pushing import narrowed, pushed
from echoic.spark.reading import JournalPart, Reading, reading_of
from echoic.spark.schema import METADATA, arrow_schema_of
from echoic.spark.worker_memory import task_done

__all__ = ["BatchReader", "PushingBatchReader", "parts_of", "read_part"]


class BatchReader(DataSourceReader):
    """Reads what there is."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        """Decide what is read.

        Raises:
            EchoicError: The journal cannot be read, or does not have what is asked for.
        """
        journal = reopened(options)
        heads = journal.heads
        self.reading: Reading = reading_of(options, schema, journal)
        self._ranges = between(start_of(journal, options, heads), end_of(journal, options, heads))

    def partitions(self) -> list[InputPartition]:
        """Return the parts that tasks read."""
        return list(parts_of(self.reading, self._ranges)) or [JournalPart(Range(0, 0, 0))]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        """Yield the events of a part.

        Raises:
            EchoicError: They cannot be read.
        """
        return read_part(self.reading, partition)


class PushingBatchReader(BatchReader):
    """Reads what there is, and takes filters of Spark's."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take the filters that can be run here, and return the others.

        Raises:
            EchoicError: The journal cannot be read.
        """
        reading = self.reading
        taken, left = pushed(filters, reading.made_format, self._unsure())
        # Code that remembers has to see all events; and fields of events may be called as the journal's columns are.
        if not reading.stateful and METADATA.keys().isdisjoint(reading.made_format.by_name):
            self._ranges = narrowed(self._ranges, filters)
        self.reading = msgspec.structs.replace(reading, pushed=taken)
        return left

    def _unsure(self) -> set[str]:
        """Return the columns that may be null, or that are wanted as another type than they have."""
        reading = self.reading
        natural = arrow_schema_of(reading.struct)
        unsure = {each.name for each in natural if each.name in reading.schema.names} - {
            each.name for each in natural if each in list(reading.schema)
        }
        if not reading.options.output:  # what code makes is all there
            for format in reading.open().formats:
                unsure |= set(reading.made_format.by_name).difference(format.by_name)
        return unsure


def parts_of(reading: Reading, ranges: list[Range]) -> list[JournalPart]:
    """Return ranges cut into parts for tasks; code that remembers has a partition for itself."""
    if not reading.stateful:
        ranges = split(ranges, reading.options.splits or os.cpu_count() or 1)
    return [JournalPart(part) for part in ranges]


def read_part(reading: Reading, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
    """Yield the events of a part, as Spark has given it back.

    Raises:
        EchoicError: They cannot be read.
    """
    if not isinstance(partition, JournalPart):
        raise PipelineError(f"expected part of a journal, got {partition!r}")
    yield from reading.batches(partition.part)
    task_done()
