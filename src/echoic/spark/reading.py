"""Part of a journal as the Arrow batches that Spark takes: what an executor does.

    journal -> blocks of records -> where -> derive -> Spark's filters -> columns -> one schema -> Spark
               views of the file    kernels over records                  ArrowStream  fitted

Everything that leaves out events or fields does so before there are columns, because the way from here into Spark's
Java process costs more than all the rest. Measured on two cores, 24-byte events: see docs/benchmarks.md.

A `Reading` is decided on the driver and travels to the executors, where it has all that is needed: which journal, the
type that its events are read as, the code, the schema. Executors decide nothing, so a batch that is tried again, on
another machine, after new types were recorded, gives the same rows.

Worker processes are used again for one small batch after the other, so journals stay open (`open_journals`) and kernels
stay compiled.
An executor that sees less of a journal than the driver did, as over a network file system, waits a while and then
fails: rows are never left out because they are late.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
import pyarrow
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from echoic.errors import PipelineError
from echoic.formats import Format, format_of_text
from echoic.recorder import ArrowStream, Filter, Hole, Journal, Recorded, Transform, fill_hole, project
from echoic.spark.offsets import Range
from echoic.spark.open_journals import open_journal, reopened
from echoic.spark.options import SourceOptions
from echoic.spark.schema import METADATA, arrow_schema_of, columns_of, fitted, struct_of

__all__ = ["JournalPart", "Pushed", "Reading", "reading_of"]

Stage: TypeAlias = Filter | Transform

ROWS_MAX: Final = 65_536
PATIENCE_SECONDS: Final = 10.0

logger: Final = logging.getLogger(__name__)


class Pushed(msgspec.Struct, frozen=True):
    """Filters of Spark's as E-Code over what is read, with the values that they compare with."""

    code: str
    params: dict[str, object]


class JournalPart(InputPartition):
    """Events of a partition, for one task."""

    def __init__(self, part: Range) -> None:
        super().__init__(part)
        self.part = part


