"""Progress for people who watch: a bar or a line on stderr if that is a terminal, and nothing at all if it is not.

A bar appears when something has taken longer than half a second, so that what is quick stays quiet. A line is drawn
over and over in its place; it is cut where the terminal ends, since a longer one could not be taken back.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from echoic.cli.screen import printable, say

__all__ = ["Advance", "clear_line", "progress", "say_above", "show_line"]

Advance: TypeAlias = Callable[[int, int | None], None]

PATIENCE_SECONDS: Final = 0.5
CLEAR_LINE: Final = "\r\033[K"


@contextmanager
def progress(doing: str, unit: str = "events") -> Iterator[Advance]:
    """Give a function to be told how much is done, and of how much if that is known."""
    if not sys.stderr.isatty():
        yield _ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    named = TextColumn("{task.description}", markup=False)  # a file may be called [red]{x}.csv
    columns = (named, BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=sys.stderr), transient=True)
    task, began = bar.add_task(printable(doing), total=None), time.monotonic()

    def advance(done: int, total: int | None) -> None:
        if not bar.live.is_started and time.monotonic() - began > PATIENCE_SECONDS:
            bar.start()
        bar.update(task, completed=done, total=total)

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


def _ignore(done: int, total: int | None) -> None:
    """Take no notice."""


def show_line(text: str) -> None:
    """Draw a line in place of the one before, if stderr is a terminal."""
    if sys.stderr.isatty():
        columns = os.get_terminal_size(sys.stderr.fileno()).columns or len(text) + 1
        print(CLEAR_LINE + printable(text)[: columns - 1], end="", file=sys.stderr, flush=True)


def clear_line() -> None:
    """Leave nothing of the line."""
    if sys.stderr.isatty():
        print(CLEAR_LINE, end="", file=sys.stderr, flush=True)


def say_above(message: str) -> None:
    """Tell people something where the line is, which is drawn anew below."""
    clear_line()
    say(message)
