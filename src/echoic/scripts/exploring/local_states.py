"""Local states: where one process stands, whatever the others do.

    a global state        (tools, local, local, ...)      numbers, in the order of the processes
    a local state         process, node, slots, notes, subscriptions, and which of its timeouts have passed

There are far fewer local states than global ones, and what a process can do depends on its own only, up to who takes
part. So everything that must be computed is computed once for each local state (`local_moves.py`), and a global state
only combines numbers. That is what makes exploring fast.
"""

from typing import Final, TypeAlias, cast, final

from echoic.scripts.graph import Edge, Graph, Node, Program, keeps_time
from echoic.terms import Value

__all__ = ["ENDED", "Late", "LocalState", "LocalStates", "identity"]

ENDED: Final = 0
"""The number of the local state of a process that has ended."""

Late: TypeAlias = frozenset[tuple[tuple[int, ...], object]]
PUNCTUAL: Final[Late] = frozenset()


@final
class LocalState:
    """Where a process stands. It is also what expressions may know about their process (`graph.Instance`)."""

    __slots__ = ("graph", "id", "late", "name", "node", "notes", "number", "slots", "subscriptions")

    def __init__(
        self,
        id: int,
        number: int,
        graph: Graph,
        node: Node,
        slots: tuple[Value | None, ...],
        notes: tuple[Value, ...],
        subscriptions: tuple[Value, ...],
        late: Late,
    ) -> None:
        self.id = id
        self.number = number
        self.graph = graph
        self.name = graph.name
        self.node = node
        self.slots = slots
        self.notes = notes
        self.subscriptions = subscriptions
        self.late = late

    def local_ns(self) -> int:
        """Return the time of day, which is always the same: time is not explored."""
        return 0

    def __str__(self) -> str:
        return f"{self.name}({self.number})"


def identity(value: Value | None) -> object:
    """Return what is equal for two values only if they are the same: Python holds 1, 1.0 and True for equal."""
    kind = type(value)
    if kind is bool:
        return (value,)
    return (value.hex(),) if isinstance(value, float) else value


class LocalStates:
    """The local states that were reached, by number."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.all = cast("list[LocalState]", [None])  # the first has ended, and nobody asks where it stands
        self._numbers: dict[object, int] = {}

    def begin(self, number: int, name: str, arguments: tuple[Value, ...], program: Program | None = None) -> int:
        """Return where a process begins, which may be one of another program."""
        graph = (program or self.program).graph(name)
        return self.at(number, graph, graph.start, list(arguments), (), (), PUNCTUAL)

    def moved(
        self,
        local: LocalState,
        edge: Edge,
        slots: list[Value | None],
        *,
        notes: tuple[Value, ...] | None = None,
        subscriptions: tuple[Value, ...] | None = None,
    ) -> int:
        """Return where a process stands when it has done an edge, its variables being as they are after that."""
        for index in edge.drops:
            slots[index] = None
        late = local.late
        if late:
            edges = edge.target.edges
            kept = {(each.path, each.origin) for each in edges if each.timing is not None and keeps_time(each, edge)}
            late = late & kept
        return self.at(
            local.number,
            local.graph,
            edge.target,
            slots,
            local.notes if notes is None else notes,
            local.subscriptions if subscriptions is None else subscriptions,
            late,
        )

    def with_notes(self, local: LocalState, notes: tuple[Value, ...]) -> int:
        """Return the same with other notes."""
        return self.at(local.number, local.graph, local.node, list(local.slots), notes, local.subscriptions, local.late)

    def with_late(self, local: LocalState, edge: Edge) -> int:
        """Return the same when the time of an edge is over."""
        late = local.late | {(edge.path, edge.origin)}
        return self.at(local.number, local.graph, local.node, list(local.slots), local.notes, local.subscriptions, late)

    def at(
        self,
        number: int,
        graph: Graph,
        node: Node,
        slots: list[Value | None],
        notes: tuple[Value, ...],
        subscriptions: tuple[Value, ...],
        late: Late,
    ) -> int:
        """Return the number of a local state; a node at which nothing can be done is the end."""
        if not node.edges:
            return ENDED
        while slots and slots[-1] is None:  # how many were reached so far makes no difference
            slots.pop()
        key = (
            number,
            graph.name,
            id(node),
            *map(identity, slots),
            tuple(map(identity, notes)),
            tuple(map(identity, subscriptions)),
            late,
        )
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.all)
            padded = (*slots, *[None] * (len(graph.slot_names) - len(slots)))
            self.all.append(LocalState(found, number, graph, node, padded, notes, subscriptions, late))
        return found
