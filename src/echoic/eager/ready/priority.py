"""Events of higher priority first, when not all can be sent at once.

While the transport takes everything, events leave in the order in which they came, those of one batch apart, which come
at once. When it does not, those that wait are sorted by a field, highest first, and among equals by when they came. The
queue is bounded: when it is full, what would be sent last is dropped, which may be the event that has just come. That
is told once for each time that the queue fills up, as a fault of the modulator, not once for each event: faults are
counted, and too many suspend it.

The queue is a sorted list, the next event at its end. Inserting moves pointers of 8 bytes, which for the 65,536 events
at most is faster than a heap that would have to be searched for its lowest element.
"""

import math
from bisect import insort
from typing import Final

from echoic.eager.modulator import QUEUE_EVENTS_MAX, Modulator
from echoic.eager.ready.arguments import check_whole
from echoic.eager.ready.fields import Reader, check_number
from echoic.errors import ModulatorError

__all__ = ["Priority"]

CAPACITY: Final = 4096


class Priority(Modulator):
    """Send events with the highest value of a field first when the transport is not ready.

    Args:
        field: The field that holds the priority; not a number counts as the lowest.
        capacity: How many events wait at most; beyond it the lowest are dropped.
        declared: The event type, if the field is to be checked here and not only where the events are.

    Raises:
        LocalError: There is no such field, or the capacity is out of range.
    """

    field: str
    capacity: int

    def __init__(self, field: str, capacity: int = CAPACITY, *, declared: object | None = None) -> None:
        check_number(declared, field)
        super().__init__(field, check_whole("capacity", capacity, 1, QUEUE_EVENTS_MAX))

    def start(self) -> None:
        """Begin with nothing waiting."""
        self._priority = Reader([self.field])
        self._sorted: list[tuple[float, int, object]] = []
        self._number = 0
        self._full = False
        self.dropped = 0

    def enqueue(self, event: object) -> None:
        """Let the event wait at its place.

        Raises:
            ModulatorError: The queue has filled up, and the lowest event was dropped.
        """
        priority = self._priority(event)
        self._number -= 1  # falls, so that of equals the first to come is the last of the list
        insort(self._sorted, (-math.inf if math.isnan(priority) else priority, self._number, event))
        if len(self._sorted) <= self.capacity:
            return
        del self._sorted[0]
        self.dropped += 1
        if not self._full:
            self._full = True
            raise ModulatorError(
                f"{self.capacity} events wait, which is the limit: those with the lowest `{self.field}` are dropped"
            )

    def dequeue(self) -> object | None:
        """Return the event of the highest priority."""
        if not self._sorted:
            return None
        self._full = False
        return self._sorted.pop()[2]

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._sorted)
