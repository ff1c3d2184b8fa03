"""A Spark session as a pipeline needs it.

`SparkSession.builder.getOrCreate()` works as well, once `echoic.spark.register` was called. This one finds a Java by
itself, keeps Spark's logs off the terminal, and has the settings that were measured to matter:

* Python workers and the JVM talk over Unix sockets, and local checkpoints are written without starting `chmod` and
  `readlink` for each file: an event that goes through a query, exactly once, takes 60 ms instead of 300.
* As many shuffle partitions as there are cores, since a micro-batch is small: 200 tasks a batch are mostly overhead.
* Filters of batch queries go down to the reader of a journal.
* Times are in UTC, on every machine.
* A local session listens on loopback only, and has no web page unless asked: set `spark.ui.enabled` to `true`.

* The Pythons that Spark starts find PySpark compiled (`home`), which takes them a third of the time.

The same as lines for `spark-submit`: `echoic pipeline conf`. Under `spark-submit`, Java runs before Python does, so
only what can be set late is set here.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped] # it ships no types
from pyspark import SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from echoic.errors import PipelineError
from echoic.spark.home import spark_home
from echoic.spark.java import LOG_VARIABLE, find_java
from echoic.spark.registering import register
from echoic.trust import make_private_folder, open_private

__all__ = ["end_session", "session", "settings"]

LOOPBACK: Final = "127.0.0.1"
LOCAL: Final = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?")
LOCAL_CLUSTER: Final = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")
CHECKPOINT_MANAGER: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
ELSEWHERE: Final = ("yarn", "spark://", "k8s://", "sc://")
END_SECONDS_MAX: Final = 20.0
LOG_SETTINGS: Final = Path(__file__).with_name("log4j2.properties")


def settings(master: str = "local[*]", *, log: Path | None = None) -> dict[str, str]:
    """Return what a session at a master is set to, as Spark spells it.

    Args:
        master: Where Spark runs: `local[*]`, `local[2]`, `spark://host:7077`, `yarn`, `k8s://...`.
        log: A file for Spark's warnings and errors. Without one, only errors that are not raised as exceptions are
            shown, on stderr.

    Raises:
        PipelineError: This is no master.
    """
    cores = _cores(master)
    chosen = {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    if cores is not None:
        chosen |= {
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.extraJavaOptions": _java_options(log),
            "spark.driver.host": LOOPBACK,
            "spark.sql.shuffle.partitions": str(cores),
            "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINT_MANAGER,
        }
    return chosen


def session(
    name: str = "echoic",
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    *,
    log: Path | None = None,
) -> SparkSession:
    """Return the session of this process with the source and sink `echoic` in it, started if there is none.

    Args:
        name: What Spark calls it.
        master: Where Spark runs; `sc://host:15002` is a Spark Connect server, whose settings are its own.
        settings: More settings, or others. Options for Java are added to those that are set here.
        log: A file for Spark's warnings and errors; see `settings`.

    Raises:
        PipelineError: This is no master, there is no Java for it, or Spark did not start.
    """
    given = dict(settings or {})
    try:
        if master.startswith("sc://"):
            spark = SparkSession.builder.remote(master).appName(name).config(map=dict(given)).getOrCreate()
        else:
            chosen = _merged(_settings(master, log=log), given)
            with _environment(master, log):
                spark = SparkSession.builder.master(master).appName(name).config(map=dict(chosen)).getOrCreate()
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise PipelineError(f"spark did not start at {master}: {_first_line(error)}") from error
        where = "is above" if log is None else f"is in {log}"
        raise PipelineError(f"java ended before Spark had started; what it said {where}") from error
    except (PySparkException, Py4JError) as error:
        raise PipelineError(f"spark did not start at {master}: {_first_line(error)}") from error
    register(spark)
    return spark


def end_session(spark: SparkSession) -> None:
    """Stop a session, and end the Java below it, which would otherwise end some time after this program.

    A session that is made later starts another one.
    """
    context = SparkContext
    gateway = context._gateway  # noqa: SLF001 - PySpark has no other way to the process that it has started
    spark.stop()
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return  # it is not ours: that of spark-submit, or of a server elsewhere
    gateway.shutdown()
    context._gateway = context._jvm = None  # noqa: SLF001
    process.stdin.close()
    try:
        process.wait(END_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


_settings = settings  # `session` has an argument of this name


@contextmanager
def _environment(master: str, log: Path | None) -> Iterator[None]:
    """Set what Java takes from the environment while it is started.

    Raises:
        PipelineError: There is no Java, or the log cannot be written.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if "PYSPARK_GATEWAY_PORT" in os.environ or SparkSession.getActiveSession() is not None:
        yield  # Java runs
        return
    wanted = {"JAVA_HOME": str(find_java().home)}
    if log is not None:
        try:
            make_private_folder(log.parent)
            os.close(open_private(log, os.O_WRONLY | os.O_CREAT))
        except OSError as error:
            raise PipelineError(f"cannot write Spark's log to {log}: {error.strerror}") from error
        wanted[LOG_VARIABLE] = str(log.absolute())
    if _cores(master) is not None:
        wanted["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", LOOPBACK)
        home = os.environ.get("SPARK_HOME") or (spark_home() if LOCAL.fullmatch(master) else None)
        if home is not None:
            wanted["SPARK_HOME"] = str(home)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _cores(master: str) -> int | None:
    """Return how many cores a master on this machine uses; None for one elsewhere.

    Raises:
        PipelineError: This is no master.
    """
    if match := LOCAL.fullmatch(master):
        every = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return every if match[1] == "*" else max(1, int(match[1] or 1))
    if match := LOCAL_CLUSTER.fullmatch(master):
        return max(1, int(match[1]) * int(match[2]))
    if not master.startswith(ELSEWHERE):
        known = "local, local[*], local[2], spark://host:7077, yarn, k8s://https://host:443 or sc://host:15002"
        raise PipelineError(f"a master of Spark is {known}, got {master!r}")
    return None


def _java_options(log: Path | None) -> str:
    """Return options that keep Spark's words where they belong, and its files out of the folder of the caller."""
    options = [f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"] if LOG_SETTINGS.is_file() else []
    if log is not None:
        options += [f'"-Dechoic.log={log.absolute()}"', "-Dechoic.terminal=off"]
    return " ".join(options)


def _merged(chosen: dict[str, str], given: Mapping[str, str]) -> dict[str, str]:
    options = "spark.driver.extraJavaOptions"
    merged = chosen | dict(given)
    if options in chosen and options in given:
        merged[options] = f"{chosen[options]} {given[options]}"
    return merged


def _first_line(error: Exception) -> str:
    text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    return text.strip().partition("\n")[0]
