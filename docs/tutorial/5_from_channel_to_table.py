"""The program of the tutorial page "From channel to table"."""

import math
import tempfile
from pathlib import Path

import echoic
from echoic.spark import Pipeline, read_table, session


@echoic.event
class Trade:
    symbol: str
    price: float
    volume: int
    at: float  # seconds since 1970


@echoic.event
class Volume:
    symbol: str
    volume: int


def morning(minutes: int) -> list[Trade]:
    """Return a trade of each of two stocks for every second from nine o'clock on."""
    nine = 1_767_258_000.0
    return [
        Trade(symbol, round(75 + 5 * math.sin(second / 600), 2), 100 + second % 7, nine + second)
        for second in range(60 * minutes)
        for symbol in ("ECHO", "IBM")
    ]


with (
    tempfile.TemporaryDirectory() as temporary,
    echoic.Hub(name="exchange") as exchange,
    echoic.Hub(name="archive") as archive,
):
    folder = Path(temporary)

    # 1. A channel, and somebody who records it.
    trades = exchange.create("trades", Trade)
    archive.record(trades.id, folder / "journals")
    source = trades.source()
    source.submit_batch(morning(60))
    source.drain()

    # 2. A recorded channel is a frame.
    spark = session("tutorial", log=folder / "spark.log")  # what Spark says goes there
    recorded = spark.read.format("echoic").option("journal", folder / "journals").option("channel", "trades").load()
    print(recorded.count(), "trades, columns:", ", ".join(recorded.columns))

    # 3. What can be done in the reader need not go through Spark.
    cheap = (
        spark.read.format("echoic")
        .options(journal=folder / "journals", channel="trades", where="input.price < 71", columns="symbol,price")
        .option("metadata", "false")
        .load()
    )
    cheap.groupBy("symbol").count().orderBy("symbol").show()

    # 4. A pipeline: windows of event time become a table, and a channel.
    pipeline = Pipeline("market", state=folder / "state", tables=folder / "tables")
    stream = pipeline.source("trades", journal=folder / "journals", time="at", watermark="10 seconds")
    minutes = stream.window("1 minute", by=["symbol"], volume="sum(volume)", highest="max(price)", name="minutes")
    minutes.to_table("minutes")
    large = pipeline.sql("select symbol, volume from minutes where volume > 6184", name="large")
    large.to_channel("large", intake=folder / "results")
    for tally in pipeline.run(once=True, spark=spark):
        print(f"{tally.output}: rows in {tally.rows_in}, out {tally.rows_out}")

    # 5. The table, and the channel as it was recorded.
    table = read_table(spark, folder / "tables" / "minutes")
    table.orderBy("start", "symbol").select("start", "symbol", "volume", "highest").show(3)
    results = echoic.Journal(folder / "results", "large")
    volumes = [each for recorded in results.read(declared=Volume) for each in recorded.batch.events()]
    print(len(volumes), "results, the largest", max(each.volume for each in volumes))

    # 6. More trades come: the same pipeline goes on where it stopped.
    source.submit_batch([Trade("ECHO", 75.0, 1_000, 1_767_258_000.0 + 7200)])
    source.drain()
    for tally in pipeline.run(once=True, spark=spark):
        print(f"{tally.output}: rows in {tally.rows_in}, out {tally.rows_out}")
    spark.stop()
