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
9. A reference is bound without its value, and is taken by a placeholder, where what it says of itself suffices: its
   kind, its name, how many parts it has. Where only the value could tell, and nothing else rules a match out, there is
   no answer but `ValueNeeded`; with the value the answer is what it would have been without references.

A list of bindings is only good for something when the answer was true. Values may be a million deep, so two values are
compared without recursion: they are one object when they are equal, and only placeholders make it necessary to look.
"""

from collections.abc import Iterable
from typing import TypeAlias, cast

from echoic.scripts.graph.templates import Bind, Pattern, Slot, Slots, Template, read, substitute
from echoic.terms import (
    Annotated,
    Placeholder,
    Reference,
    Term,
    TermList,
    Value,
    ValueNeeded,
    accepts,
    plain,
    same,
)

__all__ = ["Bindings", "agree", "consistent", "fits", "fits_type", "match", "match_all", "may_unify", "unify"]

Bindings: TypeAlias = list[tuple[int, Value]]


def match(pattern: Pattern, slots: Slots, value: Value, bindings: Bindings, *, mutual: bool = False) -> bool:
    """Whether a value is as a pattern wants it; what it binds is added to `bindings`.

    With `mutual` a placeholder counts on the side of the value too.

    Raises:
        ValueNeeded: Only the value of a reference decides; all other questions here may end so, too.
    """
    kind = type(pattern)
    if kind is Bind:
        return _bind(cast("Bind", pattern), value, bindings)
    if kind is Template:
        return _match_parts(cast("Template", pattern), slots, value, bindings, mutual)
    if kind is Slot:
        pattern = read(cast("Slot", pattern), slots)
    return pattern is value or _alike(cast("Value", pattern), value, mutual)


def unify(  # noqa: C901 - hot: one call less for each message
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
        try:
            for one, another in zip(parts.arguments, others.arguments):  # noqa: B905 - of one length
                if not unify(one, left_slots, another, right_slots, lefts, rights):
                    return False
        except ValueNeeded:
            if not may_unify(parts.arguments, left_slots, others.arguments, right_slots):
                return False
            raise
        return True
    if other is Template:
        return _match_parts(cast("Template", right), right_slots, cast("Value", left), rights, True)
    return left is right or _alike(cast("Value", left), cast("Value", right), True)


def match_all(patterns: tuple[Pattern, ...], slots: Slots, values: tuple[Value, ...], bindings: Bindings) -> bool:
    """Whether each value is as its pattern wants it; there are as many."""
    try:
        return all(match(each, slots, value, bindings) for each, value in zip(patterns, values, strict=True))
    except ValueNeeded:
        if not _may_match(patterns, slots, values, False):
            return False
        raise


def may_unify(lefts: tuple[Pattern, ...], left_slots: Slots, rights: tuple[Pattern, ...], right_slots: Slots) -> bool:
    """Whether patterns, as many on both sides, could match each other if references had their values."""
    for left, right in zip(lefts, rights, strict=True):
        try:
            if not unify(left, left_slots, right, right_slots, [], []):
                return False
        except ValueNeeded:  # it was seen before: what is sought is something else that decides
            continue
    return True


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
    needed: Reference | None = None
    while waiting:
        one, other = waiting.pop()
        try:
            if one is other or same(one, other):
                continue
            pairs = _pairs_alike(one, other, mutual)
        except ValueNeeded as error:
            needed = needed or error.reference
            continue
        if pairs is None:
            return False
        if pairs and (one, other) not in seen:
            seen.add((one, other))
            waiting.extend(pairs)
    if needed is not None:
        raise ValueNeeded(needed)
    return True


def _pairs_alike(one: Value, other: Value, mutual: bool) -> Iterable[tuple[Value, Value]] | None:
    """Return what is to be compared inside of two values that are not the same, None if they differ for certain."""
    if isinstance(one, Annotated):
        one = one.value
    bare = other.value if isinstance(other, Annotated) else other
    if isinstance(one, Placeholder):
        return () if accepts(one.type, plain(other)) else None
    if isinstance(bare, Placeholder):
        return () if mutual and accepts(bare.type, plain(one)) else None
    return _pairs(one, bare)


def _pairs(one: Value, other: Value) -> Iterable[tuple[Value, Value]] | None:
    """Return what is to be compared inside of two values that are no placeholders, None if they differ themselves."""
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
    elif isinstance(value, Reference):
        return _referred_matches(template, value)
    else:
        return mutual and isinstance(value, Placeholder) and _placeholder_takes(value, template, slots)
    arguments = template.arguments
    if len(parts) != len(arguments):
        return False
    try:
        for argument, part in zip(arguments, parts):  # noqa: B905 - of one length, and hot
            if not match(argument, slots, part, bindings, mutual=mutual):
                return False
    except ValueNeeded:
        if not _may_match(arguments, slots, parts, mutual):
            return False
        raise
    return True


def _may_match(patterns: tuple[Pattern, ...], slots: Slots, values: tuple[Value, ...], mutual: bool) -> bool:
    """Whether values could be as their patterns want them if references had their values."""
    for pattern, value in zip(patterns, values, strict=True):
        try:
            if not match(pattern, slots, value, [], mutual=mutual):
                return False
        except ValueNeeded:  # the same
            continue
    return True


def _referred_matches(template: Template, reference: Reference) -> bool:
    """Whether what is referred to is as a template wants it: not, or only the value tells."""
    kind = TermList if template.name is None else Term
    named = kind is TermList or (template.name == reference.name and not reference.quoted)
    if reference.kind.type is kind and named and reference.count == len(template.arguments):
        raise ValueNeeded(reference)
    return False


def _placeholder_takes(placeholder: Placeholder, template: Template, slots: Slots) -> bool:
    """Whether a placeholder among values stands for what a template makes; nothing in it can be bound to nothing."""
    return not _is_binding(template) and accepts(placeholder.type, plain(substitute(template, slots)))
