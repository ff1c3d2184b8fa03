"""How far a named sink is, kept in the journal that it reads.

Word goes to the recorder now and then, not for every event: a mark is a file that is written and synced. One message is
under way at a time, and what has come meanwhile goes with the next; nobody waits for it but `close`.
"""

import threading
import time
from typing import TYPE_CHECKING, Final

from echoic.channels import ChannelId, Concentrator, Mark, Marked, Message, Refused

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["Bookmark"]

INTERVAL_SECONDS: Final = 0.2
INTERVAL_EVENTS: Final = 1000
INTERVAL_SECONDS_MIN: Final = 0.05  # however many events there are: the disk has other work


class Bookmark:
    """Tells the recorder where a sink goes on."""

    def __init__(self, switchboard: "Switchboard", id: ChannelId, sink: str) -> None:
        self.sink: Final = sink
        self.kept: tuple[int, ...] = ()
        """The positions of which the recorder has said that they are on its disk."""
        self.problem = ""
        """Why it did not take the last ones."""
        self._switchboard = switchboard
        self._channel = str(id)
        self._address = ""
        self._wanted: tuple[int, ...] = ()
        self._events = 0
        self._sent = 0.0
        self._under_way: object | None = None
        self._changed = threading.Condition()

    def move(self, address: str, kept: tuple[int, ...]) -> None:
        """Turn to the recorder at an address, and what it has; what was under way to another is not waited for."""
        with self._changed:
            self._address, self._under_way = address, None
            self.kept = kept
            self._wanted = self._wanted or kept

    @property
    def due(self) -> bool:
        """Whether there is something to tell, be it later."""
        return self._wanted != self.kept

    def note(self, positions: tuple[int, ...], events: int) -> None:
        """Tell the recorder that events were handled, if it is time for that."""
        self._wanted = positions
        self._events += events
        self.offer()

    def offer(self) -> None:
        """Tell the recorder what it was not told, if it is time for that."""
        elapsed = time.monotonic() - self._sent
        enough = INTERVAL_SECONDS_MIN if self._events >= INTERVAL_EVENTS else INTERVAL_SECONDS
        if elapsed >= enough and self._under_way is None and self.due and self._address:
            self._send()

    def flush(self, seconds: float) -> bool:
        """Tell the recorder everything, and wait for its answer; return whether it is kept."""
        deadline = time.monotonic() + seconds
        while self.due and self._address and not self._switchboard.closed:
            if self._under_way is None:
                self._send()
            with self._changed:
                left = deadline - time.monotonic()
                if not self._changed.wait_for(lambda: self._under_way is None, max(left, 0)) or self.problem:
                    break
        return not self.due

    def _send(self) -> None:
        wanted, token = self._wanted, object()
        self._under_way, self._sent, self._events = token, time.monotonic(), 0

        def answered(reply: Message) -> None:
            with self._changed:
                if self._under_way is not token:
                    return
                self._under_way = None
                self.problem = _problem_of(reply)
                if not self.problem:
                    self.kept = wanted
                self._changed.notify_all()

        def ask(core: Concentrator) -> None:
            core.ask(self._address, Mark(self._channel, self.sink, wanted), answered)

        self._switchboard.do(ask)


def _problem_of(reply: Message) -> str:
    """Return why positions were not kept, "" if they were."""
    if isinstance(reply, Marked):
        return ""
    return reply.reason if isinstance(reply, Refused) else f"expected Marked, got {type(reply).__name__}"
