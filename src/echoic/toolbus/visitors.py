"""Visitors: tools that have shown no certificate, and prove by a token which tools they may be.

A token that lets somebody be the tool `calc` grants the right `publish` on `tool:calc`; a pattern is as good, such as
`tool:lab.*`. It is what the tool says in the place of the secret that a launcher gives (`Hello.token`). It holds as
long as it says, and until it is revoked: who is connected by a token that holds no more is hung up on within
`LOOK_SECONDS`, and does not come back.
"""

import logging
import threading
import time
from typing import Final

from echoic.errors import RefusedError
from echoic.links import Connection
from echoic.rights import Pattern
from echoic.toolbus.protocol import Hello
from echoic.trust import Issuers

__all__ = ["LOOK_SECONDS", "TOOL_PREFIX", "TOOL_RIGHT", "Visitors"]

LOOK_SECONDS: Final = 1.0
TOOL_PREFIX: Final = "tool:"
TOOL_RIGHT: Final = "publish"
log: Final = logging.getLogger("echoic.toolbus")


class Visitors:
    """Reads the tokens of tools, and looks again from time to time whether they hold."""

    def __init__(self, issuers: Issuers | None) -> None:
        """Begin with nobody; without `issuers` nobody is believed."""
        self._issuers = issuers
        self._tokens: dict[Connection, tuple[str, str]] = {}
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

    def follow(self, connection: Connection, hello: Hello, token: str) -> None:
        """Hang up on a tool when its token holds no more."""
        with self._lock:
            self._tokens[connection] = (hello.name, token)
            if self._watching or self._closed:
                return
            self._watching = True
        threading.Thread(target=self._watch, name="echoic-bus-visitors", daemon=True).start()

    def forget(self, connection: Connection) -> None:
        """Look no more after a tool that has gone."""
        with self._lock:
            self._tokens.pop(connection, None)

    def close(self) -> None:
        """Look after nobody any more."""
        with self._lock:
            self._closed = True
            self._tokens.clear()

    def _watch(self) -> None:
        while self._look():
            time.sleep(LOOK_SECONDS)

    def _look(self) -> bool:
        """Hang up on those whose tokens hold no more; whether there is anybody left."""
        with self._lock:
            every = list(self._tokens.items())
            self._watching = bool(every)
            if not every:
                return False
        for connection, (name, token) in every:
            try:
                self.check(name, token)
            except RefusedError as error:
                log.warning("hung up on tool %s at %s: %s", name, connection.peer, error)
                self.forget(connection)
                connection.close()
        return True
