"""Which names have a value at one point of a Python function.

Python has one scope per function, E-Code one per block. Both are served by a rule that is stricter than either: a name
can be read where every way through the function has given it a value. So a variable lives in the block of its first
assignment; one that is first assigned in each branch of an `if` lives in the block around the `if`. What Python would
find out by an UnboundLocalError in some events only is refused here before the first one.
"""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from echoic.ecode.syntax.nearest import did_you_mean
from echoic.ecode.syntax.text import cascade, mistake, quoted

if TYPE_CHECKING:
    from echoic.ecode.numbers import Number
    from echoic.ecode.typed import Position

__all__ = ["RECORDS", "Meaning", "Names", "assigned_after", "bindings"]

RECORDS: Final = ("input", "output", "param", "context")


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name stands for: a variable, perhaps an array, or the counter of a loop."""

    kind: Literal["variable", "counter", "mistake"] = "variable"
    dimensions: tuple[int, ...] = ()


@dataclass(slots=True)
class Names:
    """The names that can be read, and those that could be elsewhere."""

    records: tuple[str, ...]
    """The parameters of the function, in their order."""
    awaited: "dict[str, Number | None]" = field(default_factory=dict)
    """Variables that are declared, with a type if it was annotated, but get values in branches of the `if` at hand."""
    _blocks: list[dict[str, Meaning]] = field(default_factory=lambda: [{}])
    _gone: set[str] = field(default_factory=set)
    _hidden: int = 0

    @property
    def outermost(self) -> bool:
        """Whether this is the block of the function itself."""
        return len(self._blocks) == 1

    def enter(self) -> None:
        """Begin a block."""
        self._blocks.append({})

    def leave(self) -> None:
        """End a block: what got its value in there may have none after it."""
        self._gone.update(self._blocks.pop())

    def bind(self, name: str, meaning: Meaning) -> None:
        """Give a name a meaning until the block ends."""
        self._blocks[-1][name] = meaning

    def find(self, name: str) -> Meaning | None:
        """Return the meaning of a name, None if it has no value here."""
        return next((block[name] for block in reversed(self._blocks) if name in block), None)

    def expect(self, name: str, at: "Position") -> Meaning:
        """Return the meaning of a name that is read.

        Raises:
            ECodeError: It has no value here.
        """
        found = self.find(name)
        if found is None:
            raise mistake(at, self._unknown(name))
        if found.kind == "mistake":
            raise cascade()
        return found

    def hidden(self) -> str:
        """Return a name that no program can have."""
        self._hidden += 1
        return f"${self._hidden}"

    def _unknown(self, name: str) -> str:
        shown = quoted(name)
        if name in RECORDS:
            return f"{shown} is not a parameter of the function; write `def f({', '.join(_with(self.records, name))})`"
        if name in self._gone or name in self.awaited:
            return f"{shown} may have no value here; give it one before the block in which it gets another"
        known = [other for block in self._blocks for other in block]
        advice = did_you_mean(name, (*known, *self.records))
        return f"{shown} is not a variable of this function{advice or '; what surrounds it is not sent along'}"


def _with(records: Iterable[str], name: str) -> list[str]:
    return [each for each in RECORDS if each in records or each == name]


def bindings(statements: Sequence[ast.stmt]) -> dict[str, list[ast.Assign | ast.AnnAssign]]:
    """Return, for each variable that statements give a value, the assignments in their order in the text."""
    found: dict[str, list[ast.Assign | ast.AnnAssign]] = {}
    pending = list(reversed(statements))
    while pending:
        statement = pending.pop()
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.setdefault(name, []).append(statement)
            case ast.If() | ast.While() | ast.For():
                pending += reversed([*statement.body, *statement.orelse])
            case _:
                pass
    return found


def assigned_after(statements: Sequence[ast.stmt]) -> frozenset[str] | None:
    """Return the variables that have a value in any case after statements; None if the end is never reached."""
    found: frozenset[str] = frozenset()
    for statement in statements:
        match statement:
            case ast.Return() | ast.Break() | ast.Continue():
                return None
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found |= {name}
            case ast.If(body=body, orelse=orelse):
                branches = [ways for ways in (assigned_after(body), assigned_after(orelse)) if ways is not None]
                if not branches:
                    return None
                found |= frozenset.intersection(*branches)
            case ast.While(test=ast.Constant(value=value), body=body) if value and not _breaks(body):
                return None
            case _:
                pass
    return found


def _breaks(statements: Sequence[ast.stmt]) -> bool:
    """Tell whether the loop whose body this is can be left by `break`."""
    return any(
        isinstance(statement, ast.Break)
        or (isinstance(statement, ast.If) and (_breaks(statement.body) or _breaks(statement.orelse)))
        for statement in statements
    )
