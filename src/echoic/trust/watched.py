"""Watched files: an operator's file that counts again soon after it has changed, and not while it is being written.

    look   :   |      |      |      |      |
    file   : old    empty   new    new    new
    changed:   no     no     no    yes     no

Many editors, and `cp` and `>`, empty a file before they fill it. A file of rights that is empty, or ends at the end of
a line too early, reads as well as any other and takes rights away, which cannot always be given back: whoever was hung
up on has gone. So a change counts when two looks in a row, some time apart, have seen the file with the same mark.
Whoever writes for longer than that between two looks writes another file and renames it.
"""

from pathlib import Path
from typing import TypeAlias

__all__ = ["Watched"]

Mark: TypeAlias = tuple[int, int, int]


class Watched:
    """Says when a file has changed, to one who asks at intervals."""

    def __init__(self, path: Path) -> None:
        """Begin with the file as it is."""
        self._path = path
        self._known = self._seen = _mark(path)

    def changed(self) -> bool:
        """Whether the file has changed, and was the same at the look before; once for each change."""
        before, self._seen = self._seen, _mark(self._path)
        if self._seen == self._known or self._seen != before:
            return False
        self._known = self._seen
        return True


def _mark(path: Path) -> Mark | None:
    """Return what changes when a file does; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
