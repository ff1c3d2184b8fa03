"""Progress for people who watch: a bar on stderr if that is a terminal, and nothing at all if it is not.

It appears when something has taken longer than half a second, so that what is quick stays quiet.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

from echoic.cli.screen import printable

__all__ = ["Advance", "progress"]

Advance: TypeAlias = Callable[[int, int | None], None]

PATIENCE_SECONDS: Final = 0.5


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
