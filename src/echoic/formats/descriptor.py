"""The canonical bytes of a format, and the token that names them.

A descriptor is msgpack, arrays only, so that any language with a msgpack library reads it in a few lines:

    descriptor := [version = 1, byte_order, slots, [record, ...]]       byte_order: 0 little, 1 big; slots: see Slots
    record     := [name, alignment, size, [field, ...]]                 the last record is the type itself
    field      := [name, kind, size, offset, [dimension, ...], flags, detail, [] | [default]]
    dimension  := integer | name of the sizing field | ""               "" only first: the slot tells the length
    flags      := 1 optional | 2 the enumeration is unsigned
    detail     := nil | index of an earlier record | [enumeration name, [[member, value], ...]]

A field of kind RECORD names a record *before* its own in the list, so a descriptor cannot say a cycle, and a record
used twice is described once. "Canonical" means: exactly the bytes this module would write (shortest integers, records
in the order of their first use, depth first). Anything else is refused, so that one format has one token.

The token is the first eight bytes of the SHA-256 of the descriptor, read as a little-endian integer.
"""

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from echoic.errors import LimitExceededError, MalformedFormatError
from echoic.formats.architecture import ByteOrder
from echoic.formats.checks import shown
from echoic.formats.fields import MISSING, Default, Enumeration, Field, Kind, Missing, Slots
from echoic.formats.limits import DESCRIPTOR_BYTES_MAX

if TYPE_CHECKING:
    from echoic.formats.format import Format

__all__ = ["Description", "FieldRow", "RecordRow", "decode", "encode", "token"]

VERSION: Final = 1
OPTIONAL: Final = 1
UNSIGNED: Final = 2


class FieldRow(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """One field as the descriptor lists it."""

    name: str
    kind: Kind
    size: int
    offset: int
    dimensions: tuple[int | str, ...]
    flags: int
    detail: int | tuple[str, tuple[tuple[str, int], ...]] | None
    default: tuple[Any, ...]  # msgspec has no union of str and bytes; `checks` refuses what does not fit the kind

    @property
    def record_index(self) -> int:
        """Return which record the field contains, -1 when the row does not say."""
        return self.detail if isinstance(self.detail, int) else -1

    def to_field(self, record: "Format | None") -> Field:
        """Return the field, given the record it contains if it contains one."""
        enumeration = None
        if isinstance(self.detail, tuple):
            enumeration = Enumeration(self.detail[0], not self.flags & UNSIGNED, self.detail[1])
        default: Default | Missing = MISSING
        if self.default:
            default = () if self.default[0] == [] else self.default[0]
        return Field(
            self.name,
            self.kind,
            self.size,
            self.offset,
            self.dimensions,
            record,
            enumeration,
            optional=bool(self.flags & OPTIONAL),
            default=default,
        )


class RecordRow(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """One record as the descriptor lists it."""

    name: str
    alignment: int
    size: int
    fields: tuple[FieldRow, ...]


class Description(msgspec.Struct, array_like=True, forbid_unknown_fields=True, frozen=True):
    """A decoded descriptor: rows that still have to prove that they form records."""

    version: int
    order: int
    slots: Slots
    records: tuple[RecordRow, ...]

    @property
    def byte_order(self) -> ByteOrder:
        """Return the byte order of every number in a record."""
        return "big" if self.order else "little"


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Description)


def encode(format: "Format") -> bytes:
    """Return the canonical descriptor of `format`."""
    order = 1 if format.byte_order == "big" else 0
    return _encoder.encode(Description(VERSION, order, format.slots, tuple(_record_rows(format))))


def decode(data: bytes) -> Description:
    """Return the rows of a descriptor; only its grammar is checked here.

    Raises:
        LimitExceededError: It is longer than `DESCRIPTOR_BYTES_MAX`.
        MalformedFormatError: It is not a descriptor, or not the canonical one.
    """
    if len(data) > DESCRIPTOR_BYTES_MAX:
        raise LimitExceededError(f"a descriptor has {len(data)} bytes, limit is {DESCRIPTOR_BYTES_MAX}")
    try:
        description = _decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFormatError(f"a descriptor of {len(data)} bytes cannot be read: {error}") from error
    if description.version != VERSION or description.order not in (0, 1) or not description.records:
        raise MalformedFormatError(
            f"a descriptor has version {description.version}, byte order {description.order} and "
            f"{len(description.records)} records, expected version {VERSION}, byte order 0 or 1, at least one record"
        )
    for row in description.records:
        for field in row.fields:
            if len(field.default) > 1:
                place = f"{shown(row.name)}.{shown(field.name)}"
                raise MalformedFormatError(f"a field has {len(field.default)} defaults - at `{place}`")
    return description


def token(data: bytes) -> int:
    """Return the 64-bit name of a descriptor."""
    return int.from_bytes(hashlib.sha256(data).digest()[:8], "little")


def _record_rows(format: "Format") -> list[RecordRow]:
    """List the records of a format depth first, each once, the format itself last."""
    rows: list[RecordRow] = []
    places: dict[bytes, int] = {}

    def add(record: "Format") -> int:
        detail = {field.name: add(field.record) for field in record.fields if field.record is not None}
        row = RecordRow(
            record.name,
            record.alignment,
            record.size,
            tuple(_field_row(field, detail.get(field.name)) for field in record.fields),
        )
        key = _encoder.encode(row)
        if key not in places:
            places[key] = len(rows)
            rows.append(row)
        return places[key]

    add(format)
    return rows


def _field_row(field: Field, record_index: int | None) -> FieldRow:
    enumeration = field.enumeration
    flags = (OPTIONAL if field.optional else 0) | (UNSIGNED if enumeration and not enumeration.signed else 0)
    detail = (enumeration.name, enumeration.members) if enumeration else record_index
    default = () if isinstance(field.default, Missing) else (field.default,)
    return FieldRow(field.name, field.kind, field.size, field.offset, field.dimensions, flags, detail, default)
