"""Memory between two pages that nobody may touch.

    | no access | ............ data, flush with one of the two | no access |

Native code that reads or writes one byte outside of what it was given is ended by a signal, at the instruction that did
it, instead of finding whatever lies there.
"""

import ctypes
import mmap
from typing import Final

__all__ = ["GuardedMemory"]

PROTECTION_NONE: Final = 0


class GuardedMemory:
    """A piece of memory with a guard before and behind it, used again for each piece of data.

    Raises:
        MemoryError: The system refuses to guard it.
    """

    def __init__(self, size: int = 1 << 20) -> None:
        page = mmap.PAGESIZE
        self._size = -(-size // page) * page
        self._whole = mmap.mmap(-1, self._size + 2 * page)
        self._inside = memoryview(self._whole)[page : page + self._size]
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._whole))
        library = ctypes.CDLL(None, use_errno=True)
        library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for guard in (address, address + page + self._size):
            if library.mprotect(guard, page, PROTECTION_NONE):
                raise MemoryError(f"cannot guard a page, errno {ctypes.get_errno()}")

    def place(self, data: bytes | bytearray, *, at_start: bool = False) -> memoryview:
        """Return a copy of `data` that ends, or starts, where a guard is.

        Raises:
            ValueError: It is larger than the memory.
        """
        if len(data) > self._size:
            raise ValueError(f"{len(data)} bytes do not fit into {self._size}")
        begin = 0 if at_start else self._size - len(data)
        inside = self._inside[begin : begin + len(data)]
        inside[:] = data
        return inside
