"""Visitors: tools from elsewhere, for as long as they may stay.

Who has shown a certificate is hung up on within `LOOK_SECONDS` when it is revoked, and no handshake lets it in again.

Who has shown none proves by a token which tools it may be. A token that lets somebody be the tool `calc` grants the
right `publish` on `tool:calc`; a pattern is as good, such as `tool:lab.*`. It is what the tool says in the place of the
secret that a launcher gives (`Hello.token`). It holds as long as it says, and until it is revoked: who is connected by
a token that holds no more is hung up on within `LOOK_SECONDS`, and does not come back.
"""

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.errors import RefusedError
from echoic.links import Connection
from echoic.rights import Pattern
from echoic.toolbus.protocol import Hello
from echoic.trust import Issuers, Revocations

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LOOK_SECONDS", "TOOL_PREFIX", "TOOL_RIGHT", "Visitors"]

LOOK_SECONDS: Final = 1.0
TOOL_PREFIX: Final = "tool:"
TOOL_RIGHT: Final = "publish"
log: Final = logging.getLogger("echoic.toolbus")


class Visitors:
    """Reads the tokens of tools, and looks again from time to time whether these and certificates hold."""

    def __init__(self, issuers: Issuers | None, revoked: Path | None) -> None:
        """Begin with nobody.

        Args:
            issuers: Reads tokens; without it none is believed.
            revoked: The list of revoked certificates.
        """
        self._issuers = issuers
        self._revocations = Revocations(revoked)
        self._followed: dict[Connection, tuple[str, Callable[[], None]]] = {}
        self._lock = threading.Lock()
        self._watching = self._closed = False

    def check(self, name: str, token: str) -> None:
        """See whether a token lets somebody be a tool.

        Raises:
            RefusedError: It does not.
        """
        if self._issuers is None:
            raise RefusedError("this bus wants a certificate, and none was shown")
        claims = self._issuers.read(token, time.time())
        wanted = TOOL_PREFIX + name
        if TOOL_RIGHT not in claims.rights or not any(Pattern(each).matches(wanted) for each in claims.channels):
            raise RefusedError(f"the token of `{claims.who}` does not grant `{TOOL_RIGHT}` on `{wanted}`")

    def check_certificate(self, connection: Connection) -> None:
        """See whether the certificate that a tool has shown still counts.

        Raises:
            RefusedError: It is revoked.
        """
        shown = connection.credentials
        if shown is not None and self._revocations.lists(shown.serial):
            raise RefusedError(f"the certificate of `{shown.name}` is revoked")

    def follow(self, connection: Connection, hello: Hello, token: str) -> None:
        """Hang up on a tool when its token, or its certificate if it has none, holds no more."""
        name = hello.name

        def check() -> None:
            if token:
                self.check(name, token)
            self.check_certificate(connection)

        with self._lock:
            self._followed[connection] = (name, check)
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
        for connection, (name, check) in every:
            try:
                check()
            except RefusedError as error:
                log.warning("hung up on tool %s at %s: %s", name, connection.peer, error)
                self.forget(connection)
                connection.close()
        return True
