"""Process instances: a place in a graph, and values of variables."""

from typing import TYPE_CHECKING, Protocol, final

from echoic.scripts.graph import Graph, Node
from echoic.terms import Value

if TYPE_CHECKING:
    from collections import deque

__all__ = ["Clock", "ProcessInstance"]


class Clock(Protocol):
    """Who knows the time of day."""

    def local_ns(self) -> int:
        """Return it, from the first second of 1970 in the zone that dates are written in."""


@final
class ProcessInstance:
    """A process that runs. There may be a hundred thousand, so what few of them need is None until they do.

    Invariant: it is `queued`, or waiting (`offers` says where others find it), or `ended`. Until its turn comes, one
    that was woken or can be found before (`offering.py`) is both queued and waiting. One that is `barred` has no turn,
    queued or not, and nobody finds it: it has ended, or it waits for a value (`holding.py`).
    """

    __slots__ = (
        "activations",
        "barred",
        "clock",
        "due_ns",
        "ended",
        "graph",
        "name",
        "node",
        "notes",
        "number",
        "offers",
        "queued",
        "slots",
        "subscriptions",
    )

    def __init__(self, number: int, graph: Graph, arguments: tuple[Value, ...], clock: Clock) -> None:
        self.number = number
        self.name = graph.name
        self.graph = graph
        self.node: Node = graph.start
        self.slots: list[Value | None] = list(arguments)
        self.clock = clock
        self.queued = False
        self.ended = False
        self.barred = False
        self.offers: list[tuple[dict[int, object], int]] = []  # where it can be found, and by which number
        self.notes: deque[Value] | None = None
        self.subscriptions: list[Value] | None = None
        self.activations: dict[object, int] | None = None  # of timed edges: when they became possible
        self.due_ns: int | None = None  # when it is to be woken

    def local_ns(self) -> int:
        """Return the time of day."""
        return self.clock.local_ns()

    def withdraw(self) -> None:
        """Be found nowhere."""
        for place, number in self.offers:
            del place[number]
        self.offers.clear()

    def __repr__(self) -> str:
        return f"<{self.name}({self.number})>"
