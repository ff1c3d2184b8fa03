"""Spark's own declarative pipelines read from channels and write to them, by `spark-pipelines run`.

They start a JVM and a Connect server of their own, thus run as a process. Nothing is registered: Spark finds
`pyspark_echoic`. A run is slow, so there is one. To see that a second one goes on where the first has stopped:
`python -m tests.spark.test_declarative_pipelines FOLDER`, with an empty folder. The tables of the first run are known
to the second by a catalog of Hive's.
"""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset
import pytest

from echoic import Hub, Journal
from echoic.recorder import Disk
from echoic.spark.java import find_java
from tests.recorder.recordings import Scribe, Trade

pytestmark = [pytest.mark.slow, pytest.mark.system]

SPEC = """
name: market
storage: file://{folder}/storage
libraries:
  - glob:
      include: definitions/**
configuration:
  spark.sql.shuffle.partitions: "2"
"""
# What is set when Java starts cannot stand in the specification: Spark would try to set it for each query again.
DEFAULTS = """
spark.sql.catalogImplementation hive
spark.sql.warehouse.dir {folder}/warehouse
spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dderby.system.home={folder}/derby
spark.ui.enabled false
"""
DEFINITIONS = """
from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()


@dp.table
def trades() -> DataFrame:
    return spark.readStream.format("echoic").options(journal="{folder}/journals", channel="trades").load()


@dp.materialized_view
def per_venue() -> DataFrame:
    return spark.read.table("trades").groupBy("venue").count()


dp.create_sink("alerts", "echoic", {{"channel": "{channel}"}})


@dp.append_flow(target="alerts")
def cheap() -> DataFrame:
    return spark.readStream.table("trades").where("price < 2").select("number", "price", "venue")
"""


def run(folder: Path) -> None:
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    command = [Path(sys.executable).with_name("spark-pipelines"), "run", "--spec", folder / "spark-pipeline.yml"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]


def check(folder: Path, *, runs: int) -> None:
    """Run a pipeline as often as told, with more trades each time, and compare the view and the channel with them."""
    scribe = Scribe(Disk(folder / "journals"))
    (folder / "definitions").mkdir()
    (folder / "spark-pipeline.yml").write_text(SPEC.format(folder=folder))
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text(DEFAULTS.format(folder=folder))
    with Hub() as hub:
        intake = hub.intake("alerts", folder / "results")
        definitions = DEFINITIONS.format(folder=folder, channel=intake.channel.id)
        (folder / "definitions" / "market.py").write_text(definitions)
        for done in range(runs):
            scribe.write([Trade(number, number % 10, number % 2) for number in range(10 * done, 10 * done + 10)])
            run(folder)
            assert counts(folder) == {0: 5 * done + 5, 1: 5 * done + 5}

    alerts = [int(number) for each in Journal(folder / "results", "alerts").read() for number in each.array["number"]]
    assert sorted(alerts) == [10 * done + number for done in range(runs) for number in (0, 1)]


def counts(folder: Path) -> dict[int, int]:
    rows = pyarrow.dataset.dataset(folder / "warehouse" / "per_venue", format="parquet").to_table().to_pylist()
    return {row["venue"]: row["count"] for row in rows}


def test_a_declarative_pipeline_reads_a_journal_and_writes_to_a_channel(tmp_path: Path) -> None:
    check(tmp_path, runs=1)


if __name__ == "__main__":
    check(Path(sys.argv[1]).absolute(), runs=2)
