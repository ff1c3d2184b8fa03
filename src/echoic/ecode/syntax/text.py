"""Source text, and how what is wrong with it is shown.

    trades.ec:2:15: record `Trade` has no field `pricee` (did you mean `price`?)
        if (input.pricee < 75.5)
                  ^

One compilation reports several problems, at most `PROBLEMS_MAX`. The text comes from strangers and the report goes to a
terminal or a log, so characters that would not print as one are replaced, and of a very long line only the
neighbourhood of the caret is shown.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NoReturn

from echoic.errors import ECodeError

if TYPE_CHECKING:
    from echoic.ecode.typed import Position

__all__ = ["PROBLEMS_MAX", "Problem", "Problems", "SourceText", "cascade", "counted", "mistake", "quoted"]

PROBLEMS_MAX: Final = 20
SHOWN_BEFORE: Final = 100
SHOWN_AFTER: Final = 60
QUOTED_MAX: Final = 60
MESSAGE_MAX: Final = 400
INDENT: Final = "    "


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake: its line and column, both from 1, and what is wrong in a lower-case sentence."""

    line: int
    column: int
    message: str


@dataclass(frozen=True)
class SourceText:
    """The text of a program and the name under which to report on it."""

    source: str
    file: str = "<ecode>"

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return self.source.split("\n")

    def render(self, problem: Problem) -> str:
        """Return a problem with the line it is in and a caret below the place."""
        head = f"{self.file}:{problem.line}:{problem.column}: {problem.message}"
        if not 0 < problem.line <= len(self.lines):
            return head
        line = self.lines[problem.line - 1]
        start = max(0, problem.column - 1 - SHOWN_BEFORE)
        shown = "".join(map(_printable, line[start : problem.column + SHOWN_AFTER])).rstrip()
        margin = "".join("\t" if character == "\t" else " " for character in line[start : problem.column - 1])
        margin += " " * (problem.column - 1 - len(line))
        return f"{head}\n{INDENT}{shown}\n{INDENT}{margin}^"

    def refuse(self, *problems: Problem) -> NoReturn:
        """Raise the error that shows these problems, in their order in the text.

        Raises:
            ECodeError: Always.
        """
        ordered = sorted(problems)
        text = "\n".join(map(self.render, ordered))
        raise ECodeError(text, tuple((problem.line, problem.column, problem.message) for problem in ordered))


@dataclass(slots=True)
class Problems:
    """What was found wrong with a text so far; what comes after the first `PROBLEMS_MAX` is not kept."""

    text: SourceText
    found: list[Problem] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether there is no use in looking for more."""
        return len(self.found) >= PROBLEMS_MAX

    def report(self, at: "Position", message: str) -> None:
        """Keep a problem."""
        self.keep(mistake(at, message))

    def keep(self, error: ECodeError) -> None:
        """Keep the problems of an error that was made by `mistake` or `cascade`."""
        self.found += [Problem(*problem) for problem in error.problems]
        del self.found[PROBLEMS_MAX:]

    def conclude(self) -> None:
        """Refuse the text if anything is wrong with it.

        Raises:
            ECodeError: A problem was reported.
        """
        if self.found:
            self.text.refuse(*self.found)


def mistake(at: "Position", message: str) -> ECodeError:
    """Return the error to raise inside the front end; whoever goes on with the next statement keeps its problem."""
    message = message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]}..."
    return ECodeError(message, ((*at, message),))


def cascade() -> ECodeError:
    """Return the error to raise where only what was reported before keeps us from going on."""
    return ECodeError("")


def _printable(character: str) -> str:
    return character if character == "\t" or character.isprintable() else "\N{REPLACEMENT CHARACTER}"


def counted(count: int, noun: str) -> str:
    """Return how many there are: `1 row`, `2 rows`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def quoted(text: str) -> str:
    """Return a piece of the program in backticks, short and harmless to print."""
    shown = "".join(map(_printable, text[:QUOTED_MAX]))
    return f"`{shown}...`" if len(text) > QUOTED_MAX else f"`{shown}`"
