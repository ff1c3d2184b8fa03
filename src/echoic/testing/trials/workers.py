"""Processes of a trial: started, asked, stopped, killed, and always gone in the end.

    trial   python -m echoic.testing.trials.workers MODULE:FUNCTION OPTIONS
            {"do": "tell"}      ----------------->      worker
                                <-----------------      {"events": 5000}
            end of file         ----------------->      it ends

Both sides speak lines of JSON. The function is called with a `Conversation`, says what it is when it is ready, and then
answers until there is no further question; a worker whose trial dies ends too, because its stdin does.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Final, TypeAlias

import msgspec

from echoic.errors import LocalError
from echoic.testing.readable import is_readable

__all__ = ["Answer", "Conversation", "Start", "Worker", "wait_until", "workers"]

ANSWER_SECONDS_MAX: Final = 120.0
END_SECONDS_MAX: Final = 10.0
POLL_SECONDS: Final = 0.01
Answer: TypeAlias = dict[str, Any]
Start: TypeAlias = Callable[..., "Worker"]


class Worker:
    """One process, as its trial sees it."""

    def __init__(self, target: str, options: Mapping[str, object], environment: Mapping[str, str]) -> None:
        """Start a process that runs `target`, which is `module:function`."""
        self.name: Final = target.rpartition(":")[2]
        variables = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | dict(environment)
        program = [sys.executable, "-m", __name__, target, msgspec.json.encode(options).decode()]
        self._process = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=variables
        )
        self._heard = b""
        self._asking = threading.Lock()
        self._started: Answer | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def started(self) -> Answer:
        """What it says of itself when it is ready, which is waited for."""
        if self._started is None:
            self._started = self._hear()
        return self._started

    def ask(self, do: str = "tell", **arguments: object) -> Answer:
        """Have it do something, and return its answer.

        Raises:
            LocalError: It has ended, or does not answer.
        """
        told, _ = self._process.stdin, self.started
        if told is None:
            raise LocalError(f"worker {self.name} cannot be asked")
        with self._asking:
            if told.closed:
                raise LocalError(f"worker {self.name} has ended with {self._process.poll()}")
            try:
                told.write(msgspec.json.encode({"do": do, **arguments}) + b"\n")
            except OSError as error:
                raise LocalError(f"worker {self.name} has ended with {self._process.poll()}") from error
            return self._hear()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        if self.alive:
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it at once, and keep nothing of it: in hours there are many."""
        self._process.kill()
        self._process.wait()
        with self._asking:  # who waits for an answer has learned that there is none
            self._hang_up()

    def end(self) -> None:
        """Let it end by itself, or end it."""
        self.signal(signal.SIGCONT)
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):  # it was killed with a question on its way
                self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
        self._hang_up()

    def _hang_up(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _hear(self) -> Answer:
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        output = self._process.stdout
        while b"\n" not in self._heard:
            if output is not None and output.closed:
                raise LocalError(f"worker {self.name} has ended with {self._process.poll()}")
            if output is None or not is_readable(output, deadline - time.monotonic()):
                raise LocalError(f"worker {self.name} does not answer within {ANSWER_SECONDS_MAX:.0f} s")
            piece = os.read(output.fileno(), 65_536)
            if not piece:
                raise LocalError(f"worker {self.name} has ended with {self._process.wait()}")
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return msgspec.json.decode(line, type=Answer)


@contextlib.contextmanager
def workers() -> Iterator[Start]:
    """Start processes, and leave none behind."""
    started: list[Worker] = []

    def start(target: str, environment: Mapping[str, str] | None = None, **options: object) -> Worker:
        worker = Worker(target, options, environment or {})
        started.append(worker)
        return worker

    try:
        yield start
    finally:
        for worker in reversed(started):
            worker.end()


def wait_until(condition: Callable[[], object], what: str, seconds: float = ANSWER_SECONDS_MAX) -> None:
    """Wait until something is true.

    Raises:
        LocalError: It takes too long.
    """
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LocalError(f"not within {seconds:.0f} s: {what}")
        time.sleep(POLL_SECONDS)


class Conversation:
    """The same, as the worker sees it."""

    def __init__(self, options: Answer) -> None:
        self.options: Final = options

    def say(self, **values: object) -> None:
        """Tell what is known."""
        os.write(sys.stdout.fileno(), msgspec.json.encode(values) + b"\n")

    def questions(self) -> Iterator[Answer]:
        """Yield what is asked, each of which must be answered, until nobody asks any more."""
        for line in sys.stdin.buffer:
            yield msgspec.json.decode(line, type=Answer)


def main() -> None:
    """Be what the command line says."""
    target, options = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever watches the trial ends it, and it ends this
    module, _, function = target.partition(":")
    getattr(import_module(module), function)(Conversation(msgspec.json.decode(options, type=Answer)))


if __name__ == "__main__":
    main()
