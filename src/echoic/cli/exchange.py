"""The other process of `echoic demo`: an exchange that publishes trades.

It creates the channel at the name server it is given, waits until all sinks listen, submits many trades one at a time
and some synchronously, and prints what it measured as a line of JSON.
"""

import statistics
import sys
import time

import msgspec

from echoic.hub import Channel, Hub, Source
from echoic.testing.samples import Trade

__all__ = ["Measured", "main"]

TRADES = 200_000
CALLS = 2_000
SYMBOLS = ("IBM", "ECHO", "SUNW", "HAL")
SINKS = 3
SINKS_SECONDS = 20.0


class Measured(msgspec.Struct, frozen=True):
    """What the exchange has seen."""

    trades: int
    submit_seconds: float
    call_microseconds: float
    bytes_sent: int


def main() -> None:
    """Publish trades for whoever listens."""
    with Hub(names=sys.argv[1], name="exchange") as hub:
        trades = hub.create("trades", Trade)
        with trades.source() as source:
            _await_sinks(hub)
            measured = _publish(source, trades)
        print(msgspec.json.encode(measured).decode(), flush=True)


def _await_sinks(hub: Hub) -> None:
    deadline = time.monotonic() + SINKS_SECONDS
    while sum(len(desk.sinks) for desk in hub.describe("trades").sinks) < SINKS:
        if time.monotonic() > deadline:
            sys.exit("exchange: nobody listens")
        time.sleep(0.005)


def _publish(source: Source, trades: Channel) -> Measured:
    offers = [Trade(SYMBOLS[number % 4], 75 + number % 40 / 8, number % 700) for number in range(1000)]
    began = time.perf_counter()
    for number in range(TRADES):
        source.submit(offers[number % 1000])
    source.flush()
    seconds = time.perf_counter() - began
    calls = []
    for number in range(CALLS):
        began = time.perf_counter()
        source.submit_sync(offers[number % 1000], timeout=10)
        calls.append(time.perf_counter() - began)
    return Measured(TRADES, seconds, statistics.median(calls) * 1e6, trades.statistics().bytes_out)


if __name__ == "__main__":
    main()
