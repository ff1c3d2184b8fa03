r"""Recordings of what tools and a bus say to each other, and imitating a tool from one.

    with Recording("calc.tbrec") as recording:              with Bus.from_script("calc.tb") as bus:
        bus.on_word(recording.add)                              imitate(bus, "calc.tbrec", "calc")
        bus.run()                                               bus.run()

A recording has one line of JSON for each word, in the order of the bus: when, which tool, what was said, the values as
text for people, and in SAF for the one who plays them.

    {"at":0.001204,"tool":"calc","number":1,"says":"bus","word":"eval","text":"[expr(\"1+2\")]","saf":"0401..."}

Who imitates a tool expects to be told what the recorded one was told, and says then what that one said. Where it is
told something else, the bus is warned, and the answer is the recorded one nevertheless, so that a script that has
changed a little can still be tried. Values are compared as terms; what is said at the start, before a tool was told
anything, is said at once.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

import msgspec

from echoic.errors import JournalError, MalformedTermError
from echoic.scripts.running.messages import FromTool, ToTool
from echoic.terms import TermList, Value, same
from echoic.terms.saf import decode_saf, encode_saf
from echoic.terms.text import show
from echoic.toolbus.line import Audience
from echoic.trust import open_private

if TYPE_CHECKING:
    from echoic.toolbus.bus import Bus

__all__ = ["PlayedLine", "Recording", "Word", "imitate", "read_recording"]

TEXT_CHARACTERS_MAX: Final = 1000
LINE_CHARACTERS_MAX: Final = 256 * 1024 * 1024
TOLD: Final = {str(kind) for kind in ToTool}
SAID: Final = {str(kind) for kind in FromTool}
BUS: Final = "bus"
TOOL: Final = "tool"


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a recording."""

    at: float
    tool: str
    number: int
    says: str
    word: str
    text: str = ""
    saf: str = ""

    @property
    def values(self) -> tuple[Value, ...]:
        """What was said.

        Raises:
            MalformedTermError: It is not in SAF.
        """
        try:
            value = decode_saf(bytes.fromhex(self.saf)) if self.saf else TermList()
        except ValueError as error:
            raise MalformedTermError(f"a word of a recording is not in hexadecimal digits: {error}") from error
        return value.elements if isinstance(value, TermList) else (value,)


class Recording:
    """Writes a recording."""

    def __init__(self, path: str | Path) -> None:
        """Begin a file, in the place of one that is there.

        Raises:
            JournalError: It cannot be written.
        """
        self._path = Path(path)
        self._begun = time.monotonic()
        self._encoder = msgspec.json.Encoder()
        self._lock = threading.Lock()
        try:
            self._file: TextIO | None = open(  # noqa: SIM115 - closed by `close`
                path, "w", encoding="utf-8", opener=open_private
            )
        except OSError as error:
            raise JournalError(f"{path} cannot be written: {error.strerror or error}") from error

    def add(self, tool: str, number: int, word: FromTool | ToTool | str, values: tuple[Value, ...]) -> None:
        """Add a word; for `Bus.on_word`."""
        told = isinstance(word, ToTool)
        every = TermList(*values)
        line = Word(
            at=round(time.monotonic() - self._begun, 6),
            tool=tool,
            number=number,
            says=BUS if told else TOOL,
            word=str(word),
            text=show(every)[:TEXT_CHARACTERS_MAX],
            saf=encode_saf(every).hex() if values else "",
        )
        with self._lock:
            if self._file is not None:
                self._file.write(self._encoder.encode(line).decode() + "\n")

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


def read_recording(path: str | Path) -> Iterator[Word]:
    """Yield the words of a recording.

    Raises:
        JournalError: It is not there, or not a recording.
    """
    decoder = msgspec.json.Decoder(Word)
    try:
        with Path(path).open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield decoder.decode(line)
                except (msgspec.MsgspecError, RecursionError) as error:
                    raise JournalError(f"{path} is not a recording of tools: {error} - at line {number}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise JournalError(f"{path} cannot be read: {error}") from error


class PlayedLine:
    """A tool that was recorded."""

    def __init__(self, name: str, words: list[Word], audience: Audience) -> None:
        """Begin with the words of one tool, in their order."""
        self.name: Final = name
        self.mismatches = 0
        self._words = [word for word in words if word.word in TOLD or word.word in SAID or word.word == "lost"]
        self._audience = audience
        self._at = 0
        self._asked: list[int] = []
        self._closed = False

    def welcome(self, number: int) -> None:  # noqa: ARG002 - nobody asks a recording
        """Say what the tool said before it was told anything."""
        self._play()

    def tell(self, kind: ToTool, transaction: int, values: tuple[Value, ...]) -> None:
        """Say what the tool said to that."""
        expected = self._words[self._at] if self._at < len(self._words) else None
        if kind in (ToTool.EVAL, ToTool.DO):
            self._asked.append(transaction)
        if expected is None or expected.word != kind or not _alike(expected.values, values):
            self.mismatches += 1
            wanted = "nothing more" if expected is None else f"{expected.word} {expected.text}"
            self._audience.trouble(self, f"it is told {kind} {show(TermList(*values))}, in the recording {wanted}")
        if expected is not None:
            self._at += 1
            self._play()

    def close(self) -> None:
        """Say no more."""
        self._closed = True

    def _play(self) -> None:
        """Say all up to what the tool was told next."""
        while self._at < len(self._words) and self._words[self._at].word not in TOLD and not self._closed:
            word = self._words[self._at]
            self._at += 1
            if word.word == "lost":
                self._audience.gone(self, str(word.values[0]) if word.values else "it was lost in the recording")
                return
            kind = FromTool(word.word)
            answer = kind in (FromTool.VALUE, FromTool.VOID) and bool(self._asked)
            self._audience.heard(self, kind, self._asked.pop(0) if answer else 0, word.values)


def imitate(bus: "Bus", path: str | Path, *names: str) -> list[str]:
    """Let tools of a bus be played from a recording; return their names.

    Args:
        bus: The bus, which has not started.
        path: The recording.
        names: Which tools; all of the recording by default.

    Raises:
        JournalError: There is no such recording.
    """
    words: dict[tuple[str, int], list[Word]] = {}
    for word in read_recording(path):
        if not names or word.tool in names:
            words.setdefault((word.tool, word.number), []).append(word)
    for (name, _), every in words.items():
        bus.provide(name, PlayedLine(name, every, bus))
    return list(dict.fromkeys(name for name, _ in words))


def _alike(some: tuple[Value, ...], others: tuple[Value, ...]) -> bool:
    return len(some) == len(others) and all(map(same, some, others))
