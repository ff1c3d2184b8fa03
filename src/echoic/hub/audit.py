"""The trail: what others wanted of a hub with rights, and whether they were let, as events of a channel of its own.

    echoic echo echoic://HOST:PORT/echoic/audit        look
    echoic record echoic://HOST:PORT/echoic/audit ...  keep

Like any other channel it can be subscribed, filtered at the source, recorded and read by Spark; and like any other, by
who has a right to it. It is not entered at name servers, since every hub has one.

Decisions are made by threads that read links and must not wait for a sink. So they leave a record here, and one thread
submits it. A peer that asks for much makes many records: beyond a limit they are counted and not kept, and the next
record says how many.
"""

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final

from echoic.channels import Audited
from echoic.errors import EchoicError
from echoic.formats import event

if TYPE_CHECKING:
    from echoic.hub.channel import Channel

__all__ = ["AuditRecord", "AuditTrail"]

RECORDS_MAX: Final = 4096
CLOSE_SECONDS: Final = 1.0


@event
class AuditRecord:
    """What somebody wanted, and whether he was let."""

    at: float
    """When, in seconds since 1970."""
    who: str
    right: str
    channel: str
    allowed: bool
    reason: str
    """The rule that decided, or that there is none."""
    request: str
    """The message in which it was wanted."""
    peer: str
    """Where he says he can be reached."""
    hub: str
    """Where this was decided."""
    missed: int
    """How many records before this one there was no room for."""


class AuditTrail:
    """Tells what was decided, until it is closed."""

    def __init__(self, channel: "Channel", hub: str) -> None:
        self._channel, self._hub = channel, hub
        self._waiting: deque[AuditRecord] = deque()
        self._changed = threading.Condition()
        self._missed = 0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="echoic-audit", daemon=True)
        self._thread.start()

    def note(self, audited: Audited) -> None:
        """Leave a record; waits for nobody."""
        decision = audited.decision
        with self._changed:
            if len(self._waiting) >= RECORDS_MAX:
                self._missed += 1
                return
            self._waiting.append(
                AuditRecord(
                    at=time.time(),
                    who=decision.who,
                    right=decision.right,
                    channel=decision.channel,
                    allowed=decision.allowed,
                    reason=decision.reason,
                    request=audited.request,
                    peer=audited.address,
                    hub=self._hub,
                    missed=self._missed,
                )
            )
            self._missed = 0
            self._changed.notify()

    def close(self) -> None:
        """Tell no more."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            source = self._channel.source()
            while (record := self._next()) is not None:
                source.submit(record)
        except EchoicError:
            return  # the hub was closed

    def _next(self) -> AuditRecord | None:
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            return self._waiting.popleft() if self._waiting and not self._closed else None
