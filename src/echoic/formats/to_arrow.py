"""A format as an Arrow schema.

Arrow has columns where a record has bytes, so byte order, offsets and padding have no counterpart; names, widths,
nesting and arrays do. The schema carries the descriptor as metadata: going to Arrow and back gives the same format,
enumerations and sizing fields included.

    float64[37][253] -> fixed_size_list<fixed_size_list<double>[253]>[37]     string -> utf8    char[16] -> fixed binary
    float32[n]       -> list<float>                                           Cell   -> struct  enum     -> its integer
"""

from typing import TYPE_CHECKING, Any, Final

from echoic.formats.fields import Field, Kind

if TYPE_CHECKING:
    import pyarrow

    from echoic.formats.format import Format

__all__ = ["DESCRIPTOR_KEY", "schema_of", "type_of"]

DESCRIPTOR_KEY: Final = b"echoic.descriptor"


def schema_of(format: "Format") -> "pyarrow.Schema":
    """Return the schema of `format`."""
    import pyarrow

    return pyarrow.schema(_fields(format), metadata={DESCRIPTOR_KEY: format.descriptor})


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
