"""A modulator that means no harm; all of this file is shipped, so it is short."""

from echoic.eager import Modulator

__all__ = ["Honest"]


class Honest(Modulator):
    """Passes what is large enough, and must not notice what others try."""

    least: int = 0

    def enqueue(self, event: object) -> None:
        """Pass an event, or not."""
        if getattr(event, "value", 0) >= self.least:
            super().enqueue(event)
