"""Visitors: tools from elsewhere, for as long as they may stay.

Who has shown a certificate is hung up on within `LOOK_SECONDS` when it is revoked or expires, and no handshake lets it
in again.

Who has shown none proves by a token which tools it may be. A token that lets somebody be the tool `calc` grants the
right `publish` on `tool:calc`; a pattern is as good, such as `tool:lab.*`. It is what the tool says in the place of the
secret that a launcher gives (`Hello.token`). It holds as long as it says, and until it is revoked: who is connected by
a token that holds no more is hung up on within `LOOK_SECONDS`, and does not come back.

Neither does who loses the right to be its tool (`house_rules.py`). Who was hung up on by all this is lost at once,
whatever lease it has; and who was cut off and comes back within its lease must be who it was (`guest.py`), by a proof
that still holds.

A stranger is told the same whatever it tries, `STRANGER`: neither what tools there are, nor which of them wait to come
back, nor what was wrong with its secret. What a token says wrong is told to who shows one, as it knows that anyway.
"""

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.errors import RefusedError
from echoic.links import Connection, Credentials
from echoic.toolbus.guest import TOOL_PREFIX, TOOL_RIGHT, Guest
from echoic.toolbus.house_rules import HouseRules
from echoic.trust import Issuers, Revocations

if TYPE_CHECKING:
    from echoic.toolbus.remote import RemoteLine

__all__ = ["LOOK_SECONDS", "STRANGER", "Visitors"]

LOOK_SECONDS: Final = 1.0
STRANGER: Final = "this bus wants a certificate, or a token that lets its owner be the tool; it was shown neither"
log: Final = logging.getLogger("echoic.toolbus")


class Visitors:
    """Says who tools are, and looks again from time to time whether what has proved that still holds."""

    def __init__(self, issuers: Issuers | None, revoked: Path | None, rules: HouseRules) -> None:
        """Begin with nobody.

        Args:
            issuers: Reads tokens; without it none is believed.
            revoked: The list of revoked certificates.
            rules: Who may be which tool.
        """
        self._issuers = issuers
        self._revocations = Revocations(revoked)
        self._rules = rules
        self._followed: dict[Connection, RemoteLine] = {}
        self._lock = threading.Lock()
        self._watching = self._closed = False

    def by_certificate(self, shown: Credentials) -> Guest:
        """Return who has shown a certificate.

        Raises:
            RefusedError: It is revoked, or has expired.
        """
        self._check_certificate(shown)
        return Guest(shown.name, shown)

    def by_token(self, name: str, token: str) -> Guest:
        """Return who has shown a token that lets it be a tool.

        Raises:
            RefusedError: It does not.
        """
        if self._issuers is None or not token:
            raise RefusedError(STRANGER)
        claims = self._issuers.read(token, time.time())
        guest = Guest(claims.who, token=token, tools=claims.channels)
        if TOOL_RIGHT not in claims.rights or not guest.may_be(name):
            raise RefusedError(f"the token of `{claims.who}` does not grant `{TOOL_RIGHT}` on `{TOOL_PREFIX}{name}`")
        return guest

    def check(self, guest: Guest, name: str, peer: str) -> None:
        """See whether somebody who was let in may still be there.

        Raises:
            RefusedError: Its certificate or token holds no more, or it has lost the right to be this tool.
        """
        if guest.credentials is not None:
            self._check_certificate(guest.credentials)
        if guest.token:
            self.by_token(name, guest.token)
        self._rules.check(guest, name, peer, again=True)

    def follow(self, connection: Connection, line: "RemoteLine") -> None:
        """Hang up on a tool when it may not stay any more, if there is anything by which it might not."""
        guest = line.guest
        if guest.credentials is None and not guest.token and not self._rules.counted:
            return
        with self._lock:
            self._followed[connection] = line
            if self._watching or self._closed:
                return
            self._watching = True
        threading.Thread(target=self._watch, name="echoic-bus-visitors", daemon=True).start()

    def forget(self, connection: Connection) -> None:
        """Look no more after a tool that has gone."""
        with self._lock:
            self._followed.pop(connection, None)

    def close(self) -> None:
        """Look after nobody any more."""
        with self._lock:
            self._closed = True
            self._followed.clear()

    def _check_certificate(self, shown: Credentials) -> None:
        if self._revocations.lists(shown.serial):
            raise RefusedError(f"the certificate of `{shown.name}` is revoked")
        if time.time() >= shown.expires:
            raise RefusedError(f"the certificate of `{shown.name}` has expired")

    def _watch(self) -> None:
        while self._look():
            time.sleep(LOOK_SECONDS)

    def _look(self) -> bool:
        """Hang up on those who may not stay; whether there is anybody left."""
        with self._lock:
            every = list(self._followed.items())
            self._watching = bool(every)
            if not every:
                return False
        for connection, line in every:
            try:
                self.check(line.guest, line.name, connection.peer)
            except RefusedError as error:
                log.warning("hung up on tool %s at %s: %s", line.name, connection.peer, error)
                self.forget(connection)
                line.dismiss(str(error))
                connection.close()
        return True
