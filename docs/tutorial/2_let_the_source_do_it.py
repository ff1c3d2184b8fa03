"""The program of the tutorial page "Let the source do it"."""

import math

import echoic


@echoic.event
class Trade:
    symbol: str
    price: float
    volume: int


@echoic.event
class Mean:
    price: float
    trades: int


def walk(steps: int) -> list[Trade]:
    """Return trades whose price swings between 70 and 84, once in 200 steps."""
    return [Trade("ECHO", 77 + 7 * math.sin(step * math.tau / 200), 100) for step in range(steps)]


RANGE = """
{
    if ((input.price < param.low) || (input.price > param.high)) {
        return 1; /* submit event into derived channel */
    }
    return 0; /* do not submit event into derived channel */
}
"""


def every_tenth(input, output):
    """Return the mean of ten trades, and nothing for the nine between."""
    total: static[float64] = 0.0
    count: static[int32] = 0
    total += input.price
    count += 1
    if count < 10:
        return 0
    output.price = total / count
    output.trades = count
    total = 0.0
    count = 0
    return 1


with echoic.Hub(name="exchange") as exchange, echoic.Hub(name="desk") as desk:
    trades = exchange.create("trades", Trade)
    source = trades.source()

    at_desk = desk.open(trades.id, Trade)
    alarm = at_desk.derive(RANGE, params={"low": 72.0, "high": 82.0})
    means = at_desk.derive(every_tenth, output=Mean)

    alarms, averages = [], []
    alarm.subscribe(alarms.append)
    means.subscribe(averages.append)

    source.submit_batch(walk(1000))
    source.drain()
    print(len(alarms), "alarms,", len(averages), "means, the first", averages[0])

    alarm.params.update(low=70.5, high=83.5)
    alarms.clear()
    source.submit_batch(walk(1000))
    source.drain()
    print(len(alarms), "alarms with a wider range")

    for channel in (alarm, means):
        (counts,) = channel.derivation.counts().values()
        print(f"{counts.events_out} of {counts.events_in} events sent, {counts.bytes_saved} bytes saved")
