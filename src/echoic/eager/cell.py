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
import time
from pathlib import Path
from typing import Final

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


class Cell:
    """One confined process.

    It must be made by a thread that lives as long as this program: Linux ends it with the thread that has started it.

    Raises:
        RefusedError: bubblewrap is not there, or cannot confine a process here.
    """

    def __init__(self) -> None:
        bwrap = bubblewrap.find()
        info, told = os.pipe()
        try:
            self._process: Final = subprocess.Popen(
                bubblewrap.command(bwrap, told),
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
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        reading, writing = self._process.stdout.fileno(), self._process.stdin.fileno()
        os.set_blocking(reading, False)
        os.set_blocking(writing, False)
        self._pipe = Pipe(reading, writing)
        self._pidfd = -1
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
        assert self._process.stderr is not None
        self._process.stderr.close()

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

    def kill(self) -> None:
        """End the process and whatever it has started, and wait until it is gone. A second time does nothing."""
        if self._pidfd >= 0:
            try:
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._process.kill()
        self._process.wait()
        if self._pidfd >= 0:
            gone = select.poll()
            gone.register(self._pidfd, select.POLLIN)
            gone.poll(KILLED_MS)
            os.close(self._pidfd)
            self._pidfd = -1
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _complaint(self) -> str:
        """Return the last line of what bubblewrap, or Python, has said on its way to the end."""
        stderr = self._process.stderr
        assert stderr is not None
        os.set_blocking(stderr.fileno(), False)
        self._process.kill()
        said = stderr.read(COMPLAINT_BYTES_MAX) or b""
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:300] if lines else ""


def _read_pid(info: int) -> int:
    """Return which process bubblewrap says it has started, 0 if it says nothing."""
    data, until = b"", time.monotonic() + INFO_SECONDS
    with open(info, "rb", buffering=0) as file:  # noqa: PTH123 - an open descriptor
        ready = select.poll()
        ready.register(file, select.POLLIN)
        while len(data) < INFO_BYTES_MAX and ready.poll(max(0, int((until - time.monotonic()) * 1000))):
            part = file.read(INFO_BYTES_MAX)
            if not part:
                break
            data += part
    try:
        return int(json.loads(data)["child-pid"])
    except (ValueError, KeyError, TypeError):
        return 0
