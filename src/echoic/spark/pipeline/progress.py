"""How a pipeline gets on: what Spark reports of each batch, as events on a channel and as counts for people.

A query keeps its last hundred reports, one for every batch and one now and then if there was none; those that were not
seen yet are fetched a few times a second. What matters of them becomes a `Progress`, an event like any other: on the
channel `pipeline.NAME` of the pipeline's own hub, where `echoic top` and anybody else can watch it. A query that has
nothing to do says nothing for long; so the last event is submitted again twice a second, and whoever comes late does
not have to wait.

Spark has a listener for this as well. But it turns a report into Python by some eighty calls to Java, and on a busy
machine these take a second: a listener of a few fast queries falls behind for good, and at the end of a run its counts
are short of what was written. A report as JSON takes two calls. PySpark's own records for it are not used, because
they insist on rates, which Spark leaves out of the JSON when no time has passed.

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

from echoic.errors import EchoicError, PipelineError
from echoic.formats import event

__all__ = ["ROWS", "Progress", "Report", "Tally", "Watcher", "lag_of", "progress_of", "report_of", "seconds_of"]

log: Final = logging.getLogger("echoic.spark")
ROWS: Final = "echoic_rows"
"""What the count of rows on the way to an output is called."""
BATCH_RAN: Final = "addBatch"
"""What Spark gives the time of, if there was a batch."""


class SourceReport(msgspec.Struct, frozen=True, rename="camel"):
    """How far a source is, as Spark says it in JSON; an offset is JSON, or a text with JSON in it."""

    end_offset: Any = None
    latest_offset: Any = None


class StateReport(msgspec.Struct, frozen=True, rename="camel"):
    """What windows keep."""

    num_rows_total: int = 0
    num_rows_dropped_by_watermark: int = 0


class SinkReport(msgspec.Struct, frozen=True, rename="camel"):
    """What a sink says itself; -1 if it says nothing."""

    num_output_rows: int = -1


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """What Spark reports of a batch, or of having had nothing for one: as much of it as matters here."""

    run_id: str
    batch_id: int
    timestamp: str
    batch_duration: int = 0
    num_input_rows: int = 0
    processed_rows_per_second: float = 0.0
    duration_ms: dict[str, int] = {}
    event_time: dict[str, str] = {}
    state_operators: tuple[StateReport, ...] = ()
    sources: tuple[SourceReport, ...] = ()
    sink: SinkReport = SinkReport()
    observed_metrics: dict[str, dict[str, Any]] = {}

    @property
    def mark(self) -> tuple[str, int, str]:
        """What tells it from every other one."""
        return self.run_id, self.batch_id, self.timestamp

    @property
    def ran(self) -> bool:
        """Whether there was a batch."""
        return BATCH_RAN in self.duration_ms


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


def report_of(text: str) -> Report:
    """Return what Spark says in JSON.

    Raises:
        PipelineError: It says something else.
    """
    try:
        return msgspec.json.decode(text, type=Report)
    except msgspec.MsgspecError as error:
        raise PipelineError(f"this report of Spark's is not understood: {error} - at {text[:80]!r}") from error


def progress_of(pipeline: str, output: str, report: Report) -> Progress:
    """Return what matters of what Spark reports on a batch."""
    counted = _counted(report.observed_metrics.get(ROWS, {}))
    states = report.state_operators
    return Progress(
        pipeline=pipeline,
        output=output,
        batch=report.batch_id,
        rows_in=report.num_input_rows,
        rows_per_second=report.processed_rows_per_second,
        rows_out=max(0, report.sink.num_output_rows) if counted is None else counted,
        lag=sum(lag_of(source) for source in report.sources),
        duration_ms=report.batch_duration,
        watermark=seconds_of(report.event_time.get("watermark", "")),
        late=sum(state.num_rows_dropped_by_watermark for state in states),
        state_rows=sum(state.num_rows_total for state in states),
        at=seconds_of(report.timestamp) or time.time(),
    )


def _counted(observed: dict[str, Any]) -> int | None:
    """Return the one number that was observed, which through Spark Connect stands in a list without a name."""
    for value in observed.values():
        found = value[0] if isinstance(value, list) and value else value
        if isinstance(found, int):
            return found
    return None


def lag_of(source: SourceReport) -> int:
    """Return how many events a source has that were in no batch yet; 0 if it does not tell."""
    latest, end = _positions(source.latest_offset), _positions(source.end_offset)
    return sum(max(0, position - end.get(partition, 0)) for partition, position in latest.items())


def seconds_of(time_text: str) -> float:
    """Return a time as Spark writes it in seconds since 1970; 0 for none, also for its beginning of all watermarks."""
    try:
        return max(0.0, datetime.fromisoformat(time_text).timestamp())
    except ValueError:
        return 0.0


class Watcher:
    """Counts what the outputs of a pipeline get, and submits it as events."""

    def __init__(self, pipeline: str, places: Mapping[str, str], submit: Callable[[Progress], object]) -> None:
        """Count for each output in `places`; these are where they go."""
        self._pipeline = pipeline
        self._submit = submit
        self._tallies: Final = {output: Tally(output, place) for output, place in places.items()}
        self._last: Final[dict[str, Progress]] = {}
        self._lock = threading.Lock()

    def tallies(self) -> list[Tally]:
        """Return what each output got."""
        with self._lock:
            return list(self._tallies.values())

    def count(self, output: str, reports: Iterable[Report]) -> None:
        """Count what was reported of an output, in the order in which it happened, and submit it."""
        for report in reports:
            progress = progress_of(self._pipeline, output, report)
            with self._lock:
                tally = self._tallies[output]
                self._tallies[output] = tally.after(progress) if report.ran else tally.idle(progress)
                self._last[output] = progress
            self._tell(progress)

    def repeat(self) -> None:
        """Submit the last event of each output again, for those who came late."""
        with self._lock:
            last = list(self._last.values())
        for progress in last:
            self._tell(progress)

    def _tell(self, progress: Progress) -> None:
        try:
            self._submit(progress)
        except EchoicError as error:
            log.debug("progress of %s was not published: %s", progress.output, error)


def _positions(offset: object) -> dict[str, int]:
    """Return an offset of the source `echoic` by partition; nothing for those of others."""
    if isinstance(offset, str):  # reported as text inside of JSON
        try:
            offset = json.loads(offset)
        except ValueError:
            return {}
    return {key: at for key, at in offset.items() if isinstance(at, int)} if isinstance(offset, dict) else {}
