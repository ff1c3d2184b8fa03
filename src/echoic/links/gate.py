"""A gate: where a loop of asyncio takes connections, and whoever has not said who he is counts as a stranger.

The servers of asyncio take whoever comes, and make at once what TLS needs for each, some 300 KB, long before a protocol
learns that there is somebody: a thousand connections that said nothing took 300 MB. Here everybody is a stranger from
the moment in which he is accepted, before a byte of TLS, until he is let in or gone (`strangers`).

    accept ---> Strangers ---> serve: handshake, greeting ---> let_in
                    |
                    +-- one too many: the address that has most gives up its eldest
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from echoic.links.address import format_address
from echoic.links.sockets import tune_tcp
from echoic.links.strangers import Strangers

__all__ = ["Caller", "Gate"]

VANISHED_SECONDS: Final = 60
"""How long somebody may take nothing that he is sent: a tab in the background does, and a line that stands still. Links
have three seconds, since they are made again and nothing is lost; here a picture would be. Whoever serves may well have
less patience."""
FULL_SECONDS: Final = 0.1
PARTING_SECONDS: Final = 1.0
"""How long TLS waits for a peer to take leave too; asyncio would wait for 30 s."""
PARTING_TURNS: Final = 4
"""In how many turns of its loop asyncio has closed a connection that was given up, with TLS and without."""
log: Final = logging.getLogger("echoic.links")

P = TypeVar("P", bound=asyncio.BaseProtocol)


class Caller:
    """Somebody who has connected."""

    def __init__(self, socket_: socket.socket, peer: str) -> None:
        self.peer: Final = peer
        self.socket: Final = socket_
        self.given = False
        """Whether the socket was given to asyncio, which closes it then, and nobody else."""
        self.transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None

    def close(self) -> None:
        """End what is done for it; hang up if that is done already."""
        if self.task is None or not self.task.cancel():  # which it cannot be if it has ended in this very moment
            self.hang_up()

    def hang_up(self) -> None:
        """Close the connection at once, whatever waits to be read.

        A transport of TLS that was closed twice, as uvicorn does, knows its connection no more: `abort` fails, or does
        nothing. So the socket is shut down, which asyncio notices at any stage. It is not closed where asyncio has it:
        the loop would go on with the descriptor, which is that of another caller by then.
        """
        if not self.given:
            self.socket.close()
            return
        with contextlib.suppress(OSError):  # it has ended already
            self.socket.shutdown(socket.SHUT_RDWR)
        if self.transport is not None and not self.transport.is_closing():
            self.transport.abort()


Serve: TypeAlias = Callable[[Caller], Coroutine[Any, Any, None]]


class Gate:
    """Takes connections, and has only so many strangers. Everything happens in the thread of the loop.

    Args:
        listening: The socket that listens; whoever has made it closes it.
        loop: What serves.
        serve: What is done for a caller. If it fails, or is cancelled, the caller is hung up on.
    """

    def __init__(self, listening: socket.socket, loop: asyncio.AbstractEventLoop, serve: Serve) -> None:
        self._socket, self._loop, self._serve = listening, loop, serve
        self._strangers: Strangers[Caller] = Strangers()
        self._served: set[Caller] = set()
        self._closed = False
        listening.setblocking(False)
        self._listen()

    @property
    def strangers(self) -> int:
        """How many have connected and are not let in."""
        return len(self._strangers)

    def let_in(self, caller: Caller) -> None:
        """Count a caller as a stranger no more."""
        self._strangers.leave(caller)

    def part(self, caller: Caller) -> None:
        """Hang up on a caller."""
        self._strangers.leave(caller)
        caller.hang_up()

    async def open(
        self, caller: Caller, protocol: Callable[[], P], context: ssl.SSLContext | None, seconds: float
    ) -> tuple[asyncio.Transport, P]:
        """Return the transport of a caller and its protocol, when the handshake, if there is one, is done.

        Raises:
            OSError: It is not done in so many seconds, or went wrong.
        """
        tune_tcp(caller.socket, VANISHED_SECONDS)
        caller.socket.setblocking(False)
        caller.given = True
        transport, made = await self._loop.connect_accepted_socket(
            protocol,
            caller.socket,
            ssl=context,
            ssl_handshake_timeout=seconds if context is not None else None,
            ssl_shutdown_timeout=PARTING_SECONDS if context is not None else None,
        )
        caller.transport = transport
        return transport, made

    def close(self) -> None:
        """Take nobody more, and end what is done for those who are here."""
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._socket)
        for caller in list(self._served):
            caller.close()

    async def empty(self) -> None:
        """Wait until nothing is done for anybody."""
        while self._served:
            await asyncio.wait([caller.task for caller in self._served if caller.task is not None])
            await asyncio.sleep(0)  # for what is done when they have ended
        for _ in range(PARTING_TURNS):
            await asyncio.sleep(0)

    def _listen(self) -> None:
        if not self._closed:
            self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        """Take one more; called when there is one."""
        try:
            accepted, address = self._socket.accept()
        except BlockingIOError:
            return
        except OSError as error:  # there are no more file descriptors, perhaps for a moment
            log.warning("cannot accept a connection: %s", error)
            self._loop.remove_reader(self._socket)
            self._loop.call_later(FULL_SECONDS, self._listen)
            return
        caller = Caller(accepted, format_address(address[0], address[1]))
        leaving = self._strangers.admit(caller)
        self._served.add(caller)
        caller.task = self._loop.create_task(self._serve(caller))
        caller.task.add_done_callback(partial(self._done, caller))  # also if it is cancelled before it begins
        if leaving is not None:
            leaving.close()

    def _done(self, caller: Caller, task: asyncio.Task[None]) -> None:
        """Forget what was done for a caller, and hang up if that came to nothing."""
        self._served.discard(caller)
        caller.task = None  # it holds what has failed, and that the caller: without a cycle all of it goes at once
        error = None if task.cancelled() else task.exception()
        if error is not None:
            expected = isinstance(error, OSError)  # which a timeout is too
            log.log(
                logging.INFO if expected else logging.ERROR,
                "hung up on %s: %s",
                caller.peer,
                str(error) or type(error).__name__,
                exc_info=None if expected else error,
            )
        if error is not None or task.cancelled():
            self.part(caller)
