"""Rounding up to alignments, which layouts, batches and frames all do."""

from typing import Final

__all__ = ["BLOCK_ALIGNMENT", "round_up"]

BLOCK_ALIGNMENT: Final = 8  # what records, blocks and frames start at


def round_up(value: int, alignment: int = BLOCK_ALIGNMENT) -> int:
    """Return the next multiple of `alignment`, or `value` if it is one."""
    return -(-value // alignment) * alignment
