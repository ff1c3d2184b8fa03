"""What something costs, told by counting calls: the same number again, whatever else the machine does."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["counted_calls"]


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Count the calls of Python functions in this thread."""
    calls = [0]

    def note(_frame: object, event: str, _argument: object) -> None:
        calls[0] += event == "call"

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
