"""From the records of a pipeline to streaming frames.

Each source and step becomes a frame of Spark, made of those that it reads; an output is then a query over one of them.
Nothing is computed here: frames are plans.

Event time needs care. A watermark tells how far the time of events has come, and belongs where all events are seen:
at the source, before any filter, or a rare event would hold up all windows. But it belongs to one column, and a
derivation that makes records of another type has other columns. So a source is marked where it is read; behind a
transform it is marked on what the transform makes, from the unmarked frame, since Spark refuses to mark twice.

    source ── mark ── filter ── filter ── window
       └───────────── transform ── mark ── window
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final, TypeAlias, assert_never

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as columns
from pyspark.sql.types import ByteType, DoubleType, FloatType, IntegerType, LongType, ShortType, TimestampType

from echoic.errors import EchoicError, ECodeError, PipelineError
from echoic.spark.derive import derive
from echoic.spark.explaining import reason_of
from echoic.spark.pipeline.checking import inputs_by_step, nearest, order
from echoic.spark.pipeline.placing import source_options
from echoic.spark.pipeline.spec import ApplyStep, DeriveStep, PipelineSpec, SourceSpec, SqlStep, StepSpec, WindowStep

__all__ = ["EVENT_TIME", "FrameFunction", "Frames"]

FrameFunction: TypeAlias = Callable[[DataFrame], DataFrame]
EVENT_TIME: Final = "_event_time"
"""The column for the time of events that have it as a number."""
NUMBERS: Final = (ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)


class Flow:
    """The frame of a source or step, and its event time."""

    def __init__(
        self, frame: DataFrame, unmarked: Callable[[], DataFrame], time: str = "", watermark: str = "", named: str = ""
    ) -> None:
        self.frame: Final = frame
        self.unmarked: Final = unmarked
        """Makes the same frame without a watermark."""
        self.time: Final = time
        """The column that windows are made of; empty if there is none."""
        self.watermark: Final = watermark
        self.named: Final = named or time
        """The column of the events from which that one is made: another one if it is a number."""


class Frames:
    """The frames of a pipeline, by the names of its sources and steps."""

    def __init__(
        self, spec: PipelineSpec, folder: Path, spark: SparkSession, functions: Mapping[str, FrameFunction]
    ) -> None:
        """Build all of them.

        Raises:
            PipelineError: A journal, a column, a function or a type is not there, or Spark refuses a query.
        """
        self._spec, self._folder, self._functions = spec, folder, functions
        self.spark: Final = spark
        self._views: Final[list[str]] = []
        self._flows: Final[dict[str, Flow]] = {}
        self._reads = inputs_by_step(spec)
        for name, source in spec.sources.items():
            with _told_of(f"sources.{name}"):
                self._flows[name] = self._read(name, source)
        for name in order(spec):
            with _told_of(f"steps.{name}"):
                self._flows[name] = self._step(name, spec.steps[name])

    def __getitem__(self, name: str) -> DataFrame:
        return self._flows[name].frame

    def forget_views(self) -> None:
        """Remove the names under which queries found the frames."""
        for name in self._views:
            self.spark.catalog.dropTempView(name)
        self._views.clear()

    def _read(self, name: str, source: SourceSpec) -> Flow:
        options = source_options(source, self._spec, self._folder)
        frame = self.spark.readStream.format("echoic").options(**options).load()
        if not source.watermark:
            return Flow(frame, lambda: frame, source.time)
        return _marked(frame, source.time, source.watermark, f"sources.{name}.time")

    def _step(self, name: str, step: StepSpec) -> Flow:
        match step:
            case DeriveStep():
                return self._derived(name, step, self._flows[step.origin])
            case WindowStep():
                return _windows(name, step, self._flows[step.origin])
            case SqlStep():
                return self._query(name, step)
            case ApplyStep():
                return self._applied(name, step, self._flows[step.origin])
            case _:
                assert_never(step)

    def _derived(self, name: str, step: DeriveStep, flow: Flow) -> Flow:
        def made(frame: DataFrame) -> DataFrame:
            try:
                return derive(frame, step.derive, step.output or None, params=step.params or None, how=step.how)
            except ECodeError as error:
                raise PipelineError(f"steps.{name}.derive: {_first_problem(error)}") from error
            except EchoicError as error:
                raise PipelineError(f"steps.{name}: {error}") from error

        if not step.output:
            return Flow(made(flow.frame), lambda: made(flow.unmarked()), flow.time, flow.watermark, flow.named)
        plain = made(flow.unmarked())
        time = step.time or flow.named
        if flow.watermark and time in plain.columns:
            return _marked(plain, time, flow.watermark, f"steps.{name}.time")
        if step.time:
            raise PipelineError(f"steps.{name}.time: there is no column `{time}`{nearest(time, plain.columns)}")
        return Flow(plain, lambda: plain)

    def _query(self, name: str, step: SqlStep) -> Flow:
        flows = {each: self._flows[each] for each in self._reads[name]}
        for each, flow in flows.items():
            flow.frame.createOrReplaceTempView(each)
            self._views.append(each)
        frame = self.spark.sql(step.sql)
        times = [flow.time for flow in flows.values() if flow.time and flow.time in frame.columns]
        return Flow(frame, lambda: frame, times[0] if times else "")

    def _applied(self, name: str, step: ApplyStep, flow: Flow) -> Flow:
        function = self._functions.get(name) or _function(step.apply, f"steps.{name}.apply")
        frame = function(flow.frame)
        if not hasattr(frame, "writeStream"):
            raise PipelineError(f"steps.{name}.apply: expected {step.apply} to return a frame, got {frame!r:.80}")
        return Flow(frame, lambda: frame, flow.time if flow.time in frame.columns else "")


@contextmanager
def _told_of(place: str) -> Iterator[None]:
    """Have errors of Spark say in one line where in the pipeline they are."""
    try:
        yield
    except PySparkException as error:
        raise PipelineError(f"{place}: {reason_of(error)}") from error


def _marked(frame: DataFrame, time: str, watermark: str, place: str) -> Flow:
    """Return a frame with a watermark on its event time.

    Raises:
        PipelineError: There is no such column, or it is no time.
    """
    if time not in frame.columns:
        raise PipelineError(f"{place}: there is no column `{time}`{nearest(time, frame.columns)}")
    kind = frame.schema[time].dataType
    if isinstance(kind, TimestampType):
        return Flow(frame.withWatermark(time, watermark), lambda: frame, time, watermark)
    if not isinstance(kind, NUMBERS):
        raise PipelineError(f"{place}: expected times or numbers in column `{time}`, got {kind.simpleString()}")
    timed = frame.withColumn(EVENT_TIME, columns.timestamp_micros((columns.col(f"`{time}`") * 1_000_000).cast("long")))
    return Flow(timed.withWatermark(EVENT_TIME, watermark), lambda: frame, EVENT_TIME, watermark, time)


def _windows(name: str, step: WindowStep, flow: Flow) -> Flow:
    if not flow.time:
        raise PipelineError(
            f"steps.{name}.window: `{step.origin}` has no column with the time of events any more, it has "
            f"{', '.join(flow.frame.columns)}; keep that column, or name one as `time` where events are derived"
        )
    for column in step.by:
        if column not in flow.frame.columns:
            raise PipelineError(f"steps.{name}.by: there is no column `{column}`{nearest(column, flow.frame.columns)}")
    window = columns.window(columns.col(flow.time), step.window, step.slide or None)
    by = [columns.col(f"`{column}`") for column in step.by]
    aggregates = [columns.expr(text).alias(column) for column, text in step.aggregates.items()]
    frame = (
        flow.frame.groupBy(window.alias("window"), *by)
        .agg(*aggregates)
        .select("window.start", "window.end", *(f"`{column}`" for column in (*step.by, *step.aggregates)))
    )
    return Flow(frame, lambda: frame)


def _first_problem(error: ECodeError) -> str:
    """Return in one line what is wrong with code."""
    if not error.problems:
        return str(error).partition("\n")[0]
    line, column, message = error.problems[0]
    more = f", and {len(error.problems) - 1} more" if len(error.problems) > 1 else ""
    return f"{message} - at line {line}, column {column}{more}"


def _function(called: str, place: str) -> FrameFunction:
    """Return the function that MODULE:FUNCTION names.

    Raises:
        PipelineError: There is none.
    """
    module, _, name = called.partition(":")
    try:
        found: object = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise PipelineError(f"{place}: expected MODULE:FUNCTION, got `{called}`: {error}") from error
    if not callable(found):
        raise PipelineError(f"{place}: `{called}` is no function")
    return found
