"""Trades become a table of cheap ones, a channel of them, and a table of volumes per minute; wherever Spark runs.

    python run_on_a_cluster.py JOURNALS RESULTS CHANNEL                              on this machine
    spark-submit --master spark://host:7077 --py-files echoic.zip run_on_a_cluster.py JOURNALS RESULTS CHANNEL
    python run_on_a_cluster.py JOURNALS RESULTS CHANNEL sc://host:15002              through Spark Connect

JOURNALS and RESULTS are folders that all machines see; CHANNEL is the id of a channel that has an intake. It takes what
is recorded, then ends; run again, it goes on there.
"""

import sys

from echoic.spark import Pipeline


def market(journals: str, results: str, channel: str) -> Pipeline:
    """Return the pipeline. Nothing runs yet."""
    pipeline = Pipeline("market", state=f"{results}/state", tables=f"{results}/tables")
    trades = pipeline.source("trades", journal=journals, time="at", watermark="1 hour", max_rows_per_batch=4000)

    cheap = trades.derive("{ return input.price < param.low; }", params={"low": 72.0}, name="cheap")
    cheap.to_table("cheap")
    pipeline.sql("select symbol, price, volume from cheap").to_channel(channel, name="offers")

    minutes = trades.window("1 minute", by=["symbol"], trades="count(*)", volume="sum(volume)")
    minutes.to_table("minutes")
    return pipeline


def main(journals: str, results: str, channel: str, server: str = "") -> None:
    """Run the pipeline on what is recorded."""
    for output in market(journals, results, channel).run(once=True, master=server):
        print(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
