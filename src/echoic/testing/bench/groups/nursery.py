"""A process that has imported everything, and forks replicas: a run begins at once, not after seconds of imports.

    measuring process --- a Unix socket: command, and both ends of its talk ---> nursery --- fork ---> replica
                      <--- process id ----------------------------------------

A replica is as fresh as one that was started by itself, as the nursery does nothing but import and fork. It ends when
the measuring process does, and replicas end when nobody talks to them any more.
"""

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import IO, Final

import msgspec

from echoic.testing.readable import is_readable

__all__ = ["ForkedProcess", "Nursery", "be_nursery"]

COMMAND_BYTES_MAX: Final = 1 << 16
ANSWER_SECONDS_MAX: Final = 60.0


class ForkedProcess:
    """A replica, used as `subprocess.Popen` is."""

    def __init__(self, pid: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self.pid: Final = pid
        self.stdin: Final = stdin
        self.stdout: Final = stdout
        self._pidfd = os.pidfd_open(pid)

    def kill(self) -> None:
        """End it as a crash would."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Return when it has ended.

        Raises:
            subprocess.TimeoutExpired: It has not.
        """
        if self._pidfd >= 0:
            if not is_readable(self._pidfd, timeout):
                raise subprocess.TimeoutExpired("replica", timeout or 0.0)
            os.close(self._pidfd)
            self._pidfd = -1
        return 0


class Nursery:
    """The measuring side."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(ANSWER_SECONDS_MAX)
        # Whatever can be imported here can be imported there.
        variables = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with theirs:
            command = [sys.executable, "-c", f"from {__name__} import be_nursery; be_nursery()"]
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, env=variables)

    def fork(self, arguments: Sequence[str]) -> ForkedProcess:
        """Start a replica.

        Raises:
            RuntimeError: The nursery does not answer.
        """
        their_in, our_out = os.pipe()
        our_in, their_out = os.pipe()
        try:
            socket.send_fds(self._socket, [msgspec.json.encode(list(arguments))], [their_in, their_out])
            answer = self._socket.recv(COMMAND_BYTES_MAX)
        finally:
            os.close(their_in)
            os.close(their_out)
        if not answer:
            raise RuntimeError("the process that starts replicas has ended")
        return ForkedProcess(int(answer), os.fdopen(our_out, "wb", 0), os.fdopen(our_in, "rb", 0))

    @property
    def ended(self) -> bool:
        """Whether it cannot fork any more."""
        return self._process.poll() is not None

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._process.wait()


def be_nursery() -> None:
    """Import, and fork replicas as the measuring process asks for them."""
    from echoic.testing.bench.groups import replica

    with socket.socket(fileno=os.dup(0)) as talk:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        gc.collect()
        gc.freeze()
        while True:
            command, descriptors, _, _ = socket.recv_fds(talk, COMMAND_BYTES_MAX, 2)
            if not command:
                break
            pid = os.fork()
            if not pid:
                _be_replica(talk, descriptors, msgspec.json.decode(command, type=list[str]), replica.run)
            for descriptor in descriptors:
                os.close(descriptor)
            talk.send(str(pid).encode())


def _be_replica(
    talk: socket.socket, descriptors: Sequence[int], arguments: Sequence[str], run: Callable[..., None]
) -> None:
    """Turn this process into a replica, which it is until its end."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        talk.close()
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
            os.close(descriptor)
        sys.stdin, sys.stdout = os.fdopen(0, "r"), os.fdopen(1, "w")
        run(*arguments)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        raise  # which the next lines keep from going on as a nursery
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
        os._exit(status)
