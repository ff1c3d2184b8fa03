"""Doorkeepers: accept connections at an address, and give each stranger a thread and little time.

A stranger has a few seconds to say who it is, and there is room for so many strangers at a time (`Strangers`). Each
has a thread of its own, which goes on with whoever it turns out to be.
"""

import logging
import threading
from collections.abc import Callable
from typing import Final

from echoic.errors import EchoicError
from echoic.links import Connection, Identity, Listener, Strangers
from echoic.toolbus.limits import BusLimits

__all__ = ["Doorkeeper"]

ACCEPT_MILLISECONDS: Final = 200
log: Final = logging.getLogger("echoic.toolbus")


class Doorkeeper:
    """Accepts connections at an address, and gives each a thread, as long as there are not too many strangers."""

    def __init__(
        self,
        listen: str,
        identity: Identity | None,
        limits: BusLimits,
        welcome: Callable[[Connection, Callable[[], None]], None],
        name: str = "echoic-bus",
        *,
        visitors: bool = False,
    ) -> None:
        """Listen.

        Args:
            listen: Where; port 0 takes a free one.
            identity: Makes it TLS.
            limits: How many strangers there may be, and how long they may take.
            welcome: Goes on with a connection; calls what it is given when the stranger is none any more.
            name: With which the names of threads begin.
            visitors: Whether who shows no certificate is heard too, and proves itself by what it says.

        Raises:
            AddressError: `listen` is not an address.
            InsecureError: The files of the identity cannot be used.
            UnreachableError: It cannot be listened at.
        """
        self._listener = Listener(listen, identity, visitors=visitors)
        self.address: Final = self._listener.address
        self._limits = limits
        self._welcome = welcome
        self._name = name
        self._strangers: Strangers[Connection] = Strangers(limits.strangers_max)
        self._closed = False

    def start(self) -> None:
        """Begin to accept."""
        threading.Thread(target=self._accept_all, name=f"{self._name}-accept", daemon=True).start()

    def close(self) -> None:
        """Accept no more, and send away who has not said who it is."""
        self._closed = True
        self._listener.close()
        for stranger in self._strangers.empty():
            stranger.close()

    def _accept_all(self) -> None:
        while not self._closed:
            connection = self._listener.accept(ACCEPT_MILLISECONDS)
            if connection is None:
                continue
            leaving = self._strangers.admit(connection)
            if leaving is not None:
                leaving.close()
            greeting = threading.Thread(target=self._greet, args=(connection,), name=f"{self._name}-hear", daemon=True)
            try:
                greeting.start()
            except RuntimeError as error:  # the system has no more threads, perhaps for a moment
                log.warning("cannot greet %s: %s", connection.peer, error)
                self._known(connection)
                connection.close()

    def _greet(self, connection: Connection) -> None:
        try:
            connection.handshake(self._limits.hello_seconds)
            self._welcome(connection, lambda: self._known(connection))
        except (EchoicError, OSError) as error:
            log.warning("refused a tool at %s: %s", connection.peer, error)
            connection.close()
        finally:
            self._known(connection)

    def _known(self, connection: Connection) -> None:
        self._strangers.leave(connection)
