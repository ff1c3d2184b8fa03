"""What makes a list of fields a record.

The same rules hold for a class that a programmer declares and for a descriptor that a stranger sends; only who is
to blame differs, and the caller of these functions knows that. Sizes are compared before anything is expanded, so a
descriptor of 10**9 elements costs as little to refuse as one of ten costs to accept.
"""

import difflib
import math
import re
from typing import TYPE_CHECKING, Final

from echoic.errors import FormatError
from echoic.formats.fields import MISSING, SIZES, Field, Kind, Slots
from echoic.formats.limits import (
    DEFAULT_BYTES_MAX,
    DIMENSIONS_MAX,
    FIELDS_MAX,
    MEMBERS_MAX,
    NAME_BYTES_MAX,
    NESTING_MAX,
    RECORD_BYTES_MAX,
)

if TYPE_CHECKING:
    from echoic.formats.format import Format

__all__ = ["check", "extent", "no_such_field", "shown"]

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)
SHOWN_MAX: Final = 60
NEAR_LENGTH: Final = 3
NEAR_FIELDS_MAX: Final = 200
FLOAT32_MAX: Final = 3.4028235677973366e38  # what rounds to the greatest finite float32
ALIGNMENTS: Final = frozenset({1, 2, 4, 8, 16})
RANGES: Final = {
    (signed, size): (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) if signed else (0, (1 << (8 * size)) - 1)
    for signed in (True, False)
    for size in (1, 2, 4, 8)
}


def extent(field: Field, slots: Slots) -> int:
    """Return how many bytes of the fixed part `field` takes."""
    return slots.size if field.dynamic else field.size * field.count


def check(format: "Format") -> None:
    """Refuse what is not a record.

    Raises:
        FormatError: Naming the rule, the value, the limit and the field.
    """
    check_name(format.name, "record", shown(format.name))
    if not format.fields:
        raise FormatError(f"a record needs at least one field - at `{format.name}`")
    if format.alignment not in ALIGNMENTS:
        raise FormatError(f"alignment is {format.alignment}, expected 1, 2, 4, 8 or 16 - at `{format.name}`")
    _check_spread(format)
    names: set[str] = set()
    for field in format.fields:
        place = f"{format.name}.{shown(field.name)}"
        check_name(field.name, "field", place)
        if field.name in names:
            raise FormatError(f"the field name `{field.name}` appears twice - at `{place}`")
        names.add(field.name)
        _check_kind(format, field, place)
        _check_dimensions(format, field, place)
        _check_default(field, place)
    if not 0 < format.size <= RECORD_BYTES_MAX:
        raise FormatError(f"the fixed part has {format.size} bytes, limit is {RECORD_BYTES_MAX} - at `{format.name}`")
    _check_places(format)


def check_name(name: str, what: str, place: str) -> None:
    """Refuse names that could not be written in Python, C and E-Code alike."""
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > NAME_BYTES_MAX:
        raise FormatError(f"the {what} name has {size} bytes, limit is {NAME_BYTES_MAX} - at `{place}`")
    if not NAME.match(name) or name.startswith("__"):
        raise FormatError(
            f"the {what} name '{shown(name)}' is not an identifier (ASCII letters, digits and _, not starting with a "
            f"digit or __) - at `{place}`"
        )


def shown(value: object) -> str:
    """Return a name or value that nobody has checked yet in a form that is short and harmless to print."""
    text = repr(value)
    text = text[1:-1] if isinstance(value, str) else text
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "..."


def no_such_field(format: "Format", name: str, path: str) -> str:
    """Return the message for a field that is not there, with the nearest names that are."""
    near: list[str] = []
    if len(name) <= SHOWN_MAX:  # looking for neighbours takes time that a stranger must not choose
        known = [field.name for field in format.fields if abs(len(field.name) - len(name)) <= NEAR_LENGTH]
        near = difflib.get_close_matches(name, known[:NEAR_FIELDS_MAX], n=2)
    hint = f"; did you mean {' or '.join(f'`{other}`' for other in near)}?" if near else ""
    return f"`{format.name}` has no field `{shown(name)}`{hint} - at `{shown(path)}`"


def _check_spread(format: "Format") -> None:
    """Bound nesting and the number of fields; both are counted bottom up, nothing is expanded to be counted."""
    if format.fields_total > FIELDS_MAX:
        raise FormatError(
            f"the type has {format.fields_total} fields with its nested records, limit is {FIELDS_MAX} "
            f"- at `{format.name}`"
        )
    if format.nesting > NESTING_MAX:
        raise FormatError(f"records are nested {format.nesting} deep, limit is {NESTING_MAX} - at `{format.name}`")


def _check_kind(format: "Format", field: Field, place: str) -> None:
    if (field.kind is Kind.RECORD) != (field.record is not None):
        raise FormatError(f"a record field and only a record field names a record type - at `{place}`")
    if (field.kind is Kind.ENUM) != (field.enumeration is not None):
        raise FormatError(f"an enumeration field and only an enumeration field names its members - at `{place}`")
    if field.record is not None:
        _check_nested(format, field, field.record, place)
    elif field.text:
        if field.size != format.slots.size:
            raise FormatError(f"a slot has {field.size} bytes, expected {format.slots.size} - at `{place}`")
        if field.kind is Kind.BYTES and format.slots is not Slots.SPAN:
            raise FormatError(f"a pointer slot does not tell a length, so it cannot hold bytes - at `{place}`")
    elif field.size not in SIZES[field.kind]:
        sizes = " or ".join(map(str, sorted(SIZES[field.kind])))
        raise FormatError(f"{field.kind.name.lower()} has {field.size} bytes, expected {sizes} - at `{place}`")
    if field.optional and (not field.text or field.dimensions):
        raise FormatError(
            f"only a single string or bytes field can be optional, `{field.spelling}` cannot - at `{place}`"
        )
    if field.enumeration is not None:
        _check_members(field, place)


