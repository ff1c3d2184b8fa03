"""NumPy structured dtypes as event types.

A dtype already has offsets, byte order and padding, so nothing is laid out anew: an array that a program has in
memory is sent as it lies. NumPy allows a byte order per field; a record has one, so mixed dtypes are refused.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy

from echoic.errors import FormatError
from echoic.formats.architecture import NATIVE, ByteOrder
from echoic.formats.fields import Field, Kind
from echoic.formats.format import Format, reads_types

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["read_dtype", "scalar_field"]

KINDS = {"i": Kind.INT, "u": Kind.UINT, "f": Kind.FLOAT, "b": Kind.BOOL}


@reads_types
def read_dtype(declared: object) -> Format | None:
    """Return the format of a structured dtype, with exactly its layout."""
    return _format_of(declared) if isinstance(declared, numpy.dtype) else None


@lru_cache(maxsize=1024)
def _format_of(declared: "numpy.dtype[Any]") -> Format:
    if declared.names is None:
        raise FormatError(f"expected a structured dtype, got `{declared}`; name its fields: np.dtype([('value', ...)])")
    orders: set[ByteOrder] = set()
    _orders(declared, orders)
    if len(orders) > 1:
        raise FormatError(f"a record has one byte order, `{declared}` mixes two; use dtype.newbyteorder()")
    return _record(declared, "Record", orders.pop() if orders else NATIVE.byte_order)


def scalar_field(name: str, dtype: "numpy.dtype[Any]", place: str) -> Field:
    """Return an unplaced field for a NumPy scalar type.

    Raises:
        FormatError: The type has no counterpart, for instance Python objects or dates.
    """
    if dtype.kind == "S" and dtype.itemsize:
        dimensions = (dtype.itemsize,) if dtype.itemsize > 1 else ()
        return Field(name, Kind.CHAR, 1, dimensions=dimensions)
    kind = KINDS.get(dtype.kind)
    if kind is None or dtype.itemsize > 8 or (kind is Kind.FLOAT and dtype.itemsize < 4):
        raise FormatError(f"NumPy type `{dtype}` cannot be a field - at `{place}`")
    return Field(name, kind, dtype.itemsize)


def _orders(dtype: "numpy.dtype[Any]", found: set[ByteOrder]) -> None:
    for name in dtype.names or ():
        base = dtype[name].base
        if base.names is not None:
            _orders(base, found)
        elif base.itemsize > 1 and base.kind in "iuf":
            swapped = base != base.newbyteorder("=")
            foreign: ByteOrder = "big" if NATIVE.byte_order == "little" else "little"
            found.add(foreign if swapped else NATIVE.byte_order)


def _record(dtype: "numpy.dtype[Any]", name: str, order: ByteOrder) -> Format:
    fields: list[Field] = []
    alignments: list[int] = []
    members: Mapping[str, Any] = dtype.fields or {}
    for member in dtype.names or ():
        sub, offset, *_ = members[member]
        base, shape = sub.base, sub.shape
        if base.names is not None:
            record = _record(base, member, order)
            fields.append(Field(member, Kind.RECORD, record.size, offset, shape, record))
            alignments.append(record.alignment)
            continue
        scalar = scalar_field(member, base, f"{name}.{member}")
        fields.append(Field(member, scalar.kind, scalar.size, offset, (*shape, *scalar.dimensions)))
        alignments.append(scalar.size)
    return Format(
        name,
        tuple(fields),
        byte_order=order,
        alignment=_alignment(fields, alignments, dtype.itemsize),
        size=dtype.itemsize,
    )


def _alignment(fields: list[Field], alignments: list[int], size: int) -> int:
    """Return the natural alignment of a record if everything lies so, else 1.

    NumPy's own flag for aligned dtypes does not take part in their equality, so it must not take part here.
    """
    widest = max(alignments, default=1)
    natural = all(field.offset % alignment == 0 for field, alignment in zip(fields, alignments, strict=True))
    return widest if natural and size % widest == 0 else 1
