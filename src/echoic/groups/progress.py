"""How far a leader has got with one other member.

    probing      nothing is known of the member's log: one message at a time, until one is agreed to
    streaming    entries are sent as they come, many messages under way at once
    installing   the member has missed more than the log has, and is sent a snapshot

An answer that refuses what was sent long ago must not make the leader send everything again, so a refusal counts only
if it is of the message that is under way (probing), or of one behind what was agreed to (streaming).
"""

from collections import deque
from typing import TYPE_CHECKING

from echoic.groups.messages import Appended

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Progress", "Transfer"]


class Transfer:
    """A snapshot on its way to a member."""

    def __init__(self, ticket: int) -> None:
        self.ticket = ticket
        self.index = 0
        """What it reaches up to; 0 until the group has given its state."""
        self.index_term = 0
        self.number = 1
        """Of the next piece; the first one, with number 0, is sent when the state was given."""
        self.chunks: Iterator[bytes] = iter(())
        self.since_ns = 0
        """When the member last said that it gets them."""


class Progress:
    """What a leader knows of another member."""

    __slots__ = (
        "_flights",
        "after",
        "agreed",
        "asked",
        "flight_bytes",
        "home",
        "name",
        "next",
        "paused",
        "probing",
        "seen_ns",
        "told_commit",
        "transfer",
    )

    def __init__(self, name: str, home: int, next_index: int, seen_ns: int) -> None:
        self.name, self.home = name, home
        self.next = next_index
        """The index of the next entry to send."""
        self.agreed = 0
        """Up to where its log is known to be the leader's."""
        self.probing = True
        self.asked = False
        """Whether a message is under way while probing."""
        self.paused = False
        """Whether it takes no entries for the moment."""
        self.seen_ns = seen_ns
        self.told_commit = 0
        self.after = 0
        self.transfer: Transfer | None = None
        self.flight_bytes = 0
        self._flights: deque[tuple[int, int]] = deque()

    @property
    def flights(self) -> int:
        """How many messages are under way, unanswered."""
        return len(self._flights)

    def sent(self, end: int, size: int) -> None:
        """Note that entries up to before an index were sent."""
        if self.probing:
            self.asked = True
            return
        self.next = end
        self._flights.append((end - 1, size))
        self.flight_bytes += size

    def answered(self, answer: Appended) -> bool:
        """Take an answer; tell whether it says something that was not known."""
        self.after = answer.after
        if not answer.agreed:
            return self._refused(answer)
        news = self.probing or self.paused or answer.index > self.agreed
        self.paused = answer.full
        self.probing = self.asked = False
        self.next = max(self.next, answer.index + 1)
        self.agreed = max(self.agreed, answer.index)
        flights = self._flights
        while flights and flights[0][0] <= answer.index:
            self.flight_bytes -= flights.popleft()[1]
        if answer.full:  # what is under way will not be taken
            self.next = self.agreed + 1
            flights.clear()
            self.flight_bytes = 0
        return news

    def _refused(self, answer: Appended) -> bool:
        stale = answer.refused != self.next - 1 if self.probing else answer.refused <= self.agreed
        if stale:
            return False
        before = self.next
        self.probing, self.asked = True, False
        self.next = max(self.agreed + 1, min(answer.index + 1, answer.refused))
        self._flights.clear()
        self.flight_bytes = 0
        return self.next != before
