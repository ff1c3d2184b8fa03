"""`echoic demo`: the main job, on this machine and bounded in time.

    exchange, atmosphere ──> live channels ──> derived channels ──> desk
                                   ├──> journals ──> pipeline on Spark ──> tables, channel `ticker` ──> desk
                                   └──> viewer: a page in the browser

Spark takes some seconds to start, so that is done in a thread while the channels come up. What Spark does happens in
that thread too: Ctrl-C reaches the main thread, which calls nothing of Java and can end everything in good order.

When the channels have ended, the demo waits until all of it is in the tables, compares them with what was counted
elsewhere (`demo_results`), draws them, and says what to try next with the folder it leaves behind.
"""

import fcntl
import importlib.util
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Self

from cyclopts import Parameter

from echoic.cli.demo_channels import LiveChannels
from echoic.cli.demo_events import pipeline_text
from echoic.cli.demo_results import Check, Tables, checks
from echoic.cli.demo_telling import Teller
from echoic.cli.where import NOWHERE, Flag, Where, names_address
from echoic.errors import PipelineError, UnreachableError
from echoic.hub import Hub
from echoic.viewer import Viewer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from echoic.spark.pipeline import Running

__all__ = ["demo"]

PIPELINE: Final = "demo.toml"
PICTURE: Final = "demo.png"
LOG: Final = "spark.log"
CONTENTS: Final = (PIPELINE, PICTURE, LOG, "journals", "state", "tables")
SECONDS_MAX: Final = 3600.0
SETTLE_SECONDS_MAX: Final = 180.0
"""How long a machine that has much else to do may take until the rest is in the tables."""
LOOK_SECONDS: Final = 0.2
LEAVE_SECONDS_MAX: Final = 30.0


def demo(
    *,
    seconds: float = 20.0,
    folder: Annotated[Path, Parameter(show_default=True)] = Path("echoic-demo"),
    stay: Flag = False,
    where: Where = NOWHERE,
) -> None:
    """Show it all at work: channels, derivations, a page, a recorder, a pipeline on Spark, tables, a result channel.

    An exchange and an atmosphere model publish from processes of their own. What a desk wants of them is computed
    inside of these processes. A recorder keeps all of it; Spark turns it into tables, and its results into a channel,
    which is read back live. The page whose address is printed shows it in the browser. At the end the tables are
    compared with what was counted elsewhere, and drawn.

    Try:
        echoic demo
        echoic demo --seconds 5 --folder /tmp/demo
        echoic demo --stay

    Args:
        seconds: How long the channels go on once the pipeline runs.
        folder: Where journals, tables and a picture are left; those of an earlier demo are replaced.
        stay: Go on until Ctrl-C, an hour at most, then end as usual.
        where: Where names are served, unless somebody does so already.
    """
    if not 0 < seconds <= SECONDS_MAX:
        raise PipelineError(f"the channels go on for more than 0 and at most {SECONDS_MAX:g} seconds, got {seconds:g}")
    for package in ("pyspark", "pandas"):
        if importlib.util.find_spec(package) is None:
            raise PipelineError(f"the demo runs on Spark, and there is no {package}: pip install 'echoic[spark]'")
    teller = Teller()
    with prepared(folder):
        teller.begin(folder)
        failed = _play(teller, folder, seconds, names_address(where), stay=stay)
    if failed:
        raise PipelineError(f"{failed[0].what}: {failed[0].found} is not {failed[0].expected}")


