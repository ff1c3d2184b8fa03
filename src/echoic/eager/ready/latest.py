"""Latest-only: what waits for the transport is replaced by what is newer.

A display on a slow line should show how things are, not how they were. While the transport takes everything, all that
is submitted passes, except that a batch is submitted at once: of its events, too, only the newest are left. When the
transport takes nothing, a source without this modulator waits; with it the source goes on, and of each key (a symbol, a
cell) one event waits, the newest.

    submitted   A1 B1 A2 C1 A3          (the transport takes nothing meanwhile)
    waiting     B1 C1 A3                A3 stands where it was submitted, so order is kept
"""

from collections.abc import Sequence

from echoic.eager.modulator import QUEUE_EVENTS_MAX, Modulator
from echoic.eager.ready.fields import Reader, check_key
from echoic.errors import ModulatorError
from echoic.formats import Array

__all__ = ["Latest"]


class Latest(Modulator):
    """Keep only the newest event, or the newest of each key, while the transport is not ready.

    Args:
        keys: The fields that tell what an event is about; without any, one event waits at most.
        declared: The event type, if the fields are to be checked here and not only where the events are.

    Raises:
        LocalError: There is no such field.
    """

    keys: Array[str, ...]

    def __init__(self, keys: str | Sequence[str] = (), *, declared: object | None = None) -> None:
        super().__init__([check_key(declared, key) for key in ([keys] if isinstance(keys, str) else keys)])

    def start(self) -> None:
        """Begin with nothing waiting."""
        self._key = Reader(self.keys)
        self._newest: dict[object, object] = {}

    def enqueue(self, event: object) -> None:
        """Let the event wait instead of the one of the same key.

        Raises:
            ModulatorError: Events of too many keys wait.
        """
        newest, key = self._newest, self._key(event)
        newest.pop(key, None)
        if len(newest) >= QUEUE_EVENTS_MAX:
            raise ModulatorError(f"events of {len(newest)} keys wait, limit is {QUEUE_EVENTS_MAX}")
        newest[key] = event

    def dequeue(self) -> object | None:
        """Return the event that was submitted first of those that wait."""
        return self._newest.pop(next(iter(self._newest))) if self._newest else None

    @property
    def waiting(self) -> int:
        """How many events wait."""
        return len(self._newest)
