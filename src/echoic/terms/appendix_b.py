r"""The binary form of terms that the thesis proposes (Appendix B), which became SAF later.

    shared      1 byte    0: a term follows; 1: a term that was there before, whose index (4 bytes) follows
    name        1 byte with its length, and the name
    counts      4 bytes each: contents, sub-terms, annotations
    contents    each: 4 bytes with its length, and the content
    sub-terms, then annotations: terms

Terms are numbered from 1 on, as they begin. Integers are little-endian, as in the prototype of the thesis; names and
text are UTF-8. The thesis writes `data("TestData")` as a term with one content, and says no more about values that
are not terms; the rest is ours:

    f("a","b",1)         contents are the strings that a term begins with; whatever else it has are sub-terms
    1  2.5  "s"  blob    names `<int>` (decimal), `<real>` (8 bytes), `<str>`, `<blob>`, with one content
    2 ** 20000           the name `<big>`: its content is two's complement, little-endian
    true                 the name `true`
    [a,b]  <int>         names `[]` and `<>`, with sub-terms
    "f"(1)               the name `"`: the first content is the quoted name
    f                    a name that begins with < [ " \ or takes more than 255 bytes is the first content of a term
                         with the name `\`
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias, cast

from echoic.errors import EncodeError, LimitExceededError, MalformedTermError
from echoic.terms.term import REAL, Annotated, Placeholder, Term, TermList, Value, identity

__all__ = ["decode_appendix_b", "encode_appendix_b"]

BYTES_MAX: Final = 1 << 30
NAME_BYTES_MAX: Final = 255
DIGITS_MAX: Final = 4000  # of an integer in decimal

_COUNT: Final = struct.Struct("<I")
_COUNTS: Final = struct.Struct("<III")
_MARKS: Final = ("<", "[", '"', "\\")
_CONSTANTS: Final = {"true": True, "false": False}

# The name, contents and sub-terms of a value.
Parts: TypeAlias = tuple[str, list[bytes], tuple[Value, ...]]
# A term whose sub-terms are being read: name, contents, how many sub-terms and annotations it has, its place among the
# terms, and how many values there were before its own.
Frame: TypeAlias = tuple[str, list[bytes], int, int, int, int]


def encode_appendix_b(value: Value) -> bytes:
    """Return a value in the thesis' form.

    Raises:
        EncodeError: A string has no UTF-8, or is too long, or there is a reference.
    """
    pieces: list[bytes] = []
    indexes: dict[object, int] = {}
    waiting: list[Iterator[Value]] = [iter((value,))]
    while waiting:
        for current in waiting[-1]:
            key = identity(current)
            index = indexes.get(key)
            if index is not None:
                pieces += (b"\1", _COUNT.pack(index))
                continue
            indexes[key] = len(indexes) + 1
            bare, annotations = (
                (current.value, current.annotations) if isinstance(current, Annotated) else (current, ())
            )
            name, contents, terms = _parts(bare)
            short = name.encode()
            pieces += (b"\0", bytes([len(short)]), short, _COUNTS.pack(len(contents), len(terms), len(annotations)))
            for content in contents:
                if len(content) >> 32:
                    raise EncodeError(f"a content of {len(content)} bytes, limit is {0xFFFFFFFF}")
                pieces += (_COUNT.pack(len(content)), content)
            if terms or annotations:
                waiting.append(iter((*terms, *annotations)))
                break
        else:
            waiting.pop()
    return b"".join(pieces)


def decode_appendix_b(data: bytes | bytearray | memoryview, *, bytes_max: int = BYTES_MAX) -> Value:
    """Return the value that bytes in the thesis' form are.

    Raises:
        MalformedTermError: They are none, or there are more behind it.
        LimitExceededError: They are more than `bytes_max`.
    """
    if len(data) > bytes_max:
        raise LimitExceededError(f"a term of {len(data)} bytes, limit is {bytes_max}")
    try:
        return _Reading(memoryview(data)).read()
    except (IndexError, struct.error):  # of the data: nothing else is indexed without being asked for its length
        raise MalformedTermError(f"a term of more than {len(data)} bytes is cut off") from None


def _parts(value: Value) -> Parts:
    """Return what a value without annotations is written as."""
    match value:
        case Term():
            return _parts_of_term(value)
        case bool():
            return "true" if value else "false", [], ()
        case int():
            if value.bit_length() > DIGITS_MAX * 3:
                return "<big>", [value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)], ()
            return "<int>", [str(value).encode()], ()
        case float():
            return "<real>", [REAL.pack(value)], ()
        case str():
            return "<str>", [_utf_8(value)], ()
        case bytes():
            return "<blob>", [value], ()
        case TermList():
            return "[]", [], value.elements
        case Placeholder():
            return "<>", [], (value.type,)
        case _:
            raise EncodeError(f"`{type(value).__name__}` is not written in the form of the thesis")


def _parts_of_term(term: Term) -> Parts:
    strings = 0
    while strings < len(term.args) and type(term.args[strings]) is str:
        strings += 1
    contents = [_utf_8(cast("str", text)) for text in term.args[:strings]]
    name = _utf_8(term.name)
    if term.quoted:
        return '"', [name, *contents], term.args[strings:]
    if term.name.startswith(_MARKS) or len(name) > NAME_BYTES_MAX:
        return "\\", [name, *contents], term.args[strings:]
    return term.name, contents, term.args[strings:]


def _utf_8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise EncodeError(f"`{text[error.start]!a}` of a name or string has no UTF-8") from error


class _Reading:
    """One reading of bytes."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0
        self._terms: list[Value | None] = []  # None: has begun and is not whole
        self._values: list[Value] = []
        self._frames: list[Frame] = []

    def read(self) -> Value:
        """Return the value."""
        self._begin()
        while self._frames:
            name, contents, terms, annotations, place, base = self._frames[-1]
            if len(self._values) < base + terms + annotations:
                self._begin()
                continue
            self._frames.pop()
            items = self._values[base:]
            del self._values[base:]
            made = _build(name, contents, items[:terms])
            if annotations:
                made = Annotated(made, *items[terms:])
            self._terms[place] = made
            self._values.append(made)
        if self._at != len(self._data):
            raise MalformedTermError(f"{len(self._data) - self._at} bytes behind a term of {self._at}")
        return self._values[0]

    def _begin(self) -> None:
        """Read a term up to its sub-terms."""
        shared = self._data[self._at]
        self._at += 1
        if shared == 1:
            index = self._count()
            found = self._terms[index - 1] if 1 <= index <= len(self._terms) else None
            if found is None:
                raise MalformedTermError(f"term {index}, of which {len(self._terms)} have begun, is not there")
            self._values.append(found)
            return
        if shared:
            raise MalformedTermError(f"a term is shared (1) or not (0), not {shared}")
        size = self._data[self._at]
        self._at += 1
        name = _text(self._take(size))
        contents_count, terms, annotations = _COUNTS.unpack_from(self._data, self._at)
        self._at += _COUNTS.size
        contents: list[bytes] = []
        while len(contents) < contents_count:
            contents.append(bytes(self._take(self._count())))
        self._frames.append((name, contents, terms, annotations, len(self._terms), len(self._values)))
        self._terms.append(None)

    def _count(self) -> int:
        count: int
        (count,) = _COUNT.unpack_from(self._data, self._at)
        self._at += _COUNT.size
        return count

    def _take(self, size: int) -> memoryview:
        if self._at + size > len(self._data):
            raise IndexError(size)
        self._at += size
        return self._data[self._at - size : self._at]


