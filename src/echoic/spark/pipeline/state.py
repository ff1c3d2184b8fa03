"""The state folder of a pipeline: what lets it go on where it stopped, and what others may know of it meanwhile.

    state/market/
        lock                 held by the one process that runs the pipeline; free when that is gone, however it went
        run.json             who runs it, since when, and how it ended
        progress.json        what each output got in this run
        spark.log            what Spark and its Python workers say that is not meant for people
        stop                 there when somebody asks the pipeline to stop
        specs/per_symbol     what an output was computed by, as JSON: its checkpoint goes on with that only
        checkpoints/per_symbol/
                             Spark's own: how far the output is, and the windows that are not over

A lock of the operating system decides whether a pipeline runs, not the file that says so: a process that was killed
cannot take its words back. `run.json` that says `running` while the lock is free tells of a crash.

Files are written beside their place and renamed, so that nobody reads half of one. The folder is private, since windows
that are not over are made of events; the group of a folder that hands its group down may read it.
"""

import fcntl
import os
import socket
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self, TypeAlias, TypeVar

import msgspec

from echoic.errors import PipelineError
from echoic.spark.pipeline.progress import Tally
from echoic.trust import make_private_folder, open_private

__all__ = ["Phase", "Run", "StateFolder", "write_json"]

Phase: TypeAlias = Literal["starting", "running", "finished", "stopped", "failed", "crashed"]
FILE_BYTES_MAX: Final = 1 << 20

R = TypeVar("R")


class Run(msgspec.Struct, frozen=True):
    """A run of a pipeline, the one at present or the last."""

    pipeline: str
    state: Phase
    pid: int
    host: str
    started: float
    ended: float = 0.0
    reason: str = ""
    channel: str = ""
    """The id of the channel with its progress."""
    outputs: dict[str, str] = {}
    """Where each output goes."""

    @classmethod
    def by_this_process(cls, pipeline: str) -> "Run":
        """Return a run that begins here and now."""
        return cls(pipeline=pipeline, state="starting", pid=os.getpid(), host=socket.gethostname(), started=time.time())


class StateFolder:
    """The folder of one pipeline. Inside of `with`, this process is the one that runs it."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._lock: int | None = None

    def __enter__(self) -> Self:
        """Take the pipeline.

        Raises:
            PipelineError: Somebody else runs it, or the folder cannot be written.
        """
        try:
            make_private_folder(self.path)
            lock = open_private(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        except OSError as error:
            raise PipelineError(
                f"the state of the pipeline cannot be kept: {error.strerror} - at {self.path}"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise PipelineError(f"the pipeline runs already{self._by_whom()} - at {self.path}") from error
        self._lock = lock
        self._remove("stop")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    @property
    def stop_asked(self) -> bool:
        """Whether somebody asked the pipeline to stop."""
        return (self.path / "stop").exists()

    def ask_to_stop(self) -> None:
        """Ask whoever runs the pipeline to stop.

        Raises:
            PipelineError: The folder cannot be written.
        """
        try:
            (self.path / "stop").touch()
        except OSError as error:
            raise PipelineError(f"the pipeline cannot be asked to stop: {error.strerror} - at {self.path}") from error

    def held(self) -> bool:
        """Tell whether a process runs the pipeline."""
        try:
            lock = os.open(self.path / "lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise PipelineError(
                f"the state of the pipeline cannot be read: {error.strerror} - at {self.path}"
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(lock)
        return False

    def run(self) -> Run | None:
        """Return the run at present, or the last one; None if there was none.

        Raises:
            PipelineError: What stands there is damaged.
        """
        run = self._read("run.json", Run)
        if run is not None and run.state in ("starting", "running") and not self.held():
            reason = f"process {run.pid} on {run.host} is gone; start the pipeline again, it goes on where it stopped"
            return msgspec.structs.replace(run, state="crashed", reason=reason)
        return run

    def keep_run(self, run: Run) -> None:
        """Write down how the run is."""
        write_json(self.path / "run.json", run)

    def progress(self) -> list[Tally]:
        """Return what each output got in the run at present, or in the last.

        Raises:
            PipelineError: What stands there is damaged.
        """
        return self._read("progress.json", list[Tally]) or []

    def keep_progress(self, tallies: list[Tally]) -> None:
        """Write down what each output got."""
        write_json(self.path / "progress.json", tallies)

    def spec(self, output: str) -> Path:
        """Return the file that says what an output was computed by."""
        return self.path / "specs" / f"{output}.json"

    def _by_whom(self) -> str:
        run = self._read("run.json", Run)
        return "" if run is None else f", as process {run.pid} on {run.host}"

    def _remove(self, name: str) -> None:
        (self.path / name).unlink(missing_ok=True)

    def _read(self, name: str, kind: type[R]) -> R | None:
        path = self.path / name
        try:
            with path.open("rb") as file:
                return msgspec.json.decode(file.read(FILE_BYTES_MAX), type=kind)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            raise PipelineError(f"cannot read {path}: {error}") from error


def write_json(path: Path, value: object) -> None:
    """Write a value as JSON, so that a reader sees what was there before or all of it.

    Raises:
        PipelineError: It cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        make_private_folder(path.parent)
        with open(beside, "wb", opener=open_private) as file:
            file.write(msgspec.json.format(msgspec.json.encode(value)) + b"\n")
        beside.replace(path)
    except OSError as error:
        raise PipelineError(f"cannot write {path}: {error.strerror}") from error
