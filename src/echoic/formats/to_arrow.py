"""A format as an Arrow schema.

Arrow has columns where a record has bytes, so byte order, offsets and padding have no counterpart; names, widths,
nesting and arrays do. The schema carries the descriptor as metadata: going to Arrow and back gives the same format,
enumerations and sizing fields included.

    float64[37][253] -> fixed_size_list<fixed_size_list<double>[253]>[37]     string -> utf8     char[16] -> fixed binary
    float32[n]       -> list<float>                                           Cell   -> struct   enum    -> its integer
"""

from typing import TYPE_CHECKING, Final

from echoic.formats.fields import Field, Kind

if TYPE_CHECKING:
    import pyarrow

    from echoic.formats.format import Format

__all__ = ["DESCRIPTOR_KEY", "schema_of"]

DESCRIPTOR_KEY: Final = b"echoic.descriptor"


def schema_of(format: "Format") -> "pyarrow.Schema":
    """Return the schema of `format`."""
    import pyarrow  # noqa: PLC0415 - takes 100 ms to import, and most programs never ask

    return pyarrow.schema(_fields(format, pyarrow), metadata={DESCRIPTOR_KEY: format.descriptor})


def _fields(format: "Format", arrow: "type[pyarrow]") -> "list[pyarrow.Field]":
    return [arrow.field(field.name, _type(field, arrow), nullable=field.optional) for field in format.fields]


def _type(field: Field, arrow: "type[pyarrow]") -> "pyarrow.DataType":
    dimensions = list(field.dimensions)
    if field.kind is Kind.CHAR and dimensions and isinstance(dimensions[-1], int):
        kind = arrow.binary(dimensions.pop())
    else:
        kind = _element(field, arrow)
    for dimension in reversed(dimensions):
        item = arrow.field("item", kind, nullable=False)
        kind = arrow.list_(item, dimension) if isinstance(dimension, int) else arrow.list_(item)
    return kind


def _element(field: Field, arrow: "type[pyarrow]") -> "pyarrow.DataType":
    if field.record is not None:
        return arrow.struct(_fields(field.record, arrow))
    signed = field.enumeration.signed if field.enumeration else field.kind is Kind.INT
    match field.kind:
        case Kind.FLOAT:
            return arrow.float32() if field.size == 4 else arrow.float64()
        case Kind.BOOL:
            return arrow.bool_()
        case Kind.CHAR:
            return arrow.binary(1)
        case Kind.STRING:
            return arrow.string()
        case Kind.BYTES:
            return arrow.binary()
        case _:
            return arrow.type_for_alias(f"{'int' if signed else 'uint'}{field.size * 8}")
