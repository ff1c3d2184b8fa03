"""Scopes: what the names of variables stand for.

    let X : int in ...            X is a slot of its own
    process P(A : int, B : str?)
      P(Y, Z?) in place           A stands for what the caller wrote, Y, and follows it; B is the caller's Z itself
      ... A := ... in P           A is a slot of its own that falls back on Y until something is assigned
      create(P(1, ...), Pid?)     A and B are the first slots of the new process

Slots are never shared by two variables: without recursion there are as many as there are declarations that can be
reached.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from echoic.scripts.graph.expressions import Evaluation
from echoic.scripts.graph.templates import Bind, Pattern, Slot
from echoic.scripts.syntax.tree import (
    Application,
    Assign,
    Atom,
    Call,
    Choice,
    Conditional,
    Create,
    Disrupt,
    Expression,
    Iteration,
    LeftBiased,
    Let,
    ListOf,
    Merge,
    Process,
    RightBiased,
    Sequence,
    Variable,
)
from echoic.terms import Term, Value

__all__ = ["Binding", "Entry", "Scope", "assigned_names", "narrower", "slot_binding"]


@dataclass(frozen=True, slots=True)
class Binding:
    """A variable: what its value is read from, and the slot to assign to, None where nobody does."""

    pattern: Pattern
    type: Value
    slot: int | None

    @property
    def bind(self) -> Bind | None:
        """The variable as something to be bound."""
        return None if self.slot is None else Bind(self.slot, self.type)


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The variables that can be seen, and the processes that were called in place to get here."""

    variables: Mapping[str, Binding]
    callers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands between a node and the first atom of a process: tests, variables that begin, and calls by value."""

    guards: tuple[Evaluation, ...] = ()
    fresh: frozenset[int] = frozenset()
    dynamic_calls: int = 0

    def guarded(self, *tests: Evaluation) -> "Entry":
        """Return this with more tests."""
        return replace(self, guards=self.guards + tests)

    def declaring(self, slots: Iterable[int]) -> "Entry":
        """Return this with more variables."""
        return replace(self, fresh=self.fresh.union(slots))


def slot_binding(index: int, type: Value, fallback: Pattern | None = None) -> Binding:  # noqa: A002 - the word of the language
    """Return a variable with a slot of its own."""
    return Binding(Slot(index, fallback), type, index)


def narrower(formal: Value, actual: Value) -> Value:
    """Return of two types that may hold common values the one that says more."""
    if isinstance(formal, Term) and not formal.args:
        return actual  # `term`, a whole kind, or all terms of a symbol
    return formal


def assigned_names(body: Process) -> frozenset[str]:
    """Return the names that something is assigned to somewhere in a process, inner declarations not told apart."""
    names: set[str] = set()
    waiting: list[Process] = [body]
    while waiting:
        match waiting.pop():
            case Sequence(one, other, _) | Choice(one, other, _) | RightBiased(one, other, _):
                waiting += (one, other)
            case LeftBiased(one, other, _) | Merge(one, other, _):
                waiting += (one, other)
            case Iteration(one, other, _) | Disrupt(one, other, _):
                waiting += (one, other)
            case Conditional(_, then, otherwise, _):
                waiting += (then,) if otherwise is None else (then, otherwise)
            case Let(_, inner, _):
                waiting.append(inner)
            case Assign(variable, _, _, _):
                names.add(variable.name)
            case Create(_, result, _, _):
                names |= _result_names((result,))
            case Call(_, arguments, _) | Atom(_, arguments, _, _):
                names |= _result_names(arguments)
    return frozenset(names)


def _result_names(expressions: Iterable[Expression]) -> set[str]:
    names: set[str] = set()
    waiting = list(expressions)
    while waiting:
        match waiting.pop():
            case Variable(name, True, _):
                names.add(name)
            case Application(_, parts, _) | ListOf(parts, _):
                waiting += parts
            case _:
                pass
    return names
