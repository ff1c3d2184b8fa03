"""How many events a second is a local sink handed from a journal, at full speed?

The sink is in the same hub and counts batches of 1000, as a program would that reads its own past. Beside it stand the
same batches submitted from memory: what the channel itself allows. Until the sink has handled all of them.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Session, Setup, interleave
from echoic.testing.bench.journal.journals import CHANNEL, JOURNAL
from echoic.testing.bench.journal.keepers import BATCH, batch_of_events, workshop
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Table, Unit

if TYPE_CHECKING:
    from echoic import Batch, Hub

__all__ = ["MEMORY", "REPLAY", "TITLE", "measure"]

TITLE = "events replayed to a local sink, batches of 1000"
MEMORY, REPLAY, COLUMN = "submitted from memory", "echoic, replay at full speed", "events"
RATE_MIN: Final = 1.0
BATCHES: Final = {True: 500, False: 20}
DRAIN_SECONDS_MAX: Final = 60.0
SETUP: Final = Setup("100 B", batch=BATCH)


def measure(effort: Effort, report: Report) -> None:
    """Measure how fast a journal is replayed, and add it to the report."""
    batches = BATCHES[effort.sample_seconds >= Effort().sample_seconds]
    with workshop() as folder:
        with JOURNAL.keep(folder, [batch_of_events()] * batches) as commit:
            commit()
        entries = {
            (MEMORY, COLUMN): (Contender(MEMORY, partial(_submitted, batches)), SETUP),
            (REPLAY, COLUMN): (Contender(REPLAY, partial(_replayed, folder, batches)), SETUP),
        }
        samples = interleave(entries, effort).divided({COLUMN: batches * BATCH})
    report.tables.append(Table(TITLE, Unit.THOUSANDS_PER_SECOND, MEMORY, samples))
    found = samples.rounds(lambda seconds: 1e-6 / seconds, (REPLAY, COLUMN))
    report.claims.append(Claim("replay to a local sink", found, RATE_MIN, "million/s", at_least=True))


class _Counter:
    """A sink that counts events."""

    def __init__(self) -> None:
        self.events = 0

    def handle(self, batch: "Batch") -> None:
        """Count the events of a batch."""
        self.events += len(batch)


@contextmanager
def _submitted(batches: int, setup: Setup) -> Iterator[Session]:
    """Give the session in which batches are submitted from memory."""
    from echoic import Hub

    records = batch_of_events(setup.batch)
    with Hub() as hub:
        channel = hub.create(CHANNEL, records.dtype)
        counter = _Counter()
        channel.subscribe(counter.handle, batch=True)
        with channel.source() as source:

            def once() -> None:
                for _ in range(batches):
                    source.submit_batch(records)
                source.drain(DRAIN_SECONDS_MAX)

            yield partial(_timed, once, counter, batches * setup.batch)


@contextmanager
def _replayed(folder: Path, batches: int, setup: Setup) -> Iterator[Session]:
    """Give the session in which a journal is replayed."""
    from echoic import Hub

    with Hub() as hub:
        counter = _Counter()
        channel = hub.create(CHANNEL, batch_of_events(1).dtype)
        channel.subscribe(counter.handle, batch=True)
        yield partial(_timed, partial(_replay, hub, folder), counter, batches * setup.batch)


def _replay(hub: "Hub", folder: Path) -> None:
    with ExitStack() as stack:
        replay = hub.replay(folder, channel=CHANNEL, rate=inf)
        stack.callback(replay.close)
        replay.wait(DRAIN_SECONDS_MAX)


def _timed(once: Callable[[], None], counter: _Counter, events: int, count: int) -> float:
    before, begun = counter.events, time.perf_counter()
    for _ in range(count):
        once()
    elapsed = time.perf_counter() - begun
    if (handled := counter.events - before) != count * events:
        raise RuntimeError(f"the sink has handled {handled} events, expected {count * events}")
    return elapsed / count
