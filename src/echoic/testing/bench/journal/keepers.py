"""Who keeps events on a disk, and how they are asked to.

A *keeper* opens a place for events in a folder and gives a function that makes one commit: some batches, on the disk
when it returns. What it has kept it reads as Arrow columns, or as much of them as a *wish* asks for.

    plain loop    write the records, fdatasync; read the file, take its columns apart
    journal       JournalWriter.append, commit; Journal.arrow
    rivals        a caller adds them; see `benchmarks.rivals`

All are equally durable: a commit that has returned survives a loss of power. Everybody begins with events in the form
it likes best, and all batches are alike: what is in them makes no difference to anybody who does not compress.
Each keeper works in its own folder on the disk of the temporary directory; TMPDIR names another one.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.testing.bench.events import PAYLOADS, Records

if TYPE_CHECKING:
    import pyarrow

__all__ = ["BATCH", "EVERYTHING", "WISHES", "Commit", "Keeper", "Wish", "batch_of_events", "sync_remark", "workshop"]

BATCH: Final = 1000
SYNCS: Final = 20

# Puts some batches on the disk.
Commit = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a reader wants of events.

    Attributes:
        columns: Only these fields; all of them if there are none.
        colder_than: Only events whose temperature is below; all of them if None. Temperatures are 0 to 99.
    """

    columns: tuple[str, ...] = ()
    colder_than: float | None = None


EVERYTHING: Final = "all of it"
WISHES: Final = {
    EVERYTHING: Wish(),
    "2 of 12 columns": Wish(("sequence", "temperature")),
    "1 % of the events": Wish(colder_than=1.0),
}


@dataclass(frozen=True, slots=True)
class Keeper:
    """One way to keep events on a disk.

    Attributes:
        name: How it is called in tables.
        keep: Opens a place in a folder for batches of records, all of which make up one commit.
        read: Returns the columns of what is kept in a folder.
        selective: Whether it can leave out columns and events while it reads.
    """

    name: str
    keep: Callable[[Path, Sequence[Records]], AbstractContextManager[Commit]]
    read: "Callable[[Path, Wish], Iterable[pyarrow.RecordBatch]]"
    selective: bool = True


def batch_of_events(count: int = BATCH) -> Records:
    """Return records of 96 bytes, of which each hundredth is cold."""
    made = PAYLOADS["100 B"].records(count)
    made["temperature"] = made["sequence"] % 100
    return made


@contextmanager
def workshop() -> Iterator[Path]:
    """Give a folder on a disk for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="echoic-bench-") as folder:
        yield Path(folder)


def sync_remark() -> str:
    """Return a sentence about the disk: how long it takes to put one batch there."""
    data, times = batch_of_events().tobytes(), []
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(SYNCS):
            begun = time.perf_counter()
            file.write(data)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begun)
    median = statistics.median(times) * 1e3
    return f"disk: fdatasync behind {len(data)} bytes takes {median:.2f} ms in the temporary directory (TMPDIR)"
