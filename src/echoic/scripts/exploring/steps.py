"""Steps: what happens on the way from one state to the next, for people and for files."""

from dataclasses import dataclass
from typing import Final

from echoic.errors import LimitExceededError
from echoic.scripts.graph import Edge, Kind, Slots, shown
from echoic.scripts.syntax.tree import Assign, Span
from echoic.terms import Value, write_text

__all__ = ["Step", "Steps", "atom_text", "text_of"]

CHARACTERS_MAX: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens: `process` does the atom `text` at `span`, with a `partner` where it takes two.

    What a tool or a channel does, and that time passes, has no place. `internal` is what nobody else notices;
    `undefined` says where values are used that are not there.
    """

    process: str
    text: str
    span: Span | None
    partner: str = ""
    partner_span: Span | None = None
    internal: bool = False
    undefined: tuple[tuple[Span, str], ...] = ()

    @property
    def places(self) -> tuple[Span, ...]:
        """The atoms that are done."""
        return tuple(span for span in (self.span, self.partner_span) if span is not None)

    def __str__(self) -> str:
        if self.partner:
            return f"{self.process} -> {self.partner}: {self.text}"
        return f"{self.process}: {self.text}"


class Steps:
    """Steps by number, each once."""

    def __init__(self) -> None:
        self.all: list[Step] = []
        self._numbers: dict[Step, int] = {}

    def number(self, step: Step) -> int:
        """Return the number of a step."""
        found = self._numbers.get(step)
        if found is None:
            found = self._numbers[step] = len(self.all)
            self.all.append(step)
        return found


def atom_text(edge: Edge, action: object, slots: Slots, value: Value | None = None) -> str:
    """Return an atom as it was done, with values in the place of variables."""
    if edge.kind is Kind.ASSIGN and value is not None:
        name = action.variable.name if isinstance(action, Assign) else ""
        return f"{name} := {text_of(value)}".strip()
    if edge.kind is Kind.TAU:
        return edge.name
    values = [text_of(shown(argument, slots)) for argument in edge.arguments]
    if value is not None:
        values.append(text_of(value))
    return f"{edge.name}({','.join(values)})"


def text_of(value: Value) -> str:
    """Return a value as text; what is too large for people says so, since there may be one in each of many states."""
    try:
        return write_text(value, characters_max=CHARACTERS_MAX)
    except LimitExceededError:
        return "<too large>"
