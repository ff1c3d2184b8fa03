"""What Java has loaded of Spark, kept in a file, so that the next Java maps it and need not load it again.

A driver takes 10 s of a core until its first queries have ended, and 5 s with an archive, and the tests start some
thirty drivers. The archive is one of Java's own (class data sharing): Java takes from it what fits its version and its
class path, says nothing where something does not, and does the same with it as without. It is made once for an
environment, by a driver in the background, while the first tests run, none of which is of Spark. It takes part in
them as an equal: at a lower priority it was done when all drivers had started, and given up before.
"""

import atexit
import hashlib
import importlib.metadata
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from echoic.errors import PipelineError
from echoic.spark.java import find_java

__all__ = ["archive_path", "make_archive_aside", "sharing_options"]

SILENT = "-Xlog:disable -Xlog:all=error:stderr"
PATIENCE = 600
"""Seconds: what takes ten takes minutes beside all other tests."""


def archive_path() -> Path | None:
    """Where the archive for this Java and this Spark is or will be; None without a Java."""
    try:
        java = find_java()
    except PipelineError:
        return None
    known = hashlib.sha256(
        f"{java.program} {java.version} {importlib.metadata.version('pyspark')}".encode()
    ).hexdigest()
    return Path(sys.prefix) / f"spark-classes-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def sharing_options(path: Path) -> str:
    """The options for a Java that may use an archive, which need not be there."""
    return f"-XX:SharedArchiveFile={path} -Xshare:auto {SILENT}"


def make_archive_aside(path: Path) -> "subprocess.Popen[bytes]":
    """Start to make an archive, and return the process that does it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.spark.class_archive", str(path)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def make(path: Path) -> None:
    """Let a driver do what drivers of the tests do, and keep what it has loaded."""
    from echoic.spark.session import session

    partial = path.with_suffix(f".{os.getpid()}")
    atexit.register(partial.unlink, missing_ok=True)  # unless it has become the archive
    os.environ["SPARK_SUBMIT_OPTS"] = (
        f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ArchiveClassesAtExit={partial} {SILENT}"
    )
    with tempfile.TemporaryDirectory() as folder:
        few = {"spark.sql.shuffle.partitions": "1", "spark.sql.warehouse.dir": f"{folder}/warehouse"}
        spark = session("classes", "local[1]", few)
        gateway = spark.sparkContext._gateway  # noqa: SLF001 - its process is the Java whose end is waited for
        spark.range(10).selectExpr("id", "id % 2 as kind").write.parquet(f"{folder}/table")
        rows = spark.readStream.schema("id long, kind long").parquet(f"{folder}/table").groupBy("kind").count()
        stream = rows.writeStream.outputMode("complete").option("checkpointLocation", f"{folder}/state")
        stream = stream.foreachBatch(lambda rows, _: rows.collect()).trigger(availableNow=True)
        stream.start().awaitTermination(PATIENCE)
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()  # its Java ends with it
        gateway.proc.wait(PATIENCE)
    if partial.exists():
        partial.rename(path)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
