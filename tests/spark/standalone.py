"""A Spark cluster of this machine: a master and workers, each a process, from the package that pip installed.

    master  <-----  worker 0  <-----  executor  <-----  Python workers
            <-----  worker 1  <-----  executor  <-----  Python workers

What a cluster has and `local[2]` does not: executors in processes of their own, which get what they run sent to them,
see no variable of the driver's, have a Python of their own, and can be killed one by one.

Everything listens on loopback at ports that the system chose, which is why the workers are started when the log of
the master tells its address. Each daemon leads a session: what it starts (executors, and their Python workers, which
leave the process group but not the session) ends with it, whatever happens. Daemons also die with the process that
runs the tests, since the kernel was asked for that; an executor whose worker is gone ends by itself.

The flags: one compiler and the serial collector, because nothing here lives long enough to be worth optimising. They
halve the seconds until a cluster is there. Executors have 512 MiB: Spark refuses less than 450.
"""

import os
import re
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from echoic.spark.java import find_java

__all__ = ["PATIENCE_SECONDS", "QUICK", "Cluster", "Daemon", "interpreter_without_echoic", "standalone"]

PATIENCE_SECONDS = 300.0  # a machine may have other things to do
QUICK = f"{os.environ.get('SPARK_SUBMIT_OPTS', '')} -XX:CICompilerCount=1"
SPARK = Path(pyspark.__file__).parent
# Asks Linux to kill this process when its parent dies, then becomes the program: a child of its own would not be told.
TIED = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); os.execvp(sys.argv[1], sys.argv[1:])"
SETTINGS = {
    "spark.cores.max": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
}


class Daemon:
    """A process that serves until it is ended, and its log."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", TIED, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=log.parent,
                env={**environment},
                start_new_session=True,
            )

    def said(self, pattern: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Wait until the log has `pattern`, and return its first group."""
        deadline = time.monotonic() + seconds
        while True:
            ended = self._process.poll() is not None
            found = re.search(pattern, self.text)
            if found:
                return found.group(1)
            assert not ended, f"ended before it said {pattern}: {self.end_of_log}"
            assert time.monotonic() < deadline, f"not said within {seconds} s: {pattern}: {self.end_of_log}"
            time.sleep(0.05)

    def result(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait until it ends by itself, and return its status."""
        return self._process.wait(seconds)

    @property
    def text(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def end_of_log(self) -> str:
        return "\n" + "\n".join(self.text.splitlines()[-30:])

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill it and all that it has started, as a machine that loses power would."""
        for _ in range(100):
            here = session_members(self._process.pid)
            for process in here:
                _kill(process)
            if not here:
                break
            time.sleep(0.02)  # what was being started while the list was made is in the next one
        self._process.wait()


class Cluster:
    """A master and its workers."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self.workers: list[Daemon] = []
        self._daemons: list[Daemon] = []
        program = "org.apache.spark.deploy.master.Master"
        master = self.start("master", "spark-class", program, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        try:
            self.address = master.said(r"(spark://127\.0\.0\.1:\d+)")
            master.said(r"(I have been elected leader)")
        except BaseException:
            self.end()
            raise

    def start(self, name: str, program: str, *arguments: str, **variables: str) -> Daemon:
        """Start one of Spark's programs, which ends with the cluster at the latest."""
        command = [str(SPARK / "bin" / program), *arguments]
        daemon = Daemon(command, self.folder / f"{name}.log", {**self.environment, **variables})
        self._daemons.append(daemon)
        return daemon

    def client(self, name: str, program: Path, *arguments: object) -> Daemon:
        """Start a program that has the Python of the tests, and no part in the cluster."""
        command = [sys.executable, "-u", str(program), *map(str, arguments)]
        self._daemons.append(Daemon(command, self.folder / f"{name}.log", self.environment))
        return self._daemons[-1]

    def add_workers(self, count: int) -> None:
        """Start workers of 512 MiB and one core each, and wait until the master knows them."""
        added = [self._add_worker() for _ in range(count)]
        for worker in added:
            worker.said(r"(Successfully registered with master)")

    def end(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.kill()

    def _add_worker(self) -> Daemon:
        name = f"worker{len(self.workers)}"
        options = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "512m"]
        options += ["--work-dir", str(self.folder / name)]
        program = "org.apache.spark.deploy.worker.Worker"
        self.workers.append(self.start(name, "spark-class", program, *options, self.address))
        return self.workers[-1]


@contextmanager
def standalone(folder: Path, python: Path, workers: int = 2) -> Iterator[Cluster]:
    """Run a cluster whose drivers and executors use `python`, with its logs in `folder`."""
    settings = {**SETTINGS, "spark.pyspark.python": str(python)}
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    cluster = Cluster(folder, _environment(folder))
    try:
        cluster.add_workers(workers)
        yield cluster
    finally:
        cluster.end()


def home_without_zip(folder: Path) -> Path:
    """Make a SPARK_HOME whose Python processes take pyspark from their own packages.

    Otherwise they import it from a zip that has no byte code: 0.9 s instead of 0.3, and a dozen are started.
    """
    folder.mkdir()
    for name in ("bin", "jars", "sbin"):
        (folder / name).symlink_to(SPARK / name)
    return folder


def interpreter_without_echoic(folder: Path) -> Path:
    """Make a Python that has every package of this one except ours, as the machines of a cluster do."""
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    for entry in Path(pyspark.__file__).parents[1].iterdir():
        if not entry.name.startswith(("echoic", "pyspark_echoic")) and entry.suffix != ".pth":
            (packages / entry.name).symlink_to(entry)
    python = folder / "bin" / "python"
    tried = subprocess.run([python, "-c", "import echoic"], capture_output=True, text=True, check=False, cwd=folder)
    assert "No module named 'echoic'" in tried.stderr
    return python


def session_members(leader: int) -> list[int]:
    """Return the processes of a session, other than those that have ended and only wait to be told so."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:
                continue  # it has ended meanwhile
            if int(session) == leader and state != "Z":
                found.append(int(entry.name))
    return found


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _environment(folder: Path) -> dict[str, str]:
    """What the programs of the cluster see: nothing of the variables that Spark or Python of this process was given."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    return kept | {
        "JAVA_HOME": str(find_java().home),
        "SPARK_CONF_DIR": str(folder),
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_HOME": str(home_without_zip(folder / "home")),
        "SPARK_LAUNCHER_OPTS": QUICK,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",  # it would listen at a port of its own
    }
