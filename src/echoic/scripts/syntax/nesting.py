"""How deep a tree is, so that whoever walks it may call itself.

The height counts everything inside of something else, but a sequence as one level however long it is: those who walk
processes go along `Sequence.then` in a loop.
"""

from collections.abc import Iterator
from typing import TypeAlias

from echoic.scripts.syntax.problems import problem_at, refuse
from echoic.scripts.syntax.tokens import NESTING_MAX
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
    Script,
    Sequence,
    Timing,
)

__all__ = ["Node", "check_nesting", "children", "walk"]

Node: TypeAlias = Process | Expression | Timing


def children(node: Node) -> tuple[Node, ...]:
    """Return what stands directly in a node, in the order of the text."""
    match node:
        case Sequence(first, then):
            return first, then
        case Choice(left, right) | RightBiased(left, right) | LeftBiased(left, right) | Merge(left, right):
            return left, right
        case Iteration(one, other) | Disrupt(one, other):
            return one, other
        case Conditional(test, then, otherwise):
            return (test, then) if otherwise is None else (test, then, otherwise)
        case Let():
            return (node.body,)
        case Atom():
            return *node.arguments, *node.timing
        case Assign():
            return node.variable, node.expression, *node.timing
        case Create():
            return node.call, node.result, *node.timing
        case Call() | Application() | Timing():
            return node.arguments
        case ListOf():
            return node.elements
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all that stands in it, in the order of the text."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        yield each
        waiting += reversed(children(each))


def check_nesting(script: Script) -> None:
    """Refuse a script whose processes or terms are nested too deeply.

    Raises:
        ScriptError: They are.
    """
    roots: list[Node] = [definition.body for definition in script.processes]
    roots += [call for configuration in script.configurations for call in configuration.calls]
    for root in roots:
        waiting = [(root, 1)]
        while waiting:
            node, depth = waiting.pop()
            if depth > NESTING_MAX:
                refuse([problem_at(node.span, f"this is nested deeper than {NESTING_MAX}")], script.sources)
            if isinstance(node, Sequence):
                waiting += ((node.then, depth), (node.first, depth + 1))
            else:
                waiting += [(child, depth + 1) for child in children(node)]
