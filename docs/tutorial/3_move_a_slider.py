"""The program of the tutorial page "Move a slider"; with --stay it shows the page, and goes on until Ctrl-C."""

import contextlib
import itertools
import math
import sys
import time

import echoic


@echoic.event
class Trade:
    symbol: str
    price: float
    volume: int


def walk(first: int, count: int) -> list[Trade]:
    """Return trades whose price swings between 70 and 84, once in 1000 steps."""
    return [
        Trade("ECHO", 77 + 7 * math.sin(step * math.tau / 1000), 100 + step % 7) for step in range(first, first + count)
    ]


with echoic.Hub(name="exchange") as exchange, echoic.Hub(name="desk") as desk:
    trades = exchange.create("trades", Trade)
    source = trades.source()

    # What the desk wants, with a knob: `low` is what the page shows as a slider.
    cheap = desk.open(trades.id, Trade).derive(
        "{ return input.price < param.low; }", params={"low": 77.0}, name="cheap"
    )
    told = []
    cheap.subscribe(told.append)

    # What the slider does, without a browser.
    for low in (77.0, 73.5, 70.5):
        cheap.params.update(low=low)  # when this returns, every source has it
        told.clear()
        source.submit_batch(walk(0, 1000))
        source.drain()
        print(f"low = {low}: {len(told)} of 1000 events were sent")
    (counts,) = cheap.derivation.counts().values()
    print(f"{counts.bytes_saved} of {counts.bytes_in} bytes never left the source")

    # The page itself.
    if "--stay" in sys.argv:
        from echoic.viewer import Viewer

        with Viewer(exchange, "127.0.0.1:0") as viewer, contextlib.suppress(KeyboardInterrupt):
            print("open", viewer.url, flush=True)
            for step in itertools.count(0, 10):
                source.submit_batch(walk(step, 10))
                time.sleep(0.01)
