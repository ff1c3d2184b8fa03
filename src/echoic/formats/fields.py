"""One field of an event type, and where it lies.

A field is a row of the descriptor: a name, a kind, the size of one element, the offset in the fixed part and the
dimensions. Three shapes of field exist, told apart by `dimensions` alone:

    price: float64                ()            the value lies in the fixed part
    wind:  float64[37][253]       (37, 253)     so do all its elements, row major
    samples: float32[n]           ("n",)        the fixed part holds a slot, the elements lie in a variable block;
    cells: float64[n][3]          ("n", 3)      only the first dimension may be dynamic; "" as its name means that
    tags: string[]                ("",)         the length is told by the slot alone

Strings and bytes are slots of their own, so an array of strings is an array of slots (ECho paper, section 2.2:
"null-terminated strings and dynamically sized arrays ... the array size is given by an integer-typed field").
"""

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from echoic.formats.format import Format

__all__ = ["MISSING", "Default", "Dimension", "Enumeration", "Field", "Kind", "Missing", "Slots"]


class Kind(enum.IntEnum):
    """What an element is; the numbers are those of the descriptor."""

    INT = 1
    UINT = 2
    FLOAT = 3
    BOOL = 4
    CHAR = 5
    ENUM = 6
    STRING = 7
    BYTES = 8
    RECORD = 9


SIZES: Final[dict[Kind, frozenset[int]]] = {
    Kind.INT: frozenset({1, 2, 4, 8}),
    Kind.UINT: frozenset({1, 2, 4, 8}),
    Kind.FLOAT: frozenset({4, 8}),
    Kind.BOOL: frozenset({1}),
    Kind.CHAR: frozenset({1}),
    Kind.ENUM: frozenset({1, 2, 4, 8}),
}


class Slots(enum.IntEnum):
    """How the fixed part points at a variable block; the numbers are those of the descriptor.

    SPAN is echoic's own {u32 offset, u32 length}. The two pointer kinds are C structs whose pointers were replaced
    by offsets, as PBIO writes them: a string's length is told by its NUL, an array's by its sizing field.
    """

    SPAN = 0
    POINTER32 = 1
    POINTER64 = 2

    @property
    def size(self) -> int:
        """Return how many bytes a slot takes in the fixed part."""
        return 4 if self is Slots.POINTER32 else 8

    @property
    def unit(self) -> int:
        """Return the size of the integers a slot is made of, which is what it is aligned to."""
        return 8 if self is Slots.POINTER64 else 4


class Missing(enum.Enum):
    """The type of `MISSING`, which stands for "no default was declared"."""

    MISSING = "MISSING"


MISSING: Final = Missing.MISSING

Default: TypeAlias = bool | int | float | str | bytes | tuple[()] | None
Dimension: TypeAlias = int | str


@dataclass(frozen=True, slots=True)
class Enumeration:
    """The names of an enumeration's values; unknown values stay plain integers, so members can be added."""

    name: str
    signed: bool
    members: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Field:
    """One field: what it is and where it lies in the fixed part."""

    name: str
    kind: Kind
    size: int
    offset: int = 0
    dimensions: tuple[Dimension, ...] = ()
    record: "Format | None" = None
    enumeration: Enumeration | None = None
    optional: bool = False
    default: Default | Missing = MISSING

    @property
    def dynamic(self) -> bool:
        """Tell whether the elements lie in a variable block."""
        return bool(self.dimensions) and isinstance(self.dimensions[0], str)

    @property
    def text(self) -> bool:
        """Tell whether an element is a string or bytes, that is a slot."""
        return self.kind is Kind.STRING or self.kind is Kind.BYTES

    @property
    def sizing(self) -> str:
        """Return the name of the field that holds the dynamic length, "" when only the slot does."""
        first = self.dimensions[0] if self.dimensions else ""
        return first if isinstance(first, str) else ""

    @property
    def fixed_dimensions(self) -> tuple[int, ...]:
        """Return the dimensions that are numbers."""
        return tuple(dimension for dimension in self.dimensions if isinstance(dimension, int))

    @property
    def count(self) -> int:
        """Return how many elements one step of the dynamic dimension, or else the whole field, has."""
        return math.prod(self.fixed_dimensions)

    @property
    def variable(self) -> bool:
        """Tell whether the field reaches into the variable part of the record."""
        return self.dynamic or self.text or (self.record is not None and self.record.variable)

    @property
    def spelling(self) -> str:
        """Return the type as people write it: `float64[37][253]`."""
        base = {
            Kind.INT: f"int{self.size * 8}",
            Kind.UINT: f"uint{self.size * 8}",
            Kind.FLOAT: f"float{self.size * 8}",
            Kind.BOOL: "bool",
            Kind.CHAR: "char",
            Kind.STRING: "string",
            Kind.BYTES: "bytes",
            Kind.ENUM: f"enum {self.enumeration.name if self.enumeration else '?'}",
            Kind.RECORD: self.record.name if self.record else "?",
        }[self.kind]
        optional = "?" if self.optional else ""
        return base + optional + "".join(f"[{dimension}]" for dimension in self.dimensions)
