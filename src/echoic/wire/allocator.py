"""The memory in which large batches lie."""

from functools import cache
from typing import Final

import numpy

__all__ = ["settle_allocator"]

SETTLING_BYTES: Final = 32 * 1024 * 1024 - 4096 * 16


@cache
def settle_allocator() -> None:
    """Let the C library keep the memory of large batches, once for the process.

    Until a program has freed a large block, glibc gives every block of more than 128 KB back to the system, and the
    kernel hands the next one out page by page, which takes several times as long as copying a batch into it.
    """
    block = numpy.empty(SETTLING_BYTES, numpy.uint8)
    del block
