"""Watched files: an operator's file that counts again soon after it has changed, and not while it is being written.

    look   :   |      |      |      |      |
    file   : old    empty   new    new    new
    changed:   no     no     no    yes     no

Many editors, and `cp` and `>`, empty a file before they fill it. A file of rights that is empty, or ends at the end of
a line too early, reads as well as any other and takes rights away, which cannot always be given back: whoever was hung
up on has gone. So a change counts when two looks in a row, some time apart, have seen the file with the same mark.
Whoever writes for longer than that between two looks writes another file and renames it.

A change that cannot be acted on counts again at each look until it can: what was in the way may have nothing to do with
the file.
"""

from pathlib import Path
from typing import Final, TypeAlias

__all__ = ["Mark", "Watched", "mark_of"]

Mark: TypeAlias = tuple[int, int, int, int, int]


class Watched:
    """Says when a file has changed, to one who asks at intervals."""

    def __init__(self, path: Path) -> None:
        """Begin with the file as it is; whoever reads it does so from here on."""
        self.path: Final = path
        self._known = self._seen = mark_of(path)
        self._waiting = False
        self._complaint = ""

    def changed(self) -> bool:
        """Whether the file has changed, and was the same at the look before; once for each change."""
        before, self._seen = self._seen, mark_of(self.path)
        if self._seen != before or (self._seen == self._known and not self._waiting):
            return False
        if not self._waiting:
            self._complaint = ""
        self._known, self._waiting = self._seen, False
        return True

    def failed(self, reason: str) -> bool:
        """Have a change count again at the next look; return whether somebody is to be told why, who was not yet."""
        self._waiting = True
        told, self._complaint = self._complaint, reason
        return reason != told


def mark_of(path: Path) -> Mark | None:
    """Return what changes when a file does, or who may read and write it; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode, found.st_uid
