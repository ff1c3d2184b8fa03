"""The text form of terms: what people read and write, and what the first ToolBus spoke.

    value      : plain [ "{" value {"," value} "}" ]                             annotations
    plain      : NUMBER | STRING | BLOB
               | (NAME | STRING) [ "(" [ value {"," value} ] ")" ]               application; `f()` is `f`
               | "(" [ value {"," value} ] ")"                                   a tuple: an empty name
               | "[" [ value {"," value} ] "]" | "<" value ">"

Layout may stand between any two of them. `spelling.py` has the smallest parts, and what we had to add so that every
value can be written. With `suffixes`, `X:int` and `X?` are read as the old libraries do, `X{[type,int]}` and
`X{[result,true]}`.

A reference is written as the placeholder that says all about it (`references.py`); a text that is read back has that
placeholder.

A text knows no sharing: a term of a hundred nodes may be longer than any memory when it is written out. So writing
has a limit as reading has, and showing a term (`str`, `repr`) stops after `SHOWN_MAX` characters with `...`.

Reader and writer keep their own stacks, so terms may be as deep as memory allows. Both serve the shared text form too
(`taf.py`), which needs to know how long each value is as it is written.
"""

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from echoic.errors import LimitExceededError, MalformedTermError
from echoic.terms import spelling
from echoic.terms.references import to_placeholder
from echoic.terms.term import Annotated, Placeholder, Reference, Shared, Term, TermList, Value, identity

__all__ = ["parse_text", "write_text"]

CHARACTERS_MAX: Final = 1 << 28
SHOWN_MAX: Final = 1 << 20

# No group in which something may be given back is possessive: before 3.11.5 Python may keep half of one, as of 1.5e.
STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_VALUE: Final = re.compile(
    rf"""\s*+(?P<begin>)(?:
        (?P<name>{spelling.NAME})(?:\s*+(?P<named>\())?
      | (?P<number>-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)
      | (?P<string>{STRING})(?:\s*+(?P<quoted>\())?
      | @name(?P<odd>{STRING})(?:\s*+(?P<oddly>\())?
      | @(?P<own>\w++)(?P<held>{STRING})
      | \#(?P<short>[A-Za-z0-9+/]++)
      | (?P<mark>[(\[<)\]])
    )""",
    re.VERBOSE | re.DOTALL,
)
_BEHIND: Final = re.compile(r"\s*+([,)\]>}{:?]|\Z)")
_CLOSERS: Final = {"(": ")", '"': ")", "[": "]", "<": ">", "{": "}", ":": ""}

# What was opened: by which mark (`"` for an application with a quoted name), its name, where it starts in the text,
# and how many values there were before its own.
Frame: TypeAlias = tuple[str, str, int, int]


def parse_text(text: str, *, suffixes: bool = False, characters_max: int = CHARACTERS_MAX) -> Value:
    """Return the value that a text says.

    Args:
        text: One value, with layout around it or not.
        suffixes: Read `value:type` and `value?` as annotations.
        characters_max: The longest text that is read.

    Raises:
        MalformedTermError: It is not a value; the text of the error shows the line with a caret.
        LimitExceededError: It is longer than `characters_max`.
    """
    check_length(text, characters_max)
    return Reader(text, suffixes=suffixes).read()


def write_text(value: Value, *, characters_max: int = CHARACTERS_MAX) -> str:
    """Return a value as text, without layout.

    Raises:
        LimitExceededError: It takes more than `characters_max`.
    """
    writer = Writer(None)
    pieces = []
    for piece in writer.write(value):
        pieces.append(piece)
        if writer.written > characters_max:
            raise LimitExceededError(f"a term takes more than {characters_max} characters as text")
    return "".join(pieces)


def show(value: Value, characters_max: int = SHOWN_MAX) -> str:
    """Return a value as text for people, which ends with `...` where it is too long.

    It takes no longer than the text is long: of a string of many megabytes only the beginning is spelled.
    """
    writer = Writer(None, leaf_max=characters_max)
    pieces = []
    for piece in writer.write(value):
        pieces.append(piece)
        if writer.written > characters_max:
            return "".join(pieces)[:characters_max] + "..."
    return "".join(pieces)


Shared.spell = show


def check_length(text: str, characters_max: int) -> None:
    """Refuse a text that is too long."""
    if len(text) > characters_max:
        raise LimitExceededError(f"a text of {len(text)} characters, limit is {characters_max}")


