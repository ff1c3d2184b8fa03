r"""Terms: what tools and scripts exchange, whatever language they are written in.

    kind          Python            text
    integer       int               42
    real          float             3.14
    string        str               "q \" s"
    truth         bool              true
    blob          bytes             (binary forms only)
    application   Term              f(a,1,[x])         name, arguments, and whether the name is quoted
    list          TermList          [1,2,[3]]
    placeholder   Placeholder       <int>
    reference     Reference         (none: the value is elsewhere, see below)
    any of them   Annotated         42{[label,value]}  with annotations, which matching does not look at

Terms are immutable and *maximally shared*: whoever builds an equal term gets the same object, as long as anybody
holds it, so that two of `Term`, `TermList`, `Placeholder` and `Annotated` are equal when they are identical, however
large they are. That makes comparing free where a script matches, and lets codecs write a term that stands in many
places once. Numbers and strings are Python's own; as arguments `1`, `1.0` and `True` are three values, `0.0` and
`-0.0` two. A value is written in one way only: the constants `true` and `false` are Python's, a quoted name without
arguments is a string, and `Term` refuses to be either.

Terms may be a million deep, so nothing here or in the codecs calls itself: a term is built from its leaves, and
whatever can be known about it (`plain`) is noted then.

How sharing stays right when threads build terms at the same time, without a lock: `_table` maps what a term consists
of to a weak reference. The only step that adds is `dict.setdefault`, the only one that removes is what
`WeakValueDictionary` uses itself, which takes an entry out if its reference is dead; each is one step of the
interpreter, since whatever a key consists of is hashed and compared without running Python. Whoever comes second gets
what the first has put there. A lock would not do: a term may be dropped by the garbage collector at any time, also
while its own thread holds the lock.

A `Reference` is a leaf in the place of a value that somebody else keeps: it says who, which, and as much about the
value as its kind, name and size tell. That is enough for most of what a script asks; where it is not, the question ends
with `ValueNeeded`, which names the reference whose value would answer it. Whether a term has a reference in it is noted
when it is built, so that terms without any are compared as if there were none (`references.py` has the rest).

Measured (Python 3.11, one core of a small machine): 0.4 us for a term of two arguments that is there, 1.8 us for one
that is not. Hashing a large string as an argument goes at 4 GB/s, once.
"""

import enum
import struct
from _weakref import _remove_dead_weakref  # type: ignore[attr-defined] # typeshed does not know it, weakref.py uses it
from collections.abc import Callable, Iterator
from typing import ClassVar, Final, TypeAlias, cast, final
from weakref import ref

from echoic.errors import EncodeError

__all__ = [
    "UNDEFINED",
    "Annotated",
    "Placeholder",
    "Reference",
    "ReferenceKind",
    "Term",
    "TermList",
    "Value",
    "ValueNeeded",
    "plain",
    "same",
    "value_of",
]

SCALARS: Final = frozenset({bool, int, float, str, bytes})
REAL: Final = struct.Struct("<d")
SIGNATURE_ARGUMENTS_MAX: Final = 256  # of an application whose arguments a signature shows
UTF_8_BYTES_MAX: Final = 4  # of a character

Key: TypeAlias = tuple[object, ...]

_set: Final = object.__setattr__  # for whoever makes a term: nobody else can change it
_REFERENCE_FIELDS: Final = ("owner", "variable", "path", "kind", "size", "name", "count", "epoch", "_bare", "_refers")


class Shared:
    """What is kept once: made by `_share`, compared by identity.

    `_bare` is the same without annotations at any depth, None where it has none: a term that named itself would be
    freed by the garbage collector only. `_refers` is whether it is a reference, or one is in it, annotations included.
    """

    __slots__ = ("__weakref__", "_bare", "_refers")
    _bare: "Bare | None"
    _refers: bool
    spell: ClassVar[Callable[["Value"], str]]  # text.py puts it here: it has to know terms, so they cannot import it

    @property
    def plain(self) -> "Bare":
        """The same without annotations, at any depth."""
        return cast("Bare", self) if self._bare is None else self._bare

    def __str__(self) -> str:
        return Shared.spell(cast("Value", self))

    __repr__ = __str__

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"`{name}` cannot be set: a term is shared by all who have an equal one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"`{name}` cannot be removed: a term is shared by all who have an equal one")

    def __copy__(self) -> "Shared":
        return self

    def __deepcopy__(self, memory: object) -> "Shared":
        return self

    def __reduce_ex__(self, protocol: object) -> str:
        raise TypeError("terms are not pickled: they travel in the forms that echoic.terms writes")


