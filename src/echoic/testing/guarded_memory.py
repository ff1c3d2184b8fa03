"""Memory between two pages that nobody may touch.

    | no access | ............ data, flush with one of the two | no access |

Native code that reads or writes one byte outside of what it was given is ended by a signal, at the instruction that did
it, instead of finding whatever lies there.

How large random data will be is not known before it is there, so the memory grows when something does not fit. What was
placed before stays where it is, guards and all, for as long as somebody has it.
"""

import ctypes
import mmap
from typing import Final

__all__ = ["GuardedMemory"]

PROTECTION_NONE: Final = 0
SIZE_MAX: Final = 256 << 20  # no event has more bytes


class GuardedMemory:
    """A piece of memory with a guard before and behind it, used again for each piece of data."""

    def __init__(self, size: int = 1 << 20, *, size_max: int = SIZE_MAX) -> None:
        """Guard the first piece.

        Args:
            size: How many bytes it has.
            size_max: How many bytes data may have for which a larger piece is made.

        Raises:
            MemoryError: The system refuses to guard it.
        """
        self._size_max = size_max
        self._guard(size)

    def _guard(self, size: int) -> None:
        """Make a piece between guards and take it in the place of what is there; nothing changes if that is refused."""
        page = mmap.PAGESIZE
        inside = -(-size // page) * page
        try:
            whole = mmap.mmap(-1, inside + 2 * page)
        except OSError as error:
            raise MemoryError(f"cannot have {inside + 2 * page} bytes: {error}") from error
        address = ctypes.addressof(ctypes.c_char.from_buffer(whole))
        library = ctypes.CDLL(None, use_errno=True)
        library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for guard in (address, address + page + inside):
            if library.mprotect(guard, page, PROTECTION_NONE):
                raise MemoryError(f"cannot guard a page, errno {ctypes.get_errno()}")
        self._size, self._inside = inside, memoryview(whole)[page : page + inside]

    def place(self, data: bytes | bytearray, *, at_start: bool = False) -> memoryview:
        """Return a copy of `data` that ends, or starts, where a guard is.

        Raises:
            MemoryError: It needs a larger piece, which the system refuses to guard.
            ValueError: It is larger than the memory may become.
        """
        if len(data) > max(self._size, self._size_max):
            raise ValueError(f"{len(data)} bytes do not fit, limit is {self._size_max}")
        if len(data) > self._size:
            self._guard(max(len(data), min(2 * self._size, self._size_max)))
        begin = 0 if at_start else self._size - len(data)
        inside = self._inside[begin : begin + len(data)]
        inside[:] = data
        return inside
