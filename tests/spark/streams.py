"""Small streams of rows for tests of tables: a folder of JSON files, of which each is a batch."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from echoic.spark.tables import TableSettings, write_stream

FIRST = 1_750_000_000
"""When the first file was written, in seconds; those after it a second later each."""


def put(folder: Path, *files: Iterable[Mapping[str, Any]]) -> None:
    """Add files of rows; Spark takes them in the order of their times, so these are set."""
    folder.mkdir(exist_ok=True)
    for rows in files:
        number = sum(1 for _ in folder.iterdir())
        draft = folder.parent / "draft.json"
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(draft, (FIRST + number, FIRST + number))
        draft.rename(folder / f"{number:04d}.json")


def stream(spark: SparkSession, folder: Path, schema: str, *, files_per_batch: int = 1) -> DataFrame:
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files_per_batch).json(str(folder))


def fill(frame: DataFrame, table: TableSettings, checkpoint: Path) -> None:
    """Bring everything that there is into the table, and stop."""
    writer = write_stream(frame, table, checkpoint=str(checkpoint), name=Path(table.path).name)
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def forget_last_commit(checkpoint: Path) -> None:
    """Make a checkpoint that of a driver killed after the table took a batch, and before Spark noted it."""
    commits = checkpoint / "commits"
    last = max((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
    (commits / f".{last.name}.crc").unlink(missing_ok=True)
    last.unlink()
