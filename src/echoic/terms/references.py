"""References in terms: where they are, what they stand for, and how they are written where they do not travel.

    refers(value)            whether there is one in it
    references_in(value)     which
    present(value)           the value itself, if there is none
    with_values(value, ...)  the same with values in their places
    part_of(value, path)     what a reference with this path stands for

A path leads from a term to one of its parts, by the number of each part among its neighbours, counted from 0: the
arguments of an application, the elements of a list, the type of a placeholder, and of a value with annotations the
value and then each annotation.

Only those who exchange values know what a reference means, so the codecs refuse it; each place that writes terms for
others has its own way to send a value after them. For people and for logs there is a placeholder with all that the
reference says:

    <reference(owner,variable,[path],kind,"name",count,size)>

A log must tell it from a placeholder that a tool has sent. So all whose type is an application `reference(...)` are
put into another one by `spelled`, `<reference(<reference(...)>)>`, and taken out of it by `unspelled`.

Terms may be a million deep, so nothing here calls itself, and a part that stands in many places is looked at once.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from echoic.errors import EncodeError, MalformedTermError
from echoic.terms.term import (
    Annotated,
    Placeholder,
    Reference,
    ReferenceKind,
    Shared,
    Term,
    TermList,
    Value,
    ValueNeeded,
)

__all__ = [
    "ValueNeeded",
    "from_placeholder",
    "part_of",
    "present",
    "references_in",
    "refers",
    "spelled",
    "to_placeholder",
    "unspelled",
    "with_values",
]

NAME: Final = "reference"
FIELDS: Final = 7

# What of a value is made again, and what becomes of the value with that; parts that are not made again are as they are.
Parts: TypeAlias = Callable[[Shared], tuple[Value, ...]]
Make: TypeAlias = Callable[[Shared, list[Value]], Value]


def refers(value: Value) -> bool:
    """Whether a value is a reference or has one in it, at any depth, in annotations too."""
    return isinstance(value, Shared) and value._refers  # noqa: SLF001 - noted there for this


def references_in(value: Value) -> tuple[Reference, ...]:
    """Return the references of a value, each once, in the order in which they stand in it."""
    found: dict[Reference, None] = {}
    seen: set[Value] = set()
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if not refers(current) or current in seen:
            continue
        if isinstance(current, Reference):
            found[current] = None
            continue
        seen.add(current)
        waiting += reversed(_inner(current))
    return tuple(found)


def present(value: Value) -> Value:
    """Return a value that is all there.

    Raises:
        ValueNeeded: There is a reference in it.
    """
    if refers(value):
        raise ValueNeeded(references_in(value)[0])
    return value


def with_values(value: Value, values: Mapping[Reference, Value]) -> Value:
    """Return a value with others in the places of its references; those that have none stay."""

    def make(current: Shared, parts: list[Value]) -> Value:
        return values.get(current, current) if isinstance(current, Reference) else _rebuilt(current, parts)

    return _made_again(value, refers, _inner, make)


def part_of(value: Value, path: tuple[int, ...]) -> Value:
    """Return the part of a value that a path leads to.

    Raises:
        LookupError: It leads nowhere.
    """
    for step, index in enumerate(path):
        parts = _inner(value)
        if not 0 <= index < len(parts):
            raise LookupError(f"part {index} of {len(parts)}, at step {step} of a path of {len(path)}")
        value = parts[index]
    return value


def to_placeholder(reference: Reference) -> Placeholder:
    """Return a reference as people and logs have it."""
    path, kind = TermList(*reference.path), Term(reference.kind.value)
    return Placeholder(
        Term(NAME, reference.owner, reference.variable, path, kind, reference.name, reference.count, reference.size)
    )


def from_placeholder(placeholder: Placeholder) -> Reference:
    """Return the reference that a placeholder says.

    Raises:
        MalformedTermError: It says none.
    """
    match placeholder.type:
        case Term(
            name="reference",
            quoted=False,
            args=(int(owner), int(variable), TermList(elements=path), Term(name=kind, args=()), str(name), count, size),
        ):
            try:
                return Reference(owner, variable, path, ReferenceKind(kind), size, name=name, count=count)  # type: ignore[arg-type] # Reference looks itself
            except (EncodeError, ValueError) as error:
                raise MalformedTermError(f"a placeholder that is no reference: {error}") from error
        case _:
            raise MalformedTermError(f"a placeholder that is no reference: {str(placeholder)[:100]}")


def spelled(value: Value) -> Value:
    """Return a value with placeholders in the places of its references, which `unspelled` turns back."""
    return _made_again(value, _is_shared, _parts_as_they_are, _spelled_part)


def unspelled(value: Value) -> Value:
    """Return the value that `spelled` was given.

    Raises:
        MalformedTermError: A placeholder `<reference(...)>` is not as `spelled` writes it.
    """
    return _made_again(value, _is_shared, _parts_as_spelled, _unspelled_part)


def _is_shared(value: Value) -> bool:
    return isinstance(value, Shared)


def _named(value: Value) -> tuple[Value, ...] | None:
    """Return the arguments of a placeholder `<reference(...)>`, None of anything else."""
    match value:
        case Placeholder(type=Term(name="reference", quoted=False, args=parts)) if parts:
            return parts
        case _:
            return None


def _parts_as_they_are(value: Shared) -> tuple[Value, ...]:
    named = _named(value)  # type: ignore[arg-type] # whatever is shared is a value
    return _inner(value) if named is None else named


def _spelled_part(value: Shared, parts: list[Value]) -> Value:
    if isinstance(value, Reference):
        return to_placeholder(value)
    if _named(value) is not None:  # type: ignore[arg-type] # the same
        return Placeholder(Term(NAME, Placeholder(Term(NAME, *parts))))
    return _rebuilt(value, parts)


def _parts_as_spelled(value: Shared) -> tuple[Value, ...]:
    named = _named(value)  # type: ignore[arg-type] # the same
    if named is None:
        return _inner(value)
    return (_named(named[0]) or ()) if len(named) == 1 else ()


def _unspelled_part(value: Shared, parts: list[Value]) -> Value:
    if isinstance(value, Placeholder) and _named(value) is not None:
        return Placeholder(Term(NAME, *parts)) if parts else from_placeholder(value)
    return _rebuilt(value, parts)


def _made_again(value: Value, concerns: Callable[[Value], bool], parts_of: Parts, make: Make) -> Value:
    """Return a value made again from its leaves; only what `concerns` is looked at."""
    done: dict[Value, Value] = {}  # of what is shared, which is compared by identity
    waiting = [value] if concerns(value) else []
    while waiting:
        current = waiting[-1]
        if current in done or not isinstance(current, Shared):
            waiting.pop()
            continue
        parts = parts_of(current)
        missing = [part for part in parts if concerns(part) and part not in done]
        if missing:
            waiting += missing
        else:
            waiting.pop()
            done[current] = make(current, [done[part] if concerns(part) else part for part in parts])
    return done[value] if concerns(value) else value


def _inner(value: Value | Shared) -> tuple[Value, ...]:
    match value:
        case Term():
            return value.args
        case TermList():
            return value.elements
        case Placeholder():
            return (value.type,)
        case Annotated():
            return (value.value, *value.annotations)
        case _:
            return ()


def _rebuilt(value: Shared, parts: list[Value]) -> Value:
    """Return a value with other parts, of which there are as many."""
    match value:
        case Term():
            return Term(value.name, *parts, quoted=value.quoted) if parts else value
        case TermList():
            return TermList(*parts)
        case Placeholder():
            return Placeholder(*parts)
        case Annotated():
            bare, *annotations = parts
            if isinstance(bare, Annotated):
                return Annotated(bare.value, *bare.annotations, *annotations)
            return Annotated(bare, *annotations)
        case _:
            raise AssertionError(value)
