"""Building terms from patterns and taking them apart: `make` fills the placeholders of a pattern, `match` reads them.

    make("point(<int>,<list>)", 1, [2, 3])               point(1,2,3)
    match(parse_text("point(1,2,3)"), "point(<int>,<list>)")    (1, [2,3])

    <int> <real> <bool> <blob>    a value of that kind
    <str>                         a string
    <term>                        any value
    <list>                        a list; as the last argument of a term or the last element of a list, all that remain
    <fun>  <id>                   a term without arguments and quotes, as its name
    <appl>                        a term or string without arguments, as its name
    <fun(p,...)>  <id(p,...)>  <str(p,...)>  <appl(p,...)>
                                  a term with arguments: first its name, then what the patterns of its arguments take;
                                  `str` has a quoted name, `fun` and `id` have one that is not, `appl` either (and
                                  makes the latter)
    <placeholder>                 a placeholder, as its type

Any other placeholder stands for itself. A reference is taken by `<term>`, and by the placeholder of its kind; what else
there is to know of it needs its value. Annotations are not looked at; a value that is taken keeps its own, and those of
a pattern are part of what is made. Patterns are given as values or as text; text is read each time, so keep the value
where it is used often.
"""

from typing import TYPE_CHECKING, Final, TypeAlias, cast

from echoic.errors import EncodeError
from echoic.terms.term import (
    Annotated,
    Placeholder,
    Reference,
    Term,
    TermList,
    Value,
    ValueNeeded,
    plain,
    same,
    value_of,
)
from echoic.terms.text import parse_text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["make", "match"]

_KINDS: Final[dict[str, type]] = {"int": int, "real": float, "bool": bool, "blob": bytes, "str": str, "list": TermList}
_NAMED: Final = frozenset({"appl", "fun", "id", "str"})
_REST: Final = Placeholder(Term("list"))

# What is being made: the part of the pattern, the name it got, and how many values there were before its own.
Frame: TypeAlias = tuple[Value, str, int]


def make(pattern: Value | str, *args: object) -> Value:
    """Return a pattern with its placeholders filled, in the order they stand in it.

    Raises:
        EncodeError: A value is not what its placeholder stands for, or there are too few or too many.
        MalformedTermError: The pattern is text, and not that of a value.
    """
    return _Making(args).make(parse_text(pattern) if isinstance(pattern, str) else pattern)


def match(value: Value, pattern: Value | str) -> tuple[Value, ...] | None:
    """Return what the placeholders of a pattern stand for in a value, None if it does not match.

    Raises:
        MalformedTermError: The pattern is text, and not that of a value.
        ValueNeeded: Only the value of a reference decides.
    """
    if isinstance(pattern, str):
        pattern = parse_text(pattern)
    taken: list[Value] = []
    waiting = [(plain(pattern), value)]
    while waiting:
        wanted, found = waiting.pop()
        if isinstance(wanted, Placeholder):
            inner = _take(wanted, found, taken)
        else:
            inner = _inside(wanted, _bare(found))
        if inner is None:
            return None
        waiting += reversed(inner)
    return tuple(taken)


Pairs: TypeAlias = list[tuple[Value, Value]]


def _take(wanted: Placeholder, found: Value, taken: list[Value]) -> Pairs | None:
    """Take what a placeholder stands for, and return what is still to be compared."""
    name = _word(wanted)
    bare = _bare(found)
    patterns = _arguments(wanted.type)
    if name in _NAMED and (patterns or name != "str"):
        if isinstance(bare, Reference) and bare.kind.type in (str, Term):
            raise ValueNeeded(bare)
        symbol = _symbol(bare)
        if symbol is None or (name != "appl" and symbol[1] != (name == "str")):
            return None
        taken.append(symbol[0])
        return _pairs(patterns, _arguments(bare))
    if patterns or (name not in _KINDS and name not in ("term", "placeholder")):
        return [] if same(wanted, bare) else None
    if name == "placeholder":
        if not isinstance(bare, Placeholder):
            return None
        found = bare.type
    elif name != "term" and (bare.kind.type if isinstance(bare, Reference) else type(bare)) is not _KINDS[name]:
        return None
    taken.append(found)
    return []


def _inside(wanted: Value, found: Value) -> Pairs | None:
    """Return what is to be compared inside of two values, None if they differ themselves."""
    match wanted, found:
        case Term(), Term() if wanted.name == found.name and wanted.quoted == found.quoted:
            return _pairs(wanted.args, found.args)
        case TermList(), TermList():
            return _pairs(wanted.elements, found.elements)
        case Term(args=(only,)), _ if only is _REST and _symbol(found) == (wanted.name, wanted.quoted):
            return [(only, TermList())]  # `f(<list>)` and `f`, which may be a string or a truth value
        case Term() | TermList(), Reference():
            text = isinstance(wanted, Term) and wanted.quoted and wanted.args == (_REST,)  # `"f"(<list>)` and `"f"`
            if found.kind.type is type(wanted) or (text and found.kind.type is str):
                raise ValueNeeded(found)
            return None
        case _:
            return [] if same(wanted, found) else None


