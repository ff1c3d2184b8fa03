"""What is wrong with a script, and how it is shown.

    auction.tb:7:12: there is no atom `snd-mesg` (did you mean `snd-msg`?)
        P is snd-mesg(bid(X)) . tau
             ^

The picture, its limits and the search for the nearest name are those of E-Code. They are imported when something is
wrong and not before: whoever only runs scripts does not wait for a compiler.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from echoic.errors import ScriptError

if TYPE_CHECKING:
    from echoic.scripts.syntax.tree import Span

__all__ = ["PROBLEMS_MAX", "Problem", "Problems", "counted", "did_you_mean", "problem_at", "quoted", "render"]

PROBLEMS_MAX: Final = 20
MESSAGE_MAX: Final = 400


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake: where it is, lines and columns from 1, and what is wrong in a lower-case sentence."""

    file: str
    line: int
    column: int
    message: str


class Problems:
    """What was found wrong so far, each thing once; what comes after the first `problems_max` is not kept."""

    def __init__(self, sources: Mapping[str, str], problems_max: int = PROBLEMS_MAX) -> None:
        self.sources = sources
        self._max = problems_max
        self._found: dict[Problem, None] = {}

    @property
    def found(self) -> list[Problem]:
        """The problems, file by file in their order in the text."""
        return in_order(self._found, self.sources)

    @property
    def full(self) -> bool:
        """Whether there is no use in looking for more."""
        return len(self._found) >= self._max

    def report(self, file: str, line: int, column: int, message: str) -> None:
        """Keep a problem."""
        if not self.full:
            self._found[Problem(file, line, column, _shortened(message))] = None

    def report_at(self, span: "Span", message: str) -> None:
        """Keep a problem with what stands at a place."""
        self.report(span.file, span.line, span.column, message)

    def conclude(self) -> None:
        """Refuse the script if anything is wrong with it.

        Raises:
            ScriptError: A problem was reported.
        """
        if self._found:
            refuse(self._found, self.sources)


def problem_at(span: "Span", message: str) -> Problem:
    """Return the problem with what stands at a place."""
    return Problem(span.file, span.line, span.column, _shortened(message))


def refuse(problems: Iterable[Problem], sources: Mapping[str, str]) -> NoReturn:
    """Raise the error that shows these problems, file by file in their order in the text.

    Raises:
        ScriptError: Always.
    """
    ordered = in_order(problems, sources)
    text = "\n".join(render(problem, sources) for problem in ordered)
    raise ScriptError(text, tuple((each.file, each.line, each.column, each.message) for each in ordered))


def in_order(problems: Iterable[Problem], sources: Mapping[str, str]) -> list[Problem]:
    """Return problems file by file, as the script includes them, and in their order in each."""
    rank = {file: number for number, file in enumerate(sources)}
    return sorted(problems, key=lambda each: (rank.get(each.file, -1), each))


def render(problem: Problem, sources: Mapping[str, str]) -> str:
    """Return a problem with the line it is in and a caret below the place."""
    from echoic.ecode.syntax.text import Problem as PlacedProblem
    from echoic.ecode.syntax.text import SourceText

    if problem.file not in sources:
        return f"{problem.file}:{problem.line}:{problem.column}: {problem.message}"
    text = SourceText(sources[problem.file], problem.file)
    return text.render(PlacedProblem(problem.line, problem.column, problem.message))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` (did you mean ...?)` with the nearest known name, or nothing if none is near."""
    from echoic.ecode.syntax.nearest import did_you_mean as nearest

    return nearest(name, known)


def quoted(text: str) -> str:
    """Return a piece of the script in backticks, short and harmless to print."""
    from echoic.ecode.syntax.text import quoted as harmless

    return harmless(text)


def counted(count: int, noun: str) -> str:
    """Return how many there are: `1 argument`, `2 arguments`."""
    return f"{count} {noun}{'s' * (count != 1)}"


def _shortened(message: str) -> str:
    return message if len(message) <= MESSAGE_MAX else f"{message[:MESSAGE_MAX]}..."