@final
class Term(Shared):
    """A function symbol with arguments: `Term("f", 1, "x")` is `f(1,"x")`, `Term("a")` the constant `a`.

    Raises:
        EncodeError: An argument is not a value, or this is written as a Python `bool` or `str`.
    """

    __slots__ = ("args", "name", "quoted")
    name: str
    args: tuple["Value", ...]
    quoted: bool

    def __new__(cls, name: str, *args: object, quoted: bool = False) -> "Term":
        """Return the term of this name and these arguments."""
        try:
            found = _terms[name, quoted, args]()
        except (KeyError, TypeError):  # a list among the arguments cannot be looked for
            return cls._make(name, args, quoted)
        if found is None:
            return cls._make(name, args, quoted)
        for one, other in zip(args, found.args):  # noqa: B905 - equal tuples; `strict` would cost as much as an argument
            if one is not other and _kind(one) is not _kind(other):  # 1, True and 1.0 are equal, but not the same
                return cls._make(name, args, quoted)
        return found

    @classmethod
    def _make(cls, name: str, args: tuple[object, ...], quoted: bool) -> "Term":
        """Return the term of this name and these arguments, which is not there unless its key says more than they."""
        if type(name) is not str:
            if not isinstance(name, str):
                raise EncodeError(f"the name of a term is a string, not `{type(name).__name__}`")
            name = str.__str__(name)
        if not args and (quoted or name in ("true", "false")):
            raise EncodeError(f"`{name}` without arguments is written as a Python {'str' if quoted else 'bool'}")
        values, parts = _values_of(args)
        key: Key = (name, bool(quoted), parts)
        if parts is not args and (found := _find(key)) is not None:
            return cast("Term", found)
        made = object.__new__(cls)
        bare, refers = _noted(values)
        _set(made, "name", name)
        _set(made, "args", values)
        _set(made, "quoted", bool(quoted))
        _set(made, "_refers", refers)
        _set(made, "_bare", None if bare is values else Term(name, *bare, quoted=quoted))
        return cast("Term", _share(key, made))

    @property
    def arity(self) -> int:
        """How many arguments there are."""
        return len(self.args)

    def __getitem__(self, index: int) -> "Value":
        return self.args[index]


@final
class TermList(Shared):
    """A list of values: `TermList(1, 2)` is `[1,2]`.

    Raises:
        EncodeError: An element is not a value.
    """

    __slots__ = ("elements",)
    elements: tuple["Value", ...]

    def __new__(cls, *elements: object) -> "TermList":
        """Return the list of these elements."""
        values, parts = _values_of(elements)
        key: Key = ("[]", parts)
        if (found := _find(key)) is not None:
            return cast("TermList", found)
        made = object.__new__(cls)
        bare, refers = _noted(values)
        _set(made, "elements", values)
        _set(made, "_refers", refers)
        _set(made, "_bare", None if bare is values else TermList(*bare))
        return cast("TermList", _share(key, made))

    def __len__(self) -> int:
        return len(self.elements)

    def __bool__(self) -> bool:
        return bool(self.elements)

    def __iter__(self) -> Iterator["Value"]:
        return iter(self.elements)

    def __getitem__(self, index: int) -> "Value":
        return self.elements[index]


@final
class Placeholder(Shared):
    """A place for values of a type: `Placeholder(Term("int"))` is `<int>`.

    Raises:
        EncodeError: The type is not a value.
    """

    __slots__ = ("type",)
    type: "Value"

    def __new__(cls, type: object) -> "Placeholder":  # noqa: A002 - what stands between < and > is a type
        """Return the placeholder of this type."""
        values, parts = _values_of((type,))
        key: Key = ("<>", parts)
        if (found := _find(key)) is not None:
            return cast("Placeholder", found)
        made = object.__new__(cls)
        bare, refers = _noted(values)
        _set(made, "type", values[0])
        _set(made, "_refers", refers)
        _set(made, "_bare", None if bare is values else Placeholder(*bare))
        return cast("Placeholder", _share(key, made))


