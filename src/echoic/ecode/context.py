"""What a program does with the context of the source it runs in, and where that lies.

"The context would specify program elements which might be accessible to derivation functions. In this way, visibility
into the sending application would be controlled by the sender" (ECho, section 4). The context's values are a record
like any other, but one that the code may write to. A kernel has just one block of memory that it changes, that of the
statics, so the context stands behind them there, and behind it the functions that the event has called:

    | statics | context record, to 8 | calls made: u64 | function u64, arguments f64 ... | ... |
    0         offset                 log_offset

Whoever runs the kernel copies the source's values in before, and takes them out after. A function is not called while
the code runs, for the code must not depend on what strangers' functions do to time and memory: the call is written
down, and made when the event's code has ended. So no call has a result, and kernels stay functions of memory. The log
is that of one event: it is empty when an event begins.

A program that does not name the context has none of this, and is compiled as if there were no contexts.
"""

import struct
from dataclasses import dataclass
from typing import Final

from echoic.errors import CodegenError

__all__ = ["ARGUMENTS_MAX", "CALLS_MAX", "CONTEXT_BYTES_MAX", "ContextUse"]

CALLS_MAX: Final = 16  # of one event
ARGUMENTS_MAX: Final = 8
CONTEXT_BYTES_MAX: Final = 4096
WORD: Final = struct.Struct("=Q")


@dataclass(frozen=True, slots=True)
class ContextUse:
    """The part that a context has in a program; `functions` are known by name and number of arguments."""

    offset: int
    size: int
    written: frozenset[str] = frozenset()
    """The fields of the context that the code assigns to, wholly or in part."""
    functions: tuple[tuple[str, int], ...] = ()

    @property
    def acts(self) -> bool:
        """Whether the code does more than read."""
        return bool(self.written or self.functions)

    @property
    def log_offset(self) -> int:
        """Where the log of calls begins."""
        return self.offset + -(-self.size // 8) * 8

    @property
    def entry_bytes(self) -> int:
        """How much one call takes in the log."""
        return WORD.size * (1 + max((count for _, count in self.functions), default=0))

    @property
    def end(self) -> int:
        """Where all of it ends."""
        return self.log_offset + (WORD.size + CALLS_MAX * self.entry_bytes if self.functions else 0)

    def calls(self, block: bytes | bytearray) -> list[tuple[str, tuple[float, ...]]]:
        """Return the calls of the last event, in order.

        Raises:
            CodegenError: This is not what a kernel has left.
        """
        if not self.functions:
            return []
        (made,) = WORD.unpack_from(block, self.log_offset)
        if made > CALLS_MAX:
            raise CodegenError(f"an event has made {made} calls, limit is {CALLS_MAX}")
        found = []
        for place in range(
            self.log_offset + WORD.size, self.log_offset + WORD.size + made * self.entry_bytes, self.entry_bytes
        ):
            name, count = self.functions[WORD.unpack_from(block, place)[0]]
            found.append((name, struct.unpack_from(f"={count}d", block, place + WORD.size)))
        return found
