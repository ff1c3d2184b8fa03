"""What is awaited from outside before somebody can go on: values, and the delivery of values (`holding.py`)."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from echoic.scripts.running.instances import ProcessInstance

if TYPE_CHECKING:
    from echoic.terms import Reference, Value

__all__ = ["Awaited", "Draws"]


class Draws:
    """Chance that remembers what a turn has drawn, and says it again if the turn is had again."""

    def __init__(self, draw: Callable[[], float]) -> None:
        self._draw = draw
        self._drawn: list[float] = []
        self._again: list[float] = []  # the next one last
        self._kept: dict[int, list[float]] = {}  # by the number of the process

    def begin(self, process: ProcessInstance) -> None:
        """Begin a turn."""
        self._drawn.clear()
        self._again = self._kept.pop(process.number, [])[::-1] if self._kept else []

    def keep(self, process: ProcessInstance) -> None:
        """Keep what the turn of a process has drawn."""
        self._kept[process.number] = self._drawn + self._again[::-1]

    def random(self) -> float:
        """Return a number of [0, 1)."""
        number = self._again.pop() if self._again else self._draw()
        self._drawn.append(number)
        return number


class Awaited:
    """Who waits for what."""

    def __init__(self) -> None:
        self.draws: Draws | None = None  # chance, from the first reference on
        self.needed: dict[Reference, list[ProcessInstance]] = {}  # what is being fetched, and whose turns it is for
        self.arrived: dict[Reference, Value] = {}  # what is to be put into its places
        self.holds: dict[int, tuple[ProcessInstance, int]] = {}  # who waits until which tool has what it was told
        self.told = 0  # how often somebody was held
        self.posted: deque[Value] = deque()  # notes from outside that cannot be delivered without a value

    @property
    def referring(self) -> bool:
        """Whether there was ever a reference."""
        return self.draws is not None
