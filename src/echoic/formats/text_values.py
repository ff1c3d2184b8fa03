"""Events as text: JSON, or the same with fewer quotes, fitted to the type they are for.

    {"symbol": "IBM", "price": 75.5}          JSON
    {symbol: IBM, price: 75.5}                without quotes, as in YAML's flow style
    symbol=IBM price=75.5                     one word for each field

A word without quotes has no type of its own; the field says whether `75` is a number or a text. A field that is left
out takes its default, and one that holds the length of an array is counted. Nothing is ever evaluated.

Bytes are spelled in base64, as JSON output shows them; a `char` array as the text it holds; an enumeration by name.
"""

import base64
import binascii
import json
import re
from collections.abc import Sequence
from typing import Final

from echoic.errors import EncodeError
from echoic.formats.checks import shown
from echoic.formats.fields import MISSING, Field, Kind
from echoic.formats.format import Format

__all__ = ["Bare", "Reader", "fit", "fit_event", "parse_json", "parse_words"]

SPACE: Final = re.compile(r"\s*")
KEY: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
DOUBLE: Final = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
SINGLE: Final = re.compile(r"'((?:[^']|'')*)'", re.DOTALL)
BARE: Final = re.compile(r"[^\s,:\[\]{}\"'][^,\[\]{}]*")
TRUTHS: Final = {"true": True, "false": False}
NESTING_MAX: Final = 64
SHOWN_CHARACTERS: Final = 60


class Bare(str):
    """A word that stood without quotes, so that its field decides what it is."""

    __slots__ = ()


