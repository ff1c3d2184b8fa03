"""How `echoic demo` and the processes that publish for it speak: cues in, a report out.

    demo ── "go" ──────> stdin   publish from here on, the sinks are there
         ── "end" ─────> stdin   publish what belongs at the end, wait until all of it is recorded, report
         <── report ──── stdout  one line of JSON
         ── (nothing) ─> stdin   the demo has ended, or is gone: end too

The last is what the operating system says by itself, however the demo ended. So nothing is left behind even when it is
killed. The processes are in a session of their own: Ctrl-C reaches the demo alone, which then ends in good order.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self, TextIO

import msgspec

from echoic.errors import UnreachableError
from echoic.hub import Hub, Source

__all__ = ["Actor", "Cues", "Report", "perform"]

RECORDED: Final = "--recorded"
GO_SECONDS_MAX: Final = 60.0
REPORT_SECONDS_MAX: Final = 30.0
LEAVE_SECONDS_MAX: Final = 5.0


class Report(msgspec.Struct, frozen=True):
    """What a process has published."""

    events: int
    seconds: float
    shares: int = 0


class Cues:
    """What the demo has told this process; read by a thread, since the process has other things to do."""

    def __init__(self, lines: TextIO) -> None:
        self.going: Final = threading.Event()
        self.ending: Final = threading.Event()
        self._over = threading.Event()
        threading.Thread(target=self._listen, args=(lines,), daemon=True).start()

    def tell(self, report: Report) -> None:
        """Report, and return when the demo needs this process no more: it may still ask what derivations have done."""
        print(msgspec.json.encode(report).decode(), flush=True)
        self._over.wait()

    def _listen(self, lines: TextIO) -> None:
        cues = {"go": self.going, "end": self.ending}
        for line in lines:
            if cue := cues.get(line.strip()):
                cue.set()
        if not self.ending.is_set():
            os._exit(1)  # nobody is left to hear the rest
        self._over.set()


def perform(name: str, channel: str, declared: type, publish: Callable[[Source, Cues], Report]) -> None:
    """Publish as a process of the demo: create a channel at the name server that was given, play from cue to cue.

    Args:
        name: What the process and its source are called.
        channel: The channel.
        declared: The type of its events.
        publish: Publishes until it is to end, and returns what to report.
    """
    cues = Cues(sys.stdin)
    with Hub(names=sys.argv[1], name=name) as hub:
        created = hub.create(channel, declared)
        if cues.going.wait(GO_SECONDS_MAX):
            with created.source(name=name if RECORDED in sys.argv else "") as source:
                cues.tell(publish(source, cues))


class Actor:
    """A process that publishes, as the demo holds it."""

    def __init__(self, module: str, names: str, *, recorded: bool) -> None:
        """Start `python -m MODULE NAMES`; one whose events are recorded could go on where it was stopped."""
        self._module = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, names, *([RECORDED] if recorded else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def go(self) -> None:
        """Have it publish."""
        self._tell("go")

    def end(self) -> None:
        """Have it come to an end."""
        self._tell("end")

    def report(self) -> Report:
        """Return what it has published, once it has ended.

        Raises:
            UnreachableError: It does not say.
        """
        watchdog = threading.Timer(REPORT_SECONDS_MAX, self._process.kill)
        watchdog.start()
        try:
            line = self._process.stdout.readline() if self._process.stdout else ""
        finally:
            watchdog.cancel()
        try:
            return msgspec.json.decode(line, type=Report)
        except msgspec.DecodeError as error:
            raise UnreachableError(
                f"{self._module} ended without a report, or took too long; it said {line!r:.80}"
            ) from error

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(LEAVE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _tell(self, cue: str) -> None:
        if self._process.stdin is None or self.gone:
            raise UnreachableError(f"{self._module} has ended with exit code {self._process.returncode}")
        self._process.stdin.write(f"{cue}\n")
        self._process.stdin.flush()
