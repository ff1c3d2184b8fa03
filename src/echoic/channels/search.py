"""Hubs that are looked for: who waits for a link to which address.

Two hubs may look for each other at the same moment; the one whose connection is not kept sees it closed at once, while
the other's is about to be there. So a search that fails that quickly is made once more before anybody is told.

Who wants something of everybody in a channel is called last: the hub may begin anew, and those who wait beside him tell
it first that they take part (`upkeep.make_known`).
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from echoic.channels.neighbour import Neighbour

__all__ = ["Search", "Then"]

Then: TypeAlias = Callable[[Neighbour | None, str], None]

QUICKLY_NS: Final = 1_000_000_000
SEARCHES_MAX: Final = 1024  # a peer can make this hub look for others


class Search:
    """Whoever waits is called once: with the hub that was found, or with None and the reason."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[tuple[bool, Then]]] = {}
        self._begun_ns: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, address: str, then: Then, now_ns: int, *, last: bool = False) -> bool:
        """Wait for the hub at an address; return whether nobody did before, so that it must be dialled.

        Who is to be called `last` is called after all others, whoever came first.
        """
        if len(self._waiting) >= SEARCHES_MAX and address not in self._waiting:
            then(None, f"{len(self._waiting)} hubs are being looked for, which is the limit - at {address}")
            return False
        waiting = self._waiting.setdefault(address, [])
        waiting.append((last, then))
        if len(waiting) == 1:
            self._begun_ns[address] = now_ns
        return len(waiting) == 1

    def found(self, address: str, neighbour: Neighbour) -> None:
        """Go on with a hub that was found."""
        self._end(address, neighbour, "")

    def failed(self, address: str, reason: str, now_ns: int, *, refused: bool) -> bool:
        """Learn that a hub did not answer; return whether it must be dialled once more."""
        begun_ns = self._begun_ns.pop(address, None)
        if begun_ns is not None and not refused and now_ns - begun_ns < QUICKLY_NS:
            return True
        self._end(address, None, reason)
        return False

    def _end(self, address: str, neighbour: Neighbour | None, reason: str) -> None:
        self._begun_ns.pop(address, None)
        for _, then in sorted(self._waiting.pop(address, []), key=lambda one: one[0]):
            then(neighbour, reason)
