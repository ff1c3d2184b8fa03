"""`echoic pipeline`: run a pipeline that a file describes, look at it, stop it.

Spark is imported when a verb needs it, and no earlier: `status` and `stop` answer from the state folder. Whoever runs a
pipeline sees a live line while it runs, a table of what each output got at the end, and one line if it fails; all of
Spark's own words are in `spark.log` in the state folder, and on stderr with `--verbose`.

Signals only leave a note, which the main thread finds: Spark has a handler of its own for Ctrl-C, which throws an
exception into whatever happens to be running, such as a conversation with Java.
"""

import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from cyclopts import Parameter

from echoic.cli.pipelines_shown import OUTPUT_COLUMNS, Live, output_row
from echoic.cli.progress import clear_line, show_line
from echoic.cli.screen import json_text, printable, say
from echoic.cli.tables import print_table
from echoic.cli.where import NOWHERE, AsJson, Flag, Where, names_address
from echoic.errors import LocalError, PipelineError

if TYPE_CHECKING:
    from echoic.spark.pipeline import OutputSpec, Pipeline, Run, Running, StateFolder

__all__ = ["check", "conf", "pack", "run", "status", "stop"]

LOOK_SECONDS: Final = 0.2
STOP_SECONDS: Final = 60.0


def run(
    file: Path,
    *,
    once: Flag = False,
    seconds: Annotated[float | None, Parameter(name="--for")] = None,
    master: Annotated[str, Parameter(show_default=False)] = "",
    verbose: Flag = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative=(), show_default=False)] = False,
    as_json: AsJson = False,
    where: Where = NOWHERE,
) -> None:
    """Run a pipeline, until Ctrl-C.

    It goes on where it stopped, also after a crash: what is in the tables is there once. Its progress is on the channel
    pipeline.NAME, which `echoic top` shows.

    Try:
        echoic pipeline run market.toml --once
        echoic pipeline run market.toml --master 'local[2]' --for 60
        echoic pipeline run market.toml --master spark://host:7077

    Args:
        file: The pipeline, in TOML.
        once: Take what is there, then end.
        seconds: End after so many seconds.
        master: Where Spark runs; on all cores of this machine if not given.
        verbose: Show all that Spark says when it fails.
        quiet: Say nothing but what went wrong.
        as_json: Print what each output got as a line of JSON.
        where: Where the name server is, for pipelines that do not say; used if it is there.
    """
    if seconds is not None and not 0 < seconds < float("inf"):
        raise LocalError(f"expected --for to be a number of seconds above 0, got {seconds}")
    pipeline = _loaded(file)
    asked = Asked()
    try:
        with asked.listening():
            _say(f"starting pipeline '{pipeline.spec.name}'", quiet=quiet)
            with pipeline.start(once=once, master=master, announce=names_address(where)) as running:
                asked.take_over()  # Spark has put its own handler there
                _say(_started(running), quiet=quiet)
                _watch(running, asked, seconds, quiet=quiet)
                _stop(running, pipeline.folder / pipeline.spec.state / "spark.log")
            running.wait(0)
    except PipelineError as error:
        if verbose:
            traceback.print_exception(error.__cause__ or error)
        raise
    _conclude(running, as_json=as_json, quiet=quiet)


def status(pipeline: Path, *, as_json: AsJson = False) -> None:
    """Show how a pipeline is: whether it runs, and what each output got.

    The exit code is 1 if it failed or crashed.

    Try:
        echoic pipeline status market.toml
        echoic pipeline status state/market --json

    Args:
        pipeline: Its file, or its state folder.
        as_json: Print it as a line of JSON.
    """
    folder = _state_folder(pipeline)
    found, tallies = folder.run(), folder.progress()
    if as_json:
        plain = {"run": msgspec.to_builtins(found), "outputs": [msgspec.to_builtins(each) for each in tallies]}
        print(json_text(plain))
    elif found is None:
        print(f"never run - at {folder.path}")
    else:
        print(printable(_described(found)))
        print_table(OUTPUT_COLUMNS, [output_row(each) for each in tallies])
    if found is not None and found.state in ("failed", "crashed"):
        sys.stdout.flush()
        sys.exit(1)


def stop(
    pipeline: Path, *, wait: Annotated[float, Parameter(name=["--wait", "-w"])] = STOP_SECONDS, as_json: AsJson = False
) -> None:
    """Stop a pipeline that runs, and wait until it has.

    Try:
        echoic pipeline stop market.toml

    Args:
        pipeline: Its file, or its state folder.
        wait: For so many seconds at most; 0 to only ask.
        as_json: Print how it ended as a line of JSON.
    """
    if not 0 <= wait < float("inf"):
        raise LocalError(f"expected --wait to be a number of seconds, got {wait}")
    folder = _state_folder(pipeline)
    if not folder.held():
        raise PipelineError(f"the pipeline does not run - at {folder.path}")
    folder.ask_to_stop()
    deadline = time.monotonic() + wait
    while folder.held():
        if time.monotonic() >= deadline:
            if wait:
                raise PipelineError(f"the pipeline was asked to stop, and has not in {wait:g} s - at {folder.path}")
            return
        time.sleep(LOOK_SECONDS)
    found = folder.run()
    if found is not None:
        print(json_text(msgspec.to_builtins(found)) if as_json else printable(_described(found)))


