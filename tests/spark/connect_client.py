"""What a program far from the cluster does through Spark Connect: it has no Java and sees no JVM."""

import runpy
import sys
from pathlib import Path

from echoic.spark import derive, session, ship

PROGRAM = Path(__file__).parents[2] / "docs" / "how-to" / "run_on_a_cluster.py"


def main(server: str, journals: str, results: str, offers: str, dear: str) -> None:
    spark = session("client", server)
    ship(spark)
    trades = spark.read.format("echoic").options(journal=journals, channel="trades").load()
    kept = derive(trades.select("symbol", "price", "volume"), "input.price >= param.high", params={"high": 78.0})
    kept.write.format("echoic").mode("append").option("channel", dear).save()
    print(f"read {trades.count()} rows")
    runpy.run_path(str(PROGRAM))["main"](journals, results, offers, server)


if __name__ == "__main__":
    main(*sys.argv[1:])
