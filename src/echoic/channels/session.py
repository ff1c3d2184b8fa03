"""What two hubs remember of each other, so that a broken connection loses and repeats nothing.

Frames between two hubs are numbered by counting them. The receiver tells now and then how many it has got; the sender
keeps what was not told yet. When the connection breaks and a further one is made, each side first tells its count, and
the other sends again exactly what is missing:

    A  frame 1, 2, 3, 4 ...X                         tells: I have got 7 of yours ... sends 4, 5
    B  got 1, 2, 3     ...X   tells: I have got 3 of yours                         ...

Hello and count frames themselves are not numbered. A session has an id, drawn by the hub that made its first
connection; a hub that was started anew, or has given the other up, does not know the id, and both begin afresh.

The memory is bounded: while too much is untold the session is `full`, and events wait, or are dropped as their sinks
have asked. Messages between hubs are few and small and always pass.
"""

from collections import deque
from typing import Final

import msgspec

from echoic.errors import MalformedFrameError

__all__ = ["Session", "SessionStatistics"]

UNTOLD_BYTES_MAX: Final = 64 * 1024 * 1024
OVERRUN: Final = 4
STALLED_NS: Final = 3_000_000_000
TELL_FRAMES: Final = 64  # tell the peer after so many frames ...
TELL_BYTES: Final = 1024 * 1024  # ... or so many bytes


class SessionStatistics(msgspec.Struct, frozen=True):
    """Counts of frames in both directions."""

    sent: int
    told: int
    untold_bytes: int
    received: int
    resent: int


class Session:
    """Numbers frames in both directions and keeps those the peer has not confirmed.

    `outbox` holds what has yet to be written to the connection, in order; whoever writes takes from its left.
    """

    __slots__ = (
        "_received_bytes_since",
        "_received_since",
        "_resent",
        "_sent",
        "_told",
        "_told_before",
        "_told_ns",
        "_untold",
        "id",
        "outbox",
        "received",
        "untold_bytes",
        "untold_bytes_max",
    )

    def __init__(self, id: int, *, untold_bytes_max: int = UNTOLD_BYTES_MAX) -> None:
        self.id: Final = id
        self.untold_bytes_max: Final = untold_bytes_max
        self.outbox: Final[deque[bytes]] = deque()
        self.untold_bytes = self.received = 0
        self._untold: deque[bytes] = deque()
        self._sent = self._told = self._resent = 0
        self._told_before = self._told_ns = 0
        self._received_since = self._received_bytes_since = 0

    @property
    def full(self) -> bool:
        """Whether events must wait until the peer has told how much it has got."""
        return self.untold_bytes > self.untold_bytes_max

    @property
    def confirmed(self) -> int:
        """How many frames the peer has told it got."""
        return self._told

    def stalled(self, now_ns: int) -> bool:
        """Whether far too much is untold, and the peer, which has told nothing for a while, is best given up.

        Answers to the peer's own requests may be among it, and what a recorder lacks that begins anew: much, which a
        slow link takes a while for.
        """
        if self.untold_bytes <= OVERRUN * self.untold_bytes_max or self._told != self._told_before:
            self._told_before, self._told_ns = self._told, now_ns
        return now_ns - self._told_ns > STALLED_NS

    def post(self, frame: bytes) -> None:
        """Number a frame and put it into the outbox."""
        self._sent += 1
        self.untold_bytes += len(frame)
        self._untold.append(frame)
        self.outbox.append(frame)

    def told(self, count: int) -> None:
        """Forget what the peer says it has got.

        Raises:
            MalformedFrameError: The peer tells more than was sent, or less than it told before.
        """
        if not self._told <= count <= self._sent:
            raise MalformedFrameError(
                f"the peer says it got {count} frames, {self._sent} were sent and {self._told} confirmed before"
            )
        untold = self._untold
        for _ in range(count - self._told):
            self.untold_bytes -= len(untold.popleft())
        self._told = count

    def resume(self, count: int) -> None:
        """Prepare to go on with a further connection, on which the peer has told its count.

        Raises:
            MalformedFrameError: As `told` does.
        """
        self.told(count)
        self._resent += max(0, len(self._untold) - len(self.outbox))  # counts wait in the outbox too
        self.outbox.clear()
        self.outbox.extend(self._untold)

    def receive(self, size: int) -> bool:
        """Count an arrived frame; return whether it is time to tell the peer."""
        self.received += 1
        self._received_since += 1
        self._received_bytes_since += size
        return self._received_since >= TELL_FRAMES or self._received_bytes_since >= TELL_BYTES

    def tell(self) -> int:
        """Return the count to tell the peer, which starts the next interval."""
        self._received_since = self._received_bytes_since = 0
        return self.received

    @property
    def calm(self) -> bool:
        """Whether there is nothing to tell the peer, and the peer need not hurry."""
        return not self._received_since and self.untold_bytes <= OVERRUN * self.untold_bytes_max

    @property
    def untold_arrivals(self) -> bool:
        """Whether anything arrived since the peer was last told."""
        return self._received_since > 0

    def statistics(self) -> SessionStatistics:
        """Return the counts so far."""
        return SessionStatistics(self._sent, self._told, self.untold_bytes, self.received, self._resent)
