"""Time: when an atom with `delay` or `timeout` is enabled, and when a process is to be woken for it.

The time of an atom counts from when it became possible. In a `||` the sides have times of their own: what one side
does does not restart the other (`keeps_time`). A process has at most one entry in the heap that counts, the earliest
it was ever told of; entries that no longer do are thrown out when they are more than half.
"""

import datetime
import heapq
from typing import Final

from echoic.scripts.graph import Edge, Evaluation, Node, Timing, keeps_time, moment_of
from echoic.scripts.graph.expressions import EPOCH
from echoic.scripts.running.instances import ProcessInstance
from echoic.terms import Value, plain

__all__ = ["Timers", "activate"]

SECOND_NS: Final = 1_000_000_000
STALE_MIN: Final = 64
YEARS_LONG: Final = 1000  # a year below is one of the twentieth century and after: 95 is 1995
DATE_FIELDS: Final = 6


def activate(process: ProcessInstance, done: Edge | None, node: Node, now_ns: int) -> None:
    """Note when the timed edges of a node became possible: some before `done`, the others by it."""
    before = process.activations
    if not node.timed:
        process.activations = None
        return
    times: dict[object, int] = {}
    for edge in node.timed:
        key = (edge.path, edge.origin)
        known = None if before is None or done is None or not keeps_time(edge, done) else before.get(key)
        times[key] = now_ns if known is None else known
    process.activations = times


class Timers:
    """Who is to be woken, and when."""

    def __init__(self, epoch_ns: int) -> None:
        self._epoch_ns = epoch_ns
        self._heap: list[tuple[int, int, ProcessInstance]] = []
        self._stale = 0
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def deadline_ns(self) -> int | None:
        """Return when the next process is to be woken."""
        heap = self._heap
        while heap and heap[0][2].due_ns != heap[0][0]:
            heapq.heappop(heap)
            self._stale -= 1
        return heap[0][0] if heap else None

    def due(self, now_ns: int) -> list[ProcessInstance]:
        """Return those who are to be woken by now, who are then forgotten."""
        found = []
        while (deadline := self.deadline_ns()) is not None and deadline <= now_ns:
            process = heapq.heappop(self._heap)[2]
            process.due_ns = None
            found.append(process)
        return found

    def remind(self, process: ProcessInstance, due_ns: int) -> None:
        """Have a process woken, unless it is woken before anyway."""
        if process.due_ns is not None:
            if process.due_ns <= due_ns:
                return
            self.forget(process)
        process.due_ns = due_ns
        self._count += 1
        heapq.heappush(self._heap, (due_ns, self._count, process))

    def forget(self, process: ProcessInstance) -> None:
        """Do not wake a process: it has gone on."""
        if process.due_ns is None:
            return
        process.due_ns = None
        self._stale += 1
        if self._stale > STALE_MIN and 2 * self._stale > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].due_ns == entry[0]]
            heapq.heapify(self._heap)
            self._stale = 0

    def allow(self, process: ProcessInstance, edge: Edge, now_ns: int) -> bool:
        """Whether an edge is enabled now; where it will be later, the process is woken then.

        Raises:
            ValueError, ArithmeticError: A time has no value.
        """
        timing = edge.timing
        if timing is None:
            return True
        activations = process.activations
        since_ns = now_ns if activations is None else activations.get((edge.path, edge.origin), now_ns)
        for moment_ns in self._lasts(process, timing, since_ns):
            if now_ns >= moment_ns:
                return False
        due_ns = max(self._starts(process, timing, since_ns), default=now_ns)
        if now_ns >= due_ns:
            return True
        self.remind(process, due_ns)
        return False

    def _starts(self, process: ProcessInstance, timing: Timing, since_ns: int) -> list[int]:
        starts = [since_ns + _duration_ns(delay(process.slots, process)) for delay in timing.delays]
        return starts + [self._moment_ns(process, fields, since_ns) for fields in timing.dates]

    def _lasts(self, process: ProcessInstance, timing: Timing, since_ns: int) -> list[int]:
        lasts = [since_ns + _duration_ns(timeout(process.slots, process)) for timeout in timing.timeouts]
        return lasts + [self._moment_ns(process, fields, since_ns) for fields in timing.last_dates]

    def _moment_ns(self, process: ProcessInstance, fields: tuple[Evaluation, ...], since_ns: int) -> int:
        """Return when it is a date of which the leading fields may be missing: they are those of `since_ns`."""
        given = [_integer(field(process.slots, process)) for field in fields]
        today = moment_of(since_ns + self._epoch_ns)
        leading = (today.year, today.month, today.day)[: DATE_FIELDS - len(given)]
        year, *rest = (*leading, *given)
        if year < YEARS_LONG:
            year += 1900
        month, day, hour, minute, second = rest
        moment = datetime.datetime(year, month, day, hour, minute, second)
        return int((moment - EPOCH) / datetime.timedelta(microseconds=1)) * 1000 - self._epoch_ns


def _duration_ns(value: Value) -> int:
    """Return a time in seconds as nanoseconds, to the millisecond."""
    bare = plain(value)
    if type(bare) is not int and type(bare) is not float:
        raise ValueError("a time is a number of seconds")
    return max(0, round(bare * 1000)) * (SECOND_NS // 1000)


def _integer(value: Value) -> int:
    bare = plain(value)
    if type(bare) is not int:
        raise ValueError("a field of a date is an integer")
    return bare
