"""A vigil over files that say who is trusted: what they say counts soon after they have changed.

    rights               read again; who has lost a right that is in use is cut off
    revoked              every TLS connection is closed, and made anew by those who still can (`hub.proving`)

A file of rights that cannot be read, or is none, changes nothing and is complained about: half of a file that is being
written would lock everybody out.
"""

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.errors import EchoicError
from echoic.hub.proving import prove_anew
from echoic.links import Identity
from echoic.rights import Rights
from echoic.trust import load_rights

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["LOOK_SECONDS", "Vigil", "keep_vigil"]

LOOK_SECONDS: Final = 1.0
CLOSE_SECONDS: Final = 2.0
log: Final = logging.getLogger("echoic.hub")


class Vigil:
    """Looks at files once a second, and acts when one has changed."""

    def __init__(self, actions: dict[Path, Callable[[], None]]) -> None:
        self._actions = actions
        self._seen = {path: _mark(path) for path in actions}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="echoic-vigil", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._closing.set()
        if self._thread is not threading.current_thread():
            self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            for path, act in self._actions.items():
                mark = _mark(path)
                if mark != self._seen[path]:
                    self._seen[path] = mark
                    self._act(path, act)

    def _act(self, path: Path, act: Callable[[], None]) -> None:
        try:
            act()
        except EchoicError as error:
            if self._closing.is_set():
                return  # the hub was closed meanwhile
            log.warning("%s has changed and cannot be used, so what it said before still counts: %s", path, error)
        else:
            log.info("%s has changed, and counts from here on", path)


def keep_vigil(
    rights: Rights | str | Path | None,
    set_rights: Callable[[Rights], None],
    identity: Identity | None,
    switchboard: "Switchboard",
) -> Vigil | None:
    """Look after the files that say whom a hub trusts; None if there are none."""
    actions: dict[Path, Callable[[], None]] = {}
    if isinstance(rights, str | Path):
        actions[Path(rights)] = lambda: set_rights(load_rights(rights))
    if identity is not None and identity.revoked is not None:
        actions[identity.revoked] = lambda: prove_anew(switchboard)
    return Vigil(actions) if actions else None


def _mark(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file does; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
