"""Event types for tests of hubs, handlers that remember, and how to wait without hoping."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from echoic import Hub, event, float64, int64

if TYPE_CHECKING:
    from echoic.channels import Gap

__all__ = ["Collector", "Note", "Quote", "StartHub", "Tick", "Trade", "WideTrade", "eventually", "trade"]

PATIENCE_SECONDS = 90.0


class StartHub(Protocol):
    def __call__(self, listen: str = "127.0.0.1:0", **options: object) -> Hub: ...


@event
class Trade:
    number: int64
    price: float64
    symbol: str


@event
class Quote:
    """What is left of a trade for those who want less."""

    price: float64
    number: int64


@event
class WideTrade:
    """A trade of somebody who knows more."""

    venue: str
    number: int64
    price: float64
    symbol: str
    volume: int64


@event
class Tick:
    """Of fixed size, so that NumPy has it too."""

    producer: int64
    number: int64


@event
class Note:
    """Of any size."""

    number: int64
    text: str


def trade(number: int) -> Trade:
    return Trade(number, number / 2, f"S{number % 7}")


def eventually(condition: Callable[[], object], what: str = "", seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until a condition holds, and fail when it does not for a long time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(0.002)


class Collector:
    """A handler that remembers the numbers of the events it was called with, and the gaps."""

    def __init__(self, *, pause: float = 0.0) -> None:
        self.events: list[Any] = []
        self.gaps: list[Gap] = []
        self.threads: set[int] = set()
        self._pause = pause
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, item: Any) -> None:
        self.threads.add(threading.get_ident())
        self.gate.wait()
        if self._pause:
            time.sleep(self._pause)
        self.events.append(item)

    def batch(self, batch: Any) -> None:
        """Be the handler of a sink that takes batches."""
        self.gate.wait()
        if self._pause:
            time.sleep(self._pause)
        self.events.extend(batch)

    @property
    def numbers(self) -> list[int]:
        return [item.number for item in self.events]

    def has(self, count: int) -> None:
        """Wait for so many events."""
        eventually(lambda: len(self.events) >= count, f"{count} events, got {len(self.events)}")

    def of(self, producer: int) -> list[int]:
        return [item.number for item in self.events if item.producer == producer]

    @property
    def missed(self) -> set[int]:
        """The sequence numbers that were told to be missing."""
        told = [number for gap in self.gaps for number in range(gap.first, gap.last + 1)]
        assert len(told) == len(set(told)), "the same event was reported missing twice"
        return set(told)
