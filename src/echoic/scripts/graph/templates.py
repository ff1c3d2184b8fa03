"""Templates: terms of a script with the places of its variables in them.

    script            template                                    with slots [7, None]
    f(1,a)            the value f(1,a) itself, which is closed
    f(X,Y)            Template(f, Slot(0), Slot(1))               f(7,undefined)
    [X?,2]            Template(None, Bind(0, int), 2)             a pattern: something is to be bound

The variables of a process are slots of one flat list, which is possible because a process does not call itself. A
slot is None as long as nothing was assigned; then its `fallback` counts, which is what the caller wrote where the
variable is a parameter, and `undefined` else.

Templates are as deep as somebody wrote them, so functions here may call themselves; values are not walked.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, TypeAlias, TypeGuard, final

from echoic.terms import UNDEFINED, Annotated, Placeholder, Reference, Term, TermList, Value, plain

__all__ = [
    "ANY_HEAD",
    "Bind",
    "Pattern",
    "Slot",
    "Slots",
    "Template",
    "binds",
    "build",
    "head_of",
    "is_open",
    "read",
    "settle",
    "shown",
    "substitute",
]

Slots: TypeAlias = Sequence[Value | None]

KINDS: Final[dict[str, type]] = {"int": int, "str": str, "bool": bool, "real": float, "list": TermList}
ANY_HEAD: Final = None  # of what may match anything


@final
class Slot:
    """The value of a variable."""

    __slots__ = ("fallback", "index")

    def __init__(self, index: int, fallback: "Pattern | None" = None) -> None:
        self.index = index
        self.fallback = fallback

    def __repr__(self) -> str:
        return f"Slot({self.index})"


@final
class Bind:
    """A variable to be bound, to values of its type only.

    `kind` is the Python type of the simple types, a check that needs no call; `free` where every value will do.
    """

    __slots__ = ("free", "index", "kind", "type")

    def __init__(self, index: int, type: Value) -> None:  # noqa: A002 - the word of the language
        self.index = index
        self.type = type
        named = type.name if isinstance(type, Term) and not type.args else ""
        self.free = named == "term"
        self.kind = KINDS.get(named)

    def __repr__(self) -> str:
        return f"Bind({self.index}, {self.type})"


@final
class Template:
    """An application, or, without a name, a list, that has variables in it."""

    __slots__ = ("arguments", "head", "name")

    def __init__(self, name: str | None, arguments: tuple["Pattern", ...]) -> None:
        self.name = name
        self.arguments = arguments
        self.head: Hashable = (name, len(arguments))

    def __repr__(self) -> str:
        return f"Template({self.name}, {', '.join(map(repr, self.arguments))})"


Pattern: TypeAlias = Value | Slot | Bind | Template
"""What matching takes."""


def is_open(pattern: Pattern) -> TypeGuard[Slot | Bind | Template]:
    """Whether there are variables in it."""
    return type(pattern) in _OPEN


def build(name: str | None, arguments: Iterable[Pattern]) -> Pattern:
    """Return an application or list, as a value where nothing in it is open."""
    parts = tuple(arguments)
    if any(type(part) in _OPEN for part in parts):
        return Template(name, parts)
    return TermList(*parts) if name is None else Term(name, *parts)


def read(slot: Slot, slots: Slots) -> Value:
    """Return the value of a variable."""
    value = slots[slot.index]
    if value is not None:
        return value
    return UNDEFINED if slot.fallback is None else substitute(slot.fallback, slots)


def substitute(pattern: Pattern, slots: Slots) -> Value:
    """Return a pattern with the values of its variables; what is to be bound becomes a placeholder of its type."""
    if isinstance(pattern, Slot):
        return read(pattern, slots)
    if isinstance(pattern, Template):
        parts = [substitute(part, slots) for part in pattern.arguments]
        return TermList(*parts) if pattern.name is None else Term(pattern.name, *parts)
    if isinstance(pattern, Bind):
        return Placeholder(pattern.type)
    return pattern


def shown(pattern: Pattern, slots: Slots) -> Value:
    """Return a pattern as it is after a match: what was to be bound has its value."""
    if isinstance(pattern, Bind):
        value = slots[pattern.index]
        return UNDEFINED if value is None else value
    if isinstance(pattern, Template):
        parts = [shown(part, slots) for part in pattern.arguments]
        return TermList(*parts) if pattern.name is None else Term(pattern.name, *parts)
    return substitute(pattern, slots)


def settle(pattern: Pattern, fresh: frozenset[int]) -> Pattern:
    """Return a pattern as it is when these slots have just been emptied."""
    if isinstance(pattern, Slot):
        fallback = None if pattern.fallback is None else settle(pattern.fallback, fresh)
        if pattern.index in fresh:
            return UNDEFINED if fallback is None else fallback
        return pattern if fallback is pattern.fallback else Slot(pattern.index, fallback)
    if isinstance(pattern, Template):
        return build(pattern.name, (settle(part, fresh) for part in pattern.arguments))
    return pattern


def binds(patterns: Iterable[Pattern]) -> list[Bind]:
    """Return what is to be bound in patterns, as often as it stands there."""
    found: list[Bind] = []
    for pattern in patterns:
        if isinstance(pattern, Bind):
            found.append(pattern)
        elif isinstance(pattern, Template):
            found.extend(binds(pattern.arguments))
    return found


def head_of(pattern: Pattern, slots: Slots) -> Hashable:
    """Return something that is equal for all that may match each other, `ANY_HEAD` for what may match anything.

    Different values may have equal heads (`1` and `true`, all reals): a head saves looking, it does not decide. The
    head of a reference is that of its value, or, of a string or blob, `ANY_HEAD`.
    """
    if isinstance(pattern, Slot):
        pattern = read(pattern, slots)
    if isinstance(pattern, Annotated):
        pattern = plain(pattern)
    match pattern:
        case Template():
            return pattern.head
        case Term():
            return (pattern.name, len(pattern.args))
        case TermList():
            return (None, len(pattern.elements))
        case Bind() | Placeholder():
            return ANY_HEAD
        case Reference():
            if pattern.kind.type is Term:
                return (pattern.name, pattern.count)
            return (None, pattern.count) if pattern.kind.type is TermList else ANY_HEAD
        case float():
            return float
        case _:
            return (pattern,)


_OPEN: Final = frozenset({Slot, Bind, Template})
