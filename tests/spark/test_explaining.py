"""The one line that is left of Spark's pages. The pages here are cut from real ones; no Java runs."""

import os
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException

from echoic.errors import JournalError, PipelineError
from echoic.spark.asides import stderr_aside
from echoic.spark.explaining import reason_of

STREAM = "[STREAM_FAILED] Query [id = 8e6c, runId = 06c3] terminated with exception: "
SOURCE = """[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when running Python streaming data source:
Traceback (most recent call last):
  File "/x/pyspark.zip/pyspark/sql/streaming/python_streaming_source_runner.py", line 270, in main
    latest_offset_func(reader, outfile)
  File "/x/echoic/recorder/disk.py", line 88, in listed
    raise JournalError(f"cannot list")
echoic.errors.JournalError: cannot list a partition of the journal: No such file or directory - at trades/0
 SQLSTATE: 38000 SQLSTATE: XXKST"""
TASK = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure:
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/pyspark/worker.py", line 2106, in main
  File "/x/market.py", line 7, in clean
ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:581)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
DISK = """Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times
org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to file:/tables/all. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(QueryExecutionErrors.scala:809)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""
CHANGED = (
    "this is another query than the one that made the checkpoint; undo the change, or remove the checkpoint to begin "
    "anew: "
)
CODE = """Traceback (most recent call last):
  File "/x/echoic/spark/reading.py", line 12, in reading_of
echoic.errors.ECodeError: the option `where` does not compile:
    input.prise < 1
          ^ there is no field `prise`

SQLSTATE: 38000"""


class Captured(StreamingQueryException):
    """An error that has its cause where Spark puts that of an error in Java."""

    def __init__(self, message: str, cause: BaseException) -> None:
        super().__init__(message)
        self._cause = cause


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            StreamingQueryException(STREAM + SOURCE),
            "cannot list a partition of the journal: No such file or directory - at trades/0",
        ),
        (StreamingQueryException(STREAM + TASK), "ZeroDivisionError: division by zero"),
        (StreamingQueryException(STREAM + DISK), "no space left on device - at /tables/all"),
        (
            AnalysisException(CODE),
            "the option `where` does not compile: input.prise < 1 ^ there is no field `prise`",
        ),
        (
            AnalysisException(
                "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `prise` cannot be resolved. Did you mean "
                "`price`? SQLSTATE: 42703; line 1 pos 7;\n'Project ['prise]\n+- SubqueryAlias trades"
            ),
            "a column with name `prise` cannot be resolved. Did you mean `price`? [UNRESOLVED_COLUMN.WITH_SUGGESTION]",
        ),
        (
            StreamingQueryException(
                STREAM + "[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match."
            ),
            CHANGED + "provided key schema does not match [STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE]",
        ),
        (JournalError("the journal is damaged - at trades/0"), "the journal is damaged - at trades/0"),
        (OSError("gone"), "OSError: gone"),
    ],
)
def test_a_page_becomes_the_line_that_matters(error: BaseException, reason: str) -> None:
    assert reason_of(error) == reason


def test_the_cause_of_an_error_is_looked_at_too() -> None:
    outer = RuntimeError("an error occurred while calling o42.start")
    outer.__cause__ = StreamingQueryException(STREAM + SOURCE)
    assert reason_of(outer).startswith("cannot list a partition")


def test_a_commit_that_failed_is_explained_by_what_spark_notes_as_its_cause() -> None:
    """As for a sink that refuses an epoch: the query says only that its job failed, and keeps the reason to itself."""
    inner = RuntimeError("Traceback:\nechoic.errors.PipelineError: epoch 3 is refused - at the intake of `alerts`\n")
    job = Captured("[WRITING_JOB_FAILED] Writing job failed. SQLSTATE: 40000", inner)
    outer = Captured(STREAM + "[WRITING_JOB_FAILED] Writing job failed. SQLSTATE: 40000", job)
    assert reason_of(outer) == "epoch 3 is refused - at the intake of `alerts`"
    inner.__cause__ = outer  # it ends even so
    assert reason_of(outer) == "epoch 3 is refused - at the intake of `alerts`"


def test_of_an_error_that_has_another_one_as_its_cause_the_outer_one_is_told() -> None:
    page = """Traceback (most recent call last):
  File "/x/echoic/hub/hub.py", line 1, in ask
echoic.errors.UnreachableError: no hub answers at 127.0.0.1:1

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/echoic/spark/writing.py", line 1, in commit_rows
echoic.errors.PipelineError: the intake of channel `alerts` has not got further in 60 s: no hub answers at 127.0.0.1:1
 SQLSTATE: 38000"""
    told = "the intake of channel `alerts` has not got further in 60 s: no hub answers at 127.0.0.1:1"
    assert reason_of(StreamingQueryException(STREAM + page)) == told
    assert reason_of(StreamingQueryException(STREAM + page + f"\n\nCaused by: {page}\n\tat java.Thread.run")) == told


def test_a_reason_is_never_a_page() -> None:
    assert len(reason_of(ValueError("x" * 100_000))) < 1000


def test_what_children_write_is_put_aside(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "spark.log"
    log.write_text("before\n")
    with stderr_aside(log):
        os.system("echo a page of words >&2")
    assert log.read_text() == "before\na page of words\n"
    assert capfd.readouterr().err == ""
    os.system("echo here again >&2")
    assert capfd.readouterr().err == "here again\n"


def fail_aside(log: Path) -> None:
    with stderr_aside(log):
        os.system("echo unrecognized option >&2")
        raise PipelineError("java ended")


def test_what_was_put_aside_is_shown_when_nothing_came_of_it(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PipelineError, match="java ended"):
        fail_aside(tmp_path / "spark.log")
    assert capfd.readouterr().err == "unrecognized option\n"
    with pytest.raises(PipelineError, match="cannot be kept: No such file"):
        fail_aside(tmp_path / "no" / "log")
