"""Processes under test: started, asked, stopped, killed, and always gone in the end."""

import json
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.nursery import Fledgling

__all__ = ["Process", "Start", "processes", "wait_until"]

PATIENCE_SECONDS = 120.0
WORKER = Path(__file__).with_name("worker.py")

Start = Callable[..., "Process"]


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class Process:
    """A worker that answers lines with lines."""

    def __init__(self, options: Mapping[str, object], prefix: Sequence[str], worker: Path = WORKER) -> None:
        self._process = start_after(prefix, worker) if prefix else Fledgling([str(worker)], errors=2)
        self._tell(json.dumps(options))

    @property
    def id(self) -> int:
        return self._process.pid

    @cached_property
    def started(self) -> dict[str, Any]:
        """What it says when it is what it was told to be, which is waited for."""
        return self._hear()

    def ask(self, command: str = "tell") -> dict[str, Any]:
        assert self.started
        self._tell(command)
        return self._hear()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """Let the process end by itself, or end it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            try:
                self._tell("stop")
                self._process.wait(5)
            except (OSError, subprocess.TimeoutExpired):
                self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            try:
                stream.close()
            except OSError:
                pass  # it was killed with a command on its way

    def _tell(self, line: str) -> None:
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def _hear(self) -> dict[str, Any]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            assert selector.select(PATIENCE_SECONDS), "a worker does not answer"
        line = self._process.stdout.readline()
        assert line, f"a worker ended: {self._process.poll()}"
        return json.loads(line)


def start_after(prefix: Sequence[str], worker: Path) -> "subprocess.Popen[str]":
    """Start a worker by a command that prepares the place for it."""
    command = [*prefix, sys.executable, str(worker)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)


@contextmanager
def processes(worker: Path = WORKER) -> Iterator[Start]:
    """Start workers, and leave none behind."""
    started: list[Process] = []

    def start(role: str, *, prefix: Sequence[str] = (), **options: Any) -> Process:
        process = Process({"role": role, **options}, prefix, worker)
        started.append(process)
        return process

    try:
        yield start
    finally:
        for process in reversed(started):
            process.end()
