"""Waiting until something can be read from a pipe, whatever the number of its descriptor.

`select.select` takes no descriptor above 1023, and a process that tries thousands of connections has such.
"""

import select
from typing import Protocol

__all__ = ["is_readable"]


class _Descriptor(Protocol):
    def fileno(self) -> int: ...


def is_readable(source: _Descriptor | int, seconds: float | None) -> bool:
    """Return whether something can be read within a time, or the other end has gone; None waits for ever."""
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))
