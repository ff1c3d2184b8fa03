"""What a script expects of its tools, and whether a tool offers it."""

from typing import TYPE_CHECKING, Final

from echoic.errors import LimitExceededError
from echoic.scripts.checking import Interface, interface, mismatch
from echoic.scripts.syntax.tree import Script
from echoic.terms import Annotated, Term, TermList, Value, plain
from echoic.toolbus.handlers import VALUE_OF

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Interfaces"]

ENTRIES_MAX: Final = 10_000
LINE_MAX: Final = 500
LINES_MAX: Final = 40


class Interfaces:
    """The interfaces of a script's tools, by name."""

    def __init__(self, script: Script) -> None:
        self._interfaces = {tool.name: interface(script, tool.name) for tool in script.tools}
        self.terms: Final[Mapping[str, Value]] = {name: each.term for name, each in self._interfaces.items()}

    def difference(self, name: str, offer: Value) -> str:
        """Return how what a tool offers differs from what the script expects, with both sides; nothing where it fits.

        What comes of evals that the script does not use is not looked at, nor is what every tool may say for an error.
        """
        wanted = self._interfaces[name]
        used = {entry.args[1].name for entry in wanted.input if entry.arity > 1 and isinstance(entry.args[1], Term)}
        if not any(entry.name == "snd-value" for entry in wanted.output):
            used = set()  # it takes no value, perhaps since it kills or cancels
        match offer:
            case Term(name="signature", args=(TermList() as incoming, TermList() as outgoing, TermList() as other)):
                pass
            case _:
                return f"tool `{name}` offers no `signature([..],[..],[..])`"
        if len(incoming) + len(outgoing) + len(other) > ENTRIES_MAX:
            return f"tool `{name}` offers more than {ENTRIES_MAX} things"
        groups = [
            tuple(entry for entry in map(plain, group) if isinstance(entry, Term))
            for group in (incoming, [entry for entry in outgoing if _is_used(entry, used)], other)
        ]
        try:
            return _shortened(mismatch(wanted, Interface(name, *groups)))
        except RecursionError:
            return f"what tool `{name}` offers is nested too deeply"
        except LimitExceededError:
            return f"what tool `{name}` offers is too large to be shown, and does not fit the script"


def _shortened(text: str) -> str:
    """Return the lines of a text, each not too long, and not too many: a tool may offer anything."""
    lines = [line if len(line) <= LINE_MAX else f"{line[:LINE_MAX]}..." for line in text.split("\n")]
    return "\n".join(lines if len(lines) <= LINES_MAX else [*lines[:LINES_MAX], "..."])


def _is_used(entry: Value, used: set[str]) -> bool:
    """Whether an entry is not the value of an eval which the script does not use."""
    if not isinstance(entry, Annotated):
        return True
    for each in entry.annotations:
        if isinstance(each, TermList) and len(each) == 2 and each[0] is VALUE_OF:
            return isinstance(each[1], str) and each[1] in used
    return True