def check(file: Path, *, as_json: AsJson = False) -> None:
    """Check a pipeline without starting anything, and show what goes where.

    Try:
        echoic pipeline check market.toml

    Args:
        file: The pipeline, in TOML.
        as_json: Print the pipeline as a line of JSON.
    """
    from echoic.spark.pipeline import flow_of

    spec = _loaded(file).spec
    if as_json:
        print(json_text(msgspec.to_builtins(spec)))
        return
    rows = [[name, " <- ".join(flow_of(spec, name)), kind, place] for name, kind, place in _goals(spec.outputs)]
    print_table(("OUTPUT", "FROM", "TO", "PLACE"), rows)


def conf(*, master: str = "local[*]", as_json: AsJson = False) -> None:
    """Print the settings of Spark that pipelines are run with, for spark-submit.

    Try:
        spark-submit $(echoic pipeline conf --master yarn) --master yarn job.py

    Args:
        master: Where Spark runs.
        as_json: Print them as a line of JSON.
    """
    _need_spark()
    from echoic.spark import settings

    chosen = settings(master)
    if as_json:
        print(json_text(chosen))
        return
    for name, value in sorted(chosen.items()):
        print(printable(f"--conf {shlex.quote(f'{name}={value}')}"))


def pack(to: Path, *, as_json: AsJson = False) -> None:
    """Write the package as a zip file for `spark-submit --py-files`.

    Try:
        echoic pipeline pack echoic.zip

    Args:
        to: The file.
        as_json: Print where it is as a line of JSON.
    """
    _need_spark()
    from echoic.spark.packing import pack as write

    written = write(to)
    if as_json:
        print(json_text({"path": str(written), "bytes": written.stat().st_size}))
        return
    say(f"wrote {written}, {written.stat().st_size:,} bytes; use it as spark-submit --py-files {written}")


class Asked:
    """Whether somebody pressed Ctrl-C or sent a signal to end."""

    def __init__(self) -> None:
        self.to_stop = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take notes of signals until the end, and have them do again what they did."""
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def take_over(self) -> None:
        """Have signals leave a note from here on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - what handlers are given
        if self.to_stop:  # asked twice: whoever does so does not want to wait
            os._exit(128 + number)
        self.to_stop = True


def _watch(running: "Running", asked: Asked, seconds: float | None, *, quiet: bool) -> None:
    """Wait for the end, and show how it goes meanwhile.

    Raises:
        PipelineError: The pipeline failed.
    """
    begun, live = time.monotonic(), Live()
    try:
        while not asked.to_stop and (seconds is None or time.monotonic() < begun + seconds):
            if running.wait(LOOK_SECONDS):
                return
            if not quiet and live.due:
                live.show(running.tallies())
        if not quiet:
            show_line("stopping")
    finally:
        if not quiet:
            clear_line()


def _stop(running: "Running", log: Path) -> None:
    """Stop a pipeline; tracebacks that threads of PySpark write when their connections to Java end go to the log."""
    with log.open("a", encoding="utf-8") as file, redirect_stderr(file):
        running.stop()


def _conclude(running: "Running", *, as_json: bool, quiet: bool) -> None:
    tallies = running.tallies()
    if as_json:
        for each in tallies:
            print(json_text(msgspec.to_builtins(each)))
    elif not quiet:
        print_table(OUTPUT_COLUMNS, [output_row(each) for each in tallies])
    _say(f"pipeline '{running.run.pipeline}' {running.run.state}", quiet=quiet)


def _loaded(file: Path) -> "Pipeline":
    """Return the pipeline of a file.

    Raises:
        PipelineError: The file describes none, or Spark is not installed.
    """
    _need_spark()
    from echoic.spark.pipeline import Pipeline

    return Pipeline.load(file)


def _need_spark() -> None:
    """Refuse to go on without PySpark.

    Raises:
        PipelineError: It is not installed.
    """
    from importlib.util import find_spec

    if find_spec("pyspark") is None:
        raise PipelineError("PySpark is not installed: pip install 'echoic[spark]'")


def _state_folder(pipeline: Path) -> "StateFolder":
    """Return the state folder of a pipeline, which is given by its file or by that folder.

    Raises:
        PipelineError: There is neither.
    """
    if not pipeline.is_dir():
        loaded = _loaded(pipeline)
        pipeline = loaded.folder / loaded.spec.state
    elif not any((pipeline / name).exists() for name in ("run.json", "lock")):
        raise PipelineError(f"expected the file of a pipeline or its state folder, got {pipeline}")
    _need_spark()
    from echoic.spark.pipeline import StateFolder

    return StateFolder(pipeline)


def _started(running: "Running") -> str:
    return f"running: {', '.join(running.run.outputs)}; progress on {running.run.channel}; Ctrl-C ends"


def _described(run: "Run") -> str:
    """Return how a run is, in one line."""
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started))
    until = f" to {time.strftime('%H:%M:%S', time.localtime(run.ended))}" if run.ended else ""
    why = f": {run.reason}" if run.reason else ""
    return f"pipeline '{run.pipeline}' {run.state}, process {run.pid} on {run.host}, {since}{until}{why}"


def _goals(outputs: "dict[str, OutputSpec]") -> list[tuple[str, str, str]]:
    from echoic.spark.pipeline import goal_of

    return [(name, *goal_of(output)) for name, output in outputs.items()]


def _say(text: str, *, quiet: bool) -> None:
    if not quiet:
        clear_line()
        say(text)
