"""The processes of a campaign of kills, as the one that starts and kills them knows them.

They are forked, which costs milliseconds where a fresh interpreter would cost a second; so whoever has a crew has no
threads and no hub.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Final

__all__ = ["END_SECONDS", "POLL_SECONDS", "Crew"]

END_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.001


class Crew:
    """The processes, by what they are."""

    def __init__(self) -> None:
        self._living: dict[tuple[str, int], int] = {}
        self._due: list[tuple[float, tuple[str, int], Callable[[], None]]] = []

    def start(self, kind: str, index: int, role: Callable[[], None]) -> None:
        """Fork a process."""
        sys.stdout.flush()
        sys.stderr.flush()
        # A signal in between would have the parent forget a process.
        unmasked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
        process = os.fork()
        if process:
            self._living[kind, index] = process
            signal.pthread_sigmask(signal.SIG_SETMASK, unmasked)
            return
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)  # not what it means to the parent
            signal.pthread_sigmask(signal.SIG_SETMASK, unmasked)
            role()
            code = 0
        finally:  # whatever it is, this process must not go on as its parent
            if code:
                traceback.print_exc()
            sys.stderr.flush()
            os._exit(code)

    def start_later(self, seconds: float, kind: str, index: int, role: Callable[[], None]) -> None:
        """Fork a process after a while."""
        self._due.append((time.monotonic() + seconds, (kind, index), role))

    def beat(self) -> list[str]:
        """Start who is due, and return who has ended by himself and with an error."""
        due = [one for one in self._due if one[0] <= time.monotonic()]
        self._due = [one for one in self._due if one not in due]
        for _, (kind, index), role in due:
            self.start(kind, index, role)
        failed: list[str] = []
        for key, process in list(self._living.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                del self._living[key]
                if status:
                    failed.append(f"{key[0]} {key[1]} ended with status {status}")
        return failed

    def lives(self, kind: str, index: int) -> bool:
        """Whether a process is there."""
        return (kind, index) in self._living

    def of(self, kind: str) -> list[int]:
        """Return the living of a kind."""
        return sorted(index for known, index in self._living if known == kind)

    def away(self) -> bool:
        """Whether anybody has yet to be started."""
        return bool(self._due)

    def kill(self, kind: str, index: int) -> None:
        """Kill a process, at once."""
        process = self._living.pop((kind, index))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)

    def stop(self, kind: str) -> list[str]:
        """Tell all of a kind to end, wait until they have, and return who could not."""
        failed: list[str] = []
        for index in self.of(kind):
            os.kill(self._living[kind, index], signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while self.of(kind) and time.monotonic() < deadline:
            failed += self.beat()
            time.sleep(POLL_SECONDS)
        return failed + [f"{kind} {index} does not end" for index in self.of(kind)]

    def end(self) -> None:
        """Leave nobody behind."""
        self._due.clear()
        for kind, index in list(self._living):
            self.kill(kind, index)
