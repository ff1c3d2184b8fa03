"""A waiting room: connections that have not said who they are, so many in all and from each address.

When it is full, who came first from the address that has most leaves: a flood from one address pushes out its own, and
an honest stranger from elsewhere has its time. All that come from this machine have one address.
"""

import threading
from collections import Counter
from typing import Final

from echoic.errors import AddressError
from echoic.links.address import is_loopback, parse_address
from echoic.links.connection import Connection

__all__ = ["WaitingRoom"]


class WaitingRoom:
    """Who waits to be greeted."""

    def __init__(self, strangers_max: int, from_one_address_max: int) -> None:
        """Begin empty.

        Args:
            strangers_max: How many there may be.
            from_one_address_max: How many there may be from another machine.
        """
        self._strangers_max: Final = strangers_max
        self._from_one_address_max: Final = from_one_address_max
        self._waiting: dict[Connection, str] = {}  # in the order in which they came
        self._lock = threading.Lock()

    def enter(self, stranger: Connection) -> list[Connection]:
        """Let somebody in, and return those who must leave for it."""
        address = _address_of(stranger.peer)
        with self._lock:
            self._waiting[stranger] = address
            counts = Counter(self._waiting.values())
            if address and counts[address] > self._from_one_address_max:
                leaving = address
            elif len(self._waiting) > self._strangers_max:
                leaving = max(counts, key=lambda each: counts[each])
            else:
                return []
            first = next(each for each, where in self._waiting.items() if where == leaving)
            del self._waiting[first]
            return [first]

    def leave(self, stranger: Connection) -> None:
        """Note that somebody is a stranger no more, or gone."""
        with self._lock:
            self._waiting.pop(stranger, None)

    def empty(self) -> list[Connection]:
        """Return all, and have none any more."""
        with self._lock:
            every = list(self._waiting)
            self._waiting.clear()
            return every

    def __len__(self) -> int:
        return len(self._waiting)


def _address_of(peer: str) -> str:
    """Return the host that a connection comes from, "" for this machine."""
    try:
        host, _ = parse_address(peer)
    except AddressError:  # a Unix socket, or a queue
        return ""
    return "" if is_loopback(host) else host
