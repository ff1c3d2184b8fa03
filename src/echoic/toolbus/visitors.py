"""Visitors: tools from elsewhere, for as long as they may stay.

Who has shown a certificate is hung up on within a second when it is revoked or expires, and no handshake lets it in
again. When it has only expired, its owner may come back within its lease, with a renewed one. Tools that the bus has
started show the certificate of the bus, as it was then; they are not hung up on when that expires.

Who has shown none proves by a token which tools it may be. A token that lets somebody be the tool `calc` grants the
right `publish` on `tool:calc`; a pattern is as good, such as `tool:lab.*`. It is what the tool says in the place of the
secret that a launcher gives (`Hello.token`). It holds as long as it says, and until it is revoked: who is connected by
a token that holds no more is hung up on within a second, and does not come back.

Neither does who loses the right to be its tool (`house_rules.py`), by whatever entrance it came. Who was hung up on by
all this is lost at once, whatever lease it has; and who was cut off, or let its certificate expire, and comes back
within its lease must be who it was (`guest.py`), by a proof that still holds.

A stranger is told the same whatever it tries, `STRANGER`: neither what tools there are, nor which of them wait to come
back, nor what was wrong with its secret. What a token says wrong is told to who shows one, as it knows that anyway.
"""

import logging
import threading
import time
from typing import Final, Protocol

from echoic.errors import RefusedError
from echoic.links import Connection, Credentials, Identity
from echoic.toolbus.guest import TOOL_PREFIX, TOOL_RIGHT, Guest
from echoic.toolbus.house_rules import HouseRules
from echoic.trust import Issuers, Revocations

__all__ = ["LOOK_SECONDS", "STRANGER", "Visiting", "Visitors"]

LOOK_SECONDS: Final = 0.5
STRANGER: Final = "this bus wants a certificate, or a token that lets its owner be the tool; it was shown neither"
log: Final = logging.getLogger("echoic.toolbus")


class Visiting(Protocol):
    """The line of a tool that is looked after."""

    @property
    def name(self) -> str:
        """Which tool it is."""

    @property
    def guest(self) -> Guest:
        """Who it is."""

    def dismiss(self, reason: str, *, fault: bool) -> None:
        """Hang up; with a fault the tool does not come back."""


class Visitors:
    """Says who tools are, and looks again from time to time whether what has proved that still holds."""

    def __init__(self, issuers: Issuers | None, identity: Identity | None, rules: HouseRules) -> None:
        """Begin with nobody.

        Args:
            issuers: Reads tokens; without it none is believed.
            identity: That of the bus; it says which certificates are revoked. Without it nobody shows one.
            rules: Who may be which tool.
        """
        self._issuers = issuers
        self._revocations = Revocations(identity.revoked if identity is not None else None)
        self._rules = rules
        self._needed = issuers is not None or identity is not None or rules.counted
        self._followed: dict[Connection, Visiting] = {}
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def start(self) -> None:
        """Begin to look, where there is anything by which somebody may lose what let it in."""
        if self._needed:
            threading.Thread(target=self._watch, name="echoic-bus-visitors", daemon=True).start()

    def by_certificate(self, shown: Credentials) -> Guest:
        """Return who has shown a certificate.

        Raises:
            RefusedError: It is revoked, or has expired.
        """
        self._check_not_revoked(shown)
        _check_not_expired(shown)
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
        """See whether somebody who was let in may still be there, apart from `check_expiry`.

        Files of issuers that are being written change nothing (`Issuers.read_again`).

        Raises:
            RefusedError: Its certificate is revoked, its token holds no more, or it has lost the right to be this tool.
        """
        if guest.credentials is not None:
            self._check_not_revoked(guest.credentials)
        if guest.token and self._issuers is not None:
            self._issuers.read_again(guest.token, time.time())
        self._rules.check(guest, name, peer, again=True)

    def check_expiry(self, guest: Guest) -> None:
        """See whether the certificate of somebody still counts, who may come back with a renewed one if not.

        Raises:
            RefusedError: It has expired.
        """
        if guest.credentials is not None and not guest.started:
            _check_not_expired(guest.credentials)

    def check_return(self, guest: Guest) -> None:
        """See whether somebody who may still be there may come back at this moment; if not, it may try again.

        Raises:
            RefusedError: Its certificate has expired, or it cannot be told whether its token still holds.
        """
        self.check_expiry(guest)
        if guest.token and self._issuers is not None:
            self._issuers.read(guest.token, time.time())

    def follow(self, connection: Connection, line: Visiting) -> None:
        """Hang up on a tool when it may not stay any more."""
        with self._lock:
            if self._needed and not self._closing.is_set():
                self._followed[connection] = line

    def forget(self, connection: Connection) -> None:
        """Look no more after a tool that has gone."""
        with self._lock:
            self._followed.pop(connection, None)

    def close(self) -> None:
        """Look after nobody any more."""
        self._closing.set()
        with self._lock:
            self._followed.clear()

    def _check_not_revoked(self, shown: Credentials) -> None:
        if self._revocations.lists(shown.serial):
            raise RefusedError(f"the certificate of `{shown.name}` is revoked")

    def _watch(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            self._rules.look()
            with self._lock:
                every = list(self._followed.items())
            for connection, line in every:
                self._look_at(connection, line)

    def _look_at(self, connection: Connection, line: Visiting) -> None:
        """Hang up on a tool that may not stay."""
        guest, fault = line.guest, True
        try:
            self.check(guest, line.name, connection.peer)
            fault = False
            self.check_expiry(guest)
        except RefusedError as error:
            log.warning("hung up on tool %s at %s: %s", line.name, connection.peer, error)
            self.forget(connection)
            line.dismiss(str(error), fault=fault)
            connection.close()


def _check_not_expired(shown: Credentials) -> None:
    if shown.expired(time.time()):
        raise RefusedError(f"the certificate of `{shown.name}` has expired")
