"""The registry: which values of which tools are still referred to at the bus. This module is pure.

The thesis counts references: one more when a variable is bound or sent, one less when it is overwritten or
acknowledged. A bus written in Python has such a count for every object, exact at every moment, and `Reference` is an
object that there is once for each part of each variable. So what is counted here are *live `Reference` objects*: a
variable of a process, a queued note, a value that a tool has said and nobody has taken yet, all hold the object, and
whoever lets go of it has counted down. Nobody can forget to.

    arrive        PUT from a tool            a Reference is made, and watched by a weak reference
    sent          PUT to a tool              it is held, under the transaction, until the tool says ACK
    acked         ACK                        and is let go then
    cancel        the tool is lost           no ACK will come
    finished      after every turn           what nobody holds any more: FIN to the owner

A value consists of parts, and a variable is alive while any of its parts is: the owner keeps the whole (sub-terms, in
the thesis' future work). A FIN never comes before the ACK of somebody who was told, since what is in flight is held;
each variable is finished once, since it is forgotten with that.

When an object goes, its watch is put into a queue, and nothing else happens: that can be at any time, in any thread, in
the middle of anything. Everything else is done by the one thread that the registry belongs to, when it asks.

Values of a tool that is `lost` are forgotten. Who refers to them is returned, so that something can be put into their
places; no FIN is owed for them.

A tool cannot make the bus hold more than so many references of its own, and it pays for each with a value that it
keeps. Measured (one core of a small, busy machine): 12 us for a value from PUT to FIN.
"""

import itertools
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from weakref import ref

from echoic.errors import LimitExceededError, MalformedFrameError
from echoic.terms import Reference, Value, references_in
from echoic.toolbus.references.words import Put

__all__ = ["BUS", "Entry", "Registry", "RegistryStatistics", "Released"]

BUS: Final = 0
"""The bus as the owner of values."""
REFERENCES_MAX: Final = 1_000_000
"""Of one owner."""

SIGNATURES_MAX: Final = 3
SIGNATURE_CHARACTERS_MAX: Final = 80

Key: TypeAlias = tuple[int, int]  # owner, variable


@dataclass(frozen=True, slots=True)
class Released:
    """Values of one owner that nobody refers to any more."""

    owner: int
    variables: tuple[int, ...]
    """To be told to the owner with FIN."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A variable that is referred to, for people."""

    owner: int
    variable: int
    signature: str
    """What is known of the first parts that are referred to."""
    size: int
    """Bytes of all parts that are referred to."""
    in_flight: tuple[int, ...]
    """The tools that were told it and have not acknowledged it."""
    age_ns: int


@dataclass(frozen=True, slots=True)
class RegistryStatistics:
    """What a registry knows, and what it has seen."""

    variables: int
    references: int
    in_flight: int
    """Deliveries that were not acknowledged."""
    arrived: int
    """PUTs so far."""
    finished: int
    """Variables so far that ended because nobody referred to them."""
    lost: int
    """Variables so far that ended with their owner."""


class Watch(ref[Reference]):
    """A weak reference that knows what it is for when its object is gone."""

    __slots__ = ("identity", "key", "size")
    key: Key
    identity: int
    size: int


@dataclass(slots=True)
class Root:
    """One variable."""

    endpoints: tuple[str, ...]
    arrived_ns: int
    watches: dict[int, Watch] = field(default_factory=dict)
    """By the identity of their references."""


