"""Pipelines written in Python: the same records as those read from a file, put together by methods.

    market = Pipeline("market", state="state/market", tables="tables")
    trades = market.source("trades", journal="journals", channel="trades", watermark="10 seconds")
    cheap = trades.derive("{ return input.price < param.low; }", params={"low": 71.5})
    volumes = cheap.window("10 seconds", by=["symbol"], volume="sum(volume)")
    volumes.to_table("volumes")
    market.run(once=True)

A `Stream` is only a name in its pipeline: nothing is read before the pipeline starts, and the spec can be looked at,
compared and written down at any time. A step has the name it is given, or one made of what it reads; queries in SQL
call it by that name. Functions given to `apply` are kept beside the spec, which only has what they are called.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias

import msgspec
from pyspark.sql import SparkSession

from echoic.ecode import source_of
from echoic.errors import PipelineError
from echoic.spark.pipeline.building import FrameFunction
from echoic.spark.pipeline.checking import check_spec
from echoic.spark.pipeline.loading import load_spec, record_of
from echoic.spark.pipeline.progress import Tally
from echoic.spark.pipeline.running import Running
from echoic.spark.pipeline.spec import (
    ApplyStep,
    ChannelOutput,
    DeriveStep,
    OutputSpec,
    PipelineSpec,
    Scalar,
    SourceSpec,
    SqlStep,
    StepSpec,
    TableOutput,
    WindowStep,
)
from echoic.spark.pipeline.starting import start_pipeline

__all__ = ["Pipeline", "Stream"]

SourceOption: TypeAlias = Scalar | Path | Sequence[str] | Mapping[str, Scalar] | None


class Pipeline:
    """A data pipeline: channels become tables, and results become channels."""

    def __init__(
        self,
        name: str,
        *,
        state: str | Path = "",
        tables: str | Path = "tables",
        names: str = "",
        every: str = "",
        listen: str = "",
        insecure: bool = False,
        checkpoints: str | Path = "",
    ) -> None:
        """Begin a pipeline without anything in it.

        Args:
            name: What it is called; its progress is on the channel `pipeline.NAME`.
            state: The folder of its checkpoints, and of what is known about it while it runs; state/NAME if not given.
            tables: The folder in which tables are, unless they say otherwise.
            names: The address of a name server, for channels given by name.
            every: How often a batch is made, such as "1 second"; as soon as there is something if not given.
            listen: Where the pipeline's own hub is reached; on this machine only if not given.
            insecure: Accept that strangers can read and write there.
            checkpoints: Where checkpoints are, if not in `state`: on a cluster, a place that executors see as well.
        """
        self._spec = PipelineSpec(
            name=name,
            state=str(state or f"state/{name}"),
            tables=str(tables),
            names=names,
            every=every,
            listen=listen,
            insecure=insecure,
            checkpoints=str(checkpoints),
        )
        self.folder: Path = Path.cwd()
        """What its paths are relative to."""
        self.functions: Final[dict[str, FrameFunction]] = {}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Return the pipeline that a file in TOML describes; its paths are relative to the file.

        Raises:
            PipelineError: The file cannot be read, or describes none.
        """
        made = cls("loaded")
        made._spec = load_spec(path)
        made.folder = Path(path).resolve().parent
        return made

    @property
    def spec(self) -> PipelineSpec:
        """What it consists of, as it would be read from a file."""
        return self._spec

    def check(self) -> None:
        """Tell whether it makes sense, without starting anything.

        Raises:
            PipelineError: It does not.
        """
        check_spec(self._spec)

    def source(self, name: str, *, channel: str = "", **options: SourceOption) -> "Stream":
        """Add a channel to read.

        Args:
            name: What it is called in this pipeline.
            channel: The channel; of the same name if not given.
            options: Any key of [sources.NAME]: `journal`, `start`, `time`, `watermark`, `where`, `columns` and so on.

        Raises:
            PipelineError: There is no such option, or its value does not fit.
        """
        given = {key: value for key, value in options.items() if value is not None}
        described = {"channel": channel or name, **given}
        record = record_of(SourceSpec, described, f"sources.{name}")
        self._check_free(name)
        self._spec = msgspec.structs.replace(self._spec, sources={**self._spec.sources, name: record})
        return Stream(self, name)

    def sql(self, text: str, *, name: str = "", reads: Sequence["Stream | str"] = ()) -> "Stream":
        """Add a query in Spark SQL over sources and steps by name.

        Args:
            text: The query.
            name: What its result is called.
            reads: What it reads, if that cannot be told by the names in the text.

        Raises:
            PipelineError: The name is taken.
        """
        origins = tuple(each.name if isinstance(each, Stream) else each for each in reads)
        return self.add_step(name or self.free_name("query"), SqlStep(sql=text, origins=origins))

    def add_step(self, name: str, step: StepSpec) -> "Stream":
        """Add a step.

        Raises:
            PipelineError: The name is taken.
        """
        self._check_free(name)
        self._spec = msgspec.structs.replace(self._spec, steps={**self._spec.steps, name: step})
        return Stream(self, name)

    def add_output(self, name: str, output: OutputSpec) -> None:
        """Add an output.

        Raises:
            PipelineError: The name is taken.
        """
        if name in self._spec.outputs:
            raise PipelineError(f"outputs.{name}: there is one of this name already")
        self._spec = msgspec.structs.replace(self._spec, outputs={**self._spec.outputs, name: output})

    def free_name(self, wanted: str) -> str:
        """Return a name like the one that is wanted and not taken."""
        taken, number, name = {*self._spec.sources, *self._spec.steps}, 2, wanted
        while name in taken:
            name, number = f"{wanted}_{number}", number + 1
        return name

    def start(
        self, *, once: bool = False, spark: SparkSession | None = None, master: str = "", announce: str = ""
    ) -> Running:
        """Start the pipeline and return at once.

        Args:
            once: Take what is there, then end.
            spark: The session to run in; one is made if there is none, and stopped at the end.
            master: Where a session that is made runs; on all cores of this machine if not given.
            announce: A name server that is told of the pipeline's channels if it is there, unless the pipeline has one.

        Raises:
            PipelineError: It makes no sense, does not match its checkpoints or tables, runs already, or Spark or Java
                are not in order.
        """
        self.check()
        return start_pipeline(
            self._spec, self.folder, self.functions, once=once, spark=spark, master=master, announce=announce
        )

    def run(
        self,
        *,
        once: bool = False,
        seconds: float | None = None,
        spark: SparkSession | None = None,
        master: str = "",
    ) -> list[Tally]:
        """Run the pipeline until it ends, is told to, or so many seconds are over; return what each output got.

        Raises:
            PipelineError: As `start`, or it failed while it ran.
        """
        with self.start(once=once, spark=spark, master=master) as running:
            running.wait(seconds)
        return running.tallies()

    def _check_free(self, name: str) -> None:
        if name in self._spec.sources or name in self._spec.steps:
            raise PipelineError(f"`{name}` is a source or step of this pipeline already")

    def __repr__(self) -> str:
        return f"<pipeline {self._spec.name}: {', '.join(self._spec.outputs) or 'no outputs yet'}>"