class Reading(msgspec.Struct, frozen=True):
    """What executors do with parts of a journal."""

    options: SourceOptions
    journal: str
    """The id of the journal, which is another if somebody has begun it anew."""
    input: bytes
    """The descriptor of the type that events are read as."""
    schema: pyarrow.Schema
    pushed: Pushed | None = None

    @property
    def input_format(self) -> Format:
        """The type that events are read as, and that code is written for."""
        return Format.from_descriptor(self.input)

    @property
    def made_format(self) -> Format:
        """The type of what is read: that of the events, or of what `derive` makes of them."""
        return format_of_text(self.options.output) if self.options.output else self.input_format

    @property
    def struct(self) -> StructType:
        """All columns that there are to read."""
        return _struct(self.made_format, self.options)

    @property
    def stateful(self) -> bool:
        """Whether what becomes of an event depends on those before it, so that a partition cannot be cut."""
        return any(stage.stateful for stage in self.stages())

    def open(self) -> Journal:
        """Return the journal, which stays open in this process.

        Raises:
            PipelineError: It is not the one that reading began with.
            EchoicError: It cannot be opened.
        """
        found = open_journal(self.options)
        if found.id != self.journal:
            found = reopened(self.options)
        if found.id != self.journal:
            raise PipelineError(
                f"reading began in journal {self.journal}, here is journal {found.id} - at channel `{found.name}`"
            )
        return found

    def stages(self, on_fault: Callable[[int, str], None] | None = None) -> list[Stage]:
        """Return the code that events pass through, compiled.

        Raises:
            ECodeError: It is wrong.
            FormatError: A type or parameter is.
        """
        options, params = self.options, self.options.parameters
        stages: list[Stage] = []
        if options.where:
            stages.append(Filter(options.where, params, self.input_format, on_fault))
        if options.output:
            stages.append(Transform(options.derive, params, self.input_format, self.made_format, on_fault))
        elif options.derive:
            stages.append(Filter(options.derive, params, self.input_format, on_fault))
        if self.pushed is not None:
            stages.append(Filter(self.pushed.code, self.pushed.params, self.made_format))
        return stages

    def batches(self, part: Range) -> Iterator[pyarrow.RecordBatch]:
        """Yield the events of a part as Spark takes them.

        Raises:
            PipelineError: The journal is another one, or not all of the part is there; or a value does not fit.
            EchoicError: It cannot be read, or the code faults.
        """
        journal = self.open()
        self._await(journal, part)
        tell = self._tell_hole(journal) if self.options.on_loss == "skip" else None
        events = journal.read(part.start, part.end, partition=part.partition, on_hole=tell)
        for stage in self.stages(_tell_fault if self.options.on_fault == "skip" else None):
            events = _passed(events, stage)
        target = self._target()
        stream = ArrowStream(
            target,
            (),
            metadata=not METADATA.keys().isdisjoint(self.schema.names) and METADATA.keys().isdisjoint(target.by_name),
            rows=ROWS_MAX,
            on_hole=lambda hole: fill_hole(hole, journal.name, tell),
        )
        for batch in stream.batches(events):
            yield fitted(batch, self.schema)

    def _target(self) -> Format:
        """Return the type with the columns that are asked for, or with any one if only the journal's own are."""
        made = self.made_format
        names = [name for name in self.schema.names if name in made.by_name]
        return project(made, names or [made.fields[0].name])

    def _await(self, journal: Journal, part: Range) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (heads := journal.heads)[part.partition] < part.end:
            if time.monotonic() >= deadline:
                raise PipelineError(
                    f"events {part.start} to {part.end - 1} are to be read, only those before {heads[part.partition]} "
                    f"are seen here - at channel `{journal.name}`, partition {part.partition}"
                )
            journal.shelf.wait(heads, 0.2)

    def _tell_hole(self, journal: Journal) -> Callable[[Hole], None]:
        def tell(hole: Hole) -> None:
            logger.warning(
                "events %d to %d are left out, they cannot be read: %s - at channel `%s`, partition %d",
                hole.first,
                hole.last,
                hole.reason,
                journal.name,
                hole.partition,
            )

        return tell


def reading_of(options: SourceOptions, schema: StructType | None = None, journal: Journal | None = None) -> Reading:
    """Decide how a journal is read.

    Args:
        options: What was asked for.
        schema: The columns that are wanted; all, if nothing is said.
        journal: The journal, for who has just opened it.

    Raises:
        PipelineError: There is no type, or a column that is asked for is not there.
        EchoicError: The journal cannot be opened, or the code is wrong.
    """
    if journal is None:
        journal = reopened(options)
    if options.declared:
        read_as = format_of_text(options.declared)
    else:
        read_as = columns_of(journal.formats, journal.name)
    made = format_of_text(options.output) if options.output else read_as
    reading = Reading(options, journal.id, read_as.descriptor, arrow_schema_of(schema or _struct(made, options)))
    reading.stages()  # tells at once if the code is wrong
    return reading


def _struct(made: Format, options: SourceOptions) -> StructType:
    """Return the columns that are read of a type."""
    own = [name for name in options.columns if name in METADATA]
    struct = struct_of(made, metadata=options.metadata or bool(own))
    if not options.columns:
        return struct
    for name in options.columns:
        if name not in own:
            made.member(name)  # tells of one that is not there, with the nearest
    wanted: Sequence[str] = options.columns if own or not options.metadata else (*options.columns, *METADATA)
    return StructType([struct[name] for name in wanted])


def _passed(events: Iterator[Recorded], stage: Stage) -> Iterator[Recorded]:
    for recorded in events:
        kept = stage.apply(recorded)
        if kept is not None:
            yield kept


def _tell_fault(number: int, reason: str) -> None:
    logger.warning("event %d is left out, the code faults at %s", number, reason)
