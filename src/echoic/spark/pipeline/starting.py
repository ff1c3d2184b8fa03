"""Starting a pipeline: everything that must be there first, in the order in which the cheap mistakes are found first.

    lock        nobody else runs it
    lineage     each output may go on from its checkpoint
    hub         for progress, and for the channels that the pipeline has itself
    session     Java and Spark, some seconds
    frames      sources are there, columns exist, queries are understood
    queries     tables fit, checkpoints are read, batches begin; one after the other, see `queries`

When one of them fails, those before it are put away again, and the state folder tells why.
"""

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, assert_never

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql import functions as columns
from pyspark.sql.streaming.readwriter import DataStreamWriter

from echoic.errors import EchoicError, PipelineError, UnreachableError
from echoic.hub import Hub
from echoic.links import Identity
from echoic.spark.asides import stderr_aside
from echoic.spark.explaining import SPARK_ERRORS, reason_of
from echoic.spark.pipeline.building import FrameFunction, Frames
from echoic.spark.pipeline.lineage import check_lineage, keep_lineage
from echoic.spark.pipeline.placing import checkpoint_of, place_of
from echoic.spark.pipeline.progress import ROWS, Progress, Watcher
from echoic.spark.pipeline.queries import OutputQuery
from echoic.spark.pipeline.running import Running
from echoic.spark.pipeline.spec import ChannelOutput, OutputSpec, PipelineSpec, TableOutput
from echoic.spark.pipeline.state import Run, StateFolder
from echoic.spark.registering import register
from echoic.spark.session import session
from echoic.spark.tables import TableSettings, write_stream

__all__ = ["start_pipeline"]

MASTER: Final = "local[*]"
SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"
"""Set in programs that spark-submit has started."""
LISTEN: Final = "127.0.0.1:0"
READY_SECONDS_MAX: Final = 120.0
"""How long the next query waits until this one has its sources, which it may need several starts for."""


def start_pipeline(
    spec: PipelineSpec,
    folder: Path,
    functions: Mapping[str, FrameFunction],
    *,
    once: bool,
    spark: SparkSession | None,
    master: str,
    announce: str,
) -> Running:
    """Start a pipeline that was checked.

    Args:
        spec: The pipeline.
        folder: What its paths are relative to.
        functions: The functions of its `apply` steps, by the names of the steps; others are imported.
        once: Whether to take what is there, then end.
        spark: The session to run in; None to make one, which ends with the pipeline.
        master: Where that one runs.
        announce: A name server that is told of the pipeline's channels, if it is there; the one of `spec` must be.

    Raises:
        PipelineError: Something is not as it must be.
    """
    state = StateFolder(folder / spec.state)
    with ExitStack() as held:
        held.enter_context(state)
        run = Run.by_this_process(spec.name)
        state.keep_run(run)
        try:
            with ExitStack() as resources:
                launch = Launch(spec, folder, state, resources)
                launch.check()
                hub = launch.hub(announce)
                frames = launch.frames(launch.session(spark, master), functions)
                run, watcher, queries = launch.queries(run, hub, frames, once=once)
                running = Running(run, state, queries, watcher, resources.pop_all())
        except (EchoicError, *SPARK_ERRORS) as error:
            reason = reason_of(error)
            state.keep_run(msgspec.structs.replace(run, state="failed", reason=reason, ended=time.time()))
            raise error if isinstance(error, PipelineError) else PipelineError(reason) from error
        except KeyboardInterrupt:
            state.keep_run(msgspec.structs.replace(run, state="stopped", reason="interrupted", ended=time.time()))
            raise
        held.pop_all()
    return running


