r"""What a recorder has of a channel, fetched ahead of whoever takes it.

    recorder   Fetched 0..999         Fetched 1000..1999      Fetched 2000..
                    \ Fetch 1000..  /           \ Fetch 2000..  /
    feed             +-------------+             +-------------+
                     | kept, at most `AHEAD_MAX` chunks
    sink             take 0..999 ----- handles them ----- take 1000..1999

The next chunk is asked for at the moment the last one arrives, in the thread that read it, so the recorder reads and
the link carries while the sink works. When all is there the request waits at the recorder, which answers it after the
next commit: a single message on its way, whatever the number of partitions, and no polling.

A feed ends with the first thing that goes wrong; what has arrived before can still be taken.
"""

import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from echoic.channels import ChannelId, Concentrator, Fetch, Fetched, Message, Refused
from echoic.errors import RefusedError

if TYPE_CHECKING:
    from echoic.hub.remote_shelf import Recorder
    from echoic.hub.switchboard import Switchboard

__all__ = ["Feed"]

CHUNK_BYTES: Final = 1024 * 1024
AHEAD_MAX: Final = 4
WAIT_NS: Final = 4_000_000_000


class Feed:
    """Chunks of a journal's partitions, in turn, from certain positions on."""

    def __init__(
        self, switchboard: "Switchboard", id: ChannelId, recorder: "Recorder", positions: tuple[int, ...]
    ) -> None:
        self._switchboard = switchboard
        self._channel = str(id)
        self._recorder = recorder
        self._positions = list(positions)
        self._partition = 0
        self._chunks: deque[Fetched] = deque()
        self._changed = threading.Condition()
        self._asked = False
        self._closed = False
        self._refused: Refused | None = None

    def start(self) -> None:
        """Begin to fetch."""
        self._switchboard.do(self._ask)

    def take(self, seconds: float) -> Fetched | Refused | None:
        """Return the next chunk, None if none comes in time; why there will be no more, when all have been taken."""
        with self._changed:
            self._changed.wait_for(lambda: self._chunks or self._refused or self._closed, seconds)
            if not self._chunks:
                return self._refused
            chunk = self._chunks.popleft()
        self._switchboard.do(self._ask)
        return chunk

    def wake(self) -> None:
        """Let whoever waits in `take` have nothing, from here on at once."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _ask(self, core: Concentrator) -> None:
        """Ask for more, unless enough is there or it was asked for already. The hub's lock is held."""
        with self._changed:
            if self._asked or self._closed or self._refused is not None or len(self._chunks) >= AHEAD_MAX:
                return
            self._asked = True
            fetch = Fetch(self._channel, self._partition, 0, CHUNK_BYTES, WAIT_NS, tuple(self._positions))
        core.ask(self._recorder.address, fetch, self._answered)

    def _answered(self, reply: Message) -> None:
        """Keep what has come, and ask for the next. The hub's lock is held."""
        with self._changed:
            self._asked = False
            if isinstance(reply, Refused):
                self._refused = reply
            else:
                problem = self._keep(reply)
                self._refused = Refused(RefusedError.__name__, problem) if problem else None
            self._changed.notify_all()
        self._ask(self._switchboard.core)

    def _keep(self, reply: Message) -> str:
        """Keep a chunk, if it is one; return what is wrong with it."""
        if not isinstance(reply, Fetched):
            return f"expected Fetched, got {type(reply).__name__}"
        if reply.journal != self._recorder.journal:
            return f"the recorder at {self._recorder.address} has another journal by now"
        if not reply.blocks and not reply.end:
            return ""
        if not 0 <= reply.partition < len(self._positions) or reply.end <= self._positions[reply.partition]:
            return f"the recorder has answered with what is before event {reply.end} of partition {reply.partition}"
        self._chunks.append(reply)
        self._positions[reply.partition] = reply.end
        self._partition = (reply.partition + 1) % len(self._positions)
        return ""
