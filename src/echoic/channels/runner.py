"""What the core knows of a modulator at work: it is given batches, and gives batches back.

A modulator runs in the hub's own process or in another one that is confined (`echoic.eager`); the core does not care.
It asks, the runner answers; foreign code that takes too long, or too much, is the runner's to stop.
"""

from typing import Protocol

import msgspec

from echoic.formats import Format
from echoic.wire import Batch

__all__ = ["Runner", "Worked"]


class Worked(msgspec.Struct, frozen=True):
    """What a modulator has done."""

    batch: Batch | None
    """What is to be sent, in this order."""
    faults: tuple[str, ...] = ()
    """Why events were given up, one text for each, with the line of the shipped text."""
    waiting: bool = False
    """Whether events are left in it, to be sent later."""


class Runner(Protocol):
    """A modulator at work in this hub, with a copy of its own for each source."""

    @property
    def output(self) -> Format | None:
        """The type of what comes out; None if that is what went in."""
        ...

    @property
    def period_ns(self) -> int:
        """How often `period` wants to be called, 0 for never."""
        ...

    @property
    def buffered(self) -> bool:
        """Whether it may hold events back, so that a source need not wait for those who listen."""
        ...

    def work(self, source: int, batch: Batch | None, *, period: bool = False, ready: bool = True) -> Worked:
        """Enqueue the events of a batch, let a period pass if one is over, and dequeue all there is if it can be sent.

        Args:
            source: Whose events they are.
            batch: The events, None for none.
            period: Whether a period is over.
            ready: Whether the transport takes events.

        Raises:
            ModulatorError: It was stopped at a limit or cannot go on, and must not be asked again.
        """
        ...

    def drain(self, source: int) -> Worked:
        """Dequeue everything that waits.

        Raises:
            ModulatorError: As for `work`.
        """
        ...

    def forget(self, source: int) -> None:
        """End the copy of a source that has ended."""
        ...

    def close(self) -> None:
        """End all of them."""
        ...