class Launch:
    """What is made for a run; `resources` close it again."""

    def __init__(self, spec: PipelineSpec, folder: Path, state: StateFolder, resources: ExitStack) -> None:
        self._spec, self._folder, self._state, self._resources = spec, folder, state, resources

    def check(self) -> None:
        """Refuse what cannot go on, and write down what begins.

        Raises:
            PipelineError: An output does not match its checkpoint.
        """
        for output in self._spec.outputs:
            check_lineage(self._state, self._spec, self._folder, output)
        for output in self._spec.outputs:
            keep_lineage(self._state, self._spec, output)

    def hub(self, announce: str) -> Hub:
        """Return the pipeline's own hub, at its name server or without one.

        Raises:
            EchoicError: It cannot listen where it should, or the name server of the pipeline does not answer.
        """
        name, listen = f"echoic pipeline {self._spec.name}", self._spec.listen or LISTEN
        identity = Identity.of_environment() or (Identity.named(self._spec.identity) if self._spec.identity else None)
        if announce and not self._spec.names:
            hub = Hub(listen, names=announce, name=name, insecure=self._spec.insecure, identity=identity)
            try:
                hub.channels(announce)
            except UnreachableError:
                hub.close()
            else:
                return self._resources.enter_context(hub)
        names = self._spec.names or ()
        return self._resources.enter_context(
            Hub(listen, names=names, name=name, insecure=self._spec.insecure, identity=identity)
        )

    def session(self, spark: SparkSession | None, master: str) -> SparkSession:
        """Return the session to run in: the given one, the one that is there, or one made for this run.

        Raises:
            PipelineError: Java or Spark are not in order.
        """
        found = spark or SparkSession.getActiveSession()
        if found is None and SUBMITTED in os.environ and not master:
            found = SparkSession.builder.appName(self._spec.name).getOrCreate()
        if found is not None:
            register(found)
            return found
        log = self._state.path / "spark.log"
        with stderr_aside(log):
            made = session(self._spec.name, master or MASTER, log=log)
        self._resources.callback(made.stop)
        return made

    def frames(self, spark: SparkSession, functions: Mapping[str, FrameFunction]) -> Frames:
        """Return all frames of the pipeline."""
        return Frames(self._spec, self._folder, spark, functions)

    def queries(self, run: Run, hub: Hub, frames: Frames, *, once: bool) -> tuple[Run, Watcher, list[OutputQuery]]:
        """Start a query for each output, one after the other, and somebody who counts what they do.

        Raises:
            PipelineError: An output does not fit what is there, or its query failed at once.
        """
        channel = hub.create(f"pipeline.{self._spec.name}", Progress)
        writers = {name: self._writer(name, output, hub, frames) for name, output in self._spec.outputs.items()}
        places = {name: place for name, (place, _) in writers.items()}
        watcher = Watcher(self._spec.name, places, channel.source().submit)
        queries: list[OutputQuery] = []
        try:
            for name, (_, writer) in writers.items():
                if queries:
                    queries[-1].get_ready(READY_SECONDS_MAX)
                queries.append(OutputQuery(name, self._triggered(writer, once=once)))
        except BaseException:
            for query in queries:
                query.stop()
            raise
        finally:
            frames.forget_views()
        run = msgspec.structs.replace(run, state="running", channel=channel.id, outputs=places)
        self._state.keep_run(run)
        return run, watcher, queries

    def _writer(self, name: str, output: OutputSpec, hub: Hub, frames: Frames) -> tuple[str, DataStreamWriter]:
        """Return where an output goes, and what writes it there.

        Raises:
            PipelineError: It does not fit what is there.
        """
        counted = frames[output.origin].observe(ROWS, columns.count(columns.lit(1)).alias("rows"))
        checkpoint, query = checkpoint_of(self._spec, self._folder, name), f"{self._spec.name}.{name}"
        match output:
            case TableOutput():
                path = place_of(output.table, Path(place_of(self._spec.tables, self._folder)))
                table = TableSettings(path, output.format, output.partition_by)
                return path, write_stream(counted, table, checkpoint=checkpoint, name=query)
            case ChannelOutput():
                id = self._channel(output, hub)
                writer = counted.writeStream.format("echoic").queryName(query)
                options = {"channel": id, "names": self._spec.names, "checkpointLocation": checkpoint}
                return id, writer.options(**{key: value for key, value in options.items() if value})
            case _:
                assert_never(output)

    def _channel(self, output: ChannelOutput, hub: Hub) -> str:
        """Return the channel of an output, which is in the pipeline's own hub if it says so."""
        if not output.intake:
            return output.channel
        intake = hub.intake(output.channel, place_of(output.intake, self._folder))
        self._resources.callback(intake.close)
        return intake.channel.id

    def _triggered(self, writer: DataStreamWriter, *, once: bool) -> DataStreamWriter:
        if once:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=self._spec.every) if self._spec.every else writer
