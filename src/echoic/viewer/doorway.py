"""The doorway: HTTP as uvicorn has it, with limits on those whom the guard has not let in.

uvicorn waits without end for the first request of a connection, and for the rest of one that comes byte by byte, so
that a few hundred connections that say nothing would be all that it has. Here a connection has `STRANGER_LOOKS` times
`LOOK_SECONDS` until a request of it was let in, from one address of another machine there may be so many at a time, and
a head has so many bytes. A handshake of TLS has `HANDSHAKE_SECONDS` (`limit_handshakes`).

The time of a stranger is counted in looks, one each second: a viewer that stands still, since its machine does or is
too busy, has not listened meanwhile, and would hang up on people who have said everything in time.
"""

import asyncio
import functools
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from echoic.links import is_loopback
from echoic.viewer.guard import ADMISSION

__all__ = ["FROM_ONE_ADDRESS_MAX", "HEAD_BYTES_MAX", "Doorway", "limit_handshakes"]

LOOK_SECONDS: Final = 1.0
STRANGER_LOOKS: Final = 5
HANDSHAKE_SECONDS: Final = 5.0
FROM_ONE_ADDRESS_MAX: Final = 64
HEAD_BYTES_MAX: Final = 32 * 1024


class Doorway(H11Protocol):
    """A connection that speaks HTTP, until it is a WebSocket or ends."""

    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - as uvicorn has it
        """Begin, unless there are too many from the same address."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        others = sum(1 for each in self.connections if (getattr(each, "client", None) or ("",))[0] == host)
        if not is_loopback(host) and others > FROM_ONE_ADDRESS_MAX:
            transport.abort()
            return
        self._be_patient(STRANGER_LOOKS)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _be_patient(self, looks: int) -> None:
        """Look so many times more whether somebody was let in, then hang up; one who was let in may stay."""
        upgraded = self.transport.get_protocol() is not self
        asked = getattr(self, "scope", None) or {}  # nothing, before the first request
        self._look = None
        if upgraded or ADMISSION in asked:
            return
        if looks:
            self._look = self.loop.call_later(LOOK_SECONDS, self._be_patient, looks - 1)
        else:
            self.transport.abort()


def limit_handshakes(loop: asyncio.AbstractEventLoop) -> None:
    """Have servers of a loop that speak TLS wait for a handshake no longer than they should."""
    create = loop.create_server

    @functools.wraps(create)
    async def create_server(*positional: Any, ssl: Any = None, **named: Any) -> Any:  # noqa: ANN401 - passed on
        seconds = HANDSHAKE_SECONDS if ssl is not None else None
        return await create(*positional, ssl=ssl, ssl_handshake_timeout=seconds, **named)

    loop.create_server = create_server  # type: ignore[method-assign] # uvicorn calls it, and has no option for this