@contextmanager
def prepared(folder: Path) -> Iterator[None]:
    """Hold a folder with nothing of an earlier demo in it but the pipeline.

    Raises:
        PipelineError: It has something else in it, another demo runs there, or it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise PipelineError(f"cannot use {folder} as a folder: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        strange = sorted(path.name for path in folder.iterdir() if path.name not in CONTENTS)
        if strange and not (folder / PIPELINE).exists():
            raise PipelineError(
                f"{folder} has {strange[0]} in it, which is not of a demo; choose another with --folder"
            )
        for name in CONTENTS:
            _remove(folder / name)
        (folder / PIPELINE).write_text(pipeline_text())
        yield
    except BlockingIOError as error:
        raise PipelineError(f"another demo runs in {folder}; choose another with --folder") from error
    except OSError as error:
        raise PipelineError(f"cannot write to {folder}: {error}") from error
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _play(teller: Teller, folder: Path, seconds: float, names: str, *, stay: bool) -> list[Check]:
    """Do all of it, and return what did not agree in the end."""
    with ExitStack() as stack:
        pipeline = stack.enter_context(PipelineThread(folder))
        channels = stack.enter_context(LiveChannels(names, folder / "journals"))
        pipeline.names = channels.names
        teller.channels(channels)
        looking = stack.enter_context(Hub(names=channels.names, name="viewer"))
        teller.page(stack.enter_context(_page(looking)).url)
        channels.go()
        running = _await(pipeline, teller, channels)
        channels.listen(running.run.outputs["ticker"])
        teller.pipeline(running, pipeline.description)
        _show(running, teller, channels, seconds, stay=stay)
        reports = channels.end()
        compared = _settle(running, teller, channels, folder, reports[0].shares)
        savings = channels.savings()
    teller.savings(savings)
    tables = Tables(folder / "tables")
    teller.checks(compared)
    teller.rates(reports, tables)
    teller.plot(tables, savings, folder / PICTURE)
    teller.next(folder)
    return [check for check in compared if not check.passed]


def _page(hub: Hub) -> Viewer:
    """Return a viewer at its usual address, or, where another is there already, at any."""
    try:
        return Viewer(hub)
    except UnreachableError:
        return Viewer(hub, "127.0.0.1:0")


class PipelineThread:
    """Starts Spark and the pipeline beside everything else, and ends them."""

    def __init__(self, folder: Path) -> None:
        self.running: Final[Future[Running]] = Future()
        self.recorded: Final = threading.Event()
        """Set when there are journals with something in them, and so with a type."""
        self.description = ""
        self.names = ""
        """Where the pipeline's channels are announced; to be set before `recorded` is."""
        self._folder = folder
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._work, name="echoic-demo-spark", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self.recorded.set()
        self._thread.join(LEAVE_SECONDS_MAX)

    def _work(self) -> None:
        try:
            from echoic.spark import find_java, session
            from echoic.spark.session import end_session

            java = find_java()
            spark = session("echoic demo", log=self._folder / LOG)
            self.description = f"Spark {spark.version} on Java {java.version} ({java.origin})"
            try:
                self._run(spark)
            finally:
                end_session(spark)
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            if not self.running.done():
                self.running.set_exception(error)

    def _run(self, spark: "SparkSession") -> None:
        from echoic.spark.pipeline import Pipeline

        self.recorded.wait()
        if self._leaving.is_set():
            return
        with Pipeline.load(self._folder / PIPELINE).start(spark=spark, announce=self.names) as running:
            self.running.set_result(running)
            self._leaving.wait()


def _await(pipeline: PipelineThread, teller: Teller, channels: LiveChannels) -> "Running":
    """Return the pipeline once it runs.

    Raises:
        EchoicError: It does not.
    """
    while not pipeline.running.done():
        if all(channels.recorded.values()):
            pipeline.recorded.set()
        teller.progress("Spark is starting", channels.recorded)
        time.sleep(LOOK_SECONDS)
    return pipeline.running.result()


def _show(running: "Running", teller: Teller, channels: LiveChannels, seconds: float, *, stay: bool) -> None:
    """Show results as they come, until it is time to end."""
    deadline = time.monotonic() + (SECONDS_MAX if stay else seconds)
    try:
        while time.monotonic() < deadline:
            running.wait(LOOK_SECONDS)
            teller.ticks(channels.live.ticks)
            left = "Ctrl-C ends" if stay else f"{deadline - time.monotonic():.0f} seconds to go"
            teller.progress(left, channels.recorded)
    except KeyboardInterrupt:
        if not stay:
            raise
    finally:
        teller.quiet()


def _settle(running: "Running", teller: Teller, channels: LiveChannels, folder: Path, shares: int) -> Sequence[Check]:
    """Return what was compared, once all of it agrees, or it is clear that it will not.

    Raises:
        PipelineError: The pipeline failed.
    """
    deadline = time.monotonic() + SETTLE_SECONDS_MAX
    while True:
        teller.progress("the channels have ended, the last rows are on their way", channels.recorded)
        teller.ticks(channels.live.ticks)
        compared = checks(channels.live, Tables(folder / "tables"), channels.recorded, shares)
        if all(check.passed for check in compared) or time.monotonic() > deadline:
            teller.ticks(channels.live.ticks, all_of_them=True)
            teller.quiet()
            return compared
        running.wait(LOOK_SECONDS)
