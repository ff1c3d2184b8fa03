"""Processes that begin at once: forked from one that has imported what takes half a second of a core, echoic's hub.

    test  --- what to run, where, with which files --->  nursery  --- fork --->  program
          <------------- its process id -------------
          <------------- how it ended, at its end ---

The fork leaves the nursery's loop and runs the program as a Python of its own would: its arguments, its surroundings
and its streams are those that it was given, and the interpreter ends as it always does. What only some programs import,
each imports itself. The nursery ends with the process of the test, since it reads from it.

A program that must not have imported anything, or that runs in front of others, is started by `subprocess` instead.
"""

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Fledgling", "enter"]

ROOT = Path(__file__).parents[1]
MESSAGE_BYTES_MAX = 200_000
IMPORTED = ("echoic.hub", "echoic.recorder", "echoic.toolbus", "echoic.cli.app")
_lock = threading.Lock()
_nurseries: list[tuple[socket.socket, "subprocess.Popen[bytes]"]] = []


class Fledgling:
    """A process that was forked by the nursery, with as much of `subprocess.Popen` as tests need.

    The command is a file, or `module:function`, which is called without arguments; what follows it is `sys.argv`.
    Errors go to a file, or into a pipe as all else does.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        namespaces: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        errors: int | None = None,
    ) -> None:
        self.returncode: int | None = None
        self._lock = threading.Lock()
        asked = {
            "command": list(command),
            "folder": str(Path.cwd()),
            "environment": dict(os.environ if environment is None else environment),
            "namespaces": list(namespaces),
        }
        to_read, told = os.pipe()
        heard, to_write = os.pipe()
        complaints, to_complain = os.pipe() if errors is None else (-1, os.dup(errors))
        self._ended, to_end = os.pipe()
        theirs = [to_read, to_write, to_complain, to_end]
        self.pid = _ask(json.dumps(asked).encode(), theirs)
        for each in theirs:
            os.close(each)
        self.stdin = os.fdopen(told, "w", 1, encoding="utf-8")
        self.stdout = os.fdopen(heard, encoding="utf-8")
        self.stderr = os.fdopen(complaints, encoding="utf-8") if errors is None else None

    def poll(self) -> int | None:
        """How it ended, if it has: its exit code, or the negative number of a signal."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        with self._lock:
            if self.returncode is None:
                poll = select.poll()  # `select.select` takes no descriptor above 1023
                poll.register(self._ended, select.POLLIN)
                if not poll.poll(None if timeout is None else 1000 * timeout):
                    raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0.0)
                self.returncode = int(os.read(self._ended, 64))
                os.close(self._ended)
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _ask(message: bytes, files: Sequence[int]) -> int:
    with _lock:
        if not _nurseries:
            _nurseries.append(_begin())
        place, _ = _nurseries[0]
        socket.send_fds(place, [message], files)
        return int(place.recv(64))


def _begin() -> "tuple[socket.socket, subprocess.Popen[bytes]]":
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    surroundings = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}  # a fork of threads would have locks that nobody opens
    with theirs:
        process = subprocess.Popen([sys.executable, "-m", "tests.nursery"], stdin=theirs, env=surroundings, cwd=ROOT)

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours, process


class _Nursery:
    """Forks whom it is asked for, and tells of each how it ended."""

    def __init__(self) -> None:
        for name in IMPORTED:
            importlib.import_module(name)
        gc.freeze()  # what is there stays in pages that all share
        self._place = socket.socket(fileno=os.dup(0))
        self._ends: dict[int, int] = {}
        self._deaths, self._noticed = os.pipe()
        os.set_blocking(self._noticed, False)
        self._handled = signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._noticed)

    def serve(self) -> bytes:
        """Return in a process that was forked, with what it shall be."""
        while True:
            ready, _, _ = select.select([self._place, self._deaths], [], [])
            if self._deaths in ready:
                os.read(self._deaths, 4096)
                self._bury()
            if self._place in ready:
                message, files, _, _ = socket.recv_fds(self._place, MESSAGE_BYTES_MAX, 4)
                if not message:
                    os._exit(0)
                *streams, end = files
                pid = os.fork()
                if pid == 0:
                    self._leave(streams, end)
                    return message
                self._ends[pid] = end
                for each in streams:
                    os.close(each)
                self._place.send(str(pid).encode())

    def _bury(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                end = self._ends.pop(pid)
                with contextlib.suppress(BrokenPipeError):  # nobody wants to know
                    os.write(end, str(os.waitstatus_to_exitcode(status)).encode())
                os.close(end)

    def _leave(self, streams: Sequence[int], end: int) -> None:
        """Keep nothing of the nursery, and take what the process was given."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, self._handled)
        self._place.close()
        for each in (self._deaths, self._noticed, end, *self._ends.values()):
            os.close(each)
        for number, each in enumerate(streams):
            os.dup2(each, number)
            os.close(each)
        sys.stdin = io.TextIOWrapper(os.fdopen(0, "rb", closefd=False), "utf-8")
        sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, "wb", closefd=False), "utf-8", errors, line_buffering=number == 2)
            for number, errors in ((1, "strict"), (2, "backslashreplace"))
        )


def _be(asked: dict[str, object]) -> None:
    """Run a program in the process that was forked for it."""
    command, environment = asked["command"], asked["environment"]
    assert isinstance(command, list)
    assert isinstance(environment, dict)
    for path in asked["namespaces"]:  # type: ignore[attr-defined]
        enter(path)
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(environment)
    program, *arguments = command
    module, _, function = program.partition(":")
    sys.argv = [program, *arguments]
    sys.path[0] = "" if function else str(Path(program).parent)
    if function:
        getattr(importlib.import_module(module), function)()
    else:
        runpy.run_path(program, run_name="__main__")


def enter(path: str) -> None:
    """Be in the namespace of a file."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    if libc.setns(descriptor, 0):
        raise OSError(ctypes.get_errno(), f"cannot enter {path}")
    os.close(descriptor)


if __name__ == "__main__":
    _be(json.loads(_Nursery().serve()))
