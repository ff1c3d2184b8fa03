"""Edge: touches Spark. How does Spark know `format("echoic")`? It imports packages of this prefix, for this name."""

from echoic.spark.source import EchoicSource as DefaultSource

__all__ = ["DefaultSource"]
