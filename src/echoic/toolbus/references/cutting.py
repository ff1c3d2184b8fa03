"""Cutting: which parts of a value stay with their owner, and what is sent in their places. This module is pure.

    said by a tool         file("a.txt", @blob of 5 MB, [list of a million])
    skeleton               file("a.txt", <reference>,   <reference>)
    on the wire            PUT [.. path [0,1] ..]  PUT [.. path [0,2] ..]
                           VALUE, referring  [file("a.txt",<reference(0)>,<reference(1)>)]

Scripts look at names, numbers and the shape of terms, so these are always sent; what is large is the content of a few
leaves. A string or blob is cut if it has so many bytes:

    by reference           size >= threshold
    as a PUT with value    below it, and size >= 64 KiB: the bus keeps the bytes as they are, and need not read them

A list or application whose skeleton would still have more than 4096 parts is cut as a whole, the innermost first, if it
is as large as a leaf would have to be: what a script takes apart has few parts, and what has many is data. So `val(L)`
with a list of a million is still an application `val` of one argument. Also cut as a whole is what is 63 deep or more,
since a path must end. Numbers, truth values, names and what already is a reference are never cut.

A path leads from the tuple of values to the part, by the number of each part among its neighbours (`part_of`). What
stands in many places is cut once, with the path that comes first, so that it is fetched once, too.

Sizes are found without encoding anything, but for the length of strings that are not ASCII. Of strings and blobs they
are exact; of lists and applications they are what SAF needs at about, and not less than all parts together where terms
share parts: counting a shared part once is possible only for the message as a whole, which therefore is the limit.

Every message of a tool comes through here, so small ones must be quick: first everything is weighed, each shared term
once, and whatever is too light to have anything cut from it is returned as it is. Measured (one core of a small, busy
machine): 2 to 4 us for `val(3)`, 0.4 us for each number of a large list, a quarter of what SAF takes to write it.
"""

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, overload

from echoic.errors import EncodeError, MalformedFrameError, MalformedTermError
from echoic.terms import (
    Annotated,
    Placeholder,
    Reference,
    ReferenceKind,
    Term,
    TermList,
    Value,
    references_in,
    refers,
    with_values,
)
from echoic.terms.saf import decode_saf, encode_pieces
from echoic.toolbus.references.words import NAME_BYTES_MAX, PATH_MAX
from echoic.wire.frames import Buffer, size_of

__all__ = [
    "LEAF_BYTES",
    "LOST_NAME",
    "NODES_MAX",
    "Cut",
    "cut",
    "kind_of",
    "lost_value",
    "pieces_of",
    "sign",
    "unsign",
    "value_from",
]

LEAF_BYTES: Final = 64 * 1024
"""A leaf of so many bytes is not sent within a message, whatever the threshold."""
NODES_MAX: Final = 4096
"""A list or application with more parts than that is cut as a whole."""
NODE_BYTES: Final = 4
"""What a part takes besides its name or content, about."""
TEXT_PIECE_CHARACTERS: Final = 256 * 1024
VALUE_BYTES_MAX: Final = 8 * 1024**3
PLACE: Final = "reference"
LOST_NAME: Final = "lost-value"
"""`lost-value("tool `a(1)` is gone")` stands where a value was that is nowhere any more."""

Composite: TypeAlias = Term | TermList | Annotated
Weight: TypeAlias = tuple[int, int]  # parts, bytes
# What becomes of a part, given the terms that it is in; None where that depends on the parts in it.
Settle: TypeAlias = Callable[[Value, "list[Frame]"], Value | None]
# What becomes of a term, given what became of its parts and the terms that it is in.
Finish: TypeAlias = Callable[[Composite, list[Value], "list[Frame]"], Value]

_NUMBERS: Final = frozenset({int, float, bool})
_COMPOSITES: Final = frozenset({Term, TermList, Annotated})
_PARTS: Final[dict[type, Callable[..., tuple[Value, ...]]]] = {
    Term: operator.attrgetter("args"),
    TermList: operator.attrgetter("elements"),
    Annotated: lambda value: (value.value, *value.annotations),
}
_SMALL: Final = 1 << 31  # integers below take no more than other parts do
_SHORT_MAX: Final = 4096  # characters of a string whose length is found out for estimates too
_UTF_8_BYTES_MAX: Final = 4  # of a character


@dataclass(frozen=True, slots=True)
class Cut:
    """What is sent of some values."""

    values: tuple[Value, ...]
    """The skeleton; the very tuple that was given if nothing is cut."""
    references: tuple[Reference, ...] = ()
    """What goes by reference."""
    inline: tuple[Reference, ...] = ()
    """What goes as a PUT with value."""


