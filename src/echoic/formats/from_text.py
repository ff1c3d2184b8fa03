r"""Event types declared by a text: the spelling in which types are shown, with Python's words for the commonest ones.

Trade{symbol: str, price: float, volume: int = 0}
Field{n: int, wind: float32[n], at: Point{x: float, y: float}}

record  := NAME "{" field ("," field)* "}"
field   := NAME ":" (NAME | record) "?"? ("[" (NUMBER | NAME)? "]")* ("=" value)?
"""

import re
from dataclasses import replace
from typing import Final

from echoic.errors import EncodeError, FormatError
from echoic.formats.architecture import NATIVE
from echoic.formats.fields import MISSING, Field, Kind
from echoic.formats.format import Format
from echoic.formats.text_values import Reader, fit

__all__ = ["format_of_text", "is_text_of_type"]

RECORD: Final = re.compile(r"\s*[A-Za-z_]\w*\s*\{", re.ASCII)
WORD: Final = re.compile(r"\w+", re.ASCII)
NESTING_MAX: Final = 16
WORD_CHARACTERS_MAX: Final = 1000
SLOT_BYTES: Final = NATIVE.slots.size
SCALARS: Final[dict[str, tuple[Kind, int]]] = {
    **{f"int{8 * size}": (Kind.INT, size) for size in (1, 2, 4, 8)},
    **{f"uint{8 * size}": (Kind.UINT, size) for size in (1, 2, 4, 8)},
    **{f"float{8 * size}": (Kind.FLOAT, size) for size in (4, 8)},
    "int": (Kind.INT, 8),
    "float": (Kind.FLOAT, 8),
    "bool": (Kind.BOOL, 1),
    "char": (Kind.CHAR, 1),
    "str": (Kind.STRING, SLOT_BYTES),
    "string": (Kind.STRING, SLOT_BYTES),
    "bytes": (Kind.BYTES, SLOT_BYTES),
}


def is_text_of_type(text: str) -> bool:
    """Tell whether a text begins as a declaration does."""
    return bool(RECORD.match(text))


def format_of_text(text: str) -> Format:
    """Return the event type that a text declares, as this machine lays it out.

    Raises:
        FormatError: It does not, or not one that can be an event type.
    """
    reader = Reader(text)
    format = _record(reader, 1)
    if not reader.at_end():
        raise FormatError(reader.complaint("the end of the declaration"))
    return format


def _record(reader: Reader, depth: int) -> Format:
    if depth > NESTING_MAX:
        raise FormatError(f"records are nested more than {NESTING_MAX} deep - at character {reader.at + 1}")
    name = _name(reader, "the name of a type")
    _expect(reader, "{")
    fields = [_field(reader, depth)]
    while reader.take(","):
        fields.append(_field(reader, depth))
    _expect(reader, "}")
    return Format.place(name, fields, NATIVE)


def _field(reader: Reader, depth: int) -> Field:
    name = _name(reader, "the name of a field")
    _expect(reader, ":")
    field = _element(reader, name, depth)
    optional = reader.take("?")
    dimensions: list[int | str] = []
    while reader.take("["):
        size = reader.match(WORD) or ""
        if len(size) > WORD_CHARACTERS_MAX:
            raise FormatError(f"a dimension of {len(size)} characters is none - at character {reader.at + 1}")
        dimensions.append(int(size) if size.isdigit() else size)
        _expect(reader, "]")
    field = replace(field, optional=optional, dimensions=tuple(dimensions))
    if not reader.take("="):
        return field
    try:
        default = fit(reader.value(), field, name)
    except EncodeError as error:
        raise FormatError(f"the default does not fit: {error}") from error
    return replace(field, default=() if default == [] else default)  # type: ignore[arg-type] # checked by Format


def _element(reader: Reader, name: str, depth: int) -> Field:
    if reader.looking_at(RECORD):
        record = _record(reader, depth + 1)
        return Field(name, Kind.RECORD, record.size, record=record, default=MISSING)
    word = _name(reader, "the type of a field")
    if word not in SCALARS:
        raise FormatError(f"no type is called `{word}`; known are {', '.join(SCALARS)} - at `{name}`")
    kind, size = SCALARS[word]
    return Field(name, kind, size)


def _name(reader: Reader, what: str) -> str:
    word = reader.match(WORD)
    if not word:
        raise FormatError(reader.complaint(what))
    return word


def _expect(reader: Reader, mark: str) -> None:
    if not reader.take(mark):
        raise FormatError(reader.complaint(f"`{mark}`"))
