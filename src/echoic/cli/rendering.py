"""Events as text: blocks for people, CSV for tables, JSON for programs.

    symbol: IBM                 symbol,price            {"symbol":"IBM","price":75.5}
    price: 75.5                 IBM,75.5
    ---

The type need not be known here; the descriptor that came with the events says all there is to say. Texts are
strangers' texts, and pass through `screen`. CSV keeps line breaks and tabs inside quotes, where they are harmless.
"""

import base64
import csv
import io
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy

from echoic.cli.screen import json_text, printable, quoted
from echoic.errors import FormatError
from echoic.formats import Field, Format, Kind, Record

__all__ = ["TRUNCATE_DEFAULT", "Renderer", "as_blocks", "as_csv", "as_json", "as_lines"]

Renderer: TypeAlias = Callable[[object], str]

TRUNCATE_DEFAULT: Final = 128
PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_ ./+@-]*(?<! )\Z", re.ASCII)
WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def as_blocks(field: str = "", length_max: int = TRUNCATE_DEFAULT) -> Renderer:
    """Return how to show events as blocks, `---` behind each, as ros2 does.

    Args:
        field: Show only this one; dots lead into nested records.
        length_max: Cut longer texts and arrays, 0 for none.
    """
    lines = as_lines(field, length_max)
    return lambda event: lines(event) + "---\n"


def as_lines(field: str = "", length_max: int = TRUNCATE_DEFAULT) -> Renderer:
    """Return how to show events as the lines of blocks, with nothing behind."""

    def render(event: object) -> str:
        value = pick(event, field)
        lines = _lines(value, length_max, "") if isinstance(value, Record) else [_inline(value, length_max)]
        return "".join(f"{line}\n" for line in lines)

    return render


def as_csv(field: str = "", length_max: int = 0) -> Renderer:
    """Return how to show events as lines of CSV; the first one, and each of another type, is preceded by a header."""
    headed: list[tuple[str, ...]] = []

    def render(event: object) -> str:
        value = pick(event, field)
        cells = dict(_cells(value, "")) if isinstance(value, Record) else {field: value}
        names = tuple(cells)
        rows = [] if headed == [names] else [names]
        headed[:] = [names]
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([*rows, [_cell(cell, length_max) for cell in cells.values()]])
        return buffer.getvalue()

    return render


def as_json(field: str = "", length_max: int = 0) -> Renderer:
    """Return how to show events as lines of JSON. Bytes are in base64, and numbers that JSON has not are null."""
    return lambda event: json_text(_builtin(pick(event, field), length_max)) + "\n"


def pick(event: object, path: str) -> object:
    """Return the field of an event that a path leads to, the event itself for an empty path.

    Raises:
        FormatError: It leads nowhere; the message names the nearest fields.
    """
    value = event
    for name in path.split(".") if path else ():
        if not isinstance(value, Record):
            raise FormatError(f"there are no fields in {type(value).__name__} - at `{path}`")
        if name not in value:
            _format_of(value).member(name, path)
        value = value[name]
    return value


def _format_of(record: Record) -> Format:
    return type(record).__echoic_binding__.format


def _fields(record: Record) -> Iterator[tuple[Field, object]]:
    return ((field, record[field.name]) for field in _format_of(record).fields)


def _lines(record: Record, length_max: int, indent: str) -> Iterator[str]:
    for field, value in _fields(record):
        name = f"{indent}{printable(field.name)}:"
        if isinstance(value, Record):
            yield name
            yield from _lines(value, length_max, indent + "  ")
        elif field.kind is Kind.RECORD and _is_many(value):
            yield from _items(name, value, length_max, indent)
        else:
            member = _member(field, value)
            yield f"{name} {_inline(value, length_max)}{member}"


def _items(name: str, records: Any, length_max: int, indent: str) -> Iterator[str]:  # noqa: ANN401 - a list or an array
    yield name if len(records) else f"{name} []"
    shown = records[:length_max] if length_max else records
    for record in shown:
        if isinstance(record, Record):
            first, *rest = _lines(record, length_max, indent + "  ")
            yield from (f"{indent}- {first.lstrip()}", *rest)
        else:
            yield f"{indent}- {_inline(record, length_max)}"
    if len(shown) < len(records):
        yield f"{indent}- ..."


def _member(field: Field, value: object) -> str:
    """Return the name of an enumeration's member, for people."""
    if field.enumeration is None or _is_many(value):
        return ""
    names = [name for name, number in field.enumeration.members if number == value]
    return f" ({printable(names[0])})" if names else ""


def _inline(value: object, length_max: int) -> str:
    if isinstance(value, str):
        return _text(value, length_max)
    if isinstance(value, bytes):
        return _text(value.decode("latin-1"), length_max)
    if isinstance(value, Record):
        return "{" + ", ".join(f"{name}: {_inline(item, length_max)}" for name, item in value.items()) + "}"
    if _is_many(value):
        items: Any = value
        shown = [_inline(item, length_max) for item in (items[:length_max] if length_max else items)]
        return "[" + ", ".join(shown + ["..."] * (len(shown) < len(items))) + "]"
    return _scalar(value)


def _text(text: str, length_max: int) -> str:
    cut = text[:length_max] + "..." if length_max and len(text) > length_max else text
    return cut if PLAIN.match(cut) and cut.lower() not in WORDS else quoted(cut)


def _scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool() | numpy.bool_():
            return "true" if value else "false"
        case numpy.generic():
            return str(value)
        case float():
            return repr(value)
        case _:
            return str(int(value)) if isinstance(value, int) else printable(str(value))


def _is_many(value: object) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, numpy.ndarray) and value.ndim > 0)


def _cells(record: Record, prefix: str) -> Iterator[tuple[str, object]]:
    for field, value in _fields(record):
        if isinstance(value, Record):
            yield from _cells(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, value


def _cell(value: object, length_max: int) -> str:
    if isinstance(value, bytes) or _is_many(value):
        plain = _builtin(value, length_max)
        return plain if isinstance(plain, str) else json_text(plain)
    if isinstance(value, str):
        return printable(_cut(value, length_max), keep="\n\t")
    return "" if value is None else _scalar(value)


def _builtin(value: object, length_max: int) -> object:
    """Return a value as JSON can have it."""
    if isinstance(value, Record):
        return {name: _builtin(item, length_max) for name, item in value.items()}
    if isinstance(value, numpy.ndarray | numpy.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_builtin(item, length_max) for item in (value[:length_max] if length_max else value)]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, str):
        return _cut(value, length_max)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _cut(text: str, length_max: int) -> str:
    return text[:length_max] if length_max else text