def _build(name: str, contents: list[bytes], terms: list[Value]) -> Value:
    """Return a value of what it was written as."""
    if name.startswith(_MARKS):
        if name in ('"', "\\"):
            if not contents:
                raise MalformedTermError(f"a term with the name `{name}` has its own as the first content")
            own, *strings = map(_text, contents)
            return _application(own, [*strings, *terms], quoted=name == '"')
        read = _SCALARS.get(name)
        if read is not None and len(contents) == 1 and not terms:
            return read(contents[0])
        if name == "[]" and not contents:
            return TermList(*terms)
        if name == "<>" and not contents and len(terms) == 1:
            return Placeholder(*terms)
        raise MalformedTermError(f"the name `{name:.40}` with {len(contents)} contents and {len(terms)} sub-terms")
    return _application(name, [*map(_text, contents), *terms], quoted=False)


def _application(name: str, arguments: list[Value], *, quoted: bool) -> Value:
    if not arguments:
        if quoted:
            return name
        if name in _CONSTANTS:
            return _CONSTANTS[name]
    return Term(name, *arguments, quoted=quoted)


def _text(raw: bytes | memoryview) -> str:
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError as error:
        raise MalformedTermError(f"a name or string of {len(raw)} bytes is not UTF-8") from error


def _integer(content: bytes) -> int:
    if len(content) > DIGITS_MAX or not content.removeprefix(b"-").isdigit():
        raise MalformedTermError(f"an integer of {len(content)} characters that is none, or too long")
    return int(content)


def _real(content: bytes) -> float:
    if len(content) != REAL.size:
        raise MalformedTermError(f"a real of {len(content)} bytes")
    number: float
    (number,) = REAL.unpack(content)
    return number


def _big(content: bytes) -> int:
    return int.from_bytes(content, "little", signed=True)


_SCALARS: Final[dict[str, Callable[[bytes], Value]]] = {
    "<int>": _integer,
    "<real>": _real,
    "<str>": _text,
    "<blob>": bytes,
    "<big>": _big,
}