class Reader:
    """One reading of a text.

    Args:
        text: What to read.
        start: Where in it.
        suffixes: See `parse_text`.
        abbreviations: The shared text form is read: `#` and a number stand for a value before it.
    """

    def __init__(
        self, text: str, start: int = 0, *, suffixes: bool = False, abbreviations: "Abbreviations | None" = None
    ) -> None:
        self._text = text
        self._suffixes = suffixes
        self._abbreviations = abbreviations
        self._at = start
        self._began = start  # where the value that was made last begins
        self._whole = False  # it was an abbreviation, which takes no annotations
        self._values: list[Value] = []
        self._frames: list[Frame] = []

    def read(self) -> Value:
        """Return the value that is all of the text."""
        while True:
            made = self._begin()
            while made is not None:
                made, ended = self._go_on(made)
                if ended and made is not None:
                    return made

    def _begin(self) -> Value | None:
        """Return the value that stands here, None if it is one that has others in it."""
        found = _VALUE.match(self._text, self._at)
        if found is None:
            raise self._fault("expected a value", self._at)
        kind = found.lastgroup or ""
        self._at, self._whole, self._began = found.end(), False, found.start("begin")
        try:
            return self._simple(kind, found)
        except MalformedTermError as error:
            raise self._fault(str(error), self._began) from None

    def _simple(self, kind: str, found: re.Match[str]) -> Value | None:
        match kind:
            case "name":
                return _constant(found[kind])
            case "number":
                return spelling.read_number(found[kind])
            case "string":
                return spelling.unescape(found[kind])
            case "named":
                return self._open("(", found["name"])
            case "quoted":
                return self._open('"', spelling.unescape(found["string"]))
            case "odd":
                return _constant(spelling.unescape(found[kind]))
            case "oddly":
                return self._open("(", spelling.unescape(found["odd"]))
            case "held":
                return spelling.read_own(found["own"], found[kind])
            case "short":
                return self._abbreviated(found[kind])
            case _:
                return self._marked(found["mark"])

    def _marked(self, mark: str) -> Value | None:
        """Open a list, placeholder or tuple, or close what has nothing in it."""
        if mark in "([<":
            return self._open(mark, "")
        if self._frames:
            opener, _, _, base = self._frames[-1]
            if opener in '("[' and mark == _CLOSERS[opener] and base == len(self._values):
                return self._close()
        raise MalformedTermError(f"expected a value, got `{mark}`")

    def _open(self, mark: str, name: str) -> Value | None:
        """Begin what has others in it, which is no value yet."""
        self._frames.append((mark, name, self._began, len(self._values)))
        return None

    def _abbreviated(self, digits: str) -> Value:
        if self._abbreviations is None:
            raise MalformedTermError(f"the abbreviation `#{digits:.40}` in a text that is not of the shared form")
        self._whole = True
        return self._abbreviations.meaning(digits)

    def _go_on(self, made: Value) -> tuple[Value | None, bool]:
        """Return the value that is whole with what stands behind `made`, and whether the text ends with it."""
        found = _BEHIND.match(self._text, self._at)
        mark = found[1] if found is not None else None
        if mark is not None and mark in "{:?" and mark:
            if self._extend(made, mark):
                self._at = found.end() if found is not None else self._at
                return (self._resulting(made) if mark == "?" else None), False
            mark = None
        if self._abbreviations is not None and not self._whole:
            self._abbreviations.add(made, self._at - self._began)
        self._whole = False
        self._values.append(made)
        if self._frames and self._frames[-1][0] == ":":
            return self._close(), False
        if mark is None or found is None:
            raise self._fault("expected the end of a term", self._at)
        if not self._frames:
            if mark:
                raise self._fault(f"expected the end of the text, got `{mark}`", found.start(1))
            return made, True
        opener = self._frames[-1][0]
        if mark == "," and opener != "<":
            self._at = found.end()
            return None, False
        if not mark or mark != _CLOSERS[opener]:
            wanted = f"`{_CLOSERS[opener]}`" if opener == "<" else f"`,` or `{_CLOSERS[opener]}`"
            raise self._fault(f"expected {wanted}", found.start(1))
        self._at = found.end()
        return self._close(), False

    def _extend(self, made: Value, mark: str) -> bool:
        """Open annotations or a type behind a value, if that may stand here."""
        in_type = bool(self._frames) and self._frames[-1][0] == ":"
        if self._whole or (mark == "{" and isinstance(made, Annotated)):
            return False
        if mark != "{" and (not self._suffixes or in_type):
            return False
        if mark != "?":
            self._open(mark, "")
            self._values.append(made)
        return True

    def _resulting(self, made: Value) -> Value:
        return _annotate(made, TermList(Term("result"), True))

    def _close(self) -> Value:
        """Return the value that was opened last, with what has been read since."""
        opener, name, self._began, base = self._frames.pop()
        items = self._values[base:]
        del self._values[base:]
        match opener:
            case "(":
                return Term(name, *items) if items or not name else _constant(name)
            case '"':
                return Term(name, *items, quoted=True) if items else name
            case "[":
                return TermList(*items)
            case "<":
                return Placeholder(*items)
            case ":":
                return _annotate(items[0], TermList(Term("type"), items[1]))
            case _:
                return Annotated(*items)

    def _fault(self, message: str, at: int) -> MalformedTermError:
        """Return an error that shows the place in the text, behind layout."""
        while at < len(self._text) and self._text[at].isspace():
            at += 1
        line = self._text.count("\n", 0, at) + 1
        begin = self._text.rfind("\n", 0, at) + 1
        end = self._text.find("\n", at)
        left = max(begin, at - 60)
        shown = self._text[left : min(end if end >= 0 else len(self._text), at + 60)]
        caret = " " * (at - left) + "^"
        return MalformedTermError(f"{message} - at line {line}, column {at - begin + 1}\n    {shown}\n    {caret}")


