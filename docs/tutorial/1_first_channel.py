"""The program of the tutorial page "A first channel"."""

import echoic


@echoic.event
class Trade:
    symbol: str
    price: float
    volume: int


@echoic.event
class Quote:  # what one of the sinks cares about
    symbol: str
    price: float


with echoic.Hub(name="exchange") as exchange, echoic.Hub(name="desk") as desk:
    # 1. A channel, and somebody who listens.
    trades = exchange.create("trades", Trade)
    at_desk = desk.open(trades.id, Trade)
    at_desk.subscribe(lambda trade: print("desk:", trade))

    # 2. Somebody who submits.
    source = trades.source()
    source.submit(Trade("IBM", 75.5, 100))  # returns at once
    source.submit_sync(Trade("ECHO", 75.25, 3))  # returns when every handler has returned

    # 3. Another sink wants less of each event, and a third one many at a time, as columns.
    desk.open(trades.id, Quote).subscribe(lambda quote: print("quote:", quote))
    at_desk.subscribe(lambda batch: print("shares:", batch.array["volume"].sum()), batch=True)
    source.submit_batch([Trade("IBM", 75.75, 200), Trade("ECHO", 75.0, 50)])
    source.drain()  # until every sink has handled all of it
    print(source.statistics().events, "events submitted")
