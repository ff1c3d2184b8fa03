"""The names in which fields are declared: `int16`, `float32`, `char`, `Array[float64, 37, 253]`.

Each scalar name is an `Annotated` Python type, so a type checker sees a plain int, float, bool or bytes while
`Format.of` sees the width. `int` alone means int64 and `float` float64, as NumPy has it on 64-bit machines.

    wind:    Array[float64, 37, 253]     fixed, row major
    samples: Array[float32, "n"]         dynamic, its length is the field n
    cells:   Array[Cell, "n", 3]         dynamic first dimension, records as elements
    tags:    Array[str, ...]             dynamic, its length is told by the slot alone
"""

from dataclasses import dataclass
from types import EllipsisType
from typing import TYPE_CHECKING, Annotated, Final

import numpy

from echoic.errors import FormatError
from echoic.formats.fields import Dimension, Kind

__all__ = [
    "Array",
    "ArrayType",
    "ScalarType",
    "bool_",
    "char",
    "float32",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


@dataclass(frozen=True, slots=True)
class ScalarType:
    """The kind and width behind a scalar name."""

    kind: Kind
    size: int


@dataclass(frozen=True, slots=True)
class ArrayType:
    """What `Array[...]` was given: the element's declaration and the dimensions."""

    element: object
    dimensions: tuple[Dimension, ...]


int8 = Annotated[int, ScalarType(Kind.INT, 1)]
int16 = Annotated[int, ScalarType(Kind.INT, 2)]
int32 = Annotated[int, ScalarType(Kind.INT, 4)]
int64 = Annotated[int, ScalarType(Kind.INT, 8)]
uint8 = Annotated[int, ScalarType(Kind.UINT, 1)]
uint16 = Annotated[int, ScalarType(Kind.UINT, 2)]
uint32 = Annotated[int, ScalarType(Kind.UINT, 4)]
uint64 = Annotated[int, ScalarType(Kind.UINT, 8)]
float32 = Annotated[float, ScalarType(Kind.FLOAT, 4)]
float64 = Annotated[float, ScalarType(Kind.FLOAT, 8)]
bool_ = Annotated[bool, ScalarType(Kind.BOOL, 1)]
char = Annotated[bytes, ScalarType(Kind.CHAR, 1)]

PYTHON_SCALARS: Final[dict[object, ScalarType]] = {
    int: ScalarType(Kind.INT, 8),
    float: ScalarType(Kind.FLOAT, 8),
    bool: ScalarType(Kind.BOOL, 1),
}

if TYPE_CHECKING:
    # A type checker cannot read numbers in brackets; it sees the element type. For an exact static type write
    # `Annotated[NDArray[np.float64], Array[float64, 37, 253]]`, which means the same at run time.
    from typing import Annotated as Array
else:

    class Array:
        """Declare an array: `Array[element, dimension, ...]`."""

        def __class_getitem__(cls, items: object) -> object:
            """Return an annotation that carries element type and dimensions.

            Raises:
                FormatError: No dimension was given, or one is neither a number, a field name nor `...`.
            """
            if not isinstance(items, tuple) or len(items) < 2:
                raise FormatError(
                    f"an array needs an element type and dimensions, as in Array[float64, 3], got {items!r}"
                )
            return Annotated[numpy.ndarray, ArrayType(items[0], tuple(_dimension(item) for item in items[1:]))]


def _dimension(item: object) -> Dimension:
    if isinstance(item, EllipsisType):
        return ""
    if isinstance(item, str) and item:
        return item
    if isinstance(item, int) and not isinstance(item, bool):
        return item
    raise FormatError(f"a dimension is a number, the name of an integer field or ..., got {item!r}")
