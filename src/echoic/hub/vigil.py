"""A vigil over what says who is trusted: it counts soon after it has changed.

    rights               read again; who has lost a right that is in use is cut off
    revoked              every TLS connection is closed, and made anew by those who still can (`hub.proving`)
    certificate, key     the same, as soon as they belong together: peers see the other one before the first expires
    the clock            who has shown a certificate that has expired since is hung up on

A change counts when two looks in a row have seen it (`Watched`), so that a file that is empty for a moment while it is
being written takes nobody's rights. One that cannot be read, or is none, changes nothing and is complained about. So it
is with a certificate whose key is still to come.
"""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.errors import EchoicError
from echoic.hub.proving import end_expired, prove_anew, show_anew
from echoic.links import Identity
from echoic.rights import Rights
from echoic.trust import Watched, load_rights

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["LOOK_SECONDS", "Vigil", "keep_vigil"]

LOOK_SECONDS: Final = 0.5
CLOSE_SECONDS: Final = 2.0
log: Final = logging.getLogger("echoic.hub")


class Vigil:
    """Looks at files twice a second, and acts when one has changed; and does beside it what time alone asks for."""

    def __init__(self, actions: dict[Path, Callable[[], None]], tick: Callable[[], None] = lambda: None) -> None:
        self._actions = [(path, Watched(path), act) for path, act in actions.items()]
        self._tick = tick
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
            self.look()
            self._tick()

    def look(self) -> None:
        """Act on what has changed; called at intervals."""
        for path, watched, act in self._actions:
            if watched.changed():
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
    """Look after what says whom a hub trusts, and by what it is trusted; None if there is nothing of the kind."""
    actions: dict[Path, Callable[[], None]] = {}
    if isinstance(rights, str | Path):
        actions[Path(rights)] = lambda: set_rights(load_rights(rights))
    if identity is None:
        return Vigil(actions) if actions else None
    for path in (identity.certificate, identity.key):
        actions[path] = lambda: show_anew(switchboard, identity)
    if identity.revoked is not None:
        actions[identity.revoked] = lambda: prove_anew(switchboard)
    return Vigil(actions, lambda: end_expired(switchboard, time.time()))