def _pairs(patterns: tuple[Value, ...], values: tuple[Value, ...]) -> Pairs | None:
    """Return patterns beside their values, the rest of the values beside `<list>` at the end."""
    if patterns and patterns[-1] is _REST and len(values) >= len(patterns) - 1:
        count = len(patterns) - 1
        return [*zip(patterns[:count], values[:count], strict=True), (_REST, TermList(*values[count:]))]
    return list(zip(patterns, values, strict=True)) if len(patterns) == len(values) else None


def _bare(value: Value) -> Value:
    """Return a value without its own annotations; those in it stay."""
    return value.value if isinstance(value, Annotated) else value


def _word(placeholder: Placeholder) -> str:
    """Return the word of a placeholder, nothing if it has none."""
    type = placeholder.type  # noqa: A001 - it is one
    return type.name if isinstance(type, Term) and not type.quoted else ""


def _symbol(value: Value) -> tuple[str, bool] | None:
    """Return the name of a value, and whether it is quoted."""
    match value:
        case Term():
            return value.name, value.quoted
        case str():
            return value, True
        case bool():
            return "true" if value else "false", False
        case _:
            return None


def _arguments(value: Value) -> tuple[Value, ...]:
    return value.args if isinstance(value, Term) else ()


class _Making:
    """One filling of a pattern."""

    def __init__(self, args: tuple[object, ...]) -> None:
        self._args = args
        self._used = 0
        self._values: list[Value] = []
        self._frames: list[Frame] = []
        self._waiting: list[Iterator[tuple[Value, bool]]] = []  # parts of patterns, and whether each is the last

    def make(self, pattern: Value) -> Value:
        """Return the pattern, filled."""
        self._begin(pattern, False)
        while self._frames:
            for part, last in self._waiting[-1]:
                if self._begin(part, last):
                    break
            else:
                self._waiting.pop()
                part, name, base = self._frames.pop()
                items = self._values[base:]
                del self._values[base:]
                self._values.append(_build(part, name, items))
        if self._used != len(self._args):
            raise EncodeError(f"{len(self._args)} values for a pattern of {self._used}")
        return self._values[0]

    def _begin(self, part: Value, last: bool) -> bool:
        """Make a part of a pattern, or say that what is in it comes first."""
        name = ""
        match part:
            case Placeholder():
                word, inner = _word(part), _arguments(part.type)
                if word in _NAMED and inner:
                    name = cast("str", self._next(str, word))
                else:
                    self._values += self._fill(part, word if not inner else "", last)
                    return False
            case Term():
                inner = part.args
            case TermList():
                inner = part.elements
            case Annotated():
                self._open(part, "", [(part.value, False), *((each, False) for each in part.annotations)])
                return True
            case _:
                inner = ()
        if not inner:
            self._values.append(part)
            return False
        self._open(part, name, [(each, place == len(inner)) for place, each in enumerate(inner, 1)])
        return True

    def _open(self, part: Value, name: str, inner: list[tuple[Value, bool]]) -> None:
        self._frames.append((part, name, len(self._values)))
        self._waiting.append(iter(inner))

    def _fill(self, placeholder: Placeholder, word: str, last: bool) -> tuple[Value, ...]:
        """Return what takes the place of a placeholder without arguments."""
        match word:
            case "term":
                return (self._next(None, word),)
            case "placeholder":
                return (Placeholder(self._next(None, word)),)
            case "fun" | "id" | "appl":
                return (_application(cast("str", self._next(str, word)), [], quoted=False),)
            case "list":
                made = cast("TermList", self._next(TermList, word))
                return made.elements if last else (made,)
            case _ if word in _KINDS:
                return (self._next(_KINDS[word], word),)
            case _:
                return (placeholder,)

    def _next(self, kind: type | None, word: str) -> Value:
        if self._used == len(self._args):
            raise EncodeError(f"no value for `<{word}>`, the placeholder {self._used + 1} of a pattern")
        value = value_of(self._args[self._used])
        self._used += 1
        if kind is not None and type(value) is not kind:
            raise EncodeError(f"expected `{word}`, got `{type(value).__name__}` - at placeholder {self._used}")
        return value


def _build(part: Value, name: str, items: list[Value]) -> Value:
    """Return a part of a pattern with what is in it."""
    match part:
        case Placeholder():
            return _application(name, items, quoted=_word(part) == "str")
        case TermList():
            return TermList(*items)
        case Annotated():
            value, *annotations = items
            return Annotated(_bare(value), *annotations)
        case _:
            term = cast("Term", part)
            return _application(term.name, items, quoted=term.quoted)


def _application(name: str, items: list[Value], *, quoted: bool) -> Value:
    if not items:
        if quoted:
            return name
        if name in ("true", "false"):
            return name == "true"
    return Term(name, *items, quoted=quoted)
