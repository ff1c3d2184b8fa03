"""Processes of members that begin at once: forked from one that has imported everything, which takes a core a second.

    test  --- what to run, in which namespaces, with which pipes --->  nursery  --- fork --->  member
          <-------------------------------- its process id ----------

The nursery ends with the test's process, since it reads from it; members end when their pipes do.
"""

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.nursery import enter

__all__ = ["Fledgling", "hatch"]

ROOT = Path(__file__).parents[2]
MESSAGE_BYTES_MAX = 65_536
_nurseries: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []


class Fledgling:
    """A process that was forked by the nursery."""

    def __init__(self, pid: int, told: int, heard: int) -> None:
        self.pid = pid
        self.stdin = os.fdopen(told, "wb")
        self.stdout = os.fdopen(heard, "rb")

    def send_signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self, seconds: float = 10.0) -> None:
        """End it as kill -9 does, and wait until it is no more."""
        deadline = time.monotonic() + seconds
        try:
            while time.monotonic() < deadline:
                os.kill(self.pid, signal.SIGKILL)
                time.sleep(0.005)
        except ProcessLookupError:
            pass
        for pipe in (self.stdin, self.stdout):
            with contextlib.suppress(OSError):  # what was not read is of no use
                pipe.close()


def hatch(arguments: Sequence[str], namespaces: Sequence[str], errors: Path) -> Fledgling:
    """Start a member, in namespaces that are named by files."""
    if not _nurseries:
        _nurseries.append(_begin())
    place, _ = _nurseries[0]
    to_read, told = os.pipe()
    heard, to_write = os.pipe()
    with errors.open("ab") as file:
        message = json.dumps({"arguments": list(arguments), "namespaces": list(namespaces)}).encode()
        socket.send_fds(place, [message], [to_read, to_write, file.fileno()])
    os.close(to_read)
    os.close(to_write)
    return Fledgling(int(place.recv(64)), told, heard)


def _begin() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.engines.nursery"]
    with theirs:
        process = subprocess.Popen(command, stdin=theirs, env=surroundings, cwd=ROOT)

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours, process


def _serve() -> None:
    from tests.engines.member import main

    place = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        message, pipes, _, _ = socket.recv_fds(place, MESSAGE_BYTES_MAX, 3)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            place.detach()
            status = 1
            try:
                asked = json.loads(message)
                for number, pipe in enumerate(pipes):
                    os.dup2(pipe, number)
                    os.close(pipe)
                for path in asked["namespaces"]:
                    enter(path)
                main(*asked["arguments"])
                status = 0
            except BaseException:  # noqa: BLE001 - it is told and ends the process
                sys.excepthook(*sys.exc_info())
                sys.stderr.flush()
            finally:
                os._exit(status)
        for pipe in pipes:
            os.close(pipe)
        place.send(str(pid).encode())


if __name__ == "__main__":
    _serve()
