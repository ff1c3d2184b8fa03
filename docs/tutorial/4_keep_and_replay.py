"""The program of the tutorial page "Keep and replay"."""

import tempfile

import pyarrow

import echoic


@echoic.event
class Trade:
    symbol: str
    price: float
    volume: int


def day(number: int) -> list[Trade]:
    """Return the thousand trades of a day."""
    return [Trade("IBM", 70.0 + number + step / 100, 100 + step % 7) for step in range(1000)]


with tempfile.TemporaryDirectory() as folder:
    # 1. Keep what flows: any hub can be the archive.
    with echoic.Hub(name="exchange") as exchange, echoic.Hub(name="archive") as archive:
        trades = exchange.create("trades", Trade)
        archive.record(trades.id, folder)
        source = trades.source(name="floor")
        source.submit_batch(day(1))
        source.drain()  # until it is on the archive's disk
        print("on the disk:", source.position, "events of", source.statistics().events)

    # 2. Read it, without a hub: as events, or as columns.
    journal = echoic.Journal(folder, "trades")
    first = next(iter(journal.read(declared=Trade)))
    print("the first:", first.batch.events()[0])
    print("a table of", pyarrow.table(journal).num_rows, "rows")
    print("below 71.02:", journal.arrow(where="input.price < 71.02", columns=["price"]).read_all().to_pylist())

    # 3. Go on another day, where it stopped.
    with echoic.Hub(name="exchange") as exchange, echoic.Hub(name="archive") as archive:
        trades = exchange.create("trades", Trade)
        archive.record(trades.id, folder)
        source = trades.source(name="floor")
        print("the next event is number", source.position)
        source.submit_batch(day(2))
        source.drain()

    # 4. Let it flow once more: into another channel, as fast as it can, through a filter.
    with echoic.Hub(name="rehearsal") as hub:
        again = hub.create("again", Trade)
        dear = again.derive("input.price > 81.97")
        dear.subscribe(print)
        with hub.replay(folder, "again", rate=0) as replay:
            replay.wait()
            print(replay.statistics().events, "events once more")
