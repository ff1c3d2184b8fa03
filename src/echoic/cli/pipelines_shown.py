"""How pipelines get on, for people: the line while one runs, the table at its end, and the part of `echoic top`."""

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from echoic.cli.progress import show_line
from echoic.monitor import PipelineLoad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from echoic.spark.pipeline import Tally

__all__ = ["OUTPUT_COLUMNS", "PIPELINE_COLUMNS", "Live", "live_line", "output_row", "pipeline_row"]

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
SHOW_SECONDS: Final = 1.0
WATERMARK_BEGIN: Final = 1.0
"""Spark's watermark before there is one is the beginning of 1970."""


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