class Stream:
    """A source or step of a pipeline, by its name. Made by `Pipeline.source`, `Pipeline.sql` and other streams."""

    def __init__(self, pipeline: Pipeline, name: str) -> None:
        self.name: Final = name
        self._pipeline = pipeline

    def derive(
        self,
        code: str | Callable[..., object],
        output: str = "",
        *,
        params: Mapping[str, Scalar] | None = None,
        how: Literal["auto", "columns", "kernel"] = "auto",
        time: str = "",
        name: str = "",
    ) -> "Stream":
        """Return what a derivation makes of this: E-Code or Python, a filter or a transform.

        Args:
            code: As `Channel.derive` takes it.
            output: The type of what comes out, such as "Mean{at: float, mean: float}"; without, the code is a filter.
            params: The values of `param`.
            how: Whether it runs as columns of Spark or as a compiled kernel; found out if not given.
            time: The column of `output` with the time of events, if it is another one than before.
            name: What the result is called.

        Raises:
            PipelineError: The name is taken.
            ECodeError: The text of a function cannot be found.
        """
        text = code if isinstance(code, str) else source_of(code)
        step = DeriveStep(origin=self.name, derive=text, output=output, params=dict(params or {}), how=how, time=time)
        return self._add("derived", name, step)

    def window(
        self,
        window: str,
        aggregates: Mapping[str, str] | None = None,
        /,
        *,
        slide: str = "",
        by: Sequence[str] = (),
        name: str = "",
        **named: str,
    ) -> "Stream":
        """Return aggregates over windows of event time: columns `start`, `end`, those of `by`, and the aggregates.

        Args:
            window: How long a window is, such as "10 seconds".
            aggregates: Aggregates in Spark SQL by column, for names that are no words in Python.
            slide: How long after one window the next begins; windows do not overlap if not given.
            by: The columns for each value of which there are aggregates of their own.
            name: What the result is called.
            named: Aggregates in Spark SQL by column: volume="sum(volume)".

        Raises:
            PipelineError: The name is taken.
        """
        step = WindowStep(
            origin=self.name, window=window, slide=slide, by=tuple(by), aggregates={**(aggregates or {}), **named}
        )
        return self._add("windows", name, step)

    def apply(self, function: FrameFunction | str, *, name: str = "") -> "Stream":
        """Return what a function makes of this: it is given a streaming frame, and returns another.

        Args:
            function: The function, or MODULE:FUNCTION.
            name: What the result is called.

        Raises:
            PipelineError: The name is taken.
        """
        called = function if isinstance(function, str) else f"{function.__module__}:{function.__qualname__}"
        made = self._add("applied", name, ApplyStep(origin=self.name, apply=called))
        if not isinstance(function, str):
            self._pipeline.functions[made.name] = function
        return made

    def to_table(
        self,
        table: str | Path,
        *,
        format: Literal["parquet", "delta"] = "parquet",
        partition_by: Sequence[str] = (),
        name: str = "",
    ) -> None:
        """Add every batch of this to a table.

        Args:
            table: Its folder, below that of the pipeline's tables.
            format: Parquet, or Delta, for which the extra `delta` must be installed.
            partition_by: Columns each value of which has a folder of its own.
            name: What the output is called; as the table if not given.

        Raises:
            PipelineError: The name is taken.
        """
        output = TableOutput(origin=self.name, table=str(table), format=format, partition_by=tuple(partition_by))
        self._pipeline.add_output(name or Path(table).name, output)

    def to_channel(self, channel: str, *, intake: str | Path = "", name: str = "") -> None:
        """Submit every row of this to a channel, exactly once.

        Args:
            channel: The name or id of a channel that has an intake; with `intake`, its name in the pipeline's own hub.
            intake: The folder in which the pipeline's own hub records the channel.
            name: What the output is called; as the channel if not given.

        Raises:
            PipelineError: The name is taken.
        """
        output = ChannelOutput(origin=self.name, channel=channel, intake=str(intake))
        self._pipeline.add_output(name or channel.rpartition("/")[2].replace(".", "_").replace("-", "_"), output)

    def _add(self, kind: str, name: str, step: StepSpec) -> "Stream":
        return self._pipeline.add_step(name or self._pipeline.free_name(f"{self.name}_{kind}"), step)

    def __repr__(self) -> str:
        return f"<stream {self.name} of {self._pipeline!r}>"
