"""Types of terms: which values a variable of a script may have.

    bool int real str list blob      values of that kind (`bstr`, as the first ToolBus says, is `blob`)
    term                             every value
    list(T)                          lists whose elements are all of type T
    [T1,...,Tn]                      lists of n elements, each of its type
    f                                terms with the symbol f, whatever their arguments: `f`, `f(1)`, ...
    f(T1,...,Tn)                     terms with the symbol f and n arguments, each of its type
    <T>                              the same as T

Types are values themselves. The name of a tool is a type by the rule for `f`: its values are `name(1)`, `name(2)`, ...
`undefined` is of every type. Annotations count nowhere. A reference is of a type if its kind, its name and the number
of its parts say so; where the type asks more, for the parts themselves, the value is needed.

Two types go together (`may_hold`) if a value could be of both; that is what can be said before a script runs. All
arguments are compared, the last one too, and lists by their elements, although an empty list would be of any such
type.

Values may be a million deep and have parts that are shared many times: nothing calls itself, and a part is looked at
once for each type it has to be of.
"""

from typing import Final

from echoic.terms.term import UNDEFINED, Placeholder, Reference, Term, TermList, Value, ValueNeeded, plain, same

__all__ = ["accepts", "is_type", "may_hold"]

BOOL: Final = Term("bool")
LIST: Final = Term("list")
TERM: Final = Term("term")

_KINDS: Final[dict[Value, type]] = {
    BOOL: bool,
    Term("int"): int,
    Term("real"): float,
    Term("str"): str,
    Term("blob"): bytes,
    Term("bstr"): bytes,
    LIST: TermList,
}


def accepts(type: Value, value: Value) -> bool:  # noqa: A002 - what else would it be called
    """Whether a value is of a type.

    Raises:
        ValueNeeded: Only the value of a reference decides.
    """
    waiting = [(plain(type), plain(value))]
    seen: set[tuple[Value, Value]] = set()
    needed: Reference | None = None  # what is not of its type for certain decides first
    while waiting:
        wanted, found = waiting.pop()
        while isinstance(wanted, Placeholder):
            wanted = wanted.type
        if found is UNDEFINED or wanted is TERM:
            continue
        kind = _KINDS.get(wanted) if isinstance(wanted, Term) else None
        if kind is not None:
            if found.__class__ is not kind and not (isinstance(found, Reference) and found.kind.type is kind):
                return False
            continue
        try:
            if isinstance(wanted, Reference):
                raise ValueNeeded(wanted)
            pairs = _parts_referred(wanted, found) if isinstance(found, Reference) else _parts(wanted, found)
        except ValueNeeded as error:
            needed = needed or error.reference
            continue
        if pairs is None:
            return False
        if pairs and (wanted, found) not in seen:  # what has parts is compared by identity
            seen.add((wanted, found))
            waiting += pairs
    if needed is not None:
        raise ValueNeeded(needed)
    return True


def may_hold(one: Value, other: Value) -> bool:
    """Whether there can be a value that is of both types; that lists of two types may be empty does not count."""
    waiting = [(plain(one), plain(other))]
    seen: set[tuple[Value, Value]] = set()
    while waiting:
        left, right = waiting.pop()
        while isinstance(left, Placeholder):
            left = left.type
        while isinstance(right, Placeholder):
            right = right.type
        if left is TERM or right is TERM or UNDEFINED in (left, right):
            continue
        pairs = _compared(left, right)
        if pairs is None:
            return False
        if pairs and (left, right) not in seen:
            seen.add((left, right))
            waiting += pairs
    return True


def is_type(value: Value) -> bool:
    """Whether a value can be read as a type: all of it are names, lists and placeholders."""
    waiting = [plain(value)]
    seen: set[Value] = set()
    while waiting:
        current = waiting.pop()
        if isinstance(current, bool | str):
            continue
        if not isinstance(current, Term | TermList | Placeholder):
            return False
        if current not in seen:
            seen.add(current)
            waiting += _inner(current)
    return True


