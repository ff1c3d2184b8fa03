"""The local engine: a group within one process, for programs that want the order without the network, and for tests.

All members of a group's name in this process share one *table*. Whoever sends puts its pack on the table; the table's
order is the order. Everything that is put there is there for all, so it is safe at once.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from echoic.errors import LocalError
from echoic.groups.engine import Capabilities, Delivered, EngineEvent, Restored, StateWanted, View, Viewed

__all__ = ["LocalEngine"]

KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
NEVER_NS: Final = 2**62

Event = Delivered | Viewed


class Table:
    """The order of one group in this process."""

    def __init__(self) -> None:
        self.lock: Final = threading.Lock()
        self.members: dict[str, LocalEngine] = {}
        self.kept: deque[Delivered | tuple[int, tuple[str, ...]]] = deque()
        self.kept_bytes = 0
        self.position = 0

    def put(self, event: Delivered | tuple[int, tuple[str, ...]], bytes_max: int) -> None:
        """Put an event at the end of the order; the oldest are forgotten when they are too many. The lock is held."""
        self.kept.append(event)
        self.kept_bytes += len(event.payload) if isinstance(event, Delivered) else 0
        while self.kept_bytes > bytes_max:
            gone = self.kept.popleft()
            self.kept_bytes -= len(gone.payload) if isinstance(gone, Delivered) else 0
        for member in self.members.values():
            member.tell(event)


_tables: Final[dict[str, Table]] = {}
_tables_lock: Final = threading.Lock()


class LocalEngine:
    """A member of a group within this process."""

    def __init__(
        self,
        group: str,
        me: str,
        *,
        life: int,
        kept_bytes_max: int = KEPT_BYTES_MAX,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Sit down at the group's table.

        Raises:
            LocalError: Somebody of this name is there already.
        """
        self.applied_sequence = 0
        self.hold = False
        self._group, self._me, self._life = group, me, life
        self._bytes_max = kept_bytes_max
        self._wake = wake
        self._events: deque[EngineEvent] = deque()
        self._number = 0
        self._tickets: dict[int, LocalEngine] = {}
        self._waiting = False
        with _tables_lock:
            self._table = _tables.setdefault(group, Table())
        table = self._table
        with table.lock:
            if me in table.members:
                raise LocalError(f"`{me}` is a member of group `{group}` in this process already")
            self._begin(table)
            table.members[me] = self
            self._change_view()

    @property
    def capabilities(self) -> Capabilities:
        """Everything but that it lasts."""
        return Capabilities()

    def descriptors(self) -> Mapping[int, int]:
        """Return nothing: the table wakes its members."""
        return {}

    def wake_ns(self) -> int:
        """Return when `turn` is due: as soon as there is something."""
        return 0 if self._events and not self.hold else NEVER_NS

    def send(self, payload: bytes, now_ns: int) -> None:  # noqa: ARG002 - there is no time here
        """Put a pack on the table."""
        table = self._table
        with table.lock:
            self._number += 1
            table.position += 1
            table.put(Delivered(table.position, self._me, self._life, self._number, payload), self._bytes_max)

    def turn(self, ready: Sequence[tuple[int, int]], now_ns: int) -> list[EngineEvent]:  # noqa: ARG002 - as above
        """Return what was put on the table."""
        taken: list[EngineEvent] = []
        while self._events and not self.hold:
            taken.append(self._events.popleft())
        return taken

    def tell(self, event: Delivered | tuple[int, tuple[str, ...]]) -> None:
        """Learn of an event. The table's lock is held."""
        if isinstance(event, tuple):
            position, members = event
            event = Viewed(View(position, members, self._me in members))  # type: ignore[assignment] # of the union
        self._events.append(event)  # type: ignore[arg-type] # a view by now
        self._wake()

    def give_state(self, ticket: int, position: int, summary: bytes, chunks: Iterable[bytes]) -> None:
        """Give a member that came late what it has missed, and what has happened since."""
        wanting = self._tickets.pop(ticket, None)
        if wanting is not None:
            with self._table.lock:
                wanting.restore(position, summary, tuple(chunks))

    def restore(self, position: int, summary: bytes, chunks: tuple[bytes, ...]) -> None:
        """Take over another's state. The table's lock is held."""
        self._events.appendleft(Restored(position, summary, chunks))
        known = [
            event for event in self._events if not isinstance(event, Delivered | Viewed) or _place(event) > position
        ]
        self._events = deque(known)
        self._waiting = False
        self._wake()

    def compact(self, position: int, summary: bytes, chunks: Sequence[bytes] = ()) -> None:
        """Forget nothing: the table keeps what it has room for."""

    def statistics(self) -> Mapping[str, object]:
        """Return how the table stands."""
        return {"engine": "local", "position": self._table.position, "kept_bytes": self._table.kept_bytes}

    def close(self) -> None:
        """Leave the table; the last one clears it."""
        table = self._table
        with _tables_lock, table.lock:
            if table.members.get(self._me) is self:
                del table.members[self._me]
                if table.members:
                    self._change_view()
                else:
                    _tables.pop(self._group, None)

    def _change_view(self) -> None:
        table = self._table
        table.position += 1
        table.put((table.position, tuple(sorted(table.members))), self._bytes_max)

    def _begin(self, table: Table) -> None:
        """Learn what is on the table; ask another member for what was forgotten."""
        first = table.kept[0] if table.kept else None
        start = table.position + 1 if first is None else first[0] if isinstance(first, tuple) else first.position
        if start > 1 and table.members:
            giver = next(iter(table.members.values()))
            giver.want(self)
        for event in table.kept:
            self.tell(event)

    def want(self, wanting: "LocalEngine") -> None:
        """Have this member's group give its state to another. The table's lock is held."""
        ticket = len(self._tickets) + 1
        self._tickets[ticket] = wanting
        wanting.hold = True
        self._events.append(StateWanted(ticket, wanting.applied_sequence))
        self._wake()


def _place(event: Delivered | Viewed) -> int:
    return event.position if isinstance(event, Delivered) else event.view.position