class Registry:
    """The counts of one bus."""

    def __init__(self, on_dead: Callable[[], None] | None = None, *, references_max: int = REFERENCES_MAX) -> None:
        """Begin with nothing.

        Args:
            on_dead: Called when a reference is gone, at any time and in any thread: it must do next to nothing.
            references_max: How many references an owner may have at the bus.
        """
        self._dead: deque[Watch] = deque()  # Invariant: never more than there were references
        self._on_dead = on_dead
        self._references_max = references_max
        self._roots: dict[int, dict[int, Root]] = {}  # by owner and variable
        self._references: dict[int, int] = {}  # how many watches an owner has
        self._over: dict[Key, None] = {}  # without a watch, and not told yet, in order
        self._in_flight: dict[int, dict[int, tuple[Reference, ...]]] = {}  # by tool and transaction
        self._arrived = self._finished = self._lost = 0

    def arrive(self, owner: int, put: Put, now_ns: int = 0) -> Reference:
        """Return the reference that an owner has put; whoever holds it keeps the value.

        Args:
            owner: Who says it.
            put: What it says.
            now_ns: The time.

        Raises:
            MalformedFrameError: It is about a value of somebody else.
            LimitExceededError: The owner has too many.
        """
        if put.source != owner:
            raise MalformedFrameError(f"tool {owner} has put a value of tool {put.source}")
        self._drain()
        held = self._references.get(owner, 0)
        if owner != BUS and held >= self._references_max:
            raise LimitExceededError(f"tool {owner} has {held} references at the bus, limit is {self._references_max}")
        reference = put.reference
        roots = self._roots.setdefault(owner, {})
        root = roots.get(put.variable)
        if root is None:
            root = roots[put.variable] = Root(put.endpoints, now_ns)
        self._over.pop((owner, put.variable), None)
        self._watch(root, reference)
        self._arrived += 1
        return reference

    def sent(self, tool: int, transaction: int, values: Iterable[Value]) -> bool:
        """Hold what values refer to until a tool has acknowledged them, and return whether they do."""
        found: dict[Reference, None] = {}
        for value in values:
            found.update(dict.fromkeys(references_in(value)))
        if found:
            deliveries = self._in_flight.setdefault(tool, {})
            deliveries[transaction] = deliveries.get(transaction, ()) + tuple(found)
        return bool(found)

    def acked(self, tool: int, transaction: int) -> bool:
        """Let go of what a tool has acknowledged, and return whether it had to."""
        deliveries = self._in_flight.get(tool, {})
        if deliveries.pop(transaction, None) is None:
            return False
        if not deliveries:
            del self._in_flight[tool]
        return True

    def cancel(self, tool: int) -> tuple[int, ...]:
        """Let go of everything that was sent to a tool that is gone, and return the transactions, oldest first."""
        return tuple(self._in_flight.pop(tool, ()))

    def finished(self) -> tuple[Released, ...]:
        """Return what nobody refers to any more, each variable once; it is forgotten with that."""
        self._drain()
        if not self._over:
            return ()
        released: dict[int, list[int]] = {}
        for owner, variable in self._over:
            released.setdefault(owner, []).append(variable)
            self._forget(owner, variable)
            self._finished += 1
        self._over.clear()
        return tuple(Released(owner, tuple(variables)) for owner, variables in released.items())

    def lost(self, owner: int) -> tuple[Reference, ...]:
        """Forget the variables of an owner that is gone, and return what refers to them; no FIN is owed for them."""
        self._drain()
        alive: list[Reference] = []
        for variable, root in list(self._roots.get(owner, {}).items()):
            alive += [reference for watch in root.watches.values() if (reference := watch()) is not None]
            self._over.pop((owner, variable), None)
            self._forget(owner, variable)
            self._lost += 1
        return tuple(alive)

    def endpoints(self, owner: int, variable: int) -> tuple[str, ...]:
        """Return where the owner of a value can be reached; nowhere if the value is not known here."""
        root = self._root(owner, variable)
        return () if root is None else root.endpoints

    def of(self, owner: int) -> tuple[Reference, ...]:
        """Return the references that there are to values of an owner."""
        return tuple(
            reference
            for root in self._roots.get(owner, {}).values()
            for watch in root.watches.values()
            if (reference := watch()) is not None
        )

    def in_flight_of(self, owner: int) -> bool:
        """Whether a delivery that was not acknowledged refers to a value of an owner."""
        return any(
            reference.owner == owner
            for deliveries in self._in_flight.values()
            for references in deliveries.values()
            for reference in references
        )

    def entries(self, now_ns: int = 0) -> tuple[Entry, ...]:
        """Return what is known about each variable that is referred to, the oldest of each owner first."""
        self._drain()
        told = self._told()
        return tuple(
            Entry(
                owner,
                variable,
                _signature(root),
                sum(watch.size for watch in root.watches.values()),
                tuple(sorted(told.get((owner, variable), ()))),
                max(0, now_ns - root.arrived_ns),
            )
            for owner, roots in sorted(self._roots.items())
            for variable, root in roots.items()
            if root.watches
        )

    def statistics(self) -> RegistryStatistics:
        """Return what is known and was seen."""
        self._drain()
        return RegistryStatistics(
            variables=sum(map(len, self._roots.values())) - len(self._over),
            references=sum(self._references.values()),
            in_flight=sum(map(len, self._in_flight.values())),
            arrived=self._arrived,
            finished=self._finished,
            lost=self._lost,
        )

    def _watch(self, root: Root, reference: Reference) -> None:
        """Count a reference, unless that was done when it was put before."""
        found = root.watches.get(id(reference))
        if found is not None and found() is reference:
            return
        watch = Watch(reference, self._gone)
        watch.key, watch.identity = (reference.owner, reference.variable), id(reference)
        watch.size = reference.size
        root.watches[watch.identity] = watch
        if found is None:  # else it stands in the place of one that has died meanwhile, and is not to be counted down
            self._references[reference.owner] = self._references.get(reference.owner, 0) + 1

    def _gone(self, watch: ref[Reference]) -> None:
        """Note that a reference is gone; in any thread, while anything is being done."""
        self._dead.append(watch)  # type: ignore[arg-type] # it is a Watch
        if self._on_dead is not None:
            self._on_dead()

    def _drain(self) -> None:
        """Count what is gone."""
        while self._dead:
            watch = self._dead.popleft()
            owner, variable = watch.key
            root = self._root(owner, variable)
            if root is None or root.watches.get(watch.identity) is not watch:
                continue  # forgotten with its owner, or another is in its place
            del root.watches[watch.identity]
            self._references[owner] -= 1
            if not root.watches:
                self._over[owner, variable] = None

    def _root(self, owner: int, variable: int) -> Root | None:
        return self._roots.get(owner, {}).get(variable)

    def _forget(self, owner: int, variable: int) -> None:
        roots = self._roots[owner]
        root = roots.pop(variable)
        self._references[owner] = self._references.get(owner, 0) - len(root.watches)
        if not roots:
            del self._roots[owner], self._references[owner]

    def _told(self) -> dict[Key, set[int]]:
        """Return for each variable that is in flight the tools to which it is."""
        told: dict[Key, set[int]] = {}
        for tool, deliveries in self._in_flight.items():
            for references in deliveries.values():
                for reference in references:
                    told.setdefault((reference.owner, reference.variable), set()).add(tool)
        return told


def _signature(root: Root) -> str:
    """Return what is known of the first parts of a variable, as text that is not too long."""
    first = itertools.islice(root.watches.values(), SIGNATURES_MAX)
    shown = [
        str(reference.signature)[:SIGNATURE_CHARACTERS_MAX] for watch in first if (reference := watch()) is not None
    ]
    return ", ".join([*shown, "..."] if len(root.watches) > SIGNATURES_MAX else shown)
