"""The doorway: HTTP as uvicorn has it, with limits on those whom the guard has not let in.

uvicorn takes whoever comes and counts them when TLS is done, and it waits without end for the first request of a
connection, and for the rest of one that comes byte by byte: a thousand connections that say nothing would be all that
it has. Here a connection is a stranger from when it is accepted (`links.gate`), and a *visit* until it ends:

    accepted ---> handshake, 5 s ---> first request, 5 looks ---> guard ---> let in
    64 strangers, shared out by address                                      256 in all, 64 from one address,
                                                                             64 for one name
                                                                             next request, 5 looks

Whoever was let in has as long for the whole of the next request: uvicorn waits 5 s for its first byte, and for the
others without end. Times are counted in looks, one each second: a viewer that stands still, since
its machine does or is too busy, has not listened meanwhile, and would hang up on people who have said everything in
time.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from echoic.links import is_loopback, origin_of, parse_address
from echoic.links.gate import Caller, Gate  # not of the package, which does without asyncio
from echoic.viewer.shares import Shares

__all__ = ["CONNECTIONS_MAX", "FROM_ONE_ADDRESS_MAX", "HEAD_BYTES_MAX", "Doorway", "Feed", "serve_by_gate", "visit_of"]

LOOK_SECONDS: Final = 1.0
REQUEST_LOOKS: Final = 5
HANDSHAKE_SECONDS: Final = 5.0
CONNECTIONS_MAX: Final = 256
FROM_ONE_ADDRESS_MAX: Final = 64
HEAD_BYTES_MAX: Final = 32 * 1024
VISIT: Final = "echoic.visit"
"""Under what the state of a request has the visit of who makes it."""


class Visit:
    """A connection, from when it was accepted until it ends."""

    def __init__(self, entrance: "Entrance", caller: Caller) -> None:
        self._entrance, self._caller = entrance, caller
        self.origin: Final = origin_of(caller.peer)
        self.here: Final = is_loopback(parse_address(caller.peer)[0])
        """Whether it comes from this machine."""
        self.let_in = False
        self.who = ""
        """In whose name it was let in."""

    def enter(self, who: str) -> str:
        """Come in, since a request of somebody may; return why there is no room, "" if there is."""
        if self.let_in:
            return ""
        self.who = who
        refusal = self._entrance.take(self, self._caller)
        self.let_in = not refusal
        return refusal

    def leave(self) -> None:
        """End."""
        self._entrance.part(self, self._caller)

    def hang_up(self) -> None:
        """Close the connection at once."""
        self._caller.hang_up()


class Doorway(H11Protocol):
    """A connection that speaks HTTP, until it is a WebSocket or ends."""

    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as uvicorn has it
        """Begin, and hang up if nothing comes of it."""
        super().connection_made(transport)
        self._be_patient(REQUEST_LOOKS, None)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._look is not None:
            self._look.cancel()
        self.app_state[VISIT].leave()
        super().connection_lost(exc)

    def _be_patient(self, looks: int, seen: RequestResponseCycle | None) -> None:
        """Look so many times more whether somebody was let in, then hang up.

        One who was let in has as many looks from when the last request was answered, and all the time as a WebSocket.
        """
        self._look = None
        cycle = self.cycle
        if self.app_state[VISIT].let_in:
            if self not in self.connections:  # it is a WebSocket by now, which is another protocol
                return
            if cycle is not seen or not cycle.response_complete:
                looks = REQUEST_LOOKS
        if looks:
            self._look = self.loop.call_later(LOOK_SECONDS, self._be_patient, looks - 1, cycle)
        else:
            self.app_state[VISIT].hang_up()


class Feed(WebSocketsSansIOProtocol):
    """A connection that has become a WebSocket."""

    def keepalive_timeout(self) -> None:
        """Say why it ends, and hang up: uvicorn would wait until all before that has been read."""
        super().keepalive_timeout()
        self.app_state[VISIT].hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.app_state[VISIT].leave()
        super().connection_lost(exc)


class Entrance:
    """Stands where uvicorn has a server of asyncio, takes connections by a gate, and counts who was let in."""

    def __init__(self, made: Callable[[], Any], listening: socket.socket, context: ssl.SSLContext | None) -> None:
        self._made, self._context = made, context
        self._visits: set[Visit] = set()
        self._shares = Shares(CONNECTIONS_MAX, "connections to the page are open")
        self._gate = Gate(listening, asyncio.get_running_loop(), self._greet)

    def take(self, visit: Visit, caller: Caller) -> str:
        """Count a visit as one that was let in; return why there is no room, "" if there is."""
        if not visit.here and sum(other.origin == visit.origin for other in self._visits) >= FROM_ONE_ADDRESS_MAX:
            return f"the page has {FROM_ONE_ADDRESS_MAX} connections from this address, which is the limit"
        crowd = self._shares.take(visit.who)
        if not crowd:
            self._visits.add(visit)
            self._gate.let_in(caller)
        return crowd

    def part(self, visit: Visit, caller: Caller) -> None:
        """Count a visit no more."""
        if visit in self._visits:
            self._visits.discard(visit)
            self._shares.give_back(visit.who)
        self._gate.let_in(caller)

    def close(self) -> None:
        """Take nobody more."""
        self._gate.close()

    async def wait_closed(self) -> None:
        """Wait for handshakes to end."""
        await self._gate.empty()

    async def _greet(self, caller: Caller) -> None:
        def made() -> Any:  # noqa: ANN401 - a protocol as uvicorn has it
            protocol = self._made()
            protocol.app_state = {**protocol.app_state, VISIT: Visit(self, caller)}
            return protocol

        await self._gate.open(caller, made, self._context, HANDSHAKE_SECONDS)


def serve_by_gate(loop: asyncio.AbstractEventLoop) -> None:
    """Have servers of a loop take their connections by a gate."""

    async def create_server(
        protocol_factory: Callable[[], Any],
        *,
        sock: socket.socket,
        ssl: ssl.SSLContext | None = None,
        **_: Any,  # noqa: ANN401 - how many may wait is said where the socket was made
    ) -> Entrance:
        return Entrance(protocol_factory, sock, ssl)

    loop.create_server = create_server  # type: ignore[method-assign, assignment] # uvicorn calls it, and knows no other


def visit_of(scope: Mapping[str, Any]) -> Visit | None:
    """Return the visit that a request belongs to; None outside of a viewer's server."""
    found = scope.get("state", {}).get(VISIT)
    return found if isinstance(found, Visit) else None
