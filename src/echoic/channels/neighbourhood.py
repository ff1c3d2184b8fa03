"""Which hubs stand at an address or have a name, without asking each of them: a hub may have thousands of neighbours.

A neighbour stands where it says it does, and wherever it was found when it was dialled. Several may stand at one place:
one that has ended and its successor, and those behind one door that cannot be dialled. They are told in the order in
which they came there.
"""

from collections import Counter
from typing import Final

from echoic.channels.neighbour import Neighbour

__all__ = ["Neighbourhood"]


class Neighbourhood:
    """The neighbours of a hub, by address and by the names in their certificates."""

    __slots__ = ("_at", "_named")

    def __init__(self) -> None:
        self._at: Final[dict[str, dict[str, Neighbour]]] = {}
        self._named: Final[Counter[str]] = Counter()

    def add(self, neighbour: Neighbour) -> None:
        """Note a neighbour, where it says it is; nowhere, if it says nothing."""
        self._named[neighbour.who] += 1
        self._note(neighbour.address, neighbour)

    def add_alias(self, neighbour: Neighbour, address: str) -> None:
        """Note that a neighbour was found at an address which it does not name."""
        neighbour.aliases.add(address)
        self._note(address, neighbour)

    def remove(self, neighbour: Neighbour) -> None:
        """Forget a neighbour."""
        self._named[neighbour.who] -= 1
        if not self._named[neighbour.who]:
            del self._named[neighbour.who]
        for address in (neighbour.address, *neighbour.aliases):
            there = self._at.get(address)
            if there is not None and there.pop(neighbour.id, None) is not None and not there:
                del self._at[address]

    def at(self, address: str) -> list[Neighbour]:
        """Return who stands at an address."""
        there = self._at.get(address)
        return list(there.values()) if there is not None else []

    def count_named(self, who: str) -> int:
        """Return how many have this name in their certificates."""
        return self._named[who]

    def _note(self, address: str, neighbour: Neighbour) -> None:
        if address:
            self._at.setdefault(address, {})[neighbour.id] = neighbour
