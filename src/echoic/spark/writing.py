"""The sink of `format("echoic")`: rows become events of a channel, each exactly once.

    executors   write: rows -> events of the channel's type -> portions ---+--> stage (large partitions)
                                                                           +--> the commit message (small ones)
    driver      commit(query, epoch): the attempts that count, and the portions that came with the messages

A channel takes rows by its intake (`hub.intake`), whose name for them is (query, epoch). Of a stream that is Spark's id
of the query, which the checkpoint keeps, and the number of the batch, so whatever Spark repeats after a crash is known
there. Tasks draw a number of their own each time they run: what a task stages that Spark runs twice, or that died in
the middle, is not named by the commit, and dropped.

*Small partitions travel in the commit message.* At a thousand events a second a batch has some dozens of rows; they are
part of the one request that commits them, so a batch costs the sink one round trip and nothing on executors. It also
makes the commit whole: it can be sent again to an intake that was killed meanwhile.

*Back-pressure* is that a commit returns when its rows are in the journal of the channel, and that the intake publishes
no faster than the sinks of the channel take events: Spark begins no batch before the last one is committed.
"""

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from echoic.errors import EchoicError, PipelineError
from echoic.formats import Format
from echoic.hub import IntakeClient
from echoic.hub.intake_book import Attempt
from echoic.hub.intake_messages import CarriedPart, bodies_of
from echoic.spark.rows import arrow_schema_of_rows, check_columns, events_of, format_of
from echoic.spark.sink_options import SinkOptions
from echoic.spark.worker_hub import worker_hub
from echoic.spark.worker_memory import task_done

__all__ = ["EchoicStreamWriter", "EchoicWriter", "Written"]

CARRIED_BYTES_MAX: Final = 128 * 1024
CLIENTS_MAX: Final = 64
QUERY_ID: Final = "sql.streaming.queryId"
BATCH_ID: Final = "streaming.sql.batchId"

