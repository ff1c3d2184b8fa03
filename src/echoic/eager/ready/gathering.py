"""Gathering events until there are enough of them, or until time is up.

The common half of `Cluster`, `Compress` and `Encrypt`: events are kept until `count` of them are there, then made into
one. With a period, fewer leave when it is over, so that nothing waits longer than that; without one, fewer leave when
the modulator is drained, that is exchanged or closed, because that calls `period` once.

Nothing overrides `dequeue` here. A modulator that does is one in which events may wait, for which a source does not
wait in turn; here a source is slowed down by a slow sink as it would be without a modulator, and nothing is lost.
"""

from collections.abc import Sequence
from typing import Final

from echoic.eager.modulator import Modulator
from echoic.eager.ready.arguments import check_whole
from echoic.eager.ready.bundles import BUNDLE_EVENTS_MAX

__all__ = ["Gathering"]

PERIOD_NS_MAX: Final = 3_600_000_000_000


class Gathering(Modulator):
    """Base of modulators that make one event of several."""

    count: int

    def gather(self, count: int, period_ns: int, **state: object) -> None:
        """Take the state; how many events go together, and how long one waits for others at most (0 for any time).

        Raises:
            LocalError: An argument is out of range.
        """
        super().__init__(count=check_whole("count", count, 1, BUNDLE_EVENTS_MAX), **state)
        self.period_ns = check_whole("period_ns", period_ns, 0, PERIOD_NS_MAX)

    def start(self) -> None:
        """Begin with nothing gathered."""
        self._gathered: list[object] = []

    def enqueue(self, event: object) -> None:
        """Keep the event; send all that are kept if they are enough."""
        self._gathered.append(event)
        if len(self._gathered) >= self.count:
            self.period()

    def period(self) -> None:
        """Send what is kept, however few."""
        gathered = self._gathered
        if gathered:
            self._gathered = []
            super().enqueue(self.joined(gathered))

    @property
    def waiting(self) -> int:
        """How many events wait, those that are gathered among them."""
        return super().waiting + len(self._gathered)

    def joined(self, events: Sequence[object]) -> object:
        """Return the one event that stands for several."""
        raise NotImplementedError
