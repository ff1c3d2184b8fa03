"""A model of extended virtual synchrony: the promises of Corosync's closed process groups, and not one more.

Nodes are in *rings*; each ring orders the messages of its nodes. A message waits at its node until the ring has its
turn, so what was sent in one ring may be ordered in the next. Each process takes what was ordered at its own pace.

    ring 1   A a1 b1 c1 a2 | b2 c2          A has taken a1 b1 c1 a2, B and C only a1
             cut: {A} {B C}
    A's end of ring 1      a1 b1 c1 a2      then its view {A}
    B's and C's end        a1 b1 c1 b2 c2   then their view {B C}: a2 was given to A and to nobody else; behind what is
                                            missing, only messages of those who stay together come

Those who stay together get the same messages of the ring, at least all that one of them has taken. A process that ends
or starts is a view at a place in its ring. A ring that nobody noticed may be passed over, as when the engine's own
synchronisation was cut short.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from random import Random
from typing import Final

import msgspec

from echoic.groups.agreement import Place

__all__ = ["LowerMessage", "LowerView", "Ring", "Synchrony"]


class LowerMessage(msgspec.Struct, frozen=True, eq=False):
    """A message, ordered in a ring."""

    ring: int
    sender: Place
    data: bytes


class LowerView(msgspec.Struct, frozen=True, eq=False):
    """Who is in a ring from here on."""

    ring: int
    places: tuple[Place, ...]


class Ring:
    """Nodes that order messages together."""

    def __init__(self, number: int, nodes: Iterable[int]) -> None:
        self.number: Final = number
        self.nodes: Final = frozenset(nodes)
        self.ordered: Final[list[LowerMessage | LowerView]] = []


class Process:
    """A process of the group: what it has sent and the ring has not yet ordered, and what it has yet to take."""

    def __init__(self, place: Place) -> None:
        self.place: Final = place
        self.unordered: Final[deque[bytes]] = deque()
        self.inbox: Final[deque[LowerMessage | LowerView]] = deque()
        self.joined = self.taken = 0
        """At which place of its node's ring it joined, and how many items it has taken from there on."""


class Synchrony:
    """All rings, and the processes on their nodes; at most one on each."""

    def __init__(self, random: Random, nodes: Sequence[int]) -> None:
        self._random = random
        self._rings_made = 1
        self.processes: Final[dict[int, Process]] = {}
        self.rings: list[Ring] = [Ring(1, nodes)]

    def ring_of(self, node: int) -> Ring:
        """Return the ring that a node is in."""
        return next(ring for ring in self.rings if node in ring.nodes)

    def start(self, place: Place) -> None:
        """Let a process join."""
        ring = self.ring_of(place[0])
        process = self.processes[place[0]] = Process(place)
        process.joined = len(ring.ordered)
        self._put_view(ring)

    def kill(self, node: int) -> None:
        """End a process; some of what it had sent may still be ordered."""
        process = self.processes[node]
        for _ in range(self._random.randint(0, len(process.unordered))):
            self.order_one(node)
        del self.processes[node]
        self._put_view(self.ring_of(node))

    def order_one(self, node: int) -> None:
        """Give a node its turn in its ring."""
        process = self.processes[node]
        if process.unordered:
            ring = self.ring_of(node)
            self._put(ring, LowerMessage(ring.number, process.place, process.unordered.popleft()))

    def take_one(self, node: int) -> LowerMessage | LowerView | None:
        """Return what a process takes next."""
        process = self.processes[node]
        if not process.inbox:
            return None
        item = process.inbox.popleft()
        process.taken += item.ring == self.ring_of(node).number
        return item

    def part(self, sides: Sequence[Collection[int]]) -> None:
        """Cut the nodes into sides, each of which forms a ring."""
        rings = []
        for side in sides:
            for old in self.rings:
                together = [self.processes[node] for node in sorted(old.nodes & set(side)) if node in self.processes]
                self._finish(old, together)
            self._rings_made += 1
            rings.append(Ring(self._rings_made, side))
        self.rings = rings
        for ring in rings:
            for node in ring.nodes & self.processes.keys():
                self.processes[node].joined = self.processes[node].taken = 0
            self._put_view(ring)

    def _finish(self, ring: Ring, together: Sequence[Process]) -> None:
        """Settle what those who stay together get of a ring."""
        if not together:
            return
        random, ordered = self._random, ring.ordered
        kept: dict[int, LowerMessage | LowerView] = {}
        if any(process.taken for process in together) or random.random() < 0.5:
            noticed = [process for process in together if process.taken or not process.joined]
            begun = max((process.joined + process.taken for process in noticed), default=0)
            whole = random.choice((begun, len(ordered), random.randint(begun, len(ordered))))
            places = {process.place for process in together}
            kept = {
                index: item
                for index, item in enumerate(ordered)
                if index < whole or (isinstance(item, LowerMessage) and item.sender in places)
            }
        for process in together:
            others = [item for item in process.inbox if item.ring != ring.number]
            process.inbox.clear()
            process.inbox.extend(others)
            if process.taken or process.joined in kept:  # otherwise it has not joined this ring in time
                next_index = process.joined + process.taken
                process.inbox.extend(item for index, item in kept.items() if index >= next_index)

    def _put_view(self, ring: Ring) -> None:
        places = tuple(self.processes[node].place for node in sorted(ring.nodes & self.processes.keys()))
        self._put(ring, LowerView(ring.number, places))

    def _put(self, ring: Ring, item: LowerMessage | LowerView) -> None:
        ring.ordered.append(item)
        for node in sorted(ring.nodes & self.processes.keys()):
            self.processes[node].inbox.append(item)
