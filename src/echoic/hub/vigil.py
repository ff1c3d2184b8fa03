"""A vigil over what says who is trusted: it counts soon after it has changed.

    rights               read again; who has lost a right that is in use is cut off
    revoked              every TLS connection is closed, and made anew by those who still can (`hub.proving`)
    certificate, key     the same, as soon as they belong together: peers see the other one before the first expires
    the clock            who has shown a certificate that has expired since is hung up on

A change counts when two looks in a row have seen it (`Watched`), so that a file that is empty for a moment while it is
being written takes nobody's rights. One that cannot be read, or is none, changes nothing, is complained about and tried
again. So it is with a certificate whose key is still to come.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.errors import EchoicError
from echoic.hub.proving import end_expired, prove_anew, show_anew
from echoic.links import Identity
from echoic.rights import Rights
from echoic.trust import Watched, load_rights

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["LOOK_SECONDS", "Trusted", "Vigil"]

LOOK_SECONDS: Final = 0.5
CLOSE_SECONDS: Final = 2.0
log: Final = logging.getLogger("echoic.hub")


class Vigil:
    """Looks at files twice a second, and acts when one has changed; and does beside it what time alone asks for."""

    def __init__(self, actions: Mapping[Watched, Callable[[], None]], tick: Callable[[], None] = lambda: None) -> None:
        self._actions = actions
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
        for watched, act in self._actions.items():
            if watched.changed():
                self._act(watched, act)

    def _act(self, watched: Watched, act: Callable[[], None]) -> None:
        try:
            act()
        except EchoicError as error:
            if watched.failed(str(error)) and not self._closing.is_set():  # else the hub was closed meanwhile
                log.warning(
                    "%s has changed and cannot be used, so what it said before still counts: %s", watched.path, error
                )
        else:
            log.info("%s has changed, and counts from here on", watched.path)


class Trusted:
    """The files that say whom a hub trusts, and by what it is trusted, as they were before it has read them."""

    def __init__(self, rights: Rights | str | Path | None, identity: Identity | None) -> None:
        self._rights = Watched(Path(rights)) if isinstance(rights, str | Path) else None
        self._identity = identity
        shown = (identity.certificate, identity.key) if identity is not None else ()
        self._shown = [Watched(path) for path in shown]
        revoked = identity.revoked if identity is not None else None
        self._revoked = Watched(revoked) if revoked is not None else None

    def keep_vigil(self, set_rights: Callable[[Rights], None], switchboard: "Switchboard") -> Vigil | None:
        """Look after them; None if there are none."""
        actions: dict[Watched, Callable[[], None]] = {}
        if self._rights is not None:
            path = self._rights.path
            actions[self._rights] = lambda: set_rights(load_rights(path))
        identity = self._identity
        if identity is None:
            return Vigil(actions) if actions else None
        for watched in self._shown:
            actions[watched] = lambda: show_anew(switchboard, identity)
        if self._revoked is not None:
            actions[self._revoked] = lambda: prove_anew(switchboard)
        return Vigil(actions, lambda: end_expired(switchboard, time.time()))
