"""The world around `prices.tb`: an exchange that publishes trades, and somebody who hears the alarms."""

import random
import time
from pathlib import Path

import echoic
from echoic.toolbus import Bus

SCRIPT = Path(__file__).with_name("prices.tb")
SHARES = ("IBM", "DEC", "SUN")


@echoic.event
class Trade:
    share: str
    price: float


@echoic.event
class Alarm:
    share: str
    price: float


def main() -> None:
    chance = random.Random(7)
    with echoic.Hub() as hub:
        trades, alarms = hub.create("trades", Trade), hub.create("alarms", Alarm)
        heard: list[Alarm] = []
        alarms.subscribe(heard.append)
        exchange = trades.source()
        with Bus.from_script(SCRIPT, hub=hub) as bus:
            bus.start()
            while not exchange.heard:  # nobody misses the first trade
                time.sleep(0.01)
            prices = dict.fromkeys(SHARES, 80.0)
            for _ in range(200):
                share = chance.choice(SHARES)
                prices[share] += chance.uniform(-2, 1.9)
                exchange.submit(Trade(share, prices[share]))
            exchange.submit(Trade("close", 0.0))
            lowest = bus.run(timeout=30)
        print(f"{len(heard)} alarms; the lowest prices: {lowest}")


if __name__ == "__main__":
    main()
