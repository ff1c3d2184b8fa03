"""The exchange of `echoic demo`, a process of its own: `python -m echoic.cli.demo_exchange HOST:PORT`.

Prices wander as in the papers' example. One trade in fourteen is an odd lot. The last event is a closing bell: a trade
of no shares, a minute later by the exchange's clock. It tells Spark that the windows before it are over.
"""

import time
from typing import Final

import numpy

from echoic.cli.demo_events import LOT, Trade
from echoic.cli.demo_stage import Cues, Report, perform
from echoic.hub import Source

__all__ = ["BELL", "TRADES_A_SECOND", "Market", "main"]

TRADES_A_SECOND: Final = 5_000
TICK_SECONDS: Final = 0.02
SYMBOLS: Final = {"ECHO": 31.0, "HAL": 52.0, "IBM": 75.5, "SUNW": 18.0}
ODD_SHARE: Final = 0.07
WANDERING: Final = 0.0002
BELL: Final = "BELL"
BELL_SECONDS: Final = 60.0


class Market:
    """Where prices are."""

    def __init__(self, seed: int) -> None:
        self._random = numpy.random.default_rng(seed)
        self._names = list(SYMBOLS)
        self._prices = numpy.array(list(SYMBOLS.values()))

    def trades(self, at: float, count: int) -> list[Trade]:
        """Return the next trades."""
        random = self._random
        which = random.integers(0, len(self._names), count)
        odd = random.random(count) < ODD_SHARE
        volumes = numpy.where(odd, random.integers(1, LOT, count), LOT * random.integers(1, 20, count))
        made = []
        for symbol, volume in zip(which.tolist(), volumes.tolist(), strict=True):
            self._prices[symbol] *= 1 + WANDERING * random.standard_normal()
            made.append(Trade(at, self._names[symbol], round(float(self._prices[symbol]), 2), volume))
        return made


def main() -> None:
    """Publish trades from cue to cue, then ring the bell."""
    perform("exchange", "trades", Trade, _publish)


def _publish(source: Source, cues: Cues) -> Report:
    market = Market(seed=1)
    begun = time.time()
    events = shares = 0
    while not cues.ending.wait(TICK_SECONDS):
        at = time.time()
        trades = market.trades(at, int((at - begun) * TRADES_A_SECOND) - events)
        source.submit_batch(trades)
        events += len(trades)
        shares += sum(trade.volume for trade in trades)
    seconds = time.time() - begun
    source.submit(Trade(time.time() + BELL_SECONDS, BELL, 0.0, 0))
    source.drain()
    return Report(events + 1, seconds, shares)


if __name__ == "__main__":
    main()
