"""A small real world for the viewer to show: a name server, a stock exchange, an atmosphere, and the viewer's hub.

All are hubs of this process, and several, because it is between hubs that events are sent. The programs that publish
are threads that do so from time to time until they are closed.
"""

import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from echoic import Channel, Hub, Source
from echoic.channels import DerivationCounts
from echoic.cli.demo_events import Trade, Wind
from echoic.cli.demo_weather import Atmosphere
from echoic.viewer import Viewer

__all__ = ["CHEAP", "TOKEN", "Exchange", "Publisher", "Weather", "World", "contrast", "empty_world", "watched", "world"]

TOKEN: Final = "0123456789abcdef0123456789abcdef"
CHEAP: Final = "{\n    return input.price < param.low;\n}"
SYMBOLS: Final = ("IBM", "DEC", "SUN", "HAL")
JOIN_SECONDS: Final = 30.0


class Publisher:
    """Does something with a source again and again, until it is closed.

    Args:
        channel: What is published to.
        step: What is done, with the source and the number of the step.
        seconds: From one to the next.
    """

    def __init__(self, channel: Channel, step: Callable[[Source, int], None], seconds: float) -> None:
        self._ending = threading.Event()
        self._source = channel.source()
        self._step, self._seconds = step, seconds
        self._thread = threading.Thread(target=self._publish, name=f"publisher of {channel.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join(JOIN_SECONDS)
        self._source.close()

    def _publish(self) -> None:
        number = 0
        while not self._ending.wait(self._seconds):
            self._step(self._source, number)
            number += 1


class Exchange:
    """Prices that wander."""

    def __init__(self) -> None:
        self._chance = random.Random(11)
        self._prices = dict.fromkeys(SYMBOLS, 75.0)

    def __call__(self, source: Source, number: int) -> None:
        source.submit_batch([self._trade() for _ in range(20)])

    def _trade(self) -> Trade:
        symbol = self._chance.choice(SYMBOLS)
        step = self._chance.gauss(0, 0.4) + (75.0 - self._prices[symbol]) * 0.01
        self._prices[symbol] = price = round(self._prices[symbol] + step, 2)
        return Trade(time.time(), symbol, price, self._chance.randrange(1, 400))


class Weather:
    """Wind fields of the demo's atmosphere model, 37 layers of 253 points."""

    def __init__(self) -> None:
        self._atmosphere = Atmosphere(seed=3)
        for _ in range(120):
            self._atmosphere.step()

    def __call__(self, source: Source, number: int) -> None:
        source.submit(Wind(time.time(), number, self._atmosphere.step()))


class World:
    """What a test looks at; `viewer.url` is where."""

    def __init__(self, stack: ExitStack) -> None:
        self.names: Final = stack.enter_context(Hub(name="names"))
        self.exchange: Final = stack.enter_context(Hub(names=self.names.address, name="exchange"))
        self.station: Final = stack.enter_context(Hub(names=self.names.address, name="station"))
        self.desk: Final = stack.enter_context(Hub(names=self.names.address, name="desk"))
        self.eyes: Final = stack.enter_context(Hub(names=self.names.address, name="viewer"))
        self.trades: Final = self.exchange.create("trades", Trade)
        self.wind: Final = self.station.create("wind", Wind)
        self.cheap: Final = self.desk.open("trades", Trade).derive(CHEAP, params={"low": 74.0}, name="cheap")
        for publisher in (Publisher(self.trades, Exchange(), 0.04), Publisher(self.wind, Weather(), 0.1)):
            stack.callback(publisher.close)
        self.viewer: Final = stack.enter_context(Viewer(self.eyes, listen="127.0.0.1:0", token=TOKEN))

    @property
    def url(self) -> str:
        return self.viewer.url

    def derivations(self, hub: Hub, parent: str) -> list[DerivationCounts]:
        """Return what the derivations from a channel have done inside a hub that has its source."""
        found = self.desk.report(hub.address).derivations
        return [each for each in found if parent in each.parent]


@contextmanager
def world() -> Iterator[World]:
    with ExitStack() as stack:
        yield World(stack)


@contextmanager
def watched(names: str, token: str = TOKEN) -> Iterator[Viewer]:
    """Have a viewer of what a name server knows."""
    with Hub(names=names, name="viewer") as hub, Viewer(hub, listen="127.0.0.1:0", token=token) as viewer:
        yield viewer


@contextmanager
def empty_world() -> Iterator[Viewer]:
    """Have a viewer, and nothing for it to show."""
    with Hub(name="names") as names, watched(names.address) as viewer:
        yield viewer


def contrast(front: tuple[float, ...], back: tuple[float, ...]) -> float:
    """Return how well one colour is read on another, as WCAG counts it: from 1 to 21."""

    def luminance(colour: tuple[float, ...]) -> float:
        parts = [part / 255 for part in colour[:3]]
        linear = [part / 12.92 if part <= 0.03928 else math.pow((part + 0.055) / 1.055, 2.4) for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(front), luminance(back)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