_clients: Final[dict[SinkOptions, tuple[object, IntakeClient]]] = {}


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task tells the driver. `portions` are with the intake already, or `carried` by this message."""

    query: str
    epoch: int
    partition: int
    attempt: int
    rows: int
    portions: int
    carried: tuple[bytes, ...] = ()


class Writing:
    """What batches and streams have in common: how rows get from a task to the intake."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Ask the channel what it takes.

        Raises:
            PipelineError: An option is wrong, the rows cannot be its events, it has no intake, or nobody answers.
        """
        if overwrite:
            raise PipelineError("events that were sent cannot be overwritten: write in mode `append`")
        self.options: Final = SinkOptions.of(options)
        columns = arrow_schema_of_rows(schema)
        try:
            known = client_of(self.options).type()
        except EchoicError as error:
            raise PipelineError(str(error)) from error
        if known is not None:
            check_columns(columns, known, self.options.channel)
        self.descriptor: Final = (known or format_of(columns, self.options.channel)).descriptor
        task_done()

    def write_rows(self, query: str, epoch: int, batches: Iterator[pyarrow.RecordBatch]) -> Written:
        """Stage the rows of a task.

        Raises:
            PipelineError: A value does not fit its field, or the intake does not take it.
        """
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        attempt = Attempt(query, epoch, partition, secrets.randbits(62))
        format, portions = Format.from_descriptor(self.descriptor), Portions(attempt, self.options)
        rows = 0
        try:
            for batch in batches:
                if batch.num_rows:
                    rows += batch.num_rows
                    for body in bodies_of(events_of(batch, format)):
                        portions.add(body)
        except EchoicError as error:
            raise PipelineError(f"{error} - writing to channel `{self.options.channel}`") from error
        task_done()
        return Written(query, epoch, partition, attempt.attempt, rows, portions.count, tuple(portions.carried))

    def commit_rows(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Have what tasks have written published, once.

        Raises:
            PipelineError: The intake does not take it, or does not answer.
        """
        written = [message for message in messages if isinstance(message, Written)]
        if not any(message.rows for message in written):
            return
        parts = [
            CarriedPart(each.partition, each.attempt, each.portions, each.carried) for each in written if each.rows
        ]
        try:
            client_of(self.options).commit(written[0].query, written[0].epoch, parts)
        except EchoicError as error:
            raise PipelineError(str(error)) from error
        task_done()

    def abort_rows(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Have what tasks have written dropped; if that fails the intake forgets it in time."""
        written = {(each.query, each.epoch) for each in messages if isinstance(each, Written)}
        with contextlib.suppress(EchoicError):  # the reason of the abort is what must be told
            for query, epoch in written:
                client_of(self.options).abort(query, epoch)


class EchoicWriter(DataSourceArrowWriter):
    """Writes the rows of a batch: all of them become events, or none."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Ask the channel what it takes.

        Raises:
            PipelineError: An option is wrong, the rows cannot be its events, it has no intake, or nobody answers.
        """
        self._writing = Writing(options, schema, overwrite)
        self._query = self._writing.options.query or f"batch-{secrets.token_hex(16)}"

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override] # of Rows
        """Stage the rows of a partition.

        Raises:
            PipelineError: A value does not fit its field, or the intake does not take it.
        """
        return self._writing.write_rows(self._query, 0, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish the rows; return when they are in the channel's journal.

        Raises:
            PipelineError: The intake does not take them, or does not answer.
        """
        self._writing.commit_rows(messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Drop what was staged."""
        self._writing.abort_rows(messages)


class EchoicStreamWriter(DataSourceStreamArrowWriter):
    """Writes the batches of a stream, each of them once."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Ask the channel what it takes.

        Raises:
            PipelineError: An option is wrong, the rows cannot be its events, it has no intake, or nobody answers.
        """
        self._writing = Writing(options, schema, overwrite)

    def write(self, iterator: Iterator[pyarrow.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override] # of Rows
        """Stage the rows of a partition.

        Raises:
            PipelineError: A value does not fit its field, or the intake does not take it.
        """
        context = TaskContext.get()
        query = self._writing.options.query or (context and context.getLocalProperty(QUERY_ID)) or ""
        batch = context.getLocalProperty(BATCH_ID) if context is not None else None
        if not query or batch is None:
            raise PipelineError("this is not a task of a streaming query: Spark has not told which query and batch")
        return self._writing.write_rows(query, int(batch), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        """Publish the rows of a batch, unless that was done; return when they are in the channel's journal.

        Raises:
            PipelineError: The intake does not take them, or does not answer.
        """
        self._writing.commit_rows(messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803 - Spark's
        """Drop what was staged."""
        self._writing.abort_rows(messages)


class Portions:
    """What a task has made of its rows: carried by its message while it is little, else given to the intake."""

    def __init__(self, attempt: Attempt, options: SinkOptions) -> None:
        self._attempt, self._options = attempt, options
        self._size = 0
        self.carried: list[bytes] = []
        self.count = 0

    def add(self, body: bytes) -> None:
        """Take a portion.

        Raises:
            EchoicError: The intake does not take it.
        """
        self.carried.append(body)
        self.count += 1
        self._size += len(body)
        if self._size > CARRIED_BYTES_MAX:
            client, first = client_of(self._options), self.count - len(self.carried)
            for index, each in enumerate(self.carried, first):
                client.stage(self._attempt, index, each)
            self.carried.clear()


def client_of(options: SinkOptions) -> IntakeClient:
    """Return this process's way to an intake, which is kept from one batch to the next.

    Raises:
        EchoicError: There can be no hub.
    """
    hub = worker_hub(options.names)
    known = _clients.get(options)
    if known is not None and known[0] is hub:
        return known[1]
    while len(_clients) >= CLIENTS_MAX:
        _, former = _clients.pop(next(iter(_clients)))
        former.close()
    made = IntakeClient(hub, options.channel, timeout=options.timeout)
    _clients[options] = (hub, made)
    return made
