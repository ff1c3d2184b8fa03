"""The turnstile: of many values of one owner, a few are fetched at a time, and the others wait for their turn.

Each value on its way may have a window of chunks in the queues of its owner. Fetched all at once, a thousand would be
more than any queue takes, and the clocks of all would run while few of them move. Some at a time keep a link as busy as
it can be.
"""

import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

__all__ = ["Ticket", "Turnstile"]

AT_ONCE: Final = 4


class Ticket:
    """One who wants to go through, or has."""

    __slots__ = ("begin", "key", "left", "through")

    def __init__(self, key: Hashable, begin: Callable[[], None]) -> None:
        self.key = key
        self.begin = begin
        self.through = False
        self.left = False


def _nothing() -> None:
    """Do nothing: it is over."""


class Turnstile:
    """Lets so many through at a time for each key."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        """Begin with nobody; `at_once` are let through for one key."""
        self._at_once = at_once
        self._lock = threading.Lock()
        self._through: dict[Hashable, int] = {}
        self._waiting: dict[Hashable, deque[Ticket]] = {}

    def enter(self, ticket: Ticket) -> None:
        """Call `begin` of a ticket when it is its turn: at once, or when others have left."""
        with self._lock:
            count = self._through.get(ticket.key, 0)
            if count >= self._at_once:
                self._waiting.setdefault(ticket.key, deque()).append(ticket)
                return
            self._through[ticket.key] = count + 1
            ticket.through = True
        ticket.begin()

    def leave(self, ticket: Ticket) -> None:
        """Let the next one through, if this one was; one that waits will not be. May be called again."""
        with self._lock:
            if ticket.left:
                return
            ticket.left = True
            ticket.begin = _nothing  # what it holds may be large
            following = self._following(ticket.key) if ticket.through else None
        if following is not None:
            following.begin()

    def _following(self, key: Hashable) -> Ticket | None:
        """Return who is next, and is through then; while holding the lock."""
        waiting = self._waiting.get(key)
        while waiting:
            ticket = waiting.popleft()
            if not ticket.left:
                ticket.through = True
                return ticket
        self._waiting.pop(key, None)
        count = self._through[key] - 1
        if count:
            self._through[key] = count
        else:
            del self._through[key]
        return None
