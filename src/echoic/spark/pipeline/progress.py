"""How a pipeline gets on: what Spark reports of each batch, as events on a channel and as counts for people.

Spark tells a `StreamingQueryListener` about every batch of every query, from Java to Python. What matters of it becomes
a `Progress`, an event like any other: on the channel `pipeline.NAME` of the pipeline's own hub, where `echoic top` and
anybody else can watch it. A query that has nothing to do says nothing for long; so the last event is submitted again
twice a second, and whoever comes late does not have to wait.

The listener is told late, in a queue of all queries, and its words may be overtaken: a query knows its last batches at
once, and `catch_up` counts them ahead of the listener, which then does not count them again.

Three figures are put together here:

    rows out    counted on the way to the output (`observe`), since Spark's own sinks do not tell
    lag         events that are in the journal and not in a batch yet: the latest offset less the end of the batch
    late        rows that came after their window was over, by the watermark, and were dropped from it
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    SourceProgress,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from echoic.errors import EchoicError
from echoic.formats import event

__all__ = ["ROWS", "Progress", "Tally", "Watcher", "has_run", "lag_of", "progress_of", "seconds_of"]

log: Final = logging.getLogger("echoic.spark")
ROWS: Final = "echoic_rows"
"""What the count of rows on the way to an output is called."""
BATCH_RAN: Final = "addBatch"
"""What Spark gives the time of, if there was a batch."""


@event
class Progress:
    """One batch of one output of a pipeline."""

    pipeline: str
    output: str
    batch: int
    rows_in: int
    rows_per_second: float
    rows_out: int
    lag: int
    duration_ms: int
    watermark: float
    """Up to which time of events windows are over, in seconds since 1970; 0 for none."""
    late: int
    state_rows: int
    at: float


class Tally(msgspec.Struct, frozen=True):
    """What an output got in a run, and how it is."""

    output: str
    place: str
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    state_rows: int = 0
    lag: int = 0
    rows_per_second: float = 0.0
    duration_ms: int = 0
    watermark: float = 0.0
    at: float = 0.0

    def idle(self, progress: Progress) -> "Tally":
        """Return the counts when there was nothing for a batch."""
        return msgspec.structs.replace(self, rows_per_second=0.0, lag=progress.lag, at=progress.at)

    def after(self, progress: Progress) -> "Tally":
        """Return the counts with one more batch in them."""
        return Tally(
            output=self.output,
            place=self.place,
            batches=self.batches + 1,
            rows_in=self.rows_in + progress.rows_in,
            rows_out=self.rows_out + progress.rows_out,
            late=self.late + progress.late,
            state_rows=progress.state_rows,
            lag=progress.lag,
            rows_per_second=progress.rows_per_second,
            duration_ms=progress.duration_ms,
            watermark=progress.watermark,
            at=progress.at,
        )


def progress_of(pipeline: str, output: str, reported: StreamingQueryProgress) -> Progress:
    """Return what matters of what Spark reports on a batch."""
    counted = reported.observedMetrics.get(ROWS)
    states = reported.stateOperators
    return Progress(
        pipeline=pipeline,
        output=output,
        batch=reported.batchId,
        rows_in=reported.numInputRows or 0,
        rows_per_second=_number(reported.processedRowsPerSecond or 0.0),
        rows_out=int(counted["rows"]) if counted is not None else max(0, reported.sink.numOutputRows),
        lag=sum(lag_of(source) for source in reported.sources),
        duration_ms=int(reported.batchDuration),
        watermark=seconds_of(reported.eventTime.get("watermark", "")),
        late=sum(state.numRowsDroppedByWatermark for state in states),
        state_rows=sum(state.numRowsTotal for state in states),
        at=seconds_of(reported.timestamp) or time.time(),
    )


def has_run(reported: StreamingQueryProgress) -> bool:
    """Tell whether Spark reports on a batch, and not on having had nothing for one."""
    return BATCH_RAN in reported.durationMs


def lag_of(source: SourceProgress) -> int:
    """Return how many events a source has that were in no batch yet; 0 if it does not tell."""
    latest, end = _positions(source.latestOffset), _positions(source.endOffset)
    return sum(max(0, position - end.get(partition, 0)) for partition, position in latest.items())


def seconds_of(time_text: str) -> float:
    """Return a time as Spark writes it in seconds since 1970; 0 for none, also for its beginning of all watermarks."""
    try:
        return max(0.0, datetime.fromisoformat(time_text).timestamp())
    except ValueError:
        return 0.0


class Watcher(StreamingQueryListener):
    """Counts what Spark reports on the queries of one pipeline, and passes it on as events."""

    def __init__(self, pipeline: str, places: Mapping[str, str], submit: Callable[[Progress], object]) -> None:
        """Watch the queries called PIPELINE.OUTPUT, for each output in `places`."""
        self._pipeline = pipeline
        self._submit = submit
        self._tallies: Final = {output: Tally(output, place) for output, place in places.items()}
        self._last: Final[dict[str, Progress]] = {}
        self._heard: Final = dict.fromkeys(places, -1)
        self._ahead: Final[dict[str, set[int]]] = {output: set() for output in places}
        """Batches that were counted and that the listener has not told of yet."""
        self._lock = threading.Lock()
        self._runs: Final[set[str]] = set()
        self._ended: Final[set[str]] = set()
        self.changed: Final = threading.Event()
        """Set when an output has ended."""

    def tallies(self) -> list[Tally]:
        """Return what each output got."""
        with self._lock:
            return list(self._tallies.values())

    def ended(self) -> set[str]:
        """Return the runs of queries of which the end was reported, by Spark's ids."""
        with self._lock:
            return set(self._ended)

    def heard(self, output: str) -> int:
        """Return the last batch of an output that is counted; -1 for none."""
        with self._lock:
            return max(self._heard[output], *self._ahead[output], -1)

    def catch_up(self, output: str, known: Iterable[StreamingQueryProgress]) -> None:
        """Count what a query knows of its batches, and the listener has not told of yet."""
        for reported in known:
            progress = progress_of(self._pipeline, output, reported)
            with self._lock:
                ahead = self._ahead[output]
                if not has_run(reported) or progress.batch <= self._heard[output] or progress.batch in ahead:
                    continue
                ahead.add(progress.batch)
                self._keep(progress, ran=True)
            self._tell(progress)

    def repeat(self) -> None:
        """Submit the last event of each output again, for those who came late."""
        with self._lock:
            last = list(self._last.values())
        for progress in last:
            self._tell(progress)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Remember which runs are ours; others may have queries in the same session."""
        if self._output(event.name) is not None:
            with self._lock:
                self._runs.add(str(event.runId))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Count a batch, unless that was done ahead."""
        output = self._output(event.progress.name)
        if output is None:
            return
        progress, ran = progress_of(self._pipeline, output, event.progress), has_run(event.progress)
        with self._lock:
            ahead, counted = self._ahead[output], progress.batch in self._ahead[output]
            if ran:
                self._heard[output] = progress.batch
                ahead.discard(progress.batch)
            if counted or (ahead and not ran):
                return
            self._keep(progress, ran=ran)
        self._tell(progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Count nothing: there was nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Remember that a run has ended."""
        with self._lock:
            if (run := str(event.runId)) in self._runs:
                self._ended.add(run)
        self.changed.set()

    def _keep(self, progress: Progress, *, ran: bool) -> None:
        tally = self._tallies[progress.output]
        self._tallies[progress.output] = tally.after(progress) if ran else tally.idle(progress)
        self._last[progress.output] = progress

    def _output(self, query: str | None) -> str | None:
        output = (query or "").removeprefix(f"{self._pipeline}.")
        return output if query == f"{self._pipeline}.{output}" and output in self._tallies else None

    def _tell(self, progress: Progress) -> None:
        try:
            self._submit(progress)
        except EchoicError as error:
            log.debug("progress of %s was not published: %s", progress.output, error)


def _positions(offset: str | None) -> dict[str, int]:
    """Return an offset of the source `echoic` by partition; nothing for those of others."""
    try:
        found: Any = json.loads(offset or "")
    except ValueError:
        return {}
    if isinstance(found, str):  # reported as text inside of JSON
        return _positions(found)
    return {key: at for key, at in found.items() if isinstance(at, int)} if isinstance(found, dict) else {}


def _number(value: float) -> float:
    return value if value == value and abs(value) < float("inf") else 0.0  # noqa: PLR0124 - NaN, for a batch of no time
