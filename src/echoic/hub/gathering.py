"""What a source has gathered: records that wait until the flusher, or the source itself, sends them as one run.

Thousands of sources may take turns, and then none is in the processor's caches when its turn comes. So what an event
needs lies close together, here and in the first slots of every source, and what all sources of a type have in common
is one object for all of them.
"""

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from echoic.channels import Member, SourceRun
from echoic.formats import Format
from echoic.wire import Batch, encoder_of
from echoic.wire.bounds import bounds_of

if TYPE_CHECKING:
    from echoic.hub.switchboard import Switchboard

__all__ = ["Gathering", "batch_of_records"]

RUN_BYTES: Final = 48 * 1024
TEXT_BYTES_GUESS: Final = 32


class Gathering:
    """The run of a source. Whoever sends it holds the lock; anybody may add to it."""

    __slots__ = (
        "_armed",
        "_batches",
        "_closed",
        "_encode",
        "_lock",
        "_member",
        "_run",
        "_run_max",
        "_switchboard",
        "format",
        "id",
    )

    def __init__(self, member: Member, switchboard: "Switchboard", id: int, format: Format, kind: type) -> None:
        self._member = member
        self._switchboard = switchboard
        self.id: Final = id
        self.format: Final = format
        self._encode: Callable[[object], bytes] = encoder_of(format).single(kind)
        self._run: list[bytes] = []
        self._run_max = run_max(format)
        self._lock = threading.RLock()
        self._armed = self._closed = False
        self._batches = 0

    @property
    def gathered(self) -> int:
        """How many events have gathered."""
        return len(self._run)

    def hold(self, *, spare: bool) -> bool:
        """Keep others from sending what has gathered, until `release`; False when somebody is about to send it.

        Args:
            spare: Let events gather while a link that they take is clogged.
        """
        if spare and self._switchboard.busy(self._member):
            return False
        if not self._lock.acquire(False):
            return False
        if self._closed:
            self._lock.release()
            return False
        return True

    def seize(self, records: list[bytes], *, spare: bool) -> SourceRun | None:
        """Hold as `hold` does, and add what has gathered to `records`; None, and not held, when that cannot be."""
        run, member = self._run, self._member
        if not run or (spare and self._switchboard.busy(member)) or not self._lock.acquire(False):
            return None
        if self._closed:
            self._lock.release()
            return None
        taken = run[:]
        records += taken
        return SourceRun(member, self.id, len(taken))

    def release(self, sent: int) -> None:
        """Let others send again, after so many events have been sent."""
        if sent:
            del self._run[:sent]
            self._batches += 1
        self._lock.release()

    def disarm(self) -> bool:
        """Return to sending at once; tell whether nothing has gathered meanwhile."""
        self._armed = False
        if self._run:
            self._armed = True
            return False
        return True


@lru_cache(maxsize=1024)
def run_max(format: Format) -> int:
    """Return how many events of a format may gather in a source; the same number for all."""
    return max(1, RUN_BYTES // (format.size + TEXT_BYTES_GUESS * format.variable))


def batch_of_records(format: Format, records: Sequence[bytes]) -> Batch:
    """Return encoded records as a batch."""
    return Batch(format, len(records), [b"".join(records)], bounds_of(records) if format.variable else None)