def _check_nested(format: "Format", field: Field, record: "Format", place: str) -> None:
    if field.size != record.size:
        raise FormatError(f"the field has {field.size} bytes, its record `{record.name}` {record.size} - at `{place}`")
    if (record.byte_order, record.slots) != (format.byte_order, format.slots):
        raise FormatError(f"the nested record `{record.name}` has another byte order or slot kind - at `{place}`")


def _check_members(field: Field, place: str) -> None:
    enumeration = field.enumeration
    if enumeration is None:
        return
    check_name(enumeration.name, "enumeration", place)
    if len(enumeration.members) > MEMBERS_MAX:
        raise FormatError(
            f"the enumeration has {len(enumeration.members)} members, limit is {MEMBERS_MAX} - at `{place}`"
        )
    low, high = RANGES[enumeration.signed, field.size]
    names: set[str] = set()
    for name, value in enumeration.members:
        check_name(name, "member", place)
        if name in names:
            raise FormatError(f"the member name `{name}` appears twice - at `{place}`")
        if not low <= value <= high:
            raise FormatError(f"member `{name}` is {value}, outside {low} to {high} - at `{place}`")
        names.add(name)


def _check_dimensions(format: "Format", field: Field, place: str) -> None:
    if len(field.dimensions) > DIMENSIONS_MAX:
        raise FormatError(f"the array has {len(field.dimensions)} dimensions, limit is {DIMENSIONS_MAX} - at `{place}`")
    total = field.size
    for index, dimension in enumerate(field.dimensions):
        if isinstance(dimension, str):
            _check_sizing(format, field, dimension, index, place)
        elif not 0 < dimension <= RECORD_BYTES_MAX:
            raise FormatError(f"dimension {index} is {dimension}, expected 1 to {RECORD_BYTES_MAX} - at `{place}`")
        else:
            total *= dimension
    if total > RECORD_BYTES_MAX:
        raise FormatError(f"the array has {total} bytes, limit is {RECORD_BYTES_MAX} - at `{place}`")


def _check_sizing(format: "Format", field: Field, sizing: str, index: int, place: str) -> None:
    if index:
        raise FormatError(
            f"only the first dimension can be dynamic, dimension {index} is `{shown(sizing)}` - at `{place}`"
        )
    if not sizing:
        if format.slots is not Slots.SPAN:
            raise FormatError(
                f"a pointer slot does not tell a length, so the array needs a sizing field - at `{place}`"
            )
        return
    named = format.by_name.get(sizing)
    if named is None:
        raise FormatError(f"{no_such_field(format, sizing, place)} (it should hold the length)")
    if named.kind not in (Kind.INT, Kind.UINT) or named.dimensions or named is field:
        raise FormatError(f"the length must be a single integer field, `{sizing}` is `{named.spelling}` - at `{place}`")


def _check_default(field: Field, place: str) -> None:
    default = field.default
    if default is MISSING:
        return
    if field.dimensions or field.record is not None:
        fits = bool(field.dimensions) and isinstance(default, tuple) and not default
    elif default is None:
        fits = field.optional
    else:
        fits = _fits_scalar(field, default)
    if not fits:
        raise FormatError(f"the default {shown(default)} does not fit `{field.spelling}` - at `{place}`")


def _fits_scalar(field: Field, default: object) -> bool:
    match field.kind:
        case Kind.BOOL:
            return isinstance(default, bool)
        case Kind.FLOAT:
            fits = isinstance(default, float) and (abs(default) < FLOAT32_MAX or not math.isfinite(default))
            return fits if field.size == 4 else isinstance(default, float)
        case Kind.STRING:
            return isinstance(default, str) and _utf8_bytes(default) <= DEFAULT_BYTES_MAX
        case Kind.BYTES:
            return isinstance(default, bytes) and len(default) <= DEFAULT_BYTES_MAX
        case Kind.CHAR:
            return isinstance(default, bytes) and len(default) == 1
        case _:
            signed = field.enumeration.signed if field.enumeration else field.kind is Kind.INT
            low, high = RANGES[signed, field.size]
            return isinstance(default, int) and not isinstance(default, bool) and low <= default <= high


def _utf8_bytes(text: str) -> int:
    """Return how long a text is in UTF-8; too long to be anything if it cannot be written so."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return DEFAULT_BYTES_MAX + 1


def _check_places(format: "Format") -> None:
    """Refuse fields that overlap or leave the fixed part."""
    end, previous = 0, ""
    for field in sorted(format.fields, key=lambda field: field.offset):
        place = f"{format.name}.{field.name}"
        bytes_here = extent(field, format.slots)
        if field.offset < 0 or field.offset + bytes_here > format.size:
            raise FormatError(
                f"the field takes bytes {field.offset} to {field.offset + bytes_here}, the record has {format.size} "
                f"- at `{place}`"
            )
        if field.offset < end:
            raise FormatError(
                f"the field starts at byte {field.offset}, inside `{previous}` which ends at {end} - at `{place}`"
            )
        end, previous = field.offset + bytes_here, field.name
