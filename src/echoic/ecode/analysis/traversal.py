"""Walking the checked program: what each node is made of, in the order in which it is evaluated."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from echoic.ecode.typed import (
    Arithmetic,
    Assign,
    AssignText,
    Block,
    Break,
    Choose,
    Compare,
    Constant,
    ContextCall,
    Continue,
    Convert,
    Declare,
    Element,
    Evaluate,
    If,
    Index,
    Invert,
    Length,
    Load,
    Local,
    Location,
    Logical,
    Loop,
    MathCall,
    Negate,
    Not,
    Place,
    Resize,
    Return,
    Sequence,
    Statement,
    Text,
    TextByte,
    TextEqual,
    TextField,
    TextLiteral,
    Update,
    Value,
    Variable,
)

__all__ = ["Node", "assigned_variables", "children", "walk"]

Node: TypeAlias = Statement | Value | Place | Text | Index | Element

# `Loop.before` is left out: it stands in the block around the loop.
PARTS: Final[dict[type, tuple[str, ...]]] = {
    Arithmetic: ("left", "right"),
    Assign: ("value", "place"),
    AssignText: ("text", "target"),
    Block: ("statements",),
    Break: (),
    Choose: ("test", "yes", "no"),
    Compare: ("left", "right"),
    Constant: (),
    ContextCall: ("arguments",),
    Continue: (),
    Convert: ("value",),
    Declare: ("values",),
    Element: ("array", "index"),
    Evaluate: ("value",),
    If: ("test", "yes", "no"),
    Index: ("value",),
    Invert: ("value",),
    Length: ("of",),
    Load: ("place",),
    Local: ("indexes",),
    Location: ("element", "indexes"),
    Logical: ("left", "right"),
    Loop: ("test", "body", "step"),
    MathCall: ("arguments",),
    Negate: ("value",),
    Not: ("value",),
    Resize: ("array", "length"),
    Return: ("value",),
    Sequence: ("first", "second"),
    TextByte: ("text", "index"),
    TextEqual: ("left", "right"),
    TextField: ("location",),
    TextLiteral: (),
    Update: ("place", "value"),
}


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes that one is made of."""
    for name in PARTS[type(node)]:
        part = getattr(node, name)
        if isinstance(part, tuple):
            yield from part
        elif part is not None:
            yield part


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything below it; depth costs no stack."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(children(node))


def assigned_variables(node: Node) -> set[Variable]:
    """Return the variables that change when a node runs, those that begin to live in it among them."""
    found = set()
    for part in walk(node):
        if isinstance(part, Assign | Update) and isinstance(part.place, Local):
            found.add(part.place.variable)
        elif isinstance(part, Declare):
            found.add(part.variable)
    return found
