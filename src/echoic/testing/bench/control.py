"""The peer's side: a process that receives events, counts them, and tells the process that measures.

    python -m echoic.testing.bench MODULE:FUNCTION SETUP ARGUMENT      both JSON

    from the measuring process (stdin)        to it (stdout)
                                              ready {"port": 40123}     once, when events can come
    expect 5000                               expecting                 counting begins at zero
                                              counted                   the 5000th event has been handled
    end of file                                                         the peer ends

A peer whose parent dies ends too, because its stdin does.
"""

import gc
import os
import sys
import threading
import time
from collections.abc import Callable

import msgspec

__all__ = ["Argument", "Control", "Tally"]

Argument = dict[str, str | int | list[str]]

ENDING_SECONDS_MAX = 3.0


class Tally:
    """Counts down to the last event that is expected, and reports it."""

    __slots__ = ("_report", "left")

    def __init__(self, report: Callable[[], object]) -> None:
        self._report = report
        self.left = 0

    def event(self, event: object) -> None:  # noqa: ARG002 - the handler of whoever delivers one event
        """Count one event: the callback of every contender."""
        self.left -= 1
        if self.left == 0:
            self._report()

    def events(self, count: int) -> None:
        """Count the events of one batch."""
        before = self.left
        self.left = before - count
        if before > 0 >= self.left:
            self._report()


class Control:
    """The line to the measuring process."""

    def __init__(self) -> None:
        self.tally = Tally(lambda: self._say("counted"))
        self._ended = threading.Event()
        self._orderly = False
        threading.Thread(target=self._listen, daemon=True).start()

    def ready(self, **address: str | int) -> None:
        """Tell the measuring process that events can come, and where to."""
        gc.collect()
        gc.freeze()
        self._say(f"ready {msgspec.json.encode(address).decode()}")

    def wait(self) -> None:
        """Wait until the measuring process has had enough; a peer that does not call this simply ends then."""
        self._orderly = True
        self._ended.wait()

    def _say(self, line: str) -> None:
        os.write(sys.stdout.fileno(), f"{line}\n".encode())

    def _listen(self) -> None:
        for line in sys.stdin:
            self.tally.left = int(line.removeprefix("expect "))
            self._say("expecting")
        self._ended.set()
        if self._orderly:
            time.sleep(ENDING_SECONDS_MAX)
        os._exit(0)
