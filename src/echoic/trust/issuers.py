"""Issuers: the keys that may sign tokens, and the tokens that were revoked, as their files are at the moment.

Programs run for long, and a token is revoked while they do. So the files are looked at whenever a token is shown, and
read again when they have changed. A token is shown once for a connection, never for an event.

A file that is missing or cannot be read means that nobody knows what was revoked: everything is refused then.
"""

import os
import threading
from pathlib import Path
from typing import Final

from echoic.errors import InsecureError, LocalError, RefusedError
from echoic.trust.folder import ISSUERS, REVOKED_TOKENS, authority_folder
from echoic.trust.keys import check_public
from echoic.trust.private_files import OTHERS_WRITE, read_private
from echoic.trust.tokens import Claims, read_token

__all__ = ["Issuers"]

LINES_MAX: Final = 8192


class Issuers:
    """Reads tokens."""

    def __init__(self, folder: Path | None = None) -> None:
        """Take the files of a folder; those of the authority if none is named.

        Raises:
            InsecureError: They are missing, or cannot be used.
        """
        folder = folder or authority_folder()
        self._paths: Final = (folder / ISSUERS, folder / REVOKED_TOKENS)
        self._lock = threading.Lock()
        self._seen: tuple[tuple[int, int, int], ...] = ()
        self._keys: frozenset[str] = frozenset()
        self._revoked: frozenset[str] = frozenset()
        self._refresh()

    def read(self, text: str, now: float) -> Claims:
        """Return what a token says.

        Raises:
            RefusedError: It does not hold, or nobody can say whether it does.
        """
        try:
            with self._lock:
                self._refresh()
                keys, revoked = self._keys, self._revoked
        except InsecureError as error:
            raise RefusedError("the token is refused: it cannot be told which ones are revoked") from error
        return read_token(text, keys, now, revoked)

    def _refresh(self) -> None:
        try:
            seen = tuple((at.st_ino, at.st_mtime_ns, at.st_size) for at in map(os.stat, self._paths))
            if seen == self._seen:
                return
            keys, revoked = (_lines(path) for path in self._paths)
            for key in keys:
                check_public(key)
        except (OSError, LocalError) as error:
            self._seen = ()
            raise InsecureError(f"cannot tell which tokens hold: {error}") from error
        self._keys, self._revoked, self._seen = frozenset(keys), frozenset(revoked), seen


def _lines(path: Path) -> list[str]:
    """Return the words of a file, one in each line.

    Raises:
        LocalError: It cannot be read, or is no such file.
    """
    data = read_private(path, forbidden=OTHERS_WRITE)
    try:
        lines = (data or b"").decode("ascii").split()
    except UnicodeDecodeError as error:
        raise LocalError(f"expected lines of letters in {path}: {error}") from error
    if data is None or len(lines) > LINES_MAX:
        raise LocalError(f"{path} is missing, or has more than {LINES_MAX} lines")
    return lines
