"""A format as an Arrow schema.

Arrow has columns where a record has bytes, so byte order, offsets and padding have no counterpart; names, widths,
nesting and arrays do. The schema carries the descriptor as metadata: going to Arrow and back gives the same format,
enumerations and sizing fields included. It stands there in base64, since metadata are texts to many: polars ends with a
panic at any that are not UTF-8. A descriptor in plain bytes, as earlier files have it, is read as well.

    float64[37][253] -> fixed_size_list<fixed_size_list<double>[253]>[37]     string -> utf8    char[16] -> fixed binary
    float32[n]       -> list<float>                                           Cell   -> struct  enum     -> its integer
"""

import base64
import binascii
from typing import TYPE_CHECKING, Any, Final

from echoic.formats.fields import Field, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow

    from echoic.formats.format import Format

__all__ = ["DESCRIPTOR_KEY", "described_in", "description_of", "schema_of", "type_of"]

DESCRIPTOR_KEY: Final = b"echoic.descriptor"
DESCRIPTOR_START: Final = b"\x94"  # an array of four in msgpack, and no letter of base64


def schema_of(format: "Format") -> "pyarrow.Schema":
    """Return the schema of `format`."""
    import pyarrow

    return pyarrow.schema(_fields(format), metadata=description_of(format))


def description_of(format: "Format") -> dict[bytes | str, bytes | str]:
    """Return the metadata from which a format is made again."""
    return {DESCRIPTOR_KEY: base64.b64encode(format.descriptor)}


def described_in(metadata: "Mapping[bytes, bytes] | None") -> bytes | None:
    """Return the descriptor that metadata have, which nobody has checked; None if they have none."""
    found = (metadata or {}).get(DESCRIPTOR_KEY)
    if found is None or found.startswith(DESCRIPTOR_START):
        return found
    try:
        return base64.b64decode(found, validate=True)
    except binascii.Error:
        return b""  # which is no descriptor


def _fields(format: "Format") -> "list[pyarrow.Field[Any]]":
    import pyarrow

    return [pyarrow.field(field.name, type_of(field), nullable=field.optional) for field in format.fields]


def type_of(field: Field) -> Any:  # noqa: ANN401 - some Arrow type
    """Return the Arrow type of a field's column."""
    import pyarrow

    dimensions = list(field.dimensions)
    if field.kind is Kind.CHAR and dimensions and isinstance(dimensions[-1], int):
        kind: Any = pyarrow.binary(dimensions.pop())  # type: ignore[arg-type] # checked in the line above
    else:
        kind = _element(field)
    for dimension in reversed(dimensions):
        item = pyarrow.field("item", kind, nullable=False)
        kind = pyarrow.list_(item, dimension) if isinstance(dimension, int) else pyarrow.list_(item)
    return kind


def _element(field: Field) -> Any:  # noqa: ANN401 - some Arrow type
    import pyarrow

    if field.record is not None:
        return pyarrow.struct(_fields(field.record))
    signed = field.enumeration.signed if field.enumeration else field.kind is Kind.INT
    match field.kind:
        case Kind.FLOAT:
            return pyarrow.float32() if field.size == 4 else pyarrow.float64()
        case Kind.BOOL:
            return pyarrow.bool_()
        case Kind.CHAR:
            return pyarrow.binary(1)
        case Kind.STRING:
            return pyarrow.string()
        case Kind.BYTES:
            return pyarrow.binary()
        case _:
            name: Any = f"{'int' if signed else 'uint'}{field.size * 8}"
            return pyarrow.type_for_alias(name)