_CONSTANTS: Final = {"true": True, "false": False}


def _constant(name: str) -> Value:
    found = _CONSTANTS.get(name)
    return Term(name) if found is None else found


def _annotate(value: Value, annotation: Value) -> Annotated:
    """Return a value with one annotation more."""
    if isinstance(value, Annotated):
        return Annotated(value.value, *value.annotations, annotation)
    return Annotated(value, annotation)


DIGITS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_WORTH: Final = {digit: worth for worth, digit in enumerate(DIGITS)}


class Abbreviations:
    """The values of a shared text that have a number.

    A value whose text is longer than the next abbreviation gets the next number when it is whole.
    """

    def __init__(self) -> None:
        self._values: list[Value] = []
        self._numbers: dict[object, int] = {}
        self._next_length = 2  # of `#A`

    def add(self, value: Value, length: int) -> None:
        """Give a value that took `length` characters a number, if it is long enough."""
        if length > self._next_length:
            self._numbers.setdefault(identity(value), len(self._values))
            self._values.append(value)
            if len(self._values) == 64 ** (self._next_length - 1):
                self._next_length += 1

    def of(self, value: Value) -> str | None:
        """Return the abbreviation of a value, None if it has none."""
        number = self._numbers.get(identity(value))
        if number is None:
            return None
        digits = DIGITS[number % 64]
        while number := number // 64:
            digits = DIGITS[number % 64] + digits
        return f"#{digits}"

    def meaning(self, digits: str) -> Value:
        """Return the value that an abbreviation without its `#` stands for.

        Raises:
            MalformedTermError: There is none.
        """
        number = 0
        if len(digits) < 12:
            for digit in digits:
                number = number * 64 + _WORTH[digit]
            if number < len(self._values):
                return self._values[number]
        raise MalformedTermError(f"the abbreviation `#{digits:.40}`, of {len(self._values)} values so far")


class Writer:
    """One writing of a value, in pieces; `written` is how many characters there were."""

    def __init__(self, abbreviations: Abbreviations | None, leaf_max: int | None = None) -> None:
        self._abbreviations = abbreviations
        self._leaf_max = leaf_max  # how much of a string or blob is spelled; None for all
        self.written = 0

    def write(self, value: Value) -> Iterator[str]:
        """Yield the text of a value."""
        known, leaf_max = self._abbreviations, self._leaf_max
        # Of each value that is being written: itself, where it began, those in it, what closes it, and its annotations.
        frames: list[tuple[Value, int, Iterator[Value], str, tuple[Value, ...]]] = []
        waiting: Iterator[Value] = iter((value,))
        separator = ""
        while True:
            for current in waiting:
                piece = known.of(current) if known is not None else None
                if piece is not None:
                    piece = separator + piece
                    self.written += len(piece)
                    yield piece
                    separator = ","
                    continue
                bare, annotations = _parts(current)
                began = self.written + len(separator)
                if leaf_max is not None and isinstance(bare, str | bytes) and len(bare) > leaf_max:
                    bare = bare[:leaf_max]
                piece, inner, closer = _opening(bare)
                piece = separator + piece
                self.written += len(piece)
                yield piece
                separator = ","
                if inner or annotations:
                    frames.append((current, began, waiting, closer, annotations))
                    waiting, separator = iter(inner), ""
                    break
                if known is not None:
                    known.add(current, self.written - began)
            else:
                if not frames:
                    return
                current, began, waiting, closer, annotations = frames.pop()
                if annotations:
                    frames.append((current, began, waiting, "}", ()))
                    waiting, closer, separator = iter(annotations), closer + "{", ""
                else:
                    separator = ","
                self.written += len(closer)
                yield closer
                if not annotations and known is not None:
                    known.add(current, self.written - began)


def _parts(value: Value) -> tuple[Value, tuple[Value, ...]]:
    return (value.value, value.annotations) if isinstance(value, Annotated) else (value, ())


def _opening(value: Value) -> tuple[str, tuple[Value, ...], str]:
    """Return how a value without annotations begins, the values in it, and what closes it."""
    match value:
        case Term():
            name = spelling.spell_string(value.name) if value.quoted else value.name
            if not value.quoted and name:
                name = spelling.spell_name(name)
            return (f"{name}(", value.args, ")") if value.args else (name or "()", (), "")
        case TermList():
            return ("[", value.elements, "]") if value.elements else ("[]", (), "")
        case Placeholder():
            return "<", (value.type,), ">"
        case Reference():
            return "<", (to_placeholder(value).type,), ">"
        case bool():
            return "true" if value else "false", (), ""
        case int():
            return spelling.spell_integer(value), (), ""
        case float():
            return spelling.spell_real(value), (), ""
        case str():
            return spelling.spell_string(value), (), ""
        case bytes():
            return spelling.spell_blob(value), (), ""
        case _:
            raise TypeError(value)
