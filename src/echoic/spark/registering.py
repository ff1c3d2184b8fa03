"""Makes a session know `format("echoic")`.

Spark finds packages called `pyspark_*` by itself, so where echoic is installed `pyspark_echoic` is enough and there is
nothing to do. Registering by hand is for sessions that do not look, and for clusters whose nodes do not have the
package.
"""

from pyspark.sql import SparkSession

from echoic.spark.source import EchoicSource

__all__ = ["register"]


def register(spark: SparkSession) -> None:
    """Make a session know the data source `echoic`."""
    spark.dataSource.register(EchoicSource)
