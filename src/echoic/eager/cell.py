"""A confined process, seen from outside: started, spoken to, looked at, killed.

    hub -- Popen --> bubblewrap -- clone --> process 1 of its namespace: Python (`inside`)
     |                                         |
     +---- requests: its input, replies: its output
     +---- a descriptor of the process itself (pidfd), which no other process can come to have

Killing goes to process 1 directly, so it does not depend on what bubblewrap does, and the kernel then ends all that is
in the namespace. The processor time is read from the kernel, not asked for.
"""

import json
import os
import select
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import IO, Final

import msgspec

from echoic.eager import bubblewrap
from echoic.eager.dialogue import FromHub, Hello, ToHub, decode_to_hub
from echoic.eager.pipe import Deadline, Pipe
from echoic.errors import ModulatorError, RefusedError
from echoic.wire import Buffer

__all__ = ["Cell"]

INFO_BYTES_MAX: Final = 4096
COMPLAINT_BYTES_MAX: Final = 64 * 1024
INFO_SECONDS: Final = 10.0
KILLED_MS: Final = 2000
REAPED_SECONDS: Final = 2.0
NAMESPACES: Final = ("ipc", "mnt", "net", "pid", "user", "uts")


class Cell:
    """One confined process.

    It must be made by a thread that lives as long as this program: Linux ends it with the thread that has started it.

    Raises:
        RefusedError: bubblewrap is not there, or cannot confine a process here.
    """

    def __init__(self) -> None:
        self.bwrap: Final = bubblewrap.find()
        """The program that confines it."""
        info, told = os.pipe()
        try:
            self._process: Final = subprocess.Popen(
                bubblewrap.command(self.bwrap, told),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                cwd="/",
                pass_fds=(told,),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            os.close(info)
            raise RefusedError(f"bubblewrap cannot be started: {error.strerror}") from error
        finally:
            os.close(told)
        self._streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        writing, reading, self._stderr = (each.fileno() for each in self._streams if each is not None)
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        self._pipe = Pipe(reading, writing, alone=True)
        self._lock = threading.Lock()
        self._pidfd = -1
        self.reason = ""
        """Why it was killed, if that was not for what it answered."""
        self.pid = 0
        """The confined process, as this one numbers it."""
        try:
            self.pid = _read_pid(info)
            self._pidfd = os.pidfd_open(self.pid) if self.pid else -1
        except OSError:
            pass  # it has ended already, and `greet` says why

    def greet(self, deadline: Deadline) -> None:
        """Wait until the process has started.

        Raises:
            RefusedError: It cannot be started.
        """
        try:
            message, _ = self.receive(deadline)
        except ModulatorError as error:
            raise RefusedError(f"no process can be confined here: {self._complaint() or error}") from error
        if not isinstance(message, Hello):
            raise RefusedError(f"no process can be confined here: expected a greeting, got {type(message).__name__}")
        shared = [name for name in NAMESPACES if _namespace(self.pid, name) == _namespace(os.getpid(), name)]
        if shared:
            raise RefusedError(
                f"no process can be confined here: bubblewrap shares the namespace `{shared[0]}` with it"
            )
        self._close(self._process.stderr)

    def send(self, message: FromHub, body: list[Buffer], deadline: Deadline) -> None:
        """Send a message.

        Raises:
            ModulatorError: The process is gone or does not read in time, or the message is too large.
        """
        self._pipe.send(message, body, deadline)

    def receive(self, deadline: Deadline) -> tuple[ToHub, memoryview]:
        """Return the next message.

        Raises:
            ModulatorError: The process is gone, does not answer in time, or sends what is no message.
        """
        head, body = self._pipe.receive(deadline)
        try:
            return decode_to_hub(head), body
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ModulatorError(f"its process sent something else than an answer: {str(error)[:200]}") from error

    @property
    def silent(self) -> bool:
        """Whether it has said nothing since it was last heard."""
        return self._pipe.silent()

    @property
    def processor_seconds(self) -> float:
        """How much processor time the process has taken so far, 0 if it has ended."""
        try:
            return time.clock_gettime((~self.pid << 3) | 2)  # the clock of another process: clock_getcpuclockid(3)
        except OSError:
            return 0.0

    @property
    def used_bytes(self) -> int:
        """How much of its addresses the process uses.

        Raises:
            ModulatorError: It has ended.
        """
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text("ascii").split()[0]
        except OSError as error:
            raise ModulatorError("its process has ended") from error
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def strike(self, reason: str) -> None:
        """Kill the process for a reason, without waiting; whoever asks it next is told."""
        with self._lock:
            self.reason = self.reason or reason
            if self._pidfd >= 0:
                _send_kill(self._pidfd)

    def kill(self) -> None:
        """End the process and whatever it has started, and wait until it is gone. A second time does nothing."""
        with self._lock:
            if self._pidfd >= 0:
                _kill(self._pidfd)
                self._pidfd = -1
            self._reap()
            for stream in self._streams:
                self._close(stream)

    def _reap(self) -> None:
        """Wait for bubblewrap, which ends when its child has; were it killed first, the child would be left to init."""
        try:
            self._process.wait(REAPED_SECONDS if self.pid else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @staticmethod
    def _close(stream: IO[bytes] | None) -> None:
        if stream is not None:
            stream.close()

    def _complaint(self) -> str:
        """Return the last line of what bubblewrap, or Python, has said on its way to the end."""
        self._process.kill()
        self._process.wait()
        os.set_blocking(self._stderr, False)
        try:
            said = os.read(self._stderr, COMPLAINT_BYTES_MAX)
        except BlockingIOError:
            said = b""
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""


def _namespace(pid: int, name: str) -> str:
    """Return which namespace of a kind a process is in.

    Raises:
        RefusedError: That cannot be seen.
    """
    try:
        return str(Path(f"/proc/{pid}/ns/{name}").readlink())
    except OSError as error:
        raise RefusedError(f"whether a process is confined cannot be seen here: {error}") from error


def _send_kill(pidfd: int) -> None:
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended by itself


def _kill(pidfd: int) -> None:
    """Kill a process and wait until it is gone."""
    _send_kill(pidfd)
    gone = select.poll()
    gone.register(pidfd, select.POLLIN)
    gone.poll(KILLED_MS)
    os.close(pidfd)


def _read_pid(info: int) -> int:
    """Return which process bubblewrap says it has started, 0 if it says nothing."""
    data, until = b"", time.monotonic() + INFO_SECONDS
    with open(info, "rb", buffering=0) as file:
        ready = select.poll()
        ready.register(file, select.POLLIN)
        while len(data) < INFO_BYTES_MAX and ready.poll(max(0, int((until - time.monotonic()) * 1000))):
            part = file.read(INFO_BYTES_MAX)
            if not part:
                break
            data += part
            pid = _pid_in(data)
            if pid:
                return pid
    return 0


def _pid_in(data: bytes) -> int:
    try:
        return int(json.loads(data)["child-pid"])
    except (ValueError, KeyError, TypeError):
        return 0
