"""Where those who wait for a partner are found.

    number of arguments -> head of the first argument -> head of the first argument in that -> waiting, oldest first
    2                      ("f", 1)                      (7,)                                  snd-msg(f(7), X)
                                                         any                                   rec-msg(f(N?), Y?)
                           any                                                                 rec-msg(M?, 1)

Who looks for a partner sees only the places that may match: its own, and those of who wants anything. Heads that are
equal do not mean that two match (`matching.py` decides), but those who match are always found. Who has waited longest
is found first, so nobody is passed over forever.

Places that have become empty stay for a while, since most are used again at once; they are swept away when there are
many more places than offers.
"""

from collections.abc import Hashable, Iterable
from heapq import merge
from operator import itemgetter
from typing import Final, TypeAlias, final

from echoic.scripts.graph import Edge
from echoic.scripts.running.instances import ProcessInstance

__all__ = ["Offer", "Offers"]

Offer: TypeAlias = tuple[ProcessInstance, Edge]
Place: TypeAlias = dict[int, Offer]

SWEEP_MIN: Final = 256
NOBODY: Final[Place] = {}


@final
class Heads:
    """Those with one head."""

    __slots__ = ("any", "inner")

    def __init__(self) -> None:
        self.any: Place = {}
        self.inner: dict[Hashable, Place] = {}


class Offers:
    """Those who wait to send, or those who wait to receive."""

    def __init__(self) -> None:
        self._tables: dict[int, dict[Hashable, Heads]] = {}
        self._places = 0
        self._sweep_at = SWEEP_MIN

    def add(self, number: int, offer: Offer, head: Hashable, inner: Hashable) -> Place:
        """Add an offer under a number that is larger than all others; return where it is, which is how to remove it."""
        arguments = len(offer[1].arguments)
        table = self._tables.get(arguments)
        if table is None:
            table = self._tables[arguments] = {}
        heads = table.get(head)
        if heads is None:
            heads = table[head] = Heads()
            self._places += 1
        if inner is None:
            place = heads.any
        else:
            found = heads.inner.get(inner)
            if found is None:
                found = heads.inner[inner] = {}
                self._places += 1
            place = found
        place[number] = offer
        if self._places > self._sweep_at:
            self._sweep()
        return place

    def candidates(self, arguments: int, head: Hashable, inner: Hashable) -> Iterable[Offer]:
        """Return those who may match something with these heads, oldest first."""
        table = self._tables.get(arguments)
        if table is None:
            return ()
        if head is None:
            return _in_order(
                [place for heads in table.values() for place in (heads.any, *heads.inner.values()) if place]
            )
        heads = table.get(head)
        anything = table.get(None)
        if anything is None or not anything.any:
            if heads is None:
                return ()
            if inner is not None:  # by far the most common case
                place = heads.inner.get(inner)
                if not place:
                    return heads.any.values()
                if not heads.any:
                    return place.values()
        places = [] if anything is None or not anything.any else [anything.any]
        if heads is not None:
            inners = heads.inner.values() if inner is None else (heads.inner.get(inner, NOBODY),)
            places += [place for place in (heads.any, *inners) if place]
        return _in_order(places)

    def __len__(self) -> int:
        return sum(
            len(place)
            for table in self._tables.values()
            for heads in table.values()
            for place in (heads.any, *heads.inner.values())
        )

    @property
    def places(self) -> int:
        """How many places there are, empty ones among them."""
        return self._places

    def _sweep(self) -> None:
        for table in self._tables.values():
            for head, heads in list(table.items()):
                for inner in [inner for inner, place in heads.inner.items() if not place]:
                    del heads.inner[inner]
                    self._places -= 1
                if not heads.inner and not heads.any:
                    del table[head]
                    self._places -= 1
        self._sweep_at = max(SWEEP_MIN, 2 * self._places)


def _in_order(places: list[Place]) -> Iterable[Offer]:
    if len(places) <= 1:
        return places[0].values() if places else ()
    return (offer for _, offer in merge(*(place.items() for place in places), key=itemgetter(0)))
