"""Findings: what is wrong with a script, as far as could be seen, and how it came to that.

phil3.tb:1:45: deadlock: PHIL(1) waits for snd-msg(get(1)), ...
    process PHIL(L : int, R : int) is ( snd-msg(get(L)) . snd-msg(get(R)) ...
                                                          ^
    1. PHIL(1) -> FORK(2): snd-msg(get(0))    at 1:39, 2:26
    2. PHIL(3) -> FORK(4): snd-msg(get(1))    at 1:39, 2:26
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from echoic.scripts.exploring.steps import Step
from echoic.scripts.syntax.problems import problem_at, render
from echoic.scripts.syntax.tree import Span

__all__ = ["Finding", "FindingKind"]


class FindingKind(enum.StrEnum):
    """What sort of thing was found."""

    DEADLOCK = "deadlock"  # no step is possible, and a process has not ended
    LIVELOCK = "livelock"  # there are only internal steps, for ever
    UNACKNOWLEDGED = "unacknowledged"  # an event was taken that can never be acknowledged, or a request not be answered
    GROWING_QUEUE = "growing queue"  # notes come faster than they are taken
    UNTAKEN_NOTE = "note never taken"  # notes come, and are never taken
    UNDEFINED = "undefined"  # a variable is used that has no value
    WITHOUT_VALUE = "no value"  # an expression has none, so that its atom is not enabled
    PARTNERLESS = "no partner"  # nobody in the script could take part in an atom
    UNREACHABLE = "never done"  # an atom


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; `trace` is how it comes to that, where that makes sense.

    `shortest` says that no shorter trace leads there. In a reduced exploration a trace may have internal steps that it
    could do without.
    """

    kind: FindingKind
    text: str
    span: Span | None
    trace: tuple[Step, ...] = ()
    shortest: bool = False

    def render(self, sources: Mapping[str, str]) -> str:
        """Return the finding with its line, a caret, and its trace as numbered steps."""
        message = f"{self.kind}: {self.text}"
        head = message if self.span is None else render(problem_at(self.span, message), sources)
        if not self.trace:
            return head
        width = len(str(len(self.trace)))
        texts = [str(step) for step in self.trace]
        column = min(60, max(map(len, texts)))
        lines = []
        for number, (step, text) in enumerate(zip(self.trace, texts, strict=True), 1):
            places = ", ".join(f"{place.line}:{place.column}" for place in step.places)
            lines.append(f"    {number:>{width}}. {text:<{column}}  {f'at {places}' if places else ''}".rstrip())
        return "\n".join([head, *lines])
