"""Matching: what a message, note, value or event has to look like, and what becomes of variables when it does.

    two ways (`unify`)   f(123,A?)  with  f(N?,666)     both sides have variables, both are bound: messages
    one way  (`match`)   f(X?,<int>) with f(1,2)        a pattern and a value: notes, values, events, requests
    one way  (`fits`)    f(<int>)   with  f(1)          a closed pattern: subscriptions

The rules:

1. Variables are replaced by their values.
2. `X?` takes a closed term of its type.
3. Applications are of one name, quotedness and number of arguments, lists of one length; scalars are of one kind and
   value, so that `1` is not `1.0`.
4. A placeholder `<T>` takes a value of type T, wherever it stands.
5. `X?` twice is one value.
6. `X?` with `Y?` is no match, and neither is `X?` with anything in which something is to be bound.
7. Annotations are not looked at, but are part of what is bound.
8. Nothing is assigned here. A match adds to lists of `(slot, value)`, and who asked assigns them if all went well.

A list of bindings is only good for something when the answer was true. Values may be a million deep, so two values are
compared without recursion: they are one object when they are equal, and only placeholders make it necessary to look.
"""

from collections.abc import Iterable
from typing import TypeAlias, cast

from echoic.scripts.graph.templates import Bind, Pattern, Slot, Slots, Template, read, substitute
from echoic.terms import Annotated, Placeholder, Term, TermList, Value, accepts, plain, same

__all__ = ["Bindings", "agree", "consistent", "fits", "fits_type", "match", "unify"]

Bindings: TypeAlias = list[tuple[int, Value]]


def match(pattern: Pattern, slots: Slots, value: Value, bindings: Bindings, *, mutual: bool = False) -> bool:
    """Whether a value is as a pattern wants it; what it binds is added to `bindings`.

    With `mutual` a placeholder counts on the side of the value too.
    """
    kind = type(pattern)
    if kind is Bind:
        return _bind(cast("Bind", pattern), value, bindings)
    if kind is Template:
        return _match_parts(cast("Template", pattern), slots, value, bindings, mutual)
    if kind is Slot:
        pattern = read(cast("Slot", pattern), slots)
    return pattern is value or _alike(cast("Value", pattern), value, mutual)


def unify(
    left: Pattern, left_slots: Slots, right: Pattern, right_slots: Slots, lefts: Bindings, rights: Bindings
) -> bool:
    """Whether two patterns match each other; what is bound on either side is added to `lefts` or `rights`."""
    kind, other = type(left), type(right)
    if kind is Bind:
        return other is not Bind and _bind_closed(cast("Bind", left), right, right_slots, lefts)
    if other is Bind:
        return _bind_closed(cast("Bind", right), left, left_slots, rights)
    if kind is Slot:
        left = read(cast("Slot", left), left_slots)
        kind = type(left)
    if other is Slot:
        right = read(cast("Slot", right), right_slots)
        other = type(right)
    if kind is Template:
        if other is not Template:
            return _match_parts(cast("Template", left), left_slots, cast("Value", right), lefts, True)
        parts, others = cast("Template", left), cast("Template", right)
        if parts.head != others.head:
            return False
        for one, another in zip(parts.arguments, others.arguments):  # noqa: B905 - of one length
            if not unify(one, left_slots, another, right_slots, lefts, rights):
                return False
        return True
    if other is Template:
        return _match_parts(cast("Template", right), right_slots, cast("Value", left), rights, True)
    return left is right or _alike(cast("Value", left), cast("Value", right), True)


def consistent(bindings: Bindings) -> bool:
    """Whether each variable that is bound more than once is bound to one value."""
    seen: dict[int, Value] = {}
    return all(same(seen.setdefault(index, value), value) for index, value in bindings)


def fits(pattern: Value, value: Value) -> bool:
    """Whether a value is as a closed pattern wants it: equal, but for placeholders and annotations."""
    return _alike(pattern, value, False)


def agree(one: Value, other: Value) -> bool:
    """Whether two values are equal, but for placeholders on either side and annotations."""
    return _alike(one, other, True)


def _alike(one: Value, other: Value, mutual: bool) -> bool:
    waiting = [(one, other)]
    seen: set[tuple[Value, Value]] = set()  # what has parts may be shared many times, and is compared by identity
    while waiting:
        one, other = waiting.pop()
        if one is other or same(one, other):
            continue
        if isinstance(one, Annotated):
            one = one.value
        bare = other.value if isinstance(other, Annotated) else other
        if isinstance(one, Placeholder):
            if not accepts(one.type, plain(other)):
                return False
        elif isinstance(bare, Placeholder):
            if not mutual or not accepts(bare.type, plain(one)):
                return False
        elif (pairs := _pairs(one, bare)) is None:
            return False
        elif (one, bare) not in seen:
            seen.add((one, bare))
            waiting.extend(pairs)
    return True


def _pairs(one: Value, other: Value) -> Iterable[tuple[Value, Value]] | None:
    """Return what is to be compared inside of two values that are not the same, None if they differ themselves."""
    if isinstance(one, Term) and isinstance(other, Term):
        alike = one.name == other.name and one.quoted == other.quoted and len(one.args) == len(other.args)
        return zip(one.args, other.args, strict=True) if alike else None
    if isinstance(one, TermList) and isinstance(other, TermList) and len(one) == len(other):
        return zip(one.elements, other.elements, strict=True)
    return None


def fits_type(variable: Bind, value: Value) -> bool:
    """Whether a variable may have a value."""
    return variable.free or type(value) is variable.kind or accepts(variable.type, plain(value))


def _bind(variable: Bind, value: Value, bindings: Bindings) -> bool:
    if variable.free or type(value) is variable.kind or accepts(variable.type, plain(value)):
        bindings.append((variable.index, value))
        return True
    return False


def _bind_closed(variable: Bind, pattern: Pattern, slots: Slots, bindings: Bindings) -> bool:
    kind = type(pattern)
    if kind is Slot:
        pattern = read(cast("Slot", pattern), slots)
    elif kind is Template:
        if _is_binding(cast("Template", pattern)):
            return False
        pattern = substitute(pattern, slots)
    return _bind(variable, cast("Value", pattern), bindings)


def _is_binding(template: Template) -> bool:
    """Whether something in it is to be bound."""
    return any(type(part) is Bind or (isinstance(part, Template) and _is_binding(part)) for part in template.arguments)


def _match_parts(template: Template, slots: Slots, value: Value, bindings: Bindings, mutual: bool) -> bool:
    if isinstance(value, Annotated):
        value = value.value
    if isinstance(value, Term):
        if value.name != template.name or value.quoted:
            return False
        parts = value.args
    elif isinstance(value, TermList):
        if template.name is not None:
            return False
        parts = value.elements
    else:
        return mutual and isinstance(value, Placeholder) and _placeholder_takes(value, template, slots)
    arguments = template.arguments
    if len(parts) != len(arguments):
        return False
    for argument, part in zip(arguments, parts):  # noqa: B905, SIM110 - of one length, and hot
        if not match(argument, slots, part, bindings, mutual=mutual):
            return False
    return True


def _placeholder_takes(placeholder: Placeholder, template: Template, slots: Slots) -> bool:
    """Whether a placeholder among values stands for what a template makes; nothing in it can be bound to nothing."""
    return not _is_binding(template) and accepts(placeholder.type, plain(substitute(template, slots)))
