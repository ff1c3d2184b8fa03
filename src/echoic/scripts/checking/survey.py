"""All that happens in a script, with the variables that can be seen there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from echoic.scripts.syntax.tree import (
    Assign,
    Atom,
    Call,
    Choice,
    Conditional,
    Create,
    Declaration,
    Disrupt,
    Formal,
    Iteration,
    LeftBiased,
    Let,
    Merge,
    Process,
    ProcessDefinition,
    RightBiased,
    Script,
    Sequence,
)

__all__ = ["EMPTY", "Happening", "Placed", "Scope", "survey"]

Happening: TypeAlias = Atom | Assign | Create | Call | Conditional | Let


class Scope:
    """The variables that can be seen at a place: those declared here, and those around them."""

    __slots__ = ("around", "declared")

    def __init__(self, declared: tuple[Formal | Declaration, ...], around: "Scope | None" = None) -> None:
        self.declared: Mapping[str, Formal | Declaration] = {each.name: each for each in declared}
        self.around = around

    def find(self, name: str) -> Formal | Declaration | None:
        """Return the declaration of a variable."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.declared:
                return scope.declared[name]
            scope = scope.around
        return None

    @property
    def names(self) -> Iterator[str]:
        """The names that can be seen, the nearest first."""
        scope: Scope | None = self
        while scope is not None:
            yield from scope.declared
            scope = scope.around


EMPTY = Scope(())


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Something of a process, the variables it sees, and the process it is in."""

    node: Happening
    scope: Scope
    process: ProcessDefinition


def survey(script: Script) -> Iterator[Placed]:
    """Yield what happens in the processes of a script, in the order of the text; a `let` sees what is around it."""
    for definition in script.processes:
        waiting: list[tuple[Process, Scope]] = [(definition.body, Scope(definition.formals))]
        while waiting:
            node, scope = waiting.pop()
            match node:
                case Sequence(one, other) | Iteration(one, other) | Disrupt(one, other):
                    waiting += ((other, scope), (one, scope))
                case Choice(one, other) | RightBiased(one, other) | LeftBiased(one, other) | Merge(one, other):
                    waiting += ((other, scope), (one, scope))
                case Conditional(_, then, otherwise):
                    yield Placed(node, scope, definition)
                    if otherwise is not None:
                        waiting.append((otherwise, scope))
                    waiting.append((then, scope))
                case Let(declarations, body):
                    yield Placed(node, scope, definition)
                    waiting.append((body, Scope(declarations, scope)))
                case Atom() | Assign() | Create() | Call():
                    yield Placed(node, scope, definition)
