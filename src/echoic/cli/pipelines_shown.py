"""How pipelines get on, for people: the line while one runs, the table at its end, and the part of `echoic top`.

A pipeline says how it gets on by events on the channel `pipeline.NAME`. `Pipelines` subscribes to every channel of such
a name that has the fields of such events, and keeps the last one of each output; one that was heard nothing of for some
seconds is left out. The events are taken as they come, without their class: that is in `echoic.spark`, and whoever only
looks at channels does not need Spark.
"""

import threading
import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from echoic.channels import ChannelEntry
from echoic.cli.progress import show_line
from echoic.errors import EchoicError
from echoic.hub import Hub, Sink

if TYPE_CHECKING:
    from echoic.spark.pipeline import Tally

__all__ = [
    "OUTPUT_COLUMNS",
    "PIPELINE_COLUMNS",
    "Live",
    "PipelineLoad",
    "Pipelines",
    "live_line",
    "output_row",
    "pipeline_row",
]

OUTPUT_COLUMNS: Final = ("OUTPUT", "ROWS IN", "ROWS OUT", "LATE", "BATCHES", "LAG", "IN WINDOWS", "WATERMARK", "PLACE")
PIPELINE_COLUMNS: Final = (
    "PIPELINE",
    "OUTPUT",
    "BATCH",
    "ROWS/S",
    "ROWS IN",
    "ROWS OUT",
    "LAG",
    "MS",
    "LATE",
    "IN WINDOWS",
    "WATERMARK",
)
PREFIX: Final = "pipeline."
SILENT_SECONDS: Final = 15.0
SHOW_SECONDS: Final = 1.0
OUTPUTS_MAX: Final = 1000
WATERMARK_BEGIN: Final = 1.0
"""Spark's watermark before there is one is the beginning of 1970."""


class PipelineLoad(msgspec.Struct, frozen=True):
    """The last batch of an output of a pipeline."""

    pipeline: str
    output: str
    batch: int
    rows_in: int
    rows_per_second: float
    rows_out: int
    lag: int
    duration_ms: int
    watermark: float
    late: int
    state_rows: int
    at: float


class Pipelines:
    """Follows the progress of all pipelines that are known to a name server."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._sinks: Final[dict[str, Sink | None]] = {}
        self._last: Final[dict[tuple[str, str], tuple[float, PipelineLoad]]] = {}
        self._lock = threading.Lock()

    def follow(self, known: Iterable[ChannelEntry]) -> None:
        """Subscribe to the channels of pipelines among those that are known, and leave those that are gone."""
        wanted = {entry.id for entry in known if entry.name.startswith(PREFIX)}
        for id in wanted - set(self._sinks):
            self._sinks[id] = self._subscribed(id)
        for id in set(self._sinks) - wanted:
            sink = self._sinks.pop(id)
            if sink is not None:
                sink.close()

    def loads(self) -> list[PipelineLoad]:
        """Return the last batch of each output that was heard of lately."""
        since = time.monotonic() - SILENT_SECONDS
        with self._lock:
            for key in [key for key, (heard, _) in self._last.items() if heard < since]:
                del self._last[key]
            return [load for _, (_, load) in sorted(self._last.items())]

    def _subscribed(self, id: str) -> Sink | None:
        try:
            return self._hub.open(id).subscribe(self._hear)
        except EchoicError:
            return None  # it has gone meanwhile

    def _hear(self, event: object) -> None:
        """Keep an event if it is the progress of a pipeline; anything may be on a channel of such a name."""
        fields = {name: getattr(event, name, None) for name in PipelineLoad.__struct_fields__}
        try:
            load = msgspec.convert(fields, PipelineLoad)
        except msgspec.ValidationError:
            return
        with self._lock:
            key = (load.pipeline, load.output)
            if key in self._last or len(self._last) < OUTPUTS_MAX:
                self._last[key] = (time.monotonic(), load)


def pipeline_row(load: PipelineLoad) -> list[object]:
    """Return an output of a pipeline as a line of the table of all."""
    return [
        load.pipeline,
        load.output,
        load.batch,
        round(load.rows_per_second),
        load.rows_in,
        load.rows_out,
        load.lag,
        load.duration_ms,
        load.late,
        load.state_rows,
        _clock(load.watermark),
    ]


def output_row(tally: "Tally") -> list[object]:
    """Return what an output got as a line of a table."""
    return [
        tally.output,
        tally.rows_in,
        tally.rows_out,
        tally.late,
        tally.batches,
        tally.lag,
        tally.state_rows,
        _clock(tally.watermark),
        tally.place,
    ]


class Live:
    """The line on a terminal that tells how a pipeline gets on, drawn anew about once a second."""

    def __init__(self) -> None:
        self._shown = time.monotonic()
        self._read = 0

    @property
    def due(self) -> bool:
        """Whether it was drawn long enough ago."""
        return time.monotonic() - self._shown >= SHOW_SECONDS

    def show(self, tallies: "Sequence[Tally]") -> None:
        """Draw it."""
        current, read = time.monotonic(), sum(each.rows_in for each in tallies)
        show_line(live_line(tallies, (read - self._read) / max(current - self._shown, SHOW_SECONDS)))
        self._shown, self._read = current, read


def live_line(tallies: "Sequence[Tally]", rate: float) -> str:
    """Return in one line how a pipeline gets on: what it has read, how fast, and what it has not."""
    read, written = sum(each.rows_in for each in tallies), sum(each.rows_out for each in tallies)
    lag = max((each.lag for each in tallies), default=0)
    slowest = max((each.duration_ms for each in tallies), default=0)
    late = sum(each.late for each in tallies)
    line = f"{read:,} rows in  {written:,} out  {rate:,.0f} rows/s  lag {lag:,} events  batch {slowest:,} ms"
    return f"{line}  {late:,} late" if late else line


def _clock(seconds: float) -> str:
    """Return a watermark as people read it, in UTC; nothing for none, and for one of a time that no calendar has.

    One of today has no date: it is the last column, and terminals are narrow.
    """
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    if seconds <= WATERMARK_BEGIN:
        return ""
    return moment.strftime("%H:%M:%S" if moment.date() == datetime.now(UTC).date() else "%Y-%m-%d %H:%M:%S")