@final
class Annotated(Shared):
    """A value with annotations, `[label,value]` pairs mostly: `Annotated(1, TermList(...))` is `1{[label,value]}`.

    Annotations belong to what a value is, but matching does not look at them.

    Raises:
        EncodeError: There is no annotation, or the value is annotated already, or one is not a value.
    """

    __slots__ = ("annotations", "value")
    value: "Bare"
    annotations: tuple["Value", ...]

    def __new__(cls, value: object, *annotations: object) -> "Annotated":
        """Return the value with these annotations."""
        bare = value_of(value)
        if isinstance(bare, Annotated):
            raise EncodeError("a value is annotated once, with all its annotations")
        if not annotations:
            raise EncodeError("an annotated value has at least one annotation")
        values, parts = _values_of((bare, *annotations))
        key: Key = ("{}", parts)
        if (found := _find(key)) is not None:
            return cast("Annotated", found)
        made = object.__new__(cls)
        _set(made, "value", bare)
        _set(made, "annotations", values[1:])
        _set(made, "_refers", _noted(values)[1])
        _set(made, "_bare", plain(bare))
        return cast("Annotated", _share(key, made))


class ReferenceKind(enum.StrEnum):
    """What kind of value a reference stands for."""

    STR = "str"
    BLOB = "blob"
    LIST = "list"
    APPLICATION = "appl"
    QUOTED = "quoted"  # an application whose name is quoted

    @property
    def type(self) -> type:
        """The Python type of the values."""
        return _REFERENCE_TYPES[self]


@final
class Reference(Shared):
    """A leaf in the place of a value that a tool keeps: the part of its `variable` that `path` leads to.

    `size` is how many bytes the content has: of a string as UTF-8, of a blob as it is. `name` is that of an
    application, and `count` the number of its arguments, or of the elements of a list. `epoch` tells the tools of one
    bus from those of another: two buses in one process must not take a value of one for that of the other.

    Raises:
        EncodeError: A field is not of its type, or negative.
    """

    __slots__ = ("count", "epoch", "kind", "name", "owner", "path", "size", "variable")
    owner: int
    variable: int
    path: tuple[int, ...]
    kind: ReferenceKind
    size: int
    name: str
    count: int
    epoch: int

    def __new__(
        cls,
        owner: int,
        variable: int,
        path: tuple[int, ...],
        kind: ReferenceKind,
        size: int,
        *,
        name: str = "",
        count: int = 0,
        epoch: int = 0,
    ) -> "Reference":
        """Return the reference with these fields."""
        numbers = (owner, variable, size, count, epoch, *path)
        if any(_kind(number) is not int or number < 0 for number in numbers) or _kind(name) is not str:
            raise EncodeError(f"a reference of the numbers {numbers[:12]} and a name of `{type(name).__name__}`")
        key: Key = ("&", owner, variable, tuple(path), kind.value, size, name, count, epoch)
        if (found := _find(key)) is not None:
            return cast("Reference", found)
        made = object.__new__(cls)
        fields = (owner, variable, tuple(path), ReferenceKind(kind), size, name, count, epoch, None, True)
        for field, value in zip(_REFERENCE_FIELDS, fields, strict=True):
            _set(made, field, value)
        return cast("Reference", _share(key, made))

    @property
    def quoted(self) -> bool:
        """Whether it stands for an application with a quoted name."""
        return self.kind is ReferenceKind.QUOTED

    @property
    def signature(self) -> "Value":
        """What is known of the value, as a type: `str`, `blob`, `list`, `f(<term>,<term>)`."""
        if self.kind.type is not Term:
            return Term(self.kind.value)
        if self.count > SIGNATURE_ARGUMENTS_MAX or (self.quoted and not self.count):
            return self.name if self.quoted else Term(self.name)
        return Term(self.name, *[Placeholder(Term("term"))] * self.count, quoted=self.quoted)


_REFERENCE_TYPES: Final[dict[ReferenceKind, type]] = {
    ReferenceKind.STR: str,
    ReferenceKind.BLOB: bytes,
    ReferenceKind.LIST: TermList,
    ReferenceKind.APPLICATION: Term,
    ReferenceKind.QUOTED: Term,
}


