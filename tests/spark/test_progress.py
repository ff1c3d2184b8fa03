"""What queries report, and what is counted of it. The reports are cut from real ones; no Java runs."""

import json
from typing import Any

import pytest

from echoic.errors import PipelineError
from echoic.spark.pipeline.progress import Progress, Report, SourceReport, Watcher, lag_of, progress_of, report_of
from echoic.spark.pipeline.queries import is_impatience

QUERY = "8e6c5f0c-9d1f-4d7e-a8f4-2b8a7a3c1d11"


def report(batch: int, **others: object) -> Report:
    """A batch of ten rows, of which nine go out, while four more events wait; what is None is not said."""
    said: dict[str, Any] = {
        "id": QUERY,
        "runId": QUERY,
        "name": "market.some",
        "timestamp": f"2026-11-16T17:54:{batch:02d}.500Z",
        "batchId": batch,
        "batchDuration": 120,
        "numInputRows": 10,
        "inputRowsPerSecond": 5.0,
        "processedRowsPerSecond": 2.5,
        "durationMs": {"addBatch": 80, "triggerExecution": 120},
        "eventTime": {"watermark": "2025-10-09T08:53:20.000Z"},
        "stateOperators": [],
        "sources": [
            {
                "description": "PythonMicroBatchStream",
                "startOffset": {"0": 0},
                "endOffset": {"0": 10},
                "latestOffset": {"0": 14},
                "numInputRows": 10,
                "inputRowsPerSecond": 5.0,
                "processedRowsPerSecond": 2.5,
            }
        ],
        "sink": {"description": "FileSink", "numOutputRows": -1},
        "observedMetrics": {"echoic_rows": {"rows": 9}},
    }
    return report_of(json.dumps({key: value for key, value in (said | others).items() if value is not None}))


def idle(batch: int) -> Report:
    """No batch: there was nothing for one, and no rates, which JSON has no words for."""
    durations = {"latestOffset": 3, "triggerExecution": 3}
    return report(batch, numInputRows=0, processedRowsPerSecond=None, durationMs=durations, observedMetrics={})


def test_what_matters_of_a_report_becomes_an_event() -> None:
    progress = progress_of("market", "some", report(3))
    assert progress == Progress("market", "some", 3, 10, 2.5, 9, 4, 120, 1_760_000_000.0, 0, 0, at=progress.at)
    assert lag_of(report(3).sources[0]) == 4
    assert report(3).ran
    assert not idle(4).ran
    assert lag_of(SourceReport(end_offset='{"0": 3}', latest_offset='{"0": 5, "1": 2}')) == 4
    assert lag_of(SourceReport(end_offset=None, latest_offset="no JSON")) == 0
    assert progress_of("market", "some", idle(4)).rows_per_second == 0


def test_a_report_that_is_none_is_refused_with_its_words() -> None:
    with pytest.raises(PipelineError, match="missing required field `runId`"):
        report_of('{"batchId": 3}')


def test_batches_are_counted_and_submitted_and_quiet_times_are_none() -> None:
    told: list[Progress] = []
    watcher = Watcher("market", {"some": "tables/some", "other": "tables/other"}, told.append)
    watcher.count("some", [report(0), report(1), idle(2), idle(2), report(2)])
    some, other = watcher.tallies()
    assert (some.batches, some.rows_in, some.rows_out, some.lag, some.place) == (3, 30, 27, 4, "tables/some")
    assert (other.batches, other.rows_in) == (0, 0)
    assert [each.batch for each in told] == [0, 1, 2, 2, 2]
    watcher.repeat()
    assert told[-1] == told[-2], "what came last is said again"
    assert watcher.tallies() == [some, other], "and is not counted again"


@pytest.mark.parametrize(
    ("reason", "impatient"),
    [
        ("SocketTimeoutException: Timed out while waiting for the Python worker to connect back", True),
        ("SparkException: Python worker failed to connect back.", True),
        ("SocketTimeoutException: Read timed out", False),
        ("no space left on device - at /tables/all", False),
    ],
)
def test_only_a_python_that_came_too_late_is_tried_again(reason: str, impatient: bool) -> None:
    assert is_impatience(reason) is impatient
