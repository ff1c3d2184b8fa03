"""How many events a second become Arrow columns that somebody uses?

Each keeper has kept the same events and reads all of them, again and again: every field, two fields of twelve, or one
event of a hundred. Whoever uses columns looks at each number, so each column is added up; without that a file that is
mapped into memory would be "read" without being looked at. The files are in the memory of the operating system.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Session, Setup, interleave
from echoic.testing.bench.journal.journals import JOURNAL
from echoic.testing.bench.journal.keepers import BATCH, EVERYTHING, WISHES, Keeper, Wish, batch_of_events, workshop
from echoic.testing.bench.journal.plain import PLAIN
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Table, Unit

if TYPE_CHECKING:
    import pyarrow

__all__ = ["TITLE", "measure"]

TITLE = "events read into Arrow columns"
RATE_MIN: Final = 5.0
COMMITS: Final = 5
BATCHES: Final = {True: 100, False: 4}
SETUP: Final = Setup("100 B", batch=BATCH)


def measure(effort: Effort, report: Report, rivals: Sequence[Keeper] = ()) -> None:
    """Measure how fast events are read, and add it to the report."""
    events = COMMITS * BATCHES[effort.sample_seconds >= Effort().sample_seconds] * BATCH
    keepers = (PLAIN, JOURNAL, *rivals)
    with workshop() as folder:
        for number, keeper in enumerate(keepers):
            effort.told(f"writing for {keeper.name}")
            _fill(keeper, folder / str(number), events)
        entries = {
            (keeper.name, column): (
                Contender(keeper.name, partial(_reading, keeper, folder / str(number), wish, events)),
                SETUP,
            )
            for column, wish in WISHES.items()
            for number, keeper in enumerate(keepers)
            if keeper.selective or column == EVERYTHING
        }
        samples = interleave(entries, effort).divided(dict.fromkeys(WISHES, events))
    report.tables.append(Table(TITLE, Unit.THOUSANDS_PER_SECOND, PLAIN.name, samples))
    processor = samples.worked() if samples.processor_seconds else samples
    for column in WISHES:
        found = processor.rounds(lambda seconds: 1e-6 / seconds, (JOURNAL.name, column))
        report.claims.append(Claim(f"reading, {column}", found, RATE_MIN, "million/s per core", at_least=True))


def _fill(keeper: Keeper, folder: Path, events: int) -> None:
    folder.mkdir()
    with keeper.keep(folder, [batch_of_events()] * (events // COMMITS // BATCH)) as commit:
        for _ in range(COMMITS):
            commit()


@contextmanager
def _reading(keeper: Keeper, folder: Path, wish: Wish, events: int, setup: Setup) -> Iterator[Session]:
    """Give the session in which a keeper reads everything so many times."""
    expected = _expected(wish, events, setup.batch)

    def session(count: int) -> float:
        begun = time.perf_counter()
        for _ in range(count):
            if (found := _used(keeper.read(folder, wish))) != expected:
                raise RuntimeError(f"{keeper.name} has read {found} events and their sum, expected {expected}")
        return (time.perf_counter() - begun) / count

    yield session


def _expected(wish: Wish, events: int, batch: int) -> tuple[int, int]:
    """Return how many events a wish is granted, and what their sequence numbers add up to."""
    records = batch_of_events(batch)
    if wish.colder_than is not None:
        records = records[records["temperature"] < wish.colder_than]
    times = events // batch
    return len(records) * times, int(records["sequence"].sum()) * times


def _used(batches: "Iterable[pyarrow.RecordBatch]") -> tuple[int, int]:
    """Use every column; return how many events there were, and what their sequence numbers add up to."""
    import pyarrow.compute

    count = total = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        sums = {name: pyarrow.compute.sum(batch.column(name)).as_py() for name in batch.schema.names}
        count += batch.num_rows
        total += sums["sequence"]
    return count, total