class Reader:
    """Takes a text apart from left to right."""

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self.at = 0
        self._skip()

    def at_end(self) -> bool:
        """Tell whether everything was taken."""
        return self.at == len(self.text)

    def take(self, mark: str) -> bool:
        """Take a mark if it comes next; tell whether it does."""
        if not self.text.startswith(mark, self.at):
            return False
        self.at += len(mark)
        self._skip()
        return True

    def looking_at(self, pattern: re.Pattern[str]) -> bool:
        """Tell whether a pattern comes next."""
        return pattern.match(self.text, self.at) is not None

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Take what matches a pattern, None when nothing does."""
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.at = found.end()
        self._skip()
        return found.group()

    def value(self, depth: int = 1) -> object:
        """Take a value.

        Raises:
            EncodeError: None comes next.
        """
        if depth > NESTING_MAX:
            raise EncodeError(f"values are nested more than {NESTING_MAX} deep - at character {self.at + 1}")
        if self.take("{"):
            return self._mapping(depth)
        if self.take("["):
            return self._items(depth)
        if (text := self.match(DOUBLE)) is not None:
            return _unescaped(text)
        if (text := self.match(SINGLE)) is not None:
            return text[1:-1].replace("''", "'")
        if (text := self.match(BARE)) is not None:
            return Bare(text.strip())
        raise EncodeError(self.complaint("a value"))

    def complaint(self, expected: str) -> str:
        """Return what to say when something else comes next."""
        rest = self.text[self.at : self.at + SHOWN_CHARACTERS]
        return f"expected {expected}, got {_quoted(rest) if rest else 'the end'} - at character {self.at + 1}"

    def _mapping(self, depth: int) -> dict[str, object]:
        found: dict[str, object] = {}
        if self.take("}"):
            return found
        while True:
            name = self._key()
            if not self.take(":"):
                raise EncodeError(self.complaint("`:`"))
            if name in found:
                raise EncodeError(f"field `{name}` is given twice - at character {self.at + 1}")
            found[name] = self.value(depth + 1)
            if self.take("}"):
                return found
            if not self.take(","):
                raise EncodeError(self.complaint("`,` or `}`"))

    def _key(self) -> str:
        if (text := self.match(DOUBLE)) is not None:
            return _unescaped(text)
        name = self.match(KEY)
        if name is None:
            raise EncodeError(self.complaint("the name of a field"))
        return name

    def _items(self, depth: int) -> list[object]:
        found: list[object] = []
        while not self.take("]"):
            if found and not self.take(","):
                raise EncodeError(self.complaint("`,` or `]`"))
            found.append(self.value(depth + 1))
        return found

    def _skip(self) -> None:
        found = SPACE.match(self.text, self.at)
        self.at = found.end() if found is not None else self.at


def parse_words(words: Sequence[str]) -> object:
    """Return the value that words spell: one in braces, or `field=value` each.

    Raises:
        EncodeError: They do neither.
    """
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _parse_braces(words[0])
    found: dict[str, object] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not KEY.fullmatch(name):
            raise EncodeError(f"expected {{field: value, ...}} or field=value, got {_quoted(word[:SHOWN_CHARACTERS])}")
        if name in found:
            raise EncodeError(f"field `{name}` is given twice")
        found[name] = _whole(text) if text.lstrip()[:1] in ("[", "{", '"', "'") else Bare(text)
    return found


def parse_json(line: str) -> object:
    """Return the value of a line of JSON.

    Raises:
        EncodeError: It is none.
    """
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise EncodeError(f"not a line of JSON: {error}") from error


def fit_event(value: object, format: Format) -> dict[str, object]:
    """Return a value as an event of a type: each field as it is encoded, defaults filled in.

    Raises:
        EncodeError: Saying which field does not fit, and what it expects.
        FormatError: It has a field that the type has not; the message names the nearest ones.
    """
    return _fit_record(value, format, format.name)


def fit(value: object, field: Field, path: str) -> object:
    """Return a value as a field wants it.

    Raises:
        EncodeError: It does not fit.
    """
    if field.optional and (value is None or value == "null"):
        return None
    if field.kind is Kind.CHAR and len(field.dimensions) == 1 and not isinstance(value, list):
        return _fit_characters(value, path)
    return _fit_items(value, field, path, len(field.dimensions))


def _fit_items(value: object, field: Field, path: str, dimensions: int) -> object:
    if not dimensions:
        return _fit_element(value, field, path)
    if field.kind is Kind.CHAR and dimensions == 1 and not isinstance(value, list):
        return _fit_characters(value, path)
    if not isinstance(value, list):
        raise _misfit(value, field, path)
    return [_fit_items(item, field, f"{path}[{index}]", dimensions - 1) for index, item in enumerate(value)]


def _fit_element(value: object, field: Field, path: str) -> object:
    match field.kind:
        case Kind.RECORD if field.record is not None:
            return _fit_record(value, field.record, path)
        case Kind.STRING:
            return str(value) if isinstance(value, str) else _refuse(value, field, path)
        case Kind.BYTES:
            return _fit_bytes(value, field, path)
        case Kind.CHAR:
            return _fit_characters(value, path)
        case Kind.ENUM:
            return _fit_enumeration(value, field, path)
        case _:
            return _fit_number(value, field, path)


def _fit_record(value: object, format: Format, path: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise EncodeError(f"expected `{format.name}` in braces, got {_shown(value)} - at `{path}`")
    for name in value:
        format.member(name, f"{path}.{name}")
    fitted: dict[str, object] = {}
    for field in format.fields:
        if field.name in value:
            fitted[field.name] = fit(value[field.name], field, f"{path}.{field.name}")
        elif field.default is not MISSING:
            fitted[field.name] = field.default
    for field in format.fields:
        if field.sizing and field.name in fitted and field.sizing not in fitted:
            array = fitted[field.name]
            fitted[field.sizing] = len(array) if isinstance(array, list | tuple) else 0
    for field in format.fields:
        if field.name not in fitted:
            raise EncodeError(f"expected `{field.spelling}`, but the field is missing - at `{path}.{field.name}`")
    return fitted


def _fit_number(value: object, field: Field, path: str) -> object:
    if not isinstance(value, Bare):
        wanted = {Kind.BOOL: (bool,), Kind.FLOAT: (int, float)}.get(field.kind, (int,))
        return value if type(value) in wanted else _refuse(value, field, path)
    if field.kind is Kind.BOOL:
        return TRUTHS[value.lower()] if value.lower() in TRUTHS else _refuse(value, field, path)
    try:
        return float(value) if field.kind is Kind.FLOAT else int(value, 0)
    except ValueError:
        raise _misfit(value, field, path) from None


def _fit_enumeration(value: object, field: Field, path: str) -> object:
    members = dict(field.enumeration.members) if field.enumeration is not None else {}
    if isinstance(value, str) and value in members:
        return members[value]
    try:
        return _fit_number(value, field, path)
    except EncodeError as error:
        raise EncodeError(f"{error}; known are {', '.join(members)}") from error


def _fit_bytes(value: object, field: Field, path: str) -> bytes:
    if not isinstance(value, str):
        raise _misfit(value, field, path)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise EncodeError(f"expected `{field.spelling}` in base64, got {_shown(value)} - at `{path}`") from error


def _fit_characters(value: object, path: str) -> bytes:
    try:
        if isinstance(value, str):
            return value.encode("latin-1")
    except UnicodeEncodeError:
        pass  # said below
    raise EncodeError(f"expected a text of characters below 256, got {_shown(value)} - at `{path}`")


def _refuse(value: object, field: Field, path: str) -> object:
    raise _misfit(value, field, path)


def _misfit(value: object, field: Field, path: str) -> EncodeError:
    return EncodeError(f"expected `{field.spelling}`, got {_shown(value)} - at `{path}`")


def _shown(value: object) -> str:
    text = _quoted(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."


def _parse_braces(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _whole(text)


def _whole(text: str) -> object:
    """Return the value that a whole text is."""
    reader = Reader(text)
    value = reader.value()
    if not reader.at_end():
        raise EncodeError(reader.complaint("the end"))
    return value


def _unescaped(text: str) -> str:
    try:
        return str(json.loads(text, strict=False))
    except ValueError as error:
        raise EncodeError(f"a quoted text is malformed: {error} - at {text[:SHOWN_CHARACTERS]}") from error


def _quoted(text: str) -> str:
    return f'"{shown(text)}"'
