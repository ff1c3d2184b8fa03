"""A modulator for simulations: everything passes, but the last few events of each source wait until more come.

So whoever ends it at the wrong moment loses events, and whoever asks it twice gets them twice. How many it holds back
is what its parcel says; equal numbers are equal modulators.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from echoic.channels import Recipe, Step, Worked
from echoic.testing.simulated_ends import Sample
from echoic.wire import Batch

if TYPE_CHECKING:
    from echoic.formats import Format

__all__ = ["HoldingRunner", "holding_recipe"]


class HoldingRunner:
    """Runs in each hub with sources; each source has a queue of its own."""

    def __init__(self, held_max: int, period_ns: int = 0) -> None:
        self.output: Format | None = None
        self.period_ns: int = period_ns
        self.buffered = True
        self.closed = False
        self._held_max = held_max
        self._queues: Final[dict[int, deque[Sample]]] = {}

    @classmethod
    def of(cls, step: Step) -> "HoldingRunner":
        """Return what runs the modulator of a step."""
        return cls(step.recipe.parcel[0])

    def work(self, source: int, batch: Batch | None, *, period: bool = False, ready: bool = True) -> Worked:
        """Enqueue events, and let go of all but the last few; of all of them when a period is over."""
        queue = self._queues.setdefault(source, deque())
        for sample in batch.to(Sample).events() if batch is not None else ():
            if isinstance(sample, Sample):
                queue.append(sample)
        return self._let_go(queue, 0 if period else self._held_max if ready else len(queue))

    def drain(self, source: int) -> Worked:
        """Let go of all."""
        return self._let_go(self._queues.setdefault(source, deque()), 0)

    def forget(self, source: int) -> None:
        """Forget what is left of a source that has ended."""
        self._queues.pop(source, None)

    def close(self) -> None:
        """Forget everything."""
        self.closed = True
        self._queues.clear()

    @staticmethod
    def _let_go(queue: deque[Sample], kept: int) -> Worked:
        freed = [queue.popleft() for _ in range(len(queue) - kept)]
        return Worked(Batch.of(freed, Sample) if freed else None, waiting=bool(queue))


def holding_recipe(parent: str, held_max: int) -> Recipe:
    """Return the recipe of a modulator that holds so many events of each source back."""
    return Recipe(parent, "", "modulator", parcel=bytes([held_max]), identity=b"holding" + bytes([held_max]))
