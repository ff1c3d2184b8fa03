"""Issuers: the keys that may sign tokens, and the tokens that were revoked, as their files are at the moment.

Programs run for long, and a token is revoked while they do. So the files are looked at whenever a token is shown, and
read again when they have changed. A token is shown once for a connection, never for an event.

A file that is missing, cannot be read or names no key means that nobody knows which tokens hold: everybody new is
refused then. Whoever is there already is asked about again and again (`read_again`), and stays meanwhile: half of a
file that is being copied would send everybody away, and who was hung up on has gone. For him a change counts when it
was seen twice, half a second apart, as with other files of an operator (`watched.py`).
"""

import logging
import threading
import time
from pathlib import Path
from typing import Final

from echoic.errors import InsecureError, LocalError, RefusedError
from echoic.trust.folder import ISSUERS, REVOKED_TOKENS, authority_folder
from echoic.trust.keys import check_public
from echoic.trust.private_files import OTHERS_WRITE, read_private
from echoic.trust.tokens import Claims, read_token
from echoic.trust.watched import Mark, mark_of

__all__ = ["Issuers"]

LINES_MAX: Final = 8192
SETTLED_SECONDS: Final = 0.5
log: Final = logging.getLogger("echoic.trust")


class Issuers:
    """Reads tokens. Any thread may ask."""

    def __init__(self, folder: Path | None = None) -> None:
        """Take the files of a folder; those of the authority if none is named.

        Raises:
            InsecureError: They are missing, or cannot be used.
        """
        folder = folder or authority_folder()
        self._paths: Final = (folder / ISSUERS, folder / REVOKED_TOKENS)
        self._lock = threading.Lock()
        self._seen: tuple[Mark | None, ...] = ()
        self._seen_at = 0.0
        self._keys: frozenset[str] = frozenset()
        self._revoked: frozenset[str] = frozenset()
        self._refresh()
        self._settled = (self._keys, self._revoked)
        self._complaint = ""

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
            raise RefusedError("the token is refused: it cannot be told which ones hold") from error
        return read_token(text, keys, now, revoked)

    def read_again(self, text: str, now: float) -> Claims:
        """Return what a token says of somebody who is there by it; files that are being written do not send him away.

        Raises:
            RefusedError: It holds no more.
        """
        with self._lock:
            self._settle()
            keys, revoked = self._settled
            # Who came a moment ago may be known by files that have changed a moment ago.
            keys, revoked = keys | self._keys, revoked & self._revoked
        return read_token(text, keys, now, revoked)

    def _settle(self) -> None:
        """Let what the files say count for those who are there as well, if they have said it for long enough."""
        try:
            self._refresh()
        except InsecureError as error:
            if str(error) != self._complaint:
                log.warning("%s; what was said before still counts for those who are there", error)
            self._complaint = str(error)
            return
        self._complaint = ""
        if time.monotonic() - self._seen_at >= SETTLED_SECONDS:
            self._settled = (self._keys, self._revoked)

    def _refresh(self) -> None:
        """Read the files again if they have changed.

        Raises:
            InsecureError: They cannot be used; what was read before is kept.
        """
        seen = tuple(map(mark_of, self._paths))
        if seen == self._seen:
            return
        self._seen = ()
        try:
            keys, revoked = (_lines(path) for path in self._paths)
            for key in keys:
                check_public(key)
        except (OSError, LocalError) as error:
            raise InsecureError(f"cannot tell which tokens hold: {error}") from error
        if not keys:
            raise InsecureError(f"cannot tell which tokens hold: {self._paths[0]} names no key")
        self._keys, self._revoked, self._seen = frozenset(keys), frozenset(revoked), seen
        self._seen_at = time.monotonic()


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
