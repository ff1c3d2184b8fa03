"""Where in a Python program something of a script was written, so that checks and traces show its line and a caret.

Python knows for every instruction which characters it was compiled from. What makes a piece of a script asks for the
instruction of the nearest caller outside of this package. The lines themselves come from `linecache`, as those of
Python's own tracebacks do; nothing else here looks at a file, and what is made does not depend on it.
"""

import itertools
import linecache
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from echoic.errors import ScriptError
from echoic.scripts.syntax.problems import problem_at, render
from echoic.scripts.syntax.tree import Span

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["between", "here", "refusal", "sources_of"]

PACKAGE: Final = __name__.rpartition(".")[0]


def here() -> Span:
    """Return the place of the nearest caller who is not this package."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - `inspect` takes the same, and milliseconds more
    while frame is not None and frame.f_globals.get("__name__", "").startswith(PACKAGE):
        frame = frame.f_back
    if frame is None:
        return Span("<python>", 1, 1, 1, 1)
    line, end_line, column, end_column = next(
        itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None, None, None, None)
    )
    line = line or frame.f_lineno
    if column is None or end_column is None:  # python -X no_debug_ranges
        return Span(frame.f_code.co_filename, line, 1, line, 1)
    return Span(frame.f_code.co_filename, line, column + 1, end_line or line, end_column + 1)


def between(first: Span, last: Span) -> Span:
    """Return the place from the beginning of one thing to the end of another, or of the first where they are apart."""
    if first.file != last.file or (last.end_line, last.end_column) < (first.end_line, first.end_column):
        return first
    return Span(first.file, first.line, first.column, last.end_line, last.end_column)


def sources_of(files: Iterable[str]) -> dict[str, str]:
    """Return the texts of Python files, of those that Python knows."""
    texts = {file: "".join(linecache.getlines(file)) for file in dict.fromkeys(files)}
    return {file: text for file, text in texts.items() if text}


def refusal(span: Span, message: str) -> ScriptError:
    """Return the error that says what is wrong with what stands at a place."""
    problem = problem_at(span, message)
    text = render(problem, sources_of([span.file]))
    return ScriptError(text, ((problem.file, problem.line, problem.column, problem.message),))