class ValueNeeded(Exception):  # noqa: N818 - it is no error: whoever asked is to ask again when the value is there
    """A question that only the value of a reference answers."""

    def __init__(self, reference: Reference) -> None:
        super().__init__(reference)
        self.reference = reference

    def __str__(self) -> str:
        return f"the value of {self.reference} is needed"


Bare: TypeAlias = bool | int | float | str | bytes | Term | TermList | Placeholder | Reference
Value: TypeAlias = Bare | Annotated

_kind: Final = type  # `type` is a field of placeholders
_CONVERSIONS: Final[tuple[tuple[type, Callable[..., Value]], ...]] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, bytes),
)
_PLAIN_KINDS: Final = frozenset(
    {int, str, bytes, Term, TermList, Placeholder, Annotated, Reference}
)  # equal is the same


class _Entry(ref[Shared]):
    """A weak reference that knows where it stands in the table."""

    __slots__ = ("key",)
    key: Key


_table: Final[dict[Key, _Entry]] = {}
_terms: Final = cast("dict[Key, ref[Term]]", _table)  # the same, for looking up what can only be a term


def value_of(value: object) -> Value:
    """Return a Python object as a value; lists and tuples become lists, at any depth.

    Raises:
        EncodeError: It is none.
    """
    kind = type(value)
    if kind in SCALARS or isinstance(value, Shared):
        return cast("Value", value)
    if isinstance(value, list | tuple):
        return _list_of(value)
    for scalar, convert in _CONVERSIONS:  # enumerations, NumPy's float64 and others that are one of Python's
        if isinstance(value, scalar):
            return convert(value)
    raise EncodeError(f"`{kind.__name__}` is not a term")


def plain(value: Value) -> Value:
    """Return a value without annotations, at any depth."""
    return value.plain if isinstance(value, Shared) else value


def same(one: Value, other: Value) -> bool:
    """Whether two values are equal but for annotations: of one kind, and for reals of the same bits.

    Raises:
        ValueNeeded: Only the value of a reference decides.
    """
    if type(one) is not type(other):
        one, other = plain(one), plain(other)
        if type(one) is not type(other):
            return (type(one) is Reference or type(other) is Reference) and _same_referring(one, other)
    if isinstance(one, Shared):
        bare, another = one.plain, cast("Shared", other).plain
        if bare is another:
            return True
        return (_refers(bare) or _refers(another)) and _same_referring(bare, another)
    if isinstance(one, float):
        return REAL.pack(one) == REAL.pack(cast("float", other))
    return one == other


def _refers(value: Value) -> bool:
    return isinstance(value, Shared) and value._refers  # noqa: SLF001 - its own module's


def _same_referring(one: Value, other: Value) -> bool:
    """Compare values without annotations of which one has references: what differs for certain decides first."""
    waiting = [(one, other)]
    seen: set[tuple[Value, Value]] = set()
    needed: Reference | None = None
    while waiting:
        one, other = waiting.pop()
        if one is other:
            continue
        if isinstance(one, Reference) or isinstance(other, Reference):
            reference, value = (one, other) if isinstance(one, Reference) else (cast("Reference", other), one)
            if not could_be(reference, value):
                return False
            needed = needed or reference
        elif not _refers(one) and not _refers(other):
            if not same(one, other):
                return False
        elif (pairs := _inner_pairs(one, other)) is None:
            return False
        elif (one, other) not in seen:  # what refers has parts, and is compared by identity
            seen.add((one, other))
            waiting += pairs
    if needed is not None:
        raise ValueNeeded(needed)
    return True


def _inner_pairs(one: Value, other: Value) -> list[tuple[Value, Value]] | None:
    """Return what is to be compared inside of two values, None if they differ themselves."""
    if isinstance(one, Term) and isinstance(other, Term):
        alike = one.name == other.name and one.quoted == other.quoted and len(one.args) == len(other.args)
        return list(zip(one.args, other.args, strict=True)) if alike else None
    if isinstance(one, TermList) and isinstance(other, TermList) and len(one) == len(other):
        return list(zip(one.elements, other.elements, strict=True))
    if isinstance(one, Placeholder) and isinstance(other, Placeholder):
        return [(one.type, other.type)]
    return None


