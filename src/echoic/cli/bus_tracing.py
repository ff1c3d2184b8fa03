r"""Traces: one line of JSON for each step of a script, after a head that says of which.

    {"trace":1,"script":"hello.tb","seed":7,"began":1763380800.0,"virtual":false}
    {"number":1,"at":0.000012,"process":1,"name":"Hello","atom":"printf","arguments":["\"hello\\n\""],
     "file":"hello.tb","line":2,"column":18}
    {"number":2,"at":0.000020,"process":1,"name":"A","atom":"snd-msg",...,"partner":2,"partner_name":"B","partner_line":9}

What a step is as a plain value says `echoic.toolbus.history`.
"""

import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

import msgspec

from echoic.errors import JournalError
from echoic.toolbus.history import StepTeller, TracedStep
from echoic.trust import open_private

if TYPE_CHECKING:
    from echoic.scripts.running.messages import Step
    from echoic.scripts.syntax.tree import Script

__all__ = ["TraceHead", "TraceWriter", "read_trace"]

VERSION: Final = 1
ARGUMENT_CHARACTERS_MAX: Final = 1000
LINE_CHARACTERS_MAX: Final = 1_000_000


class TraceHead(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a trace."""

    trace: int
    script: str
    seed: int
    began: float
    virtual: bool = False


class TraceWriter:
    """Writes the steps of a script to a file."""

    def __init__(self, path: Path, script: "Script", head: TraceHead, now_ns: int) -> None:
        """Begin a file, in the place of one that is there.

        Args:
            path: The file.
            script: What is run.
            head: The first line.
            now_ns: The time of the bus at the start.

        Raises:
            JournalError: It cannot be written.
        """
        self._teller = StepTeller(script, now_ns, ARGUMENT_CHARACTERS_MAX)
        self._encoder = msgspec.json.Encoder()
        self._lock = threading.Lock()
        try:
            self._file: TextIO | None = open(  # noqa: SIM115 - closed by `close`
                path, "w", encoding="utf-8", opener=open_private
            )
        except OSError as error:
            raise JournalError(f"{path} cannot be written: {error.strerror or error}") from error
        self._write(head)

    def add(self, step: "Step") -> None:
        """Add a step; for `Bus.on_step`."""
        self._write(self._teller.told(step))

    def add_all(self, steps: Iterable["Step"]) -> None:
        """Add steps."""
        for step in steps:
            self.add(step)

    def close(self) -> None:
        """End the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, line: TraceHead | TracedStep) -> None:
        with self._lock:
            if self._file is not None:
                self._file.write(self._encoder.encode(line).decode() + "\n")


def read_trace(path: Path) -> tuple[TraceHead, Iterator[TracedStep]]:
    """Return the head of a trace, and its steps as they are read.

    Raises:
        JournalError: It is not a trace; where it breaks off, after the steps before.
    """
    lines = _lines(path)
    first = next(lines, "")
    try:
        head = msgspec.json.decode(first, type=TraceHead)
    except msgspec.MsgspecError as error:
        raise JournalError(f"{path} is not a trace{_what_it_is(first)}: {error}") from error
    if head.trace != VERSION:
        raise JournalError(f"{path} is a trace of version {head.trace}, expected {VERSION}")
    return head, _steps(path, lines)


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as file:
            while line := file.readline(LINE_CHARACTERS_MAX):
                yield line
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(f"{path} cannot be read: {error}") from error


def _steps(path: Path, lines: Iterator[str]) -> Iterator[TracedStep]:
    decoder = msgspec.json.Decoder(TracedStep)
    for number, line in enumerate(lines, 2):
        try:
            yield decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise JournalError(f"{path} is damaged: {error} - at line {number}") from error


def _what_it_is(first: str) -> str:
    """Return what else a file may be, by its first line."""
    if '"digest"' in first:
        return ", but the log of a run (`echoic bus replay --trace` makes a trace of it)"
    return ", but what tools and a bus have said (`echoic bus replay`)" if '"says"' in first else ""
