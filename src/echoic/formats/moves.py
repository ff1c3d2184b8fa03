"""The steps that turn a record of one layout into a record of another.

A conversion is planned once per pair of formats as a short list of moves and then carried out by whoever is asked:
NumPy over a batch, or a native routine generated from the same list. Offsets count from the start of the record for
the moves of the record itself, from the start of the element for the moves inside `Each` and `Vector`.

    Copy      bytes that are the same on both sides, neighbours merged
    Cast      numbers: byte order, width, kind; out-of-range values saturate, NaN becomes 0
    Fill      a default, or zeros where the target has padding
    Each      a fixed array of records whose layouts differ
    Text      slots of strings or bytes, each with its block
    FillText  a slot for a default text, or for none
    Vector    the slot of a dynamic array, its block, and the target's sizing field
"""

from typing import TypeAlias

import msgspec

from echoic.formats.architecture import ByteOrder
from echoic.formats.fields import Kind

__all__ = ["Cast", "Copy", "Each", "Fill", "FillText", "Move", "Number", "Sizing", "Text", "Vector"]


class Number(msgspec.Struct, frozen=True):
    """How a number is written: INT, UINT, FLOAT or BOOL of some width in some byte order."""

    kind: Kind
    size: int
    byte_order: ByteOrder

    @property
    def limits(self) -> tuple[int, int]:
        """Return the least and the greatest integer it can hold; only for integers."""
        bits = 8 * self.size
        return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if self.kind is Kind.INT else (0, (1 << bits) - 1)


class Copy(msgspec.Struct, frozen=True):
    """Move `size` bytes as they are."""

    source: int
    target: int
    size: int


class Cast(msgspec.Struct, frozen=True):
    """Convert `count` neighbouring numbers."""

    source: int
    target: int
    count: int
    read: Number
    write: Number


class Fill(msgspec.Struct, frozen=True):
    """Write constant bytes."""

    target: int
    data: bytes


class Each(msgspec.Struct, frozen=True):
    """Apply `moves` to each of `count` neighbouring records."""

    source: int
    target: int
    count: int
    source_stride: int
    target_stride: int
    moves: tuple["Move", ...]


class Text(msgspec.Struct, frozen=True):
    """Move `count` neighbouring slots of text with their blocks; strings end with NUL, bytes do not."""

    source: int
    target: int
    count: int
    source_terminated: bool
    target_terminated: bool
    path: str


class FillText(msgspec.Struct, frozen=True):
    """Write a slot for a constant text, or an empty slot for None."""

    target: int
    data: bytes | None
    terminated: bool


class Sizing(msgspec.Struct, frozen=True):
    """Where the length of a dynamic array stands in the fixed part."""

    offset: int
    number: Number


class Vector(msgspec.Struct, frozen=True):
    """Move the block of a dynamic array: `per` elements for each step of its length.

    Invariant: a block starts at a multiple of its alignment, and so does every element in it.
    """

    source: int
    target: int
    source_sizing: Sizing | None
    target_sizing: Sizing | None
    per: int
    source_stride: int
    target_stride: int
    source_alignment: int
    target_alignment: int
    moves: tuple["Move", ...]
    path: str


Move: TypeAlias = Copy | Cast | Fill | Each | Text | FillText | Vector
