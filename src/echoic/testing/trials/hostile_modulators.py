"""Modulators that were written to harm the source they run in. None of them may be run outside of a sandbox."""

# ruff: noqa: ARG002 - each is called with an event, whatever it does

from typing import Final

from echoic.eager import Modulator

__all__ = ["MODULATORS"]


class Endless(Modulator):
    """Never comes back."""

    def enqueue(self, event: object) -> None:
        """Loop."""
        while True:
            pass


class Hoarding(Modulator):
    """Takes all the memory it can get."""

    def enqueue(self, event: object) -> None:
        """Keep more and more."""
        kept = [bytearray(2**26)]
        while True:
            kept.append(bytearray(2**26))


class Recursing(Modulator):
    """Calls itself without end."""

    def enqueue(self, event: object) -> None:
        """Call itself."""
        self.enqueue(event)


class Multiplying(Modulator):
    """Makes a text that doubles."""

    def enqueue(self, event: object) -> None:
        """Double it."""
        text = "x"
        while True:
            text += text


class Counting(Modulator):
    """Makes one enormous number, in one operation that nothing interrupts."""

    def enqueue(self, event: object) -> None:
        """Count."""
        super().enqueue(9 ** (9**9 % 10**8))


class Failing(Modulator):
    """Fails for every event."""

    def enqueue(self, event: object) -> None:
        """Fail."""
        raise ValueError("x" * 10**6)


MODULATORS: Final[tuple[type[Modulator], ...]] = (Endless, Hoarding, Recursing, Multiplying, Counting, Failing)