def could_be(reference: Reference, value: Value) -> bool:
    """Whether a value without annotations, which may be a reference too, can be the one that is referred to."""
    kind = reference.kind
    if isinstance(value, Reference):
        if kind is not value.kind:
            return False
        if kind.type is str or kind.type is bytes:
            return reference.size == value.size
        return reference.name == value.name and reference.count == value.count
    if type(value) is not kind.type:
        return False
    match value:
        case str():
            return len(value) <= reference.size <= UTF_8_BYTES_MAX * len(value) and reference.size == utf_8_size(value)
        case bytes():
            return reference.size == len(value)
        case Term():
            return (value.name, value.quoted, len(value.args)) == (reference.name, reference.quoted, reference.count)
        case _:
            return isinstance(value, TermList) and len(value) == reference.count


def utf_8_size(text: str) -> int:
    """Return how many bytes a string has as UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _list_of(items: list[object] | tuple[object, ...]) -> TermList:
    """Return nested Python lists as a list of values, from the inside out."""
    done: list[Value] = []
    waiting: list[tuple[list[Value], Iterator[object]]] = [(done, iter(items))]
    while True:
        gathered, rest = waiting[-1]
        for item in rest:
            if isinstance(item, list | tuple):
                waiting.append(([], iter(item)))
                break
            gathered.append(value_of(item))
        else:
            waiting.pop()
            made = TermList(*gathered)
            if not waiting:
                return made
            waiting[-1][0].append(made)


def identity(value: Value) -> object:
    """Return what is equal for two values if they are the same, annotations and all: a key for tables of values."""
    kind = type(value)
    if kind is float:
        return (REAL.pack(cast("float", value)),)
    return (value,) if kind is bool else value


def _values_of(items: tuple[object, ...]) -> tuple[tuple[Value, ...], tuple[object, ...]]:
    """Return items as values, and what stands for them in a key.

    Those are the values themselves, if they are the same whenever they are equal. Otherwise they are followed by their
    kinds, and reals are their bits.
    """
    kinds = tuple(map(_kind, items))
    if _PLAIN_KINDS.issuperset(kinds):
        return cast("tuple[Value, ...]", items), items
    values = tuple(map(value_of, items))
    kinds = tuple(map(_kind, values))
    if _PLAIN_KINDS.issuperset(kinds):
        return values, values
    if float not in kinds:
        return values, (values, kinds)
    return values, (tuple(REAL.pack(value) if type(value) is float else value for value in values), kinds)


def _noted(values: tuple[Value, ...]) -> tuple[tuple[Value, ...], bool]:
    """Return values without annotations, the same tuple where there are none, and whether one of them refers."""
    bare, refers = values, False
    for value in values:
        if isinstance(value, Shared):
            if value._bare is not None and bare is values:  # noqa: SLF001 - its own module's
                bare = tuple(map(plain, values))
            if value._refers:  # noqa: SLF001 - the same
                refers = True
    return bare, refers


def _find(key: Key) -> Shared | None:
    """Return what is kept under a key."""
    reference = _table.get(key)
    return None if reference is None else reference()


def _share(key: Key, made: Shared) -> Shared:
    """Return what is kept under a key, which is `made` unless somebody else was faster."""
    reference = _Entry(made, _forget)
    reference.key = key
    while True:
        found = _table.setdefault(key, reference)()
        if found is not None:
            return found
        _remove_dead_weakref(_table, key)  # it is about to be forgotten


def _forget(
    reference: ref[Shared],
    remove: Callable[[dict[Key, _Entry], Key], None] = _remove_dead_weakref,
    table: dict[Key, _Entry] = _table,
) -> None:
    """Take out an entry whose term is gone. What it needs is held here: modules are emptied when Python ends."""
    remove(table, reference.key)  # type: ignore[attr-defined] # it is a _Entry: `cast` may be gone too


UNDEFINED: Final = Term("undefined")


def shared_terms() -> list[Shared]:
    """Return what is kept at the moment, for tests of what is not."""
    return [found for reference in list(_table.values()) if (found := reference()) is not None]
