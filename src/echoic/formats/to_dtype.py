"""A format's fixed part as a NumPy dtype.

The fixed part of a record *is* a NumPy structured value: same offsets, same byte order, same padding. A slot appears
as what it is on the wire, a record {offset, length} or an integer. The innermost dimension of a char array becomes
NumPy's fixed-width byte string, `char[16]` -> `S16`, which is how both C and NumPy programs think of it.
"""

from typing import TYPE_CHECKING

import numpy

from echoic.formats.fields import Field, Kind, Slots

if TYPE_CHECKING:
    from echoic.formats.format import Format

__all__ = ["char_width", "dtype_of", "element_dtype", "slot_dtype"]

LETTERS = {Kind.INT: "i", Kind.UINT: "u", Kind.FLOAT: "f", Kind.BOOL: "b", Kind.CHAR: "S"}


def dtype_of(format: "Format") -> "numpy.dtype[numpy.void]":
    """Return the dtype of the fixed part."""
    return numpy.dtype(
        {
            "names": [field.name for field in format.fields],
            "formats": [_field_dtype(field, format) for field in format.fields],
            "offsets": [field.offset for field in format.fields],
            "itemsize": format.size,
        }
    )


def slot_dtype(format: "Format") -> "numpy.dtype[numpy.generic]":
    """Return the dtype of one slot."""
    order = ">" if format.byte_order == "big" else "<"
    if format.slots is Slots.SPAN:
        return numpy.dtype([("offset", f"{order}u4"), ("length", f"{order}u4")])
    return numpy.dtype(f"{order}u{format.slots.size}")


def element_dtype(field: Field, format: "Format") -> "numpy.dtype[numpy.generic]":
    """Return the dtype of one element: of the fixed part, or of the variable block of a dynamic array."""
    if field.record is not None:
        return field.record.dtype
    if field.text:
        return slot_dtype(format)
    letter = LETTERS.get(field.kind, "i")
    if field.enumeration is not None:
        letter = "i" if field.enumeration.signed else "u"
    order = ">" if format.byte_order == "big" else "<"
    return numpy.dtype("?" if letter == "b" else f"{order}{letter}{field.size}")


def char_width(field: Field) -> int:
    """Return how many bytes one text of a char field has: its innermost fixed dimension."""
    return field.fixed_dimensions[-1] if field.fixed_dimensions else 1


def _field_dtype(field: Field, format: "Format") -> object:
    if field.dynamic:
        return slot_dtype(format)
    shape = field.fixed_dimensions
    if field.kind is Kind.CHAR and shape:
        return (f"S{char_width(field)}", shape[:-1])
    return (element_dtype(field, format), shape)
