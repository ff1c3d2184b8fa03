"""What conversion means, in plain Python, and pairs of types to convert between.

`converted` takes an event apart and puts another together, value by value, with none of the library's arithmetic: it is
slow, obvious, and the judge of both twins. `relatives` draws types that a given one can be received as.
"""

import math
import struct
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from echoic.formats import MISSING, Architecture, Enumeration, Field, Format, Kind, Slots
from tests.strategies import spans

__all__ = ["converted", "number_as", "relatives"]

NUMBERS = (Kind.INT, Kind.UINT, Kind.FLOAT, Kind.ENUM)


def number_as(value: Any, field: Field) -> Any:
    """Return a number as another field has it: saturated, cut off, rounded once, NaN as 0."""
    if field.kind is Kind.FLOAT:
        return _rounded(value, 24) if field.size == 4 else _rounded(value, 53)
    if field.kind is Kind.BOOL:
        return bool(value)
    signed = field.enumeration.signed if field.enumeration else field.kind is Kind.INT
    bits = 8 * field.size
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return high if value > 0 else low
        value = math.trunc(value)
    return min(max(int(value), low), high)


def _rounded(value: Any, digits: int) -> float:
    """Return a number as a float with so many binary digits, rounded once and half to even."""
    if isinstance(value, float):
        if digits == 53:
            return value
        try:
            return float(struct.unpack("<f", struct.pack("<f", value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    whole = abs(int(value))
    shift = max(whole.bit_length() - digits, 0)
    quotient, rest = whole >> shift, whole & ((1 << shift) - 1)
    half = 1 << shift >> 1
    if rest > half or (rest == half and half and quotient & 1):
        quotient += 1
    return math.copysign(float(quotient << shift), int(value))


def converted(event: dict[str, Any], source: Format, target: Format) -> dict[str, Any]:
    """Return a plain event of one type as the other has it; the types are known to match."""
    sent = {field.name: field for field in source.fields}
    lengths = {
        field.sizing: len(event[field.name]) if field.name in sent else 0 for field in target.fields if field.sizing
    }
    made: dict[str, Any] = {}
    for field in target.fields:
        if field.name in lengths:
            made[field.name] = lengths[field.name]
        elif field.name in sent:
            made[field.name] = _value(event[field.name], sent[field.name], field)
        else:
            made[field.name] = _absent(field)
    return made


def _value(value: Any, sent: Field, field: Field) -> Any:
    if isinstance(value, list):
        return [_value(item, sent, field) for item in value]
    if field.record is not None and sent.record is not None:
        return converted(value, sent.record, field.record)
    if field.text:
        if value is None:
            return None if field.optional else b"" if field.kind is Kind.BYTES else ""
        return value.encode() if field.kind is Kind.BYTES and isinstance(value, str) else value
    return value if field.kind is Kind.CHAR else number_as(value, field)


def _absent(field: Field) -> Any:
    """Return what stands for a field that was not sent: its default."""
    if field.record is not None and not field.dimensions:
        return {nested.name: _absent(nested) for nested in field.record.fields}
    if field.dynamic:
        return []
    if field.dimensions:
        return _zeros(field, field.fixed_dimensions)
    return field.default


def _zeros(field: Field, shape: tuple[int, ...]) -> Any:
    if field.kind is Kind.CHAR:
        shape = shape[:-1]
    if shape:
        return [_zeros(replace(field, dimensions=shape[1:]), shape[1:]) if len(shape) > 1 else _zero(field)] * shape[0]
    return _zero(field)


def _zero(field: Field) -> Any:
    if field.record is not None:
        return {
            nested.name: [] if nested.dynamic else _zeros(nested, nested.fixed_dimensions)
            for nested in field.record.fields
        }
    match field.kind:
        case Kind.STRING:
            return None if field.optional else ""
        case Kind.BYTES:
            return None if field.optional else b""
        case Kind.CHAR:
            return b"" if field.dimensions else b"\0"
        case Kind.FLOAT:
            return 0.0
        case _:
            return 0


@st.composite
def relatives(
    draw: DrawFn,
    source: Format,
    architectures: SearchStrategy[Architecture] = spans(),  # noqa: B008 - strategies are values
) -> Format:
    """Types that `source` can be received as when narrowing is allowed.

    Fields are left out, added with a default, put into another order, made wider, narrower or another kind of number;
    sizing fields come and go; and it all happens on another machine.
    """
    architecture = draw(architectures)
    return draw(_relatives(source, architecture))


@st.composite
def _relatives(draw: DrawFn, source: Format, architecture: Architecture) -> Format:
    keep = [field for field in draw(st.permutations(source.fields)) if draw(st.integers(0, 4))]
    sizings = {field.sizing for field in source.fields if field.sizing}
    fields = [draw(_changed(field, architecture, field.name in sizings)) for field in keep]
    kept = {field.name for field in fields}
    fields = [_with_sizing(field, source, kept, architecture) for field in fields]
    fields += [field for field in draw(_additions(architecture)) if not _known(field, source, kept)]
    if not fields:
        fields = [Field("added_alone", Kind.INT, 4, default=5)]
    return Format.place(draw(st.sampled_from([source.name, "Other"])), _with_lengths(fields, source), architecture)


def _known(field: Field, source: Format, kept: set[str]) -> bool:
    return field.name in kept or any(field.name == other.name for other in source.fields)


def _with_sizing(field: Field, source: Format, kept: set[str], architecture: Architecture) -> Field:
    """Let an array keep its sizing field only if all arrays of that length are kept: else its slot tells the length."""
    shares = {other.name for other in source.fields if other.sizing == field.sizing}
    if field.sizing and architecture.slots is Slots.SPAN and not shares <= kept:
        return replace(field, dimensions=("", *field.dimensions[1:]))
    return field


def _with_lengths(fields: list[Field], source: Format) -> list[Field]:
    """Add the sizing fields that arrays name and that were not kept."""
    present = {field.name for field in fields}
    sent = {field.name: field for field in source.fields}
    missing = [name for name in {field.sizing: 0 for field in fields if field.sizing} if name not in present]
    return [*fields, *(replace(sent[name], kind=Kind.UINT, size=8, default=MISSING) for name in missing)]


@st.composite
def _changed(draw: DrawFn, field: Field, architecture: Architecture, sizing: bool) -> Field:
    """Return a field of another type that takes what this one sends."""
    if field.record is not None:
        record = draw(_relatives(field.record, architecture))
        return replace(field, record=record, size=record.size)
    if field.kind is Kind.STRING and architecture.slots is Slots.SPAN and draw(st.booleans()):
        return replace(field, kind=Kind.BYTES, default=MISSING)
    if field.text or field.kind is Kind.CHAR or draw(st.booleans()):
        return field
    if sizing:
        kind = draw(st.sampled_from([Kind.INT, Kind.UINT]))
        return replace(field, kind=kind, size=draw(st.sampled_from([2, 4, 8])), default=MISSING)
    kind = draw(st.sampled_from(NUMBERS))
    size = draw(st.sampled_from([4, 8] if kind is Kind.FLOAT else [1, 2, 4, 8]))
    enumeration = Enumeration("Level", draw(st.booleans()), (("LOW", 1),)) if kind is Kind.ENUM else None
    return replace(field, kind=kind, size=size, enumeration=enumeration, default=MISSING)


@st.composite
def _additions(draw: DrawFn, architecture: Architecture) -> list[Field]:
    """Draw fields with defaults, to stand beside those that are sent."""
    slot = architecture.slots.size
    known = [
        Field("added_int", Kind.INT, 8, default=-(1 << 63)),
        Field("added_float", Kind.FLOAT, 4, default=-0.5),
        Field("added_flag", Kind.BOOL, 1, default=True),
        Field("added_char", Kind.CHAR, 1, default=b"x"),
        Field("added_name", Kind.CHAR, 1, dimensions=(5,), default=()),
        Field("added_grid", Kind.UINT, 2, dimensions=(2, 3), default=()),
        Field("added_text", Kind.STRING, slot, default="né"),
        Field("added_none", Kind.STRING, slot, optional=True, default=None),
        Field("added_texts", Kind.STRING, slot, dimensions=(2,), default=()),
    ]
    if architecture.slots is Slots.SPAN:
        known.append(Field("added_bytes", Kind.BYTES, slot, default=b"\0\1"))
        known.append(Field("added_list", Kind.FLOAT, 8, dimensions=("", 2), default=()))
    return draw(st.lists(st.sampled_from(known), unique=True, max_size=3))