def cut(values: tuple[Value, ...], threshold: float, owner: int, variable: int, epoch: int = 0) -> Cut:
    """Return what is to be sent of values that `owner` keeps as `variable`.

    Args:
        values: What is said; paths begin with the number of one of them.
        threshold: From so many bytes on, content goes by reference; infinity for never.
        owner: The tool that says them.
        variable: The number that they will have.
        epoch: Of the bus.

    Raises:
        EncodeError: A string cannot be written as UTF-8.
    """
    bytes_min = min(threshold, LEAF_BYTES)
    total = _total(values)
    if total[1] < bytes_min:
        return Cut(values)
    cutter = Cutter(bytes_min, total, owner, variable, epoch)
    skeleton = cutter.cut(values)
    if skeleton is values:
        return Cut(values)
    made = [reference for reference in references_in(TermList(*skeleton)) if reference in cutter.made]
    by_reference = tuple(reference for reference in made if reference.size >= threshold)
    return Cut(skeleton, by_reference, tuple(reference for reference in made if reference.size < threshold))


def sign(values: tuple[Value, ...]) -> tuple[tuple[Value, ...], tuple[Reference, ...]]:
    """Return values with `<reference(K)>` in the places of references, and the references, in the order of their K.

    Somebody else's placeholder of that name is put into another: `<reference(<reference(0)>)>` is `<reference(0)>`.
    """
    if not any(map(refers, values)):
        return values, ()
    references = references_in(TermList(*values))

    def settle(part: Value, _: list[Frame]) -> Value | None:
        if _is_place(part):
            return Placeholder(Term(PLACE, part))
        return None if type(part) in _COMPOSITES else part

    every = TermList(*_rebuilt(values, settle, _made_of))
    places = {reference: Placeholder(Term(PLACE, number)) for number, reference in enumerate(references)}
    signed = with_values(every, places)
    return (signed.elements if isinstance(signed, TermList) else values), references


def unsign(values: tuple[Value, ...], references: Sequence[Value]) -> tuple[Value, ...]:
    """Return values with references in the places that `sign` has put there.

    Raises:
        MalformedFrameError: A place is of none of the references.
    """

    def settle(part: Value, _: list[Frame]) -> Value | None:
        if _is_place(part):
            return _reference_at(part, references)
        return None if type(part) in _COMPOSITES else part

    return _rebuilt(values, settle, _made_of)


def pieces_of(value: Value) -> Sequence[Buffer]:
    """Return the content of a value in pieces: strings and blobs as they are, all else in SAF.

    The pieces of a large string are made when they are looked at, so that there is never a second one in memory.

    Raises:
        EncodeError: A string cannot be written as UTF-8; of a large one, that is seen when its pieces are looked at.
    """
    if isinstance(value, bytes):
        return (memoryview(value),)
    if isinstance(value, str):
        return TextPieces(value) if len(value) > TEXT_PIECE_CHARACTERS else (_utf_8(value),)
    return encode_pieces(value)


def value_from(kind: ReferenceKind, pieces: Sequence[Buffer]) -> Value:
    """Return the value of a kind that this content is.

    Raises:
        MalformedTermError: It is not of this kind.
        LimitExceededError: It is more than can be.
    """
    content = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if kind is ReferenceKind.BLOB:
        return bytes(content)
    if kind is ReferenceKind.STR:
        try:
            return str(content, "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedTermError(
                f"byte {error.start} of a string of {size_of(content)} bytes is not UTF-8"
            ) from error
    value = decode_saf(content, bytes_max=VALUE_BYTES_MAX)
    if kind_of(value) is not kind:
        raise MalformedTermError(f"`{type(value).__name__}` has arrived where `{kind}` was announced")
    return value


class TextPieces(Sequence[Buffer]):
    """A large string as UTF-8, in pieces that are made when they are looked at."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = range(0, len(text), TEXT_PIECE_CHARACTERS)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> Buffer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Buffer]: ...

    def __getitem__(self, index: int | slice) -> Buffer | Sequence[Buffer]:
        """Return a piece, or several."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        start = self._starts[index]
        return _utf_8(self._text[start : start + TEXT_PIECE_CHARACTERS])


def lost_value(reason: str) -> Term:
    """Return what stands in the place of a value that cannot be had."""
    return Term(LOST_NAME, reason)


