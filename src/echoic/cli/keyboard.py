"""Keys, as they are pressed: a terminal hands over single characters and does not show them.

Ctrl-C still interrupts. Where stdin is not a terminal there are no keys.
"""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Keyboard", "keyboard"]


class Keyboard:
    """Where keys come from, if anywhere."""

    def __init__(self, *, present: bool) -> None:
        self.present = present

    def key(self, seconds: float) -> str:
        """Return the next key; "" when none was pressed in so many seconds, or there are no keys."""
        if not self.present or not select.select([sys.stdin], [], [], seconds)[0]:
            return ""
        key = os.read(sys.stdin.fileno(), 1)  # past Python's buffer, which `select` does not know
        self.present = bool(key)
        return key.decode("latin-1")


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """Give the keys of the terminal at stdin; it is as before afterwards."""
    try:
        import termios
        import tty
    except ImportError:  # not on this system
        yield Keyboard(present=False)
        return
    if not sys.stdin.isatty():
        yield Keyboard(present=False)
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield Keyboard(present=True)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
