"""Notes: who has subscribed to what, and the notes that processes have not yet taken.

A note goes to every process that has at least one subscription it fits, the sender too, once however many fit.
Subscribers are found by the head of their patterns, so that a note does not cost a look at every process. Subscriptions
have no references in them, so a process is always found by the head that it was put under; notes may have.
"""

from collections import deque
from collections.abc import Hashable
from typing import Final

from echoic.scripts.graph import Bindings, Pattern, consistent, fits, head_of, match
from echoic.scripts.running.instances import ProcessInstance
from echoic.scripts.running.limits import MachineLimits
from echoic.terms import Reference, Value, ValueNeeded, refers, same

__all__ = ["Subscribers", "find_note"]

NOBODY: Final[dict[int, ProcessInstance]] = {}


def find_note(process: ProcessInstance, pattern: Pattern) -> tuple[int, Bindings] | None:
    """Return where in its queue the oldest note of a process that a pattern takes is, and what it binds."""
    if process.notes:
        for position, value in enumerate(process.notes):
            bindings: Bindings = []
            if match(pattern, process.slots, value, bindings) and consistent(bindings):
                return position, bindings
    return None


def _wants(process: ProcessInstance, value: Value) -> bool:
    """Whether a process has a subscription that a note fits."""
    needed: Reference | None = None
    for pattern in process.subscriptions or ():
        try:
            if fits(pattern, value):
                return process.notes is not None
        except ValueNeeded as error:
            needed = needed or error.reference
    if needed is not None:
        raise ValueNeeded(needed)
    return False


class Subscribers:
    """Who wants which notes."""

    def __init__(self, limits: MachineLimits) -> None:
        self._limits = limits
        self._by_head: dict[Hashable, dict[int, ProcessInstance]] = {}
        self.dropped = 0

    def subscribe(self, process: ProcessInstance, pattern: Value) -> bool:
        """Let a process have notes like this; false where it has too many subscriptions."""
        if process.subscriptions is None:
            process.subscriptions, process.notes = [], deque()
        if any(same(pattern, each) for each in process.subscriptions):
            return True
        if len(process.subscriptions) >= self._limits.subscriptions_per_process_max:
            return False
        process.subscriptions.append(pattern)
        self._by_head.setdefault(head_of(pattern, ()), {})[process.number] = process
        return True

    def unsubscribe(self, process: ProcessInstance, pattern: Value) -> None:
        """Let a process have no more notes like this, and forget those it has."""
        if process.subscriptions is None or process.notes is None:
            return
        process.subscriptions = [each for each in process.subscriptions if not same(pattern, each)]
        process.notes = deque(note for note in process.notes if not fits(pattern, note))
        head = head_of(pattern, ())
        if all(head_of(each, ()) != head for each in process.subscriptions):
            self._remove(head, process)

    def forget(self, process: ProcessInstance) -> None:
        """Forget a process that has ended."""
        for pattern in process.subscriptions or ():
            self._remove(head_of(pattern, ()), process)
        process.subscriptions = process.notes = None

    def wanting(self, value: Value) -> list[ProcessInstance]:
        """Return who gets a note.

        Raises:
            ValueNeeded: Only the value of a reference decides.
        """
        head = head_of(value, ())
        named = self._by_head.get(head, NOBODY) if head is not None else NOBODY
        anything = self._by_head.get(None, NOBODY)
        found = [*named.values(), *(each for number, each in anything.items() if number not in named)]
        if head is None and refers(value):
            numbers = {process.number for process in found}
            found += [each for there in self._by_head.values() for each in there.values() if each.number not in numbers]
        return [process for process in found if _wants(process, value)]

    def is_full(self, process: ProcessInstance) -> bool:
        """Whether a process loses its oldest note for the next one."""
        return process.notes is not None and len(process.notes) >= self._limits.notes_per_process_max

    def deliver(self, process: ProcessInstance, value: Value) -> None:
        """Put a note into the queue of a process."""
        if process.notes is None:
            return
        if self.is_full(process):
            process.notes.popleft()
            self.dropped += 1
        process.notes.append(value)

    def _remove(self, head: Hashable, process: ProcessInstance) -> None:
        there = self._by_head.get(head)
        if there is not None:
            there.pop(process.number, None)
            if not there:
                del self._by_head[head]