class Cutter:
    """One cutting of values that are heavy enough for it."""

    def __init__(self, bytes_min: float, total: Weight, owner: int, variable: int, epoch: int) -> None:
        self._bytes_min = bytes_min
        self._total = total
        self._owner = owner
        self._epoch = epoch
        self._variable = variable
        self._weights: dict[int, Weight] = {}
        self._nodes: dict[int, int] = {}  # of skeletons, where they have other parts than the value
        self._settled: dict[int, Reference] = {}
        self.made: set[Reference] = set()

    def cut(self, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """Return the skeleton of values."""
        self._weigh(values)
        return _rebuilt(values, self._settle, self._finish)

    def _weigh(self, values: tuple[Value, ...]) -> None:
        """Note for each term in the values how many parts and bytes it has, as if nothing were shared."""
        weights = self._weights
        waiting: list[Value] = list(values)
        while waiting:
            current = waiting[-1]
            if type(current) not in _COMPOSITES or id(current) in weights:
                waiting.pop()
                continue
            parts = _parts(current)
            nodes, size = 1 + len(parts), _own_bytes(current)
            even = _even_bytes(parts)
            if even is not None:
                size += even
            else:
                missing = [part for part in parts if type(part) in _COMPOSITES and id(part) not in weights]
                if missing:
                    waiting += missing
                    continue
                for part in parts:
                    below = weights.get(id(part))
                    if below is None:
                        size += _own_bytes(part)
                    else:
                        nodes += below[0] - 1
                        size += below[1]
            waiting.pop()
            weights[id(current)] = min(nodes, self._total[0]), min(size, self._total[1])

    def _settle(self, part: Value, within: "list[Frame]") -> Value | None:
        found = self._settled.get(id(part))
        if found is not None:
            return found
        match part:
            case Term() | TermList() | Annotated():
                nodes, size = self._weights[id(part)]
                if size < self._bytes_min or nodes == 1:
                    return part
                if len(within) < PATH_MAX - 1 or (len(within) < PATH_MAX and isinstance(part, Annotated)):
                    return None
                if not _can_be_cut_off(part):
                    return part
            case str() | bytes():
                size = _utf_8_size(part) if isinstance(part, str) else len(part)
                if size < self._bytes_min or len(within) > PATH_MAX:
                    return part
            case _:
                return part
        self._settled[id(part)] = made = self._reference(part, size, within)
        return made

    def _finish(self, part: Composite, made: list[Value], within: "list[Frame]") -> Value:
        nodes, size = self._weights[id(part)]
        if nodes > NODES_MAX:
            nodes = 1
            for inner, become in zip(_parts(part), made, strict=True):
                nodes += 1 if isinstance(become, Reference) else self._skeleton_nodes(inner)
            if nodes > NODES_MAX and _can_be_cut_off(part):
                return self._reference(part, size, within)
            self._nodes[id(part)] = nodes
        return _made_of(part, made, within)

    def _skeleton_nodes(self, part: Value) -> int:
        """Return how many parts are left of a part that was not cut off."""
        nodes = self._nodes.get(id(part))
        if nodes is not None:
            return nodes
        weight = self._weights.get(id(part))
        return 1 if weight is None else weight[0]

    def _reference(self, part: Value, size: int, within: "list[Frame]") -> Reference:
        kind = kind_of(part)
        name = part.name if isinstance(part, Term) else ""
        count = len(_parts(part))
        path = tuple(len(frame.made) for frame in within)
        made = Reference(self._owner, self._variable, path, kind, size, name=name, count=count, epoch=self._epoch)
        self.made.add(made)
        return made


@dataclass(slots=True)
class Frame:
    """A term that is being made again."""

    part: Composite | None
    """None for the values together."""
    parts: tuple[Value, ...]
    made: list[Value]
    """What became of its first parts."""


def _rebuilt(values: tuple[Value, ...], settle: Settle, finish: Finish) -> tuple[Value, ...]:
    """Return values made again from their leaves, each shared term once; the same tuple if nothing became of it."""
    done: dict[int, Value] = {}
    frame = Frame(None, values, [])
    within = [frame]
    while True:
        parts, made = frame.parts, frame.made
        if not made and _NUMBERS.issuperset(map(type, parts)):
            made += parts
        while len(made) < len(parts):
            part = parts[len(made)]
            if type(part) in _NUMBERS:
                made.append(part)
                continue
            become = done.get(id(part))
            if become is None:
                become = settle(part, within)
            if become is None:
                frame = Frame(part, _parts(part), [])  # type: ignore[arg-type] # what is not settled has parts
                within.append(frame)
                break
            made.append(become)
        else:
            within.pop()
            if frame.part is None:
                return tuple(made) if _differ(made, parts) else values
            become = finish(frame.part, made, within)
            done[id(frame.part)] = become
            frame = within[-1]
            frame.made.append(become)


def _made_of(part: Composite, made: list[Value], _: list[Frame]) -> Value:
    """Return a term with other parts; the same if they are the same."""
    if not _differ(made, _parts(part)):
        return part
    match part:
        case Term():
            return Term(part.name, *made, quoted=part.quoted)
        case TermList():
            return TermList(*made)
        case Annotated():
            return Annotated(*made)


def _can_be_cut_off(part: Composite) -> bool:
    """Whether a reference can tell a term: annotations belong to no kind, and names have a greatest length.

    A term that has references in it stays: it cannot be written, and its values are not here.
    """
    if refers(part):
        return False
    if isinstance(part, Term):
        return len(part.name) <= NAME_BYTES_MAX and _utf_8_size(part.name) <= NAME_BYTES_MAX
    return isinstance(part, TermList)


def _differ(made: Iterable[Value], parts: Iterable[Value]) -> bool:
    return any(one is not other for one, other in zip(made, parts, strict=True))


def _total(values: tuple[Value, ...]) -> Weight:
    """Return how many parts values have and about how many bytes they take, what is shared counted once."""
    nodes = size = 0
    seen: set[int] = set()
    waiting: list[Value] = list(values)
    while waiting:
        current = waiting.pop()
        nodes += 1
        if type(current) in _COMPOSITES:
            if id(current) in seen:
                continue
            seen.add(id(current))
            parts = _parts(current)
            even = _even_bytes(parts)
            if even is None:
                waiting += parts
            else:
                nodes += len(parts)
                size += even
        size += _own_bytes(current)
    return nodes, size


def _even_bytes(parts: tuple[Value, ...]) -> int | None:
    """Return what leaves that are all alike take, as in lists of data; None where each has to be looked at."""
    kinds = set(map(type, parts))
    if len(kinds) != 1:
        return None if kinds else 0
    (kind,) = kinds
    if kind is str and all(map(str.isascii, parts)):  # type: ignore[arg-type] # they are strings
        return len(parts) * NODE_BYTES + sum(map(len, parts))  # type: ignore[arg-type] # the same
    if kind is int and min(parts) >= -_SMALL and max(parts) < _SMALL:  # type: ignore[type-var, operator] # integers
        return len(parts) * NODE_BYTES
    return len(parts) * NODE_BYTES if kind is float or kind is bool else None


def _parts(value: Value) -> tuple[Value, ...]:
    parts = _PARTS.get(type(value))
    return () if parts is None else parts(value)


def _own_bytes(value: Value) -> int:
    """Return about what a value takes without the parts in it, but not less than its content."""
    match value:
        case str():
            if value.isascii():
                return NODE_BYTES + len(value)
            return NODE_BYTES + (_utf_8_size(value) if len(value) <= _SHORT_MAX else _UTF_8_BYTES_MAX * len(value))
        case bytes():
            return NODE_BYTES + len(value)
        case Term():
            return NODE_BYTES + len(value.name)
        case int():
            return NODE_BYTES + value.bit_length() // 8
        case _:
            return NODE_BYTES


def _utf_8(text: str) -> bytes:
    """Return a string as UTF-8.

    Raises:
        EncodeError: It has none.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"`{text[error.start]!a}` of a string has no utf-8") from error


def _utf_8_size(text: str) -> int:
    """Return how many bytes a string has as UTF-8, without having all of them at once.

    Raises:
        EncodeError: It has none.
    """
    return len(text) if text.isascii() else sum(map(len, TextPieces(text)))


def kind_of(value: Value) -> ReferenceKind:
    """Return as what a value goes by reference.

    Raises:
        MalformedTermError: It never does.
    """
    match value:
        case str():
            return ReferenceKind.STR
        case bytes():
            return ReferenceKind.BLOB
        case TermList():
            return ReferenceKind.LIST
        case Term(quoted=True):
            return ReferenceKind.QUOTED
        case Term():
            return ReferenceKind.APPLICATION
        case _:
            raise MalformedTermError(f"a `{type(value).__name__}` does not go by reference")


def _is_place(value: Value) -> bool:
    """Whether a value is `<reference(K)>`."""
    match value:
        case Placeholder(type=Term(name="reference", quoted=False, args=(_,))):
            return True
        case _:
            return False


def _reference_at(place: Value, references: Sequence[Value]) -> Value:
    match place:
        case Placeholder(type=Term(args=(Placeholder() as inner,))) if _is_place(inner):
            return inner
        case Placeholder(type=Term(args=(number,))) if type(number) is int and 0 <= number < len(references):
            return references[number]
        case _:
            raise MalformedFrameError(f"`{str(place)[:100]}` refers to none of the {len(references)} that were put")
