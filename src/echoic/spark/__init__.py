"""Edge: touches Spark, Java and files. How do channels become tables, and results channels?"""

from echoic.spark.derive import Derivation, derive, explain_derivation
from echoic.spark.java import Java, find_java
from echoic.spark.packing import pack, ship
from echoic.spark.pipeline import Pipeline
from echoic.spark.registering import register
from echoic.spark.session import session, settings
from echoic.spark.source import EchoicSource
from echoic.spark.tables import (
    TableSettings,
    check_table,
    committed_files,
    read_table,
    remove_uncommitted,
    table_dataset,
    write_stream,
)

__all__ = [
    "Derivation",
    "EchoicSource",
    "Java",
    "Pipeline",
    "TableSettings",
    "check_table",
    "committed_files",
    "derive",
    "explain_derivation",
    "find_java",
    "pack",
    "read_table",
    "register",
    "remove_uncommitted",
    "session",
    "settings",
    "ship",
    "table_dataset",
    "write_stream",
]
