"""Lines that people type, for `read`: asked for one at a time, by a thread that may wait for ever."""

import queue
import sys
import threading
from collections.abc import Callable
from typing import Final

__all__ = ["Keyboard", "read_standard_input"]

LINE_CHARACTERS_MAX: Final = 1_000_000

ReadLine = Callable[[str], str | None]


def read_standard_input(prompt: str) -> str | None:
    """Return a line of standard input, without its end; None where there is no more."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    try:
        line = sys.stdin.readline(LINE_CHARACTERS_MAX)
    except (OSError, ValueError):
        return None  # it is closed
    return line.rstrip("\r\n") if line else None


class Keyboard:
    """Asks for lines."""

    def __init__(self, read_line: ReadLine, on_line: Callable[[str | None], None]) -> None:
        """Begin; nothing is read before somebody asks.

        Args:
            read_line: Returns a line, given a prompt; None at the end. It may wait.
            on_line: Called with each.
        """
        self._read_line = read_line
        self._on_line = on_line
        self._prompts: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._asked = self._answered = 0

    @property
    def asked(self) -> bool:
        """Whether somebody is to type a line."""
        return self._asked > self._answered

    def ask(self, prompt: str) -> None:
        """Ask for a line. Does not wait."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._read_all, name="echoic-bus-keyboard", daemon=True)
            self._thread.start()
        self._asked += 1
        self._prompts.put(prompt)

    def close(self) -> None:
        """Ask no more; whoever waits for a line now goes on waiting, and is not listened to."""
        self._prompts.put(None)

    def _read_all(self) -> None:
        while (prompt := self._prompts.get()) is not None:
            self._on_line(self._read_line(prompt))
            self._answered += 1