def _inner(value: Term | TermList | Placeholder) -> tuple[Value, ...]:
    match value:
        case Term():
            return value.args
        case TermList():
            return value.elements
        case Placeholder():
            return (value.type,)


def _parts(wanted: Value, found: Value) -> list[tuple[Value, Value]] | None:
    """Return the types and values that decide whether one is of the other, None if it is not."""
    match wanted, found:
        case Term(name="list", args=(element,), quoted=False), TermList():
            return [(element, each) for each in found.elements]
        case Term(name="list", args=(_,), quoted=False), _:
            return None
        case TermList(), TermList():
            return _paired(wanted.elements, found.elements)
        case Term(), Term():
            if wanted.name != found.name or wanted.quoted != found.quoted:
                return None
            return _paired(wanted.args, found.args) if wanted.args else []
        case str(), Term():
            return [] if found.quoted and found.name == wanted else None
        case _:
            return [] if same(wanted, found) else None


def _parts_referred(wanted: Value, found: Reference) -> list[tuple[Value, Value]] | None:
    """Return nothing if a reference is of a type, whatever its value has in it, None if it cannot be."""
    types: tuple[Value, ...]
    match wanted:
        case Term(name="list", args=(element,), quoted=False):
            if found.kind.type is not TermList:
                return None
            types = (element,) if found.count else ()
        case TermList():
            if found.kind.type is not TermList or len(wanted) != found.count:
                return None
            types = wanted.elements
        case Term() if found.kind.type is Term:
            if (wanted.name, wanted.quoted) != (found.name, found.quoted):
                return None
            if wanted.args and len(wanted.args) != found.count:
                return None
            types = wanted.args
        case str() if found.kind.type is Term:
            return [] if found.quoted and found.name == wanted else None
        case _:
            return [] if same(wanted, found) else None
    if all(_is_any(each) for each in types):
        return []
    raise ValueNeeded(found)


def _is_any(type: Value) -> bool:  # noqa: A002
    while isinstance(type, Placeholder):
        type = type.type  # noqa: A001
    return type is TERM


def _compared(left: Value, right: Value) -> list[tuple[Value, Value]] | None:
    """Return the types that decide whether two go together, None if they do not."""
    if left is BOOL or right is BOOL:
        return [] if all(each is BOOL or isinstance(each, bool) for each in (left, right)) else None
    if left in _KINDS and isinstance(left, Term):
        left, right = right, left
    if right in _KINDS and isinstance(right, Term):
        if right is LIST:
            return [] if left is LIST or isinstance(left, TermList) or _element(left) is not None else None
        return [] if isinstance(left, Term) and _KINDS.get(left) is _KINDS[right] else _text_or_not(left, right)
    one, other = _element(left), _element(right)
    if one is not None and other is not None:
        return [(one, other)]
    if one is not None:
        return [(one, each) for each in right.elements] if isinstance(right, TermList) else None
    if other is not None:
        return [(each, other) for each in left.elements] if isinstance(left, TermList) else None
    if isinstance(left, Term) and isinstance(right, Term) and not left.args:
        left, right = right, left
    if isinstance(left, str) and isinstance(right, Term):
        left, right = right, left
    return _parts(right, left)


def _text_or_not(type: Value, base: Value) -> list[tuple[Value, Value]] | None:  # noqa: A002
    """Compare a type with one of the kinds: a quoted name is the type of one string."""
    return [] if isinstance(type, str) and base is Term("str") else None


def _element(type: Value) -> Value | None:  # noqa: A002
    """Return T of `list(T)`, None of other types."""
    return type.args[0] if isinstance(type, Term) and type.name == "list" and len(type.args) == 1 else None


def _paired(types: tuple[Value, ...], values: tuple[Value, ...]) -> list[tuple[Value, Value]] | None:
    return list(zip(types, values, strict=True)) if len(types) == len(values) else None
