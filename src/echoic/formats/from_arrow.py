"""Arrow schemas as event types.

A schema that came from a format says so in its metadata and gives that format back. Any other schema is read column
by column and laid out for this machine; a list has no sizing field in Arrow, so its length is told by the slot.
"""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from echoic.errors import FormatError, RemoteError
from echoic.formats.architecture import NATIVE
from echoic.formats.checks import shown
from echoic.formats.fields import Dimension, Field, Kind
from echoic.formats.format import Format, reads_types
from echoic.formats.limits import NESTING_MAX
from echoic.formats.to_arrow import DESCRIPTOR_KEY, described_in

if TYPE_CHECKING:
    import pyarrow

__all__ = ["format_of_schema", "read_schema"]


@reads_types
def read_schema(declared: object) -> Format | None:
    """Return the format of an Arrow schema."""
    # A schema cannot exist before pyarrow was imported, which another thread may be doing.
    known_as = getattr(sys.modules.get("pyarrow"), "Schema", None)
    if known_as is None or not isinstance(declared, known_as):
        return None
    schema: pyarrow.Schema = declared
    described = described_in(schema.metadata)
    if described is not None:
        try:
            known = Format.from_descriptor(described)
        except RemoteError as error:
            raise FormatError(f"the schema's `{DESCRIPTOR_KEY.decode()}` is no descriptor: {error}") from error
        if known.arrow_schema.equals(schema):
            return known
    return format_of_schema(schema, "Record")


def format_of_schema(schema: "pyarrow.Schema", name: str) -> Format:
    """Return the format of columns as they are, whatever the metadata says, under a name.

    Raises:
        FormatError: A column cannot be a field.
    """
    return Format.place(name, _fields(schema, name, 1), NATIVE)


def _fields(columns: "pyarrow.Schema | pyarrow.StructType", place: str, depth: int) -> list[Field]:
    if depth > NESTING_MAX:
        raise FormatError(f"records are nested {depth} deep, limit is {NESTING_MAX} - at `{shown(place)}`")
    return [_field(column.name, column.type, column.nullable, f"{place}.{column.name}", depth) for column in columns]


def _field(name: str, kind: "pyarrow.DataType", nullable: bool, place: str, depth: int) -> Field:
    import pyarrow.types as is_

    if is_.is_dictionary(kind):
        return _field(name, kind.value_type, nullable, place, depth)
    if is_.is_fixed_size_list(kind) or is_.is_list(kind) or is_.is_large_list(kind):
        element = _field(name, kind.value_type, False, place, depth)
        if element.dynamic:
            raise FormatError(f"`{kind}` has a dynamic dimension inside another - at `{place}`")
        fixed = is_.is_fixed_size_list(kind)
        outer: Dimension = getattr(kind, "list_size", "") if fixed else ""
        single_bytes = fixed and element.kind is Kind.CHAR and not element.dimensions
        inner = (1,) if single_bytes else element.dimensions  # char[3] is one text of 3 bytes, char[3][1] a list of 3
        return replace(element, dimensions=(outer, *inner))
    if is_.is_struct(kind):
        record = Format.place(name, _fields(kind, place, depth + 1), NATIVE)
        return Field(name, Kind.RECORD, record.size, record=record)
    if is_.is_string(kind) or is_.is_large_string(kind):
        return Field(name, Kind.STRING, NATIVE.slots.size, optional=nullable)
    if is_.is_fixed_size_binary(kind):
        if not kind.byte_width:
            raise FormatError(f"`{kind}` has no bytes at all - at `{place}`")
        return Field(name, Kind.CHAR, 1, dimensions=(kind.byte_width,) if kind.byte_width > 1 else ())
    if is_.is_binary(kind) or is_.is_large_binary(kind):
        return Field(name, Kind.BYTES, NATIVE.slots.size, optional=nullable)
    return _number(name, kind, place)


def _number(name: str, kind: "pyarrow.DataType", place: str) -> Field:
    import pyarrow.types as is_

    if is_.is_boolean(kind):
        return Field(name, Kind.BOOL, 1)
    if is_.is_float32(kind) or is_.is_float64(kind):
        return Field(name, Kind.FLOAT, kind.bit_width // 8)
    if is_.is_integer(kind):
        return Field(name, Kind.INT if is_.is_signed_integer(kind) else Kind.UINT, kind.bit_width // 8)
    raise FormatError(
        f"Arrow type `{kind}` cannot be a field; cast the column to a number, string or list - at `{place}`"
    )
