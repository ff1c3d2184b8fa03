"""How many events a second are on the disk?

    in this process      a commit is 1, 10 or 100 batches of 1000 events of 96 bytes, then one fdatasync
    in another process   this one is a source; another has a recorder. Until `drain` returns, which is when the recorder
                         has confirmed that everything is on its disk. It decides itself how much is one commit

A sample begins with an empty file, and only its commits count.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Session, Setup, interleave
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.journal.journals import JOURNAL
from echoic.testing.bench.journal.keepers import BATCH, Keeper, batch_of_events, sync_remark, workshop
from echoic.testing.bench.journal.plain import PLAIN
from echoic.testing.bench.peers import start_peers
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit

__all__ = ["GROUPS", "HUB", "TITLE", "measure"]

TITLE = "events kept, batches of 1000"
GROUPS: Final = {"1 batch a commit": 1, "10 batches": 10, "100 batches": 100}
HUB: Final = "echoic, hub.record in another process"
BY_HUB: Final = "as it comes"
RATE_MIN, RATIO_MIN = 2.0, 0.5
SETUP: Final = Setup("100 B", batch=BATCH)
RECORDER: Final = f"{__name__}:record"
DRAIN_SECONDS_MAX: Final = 120.0


def measure(effort: Effort, report: Report, rivals: Sequence[Keeper] = ()) -> None:
    """Measure how fast events are kept, and add it to the report."""
    report.remarks.append(sync_remark())
    with workshop() as folder:
        entries = {
            (keeper.name, column): (Contender(keeper.name, partial(_keeping, keeper, folder, batches)), SETUP)
            for column, batches in GROUPS.items()
            for keeper in (PLAIN, JOURNAL, *rivals)
        }
        entries[HUB, BY_HUB] = (Contender(HUB, partial(_recorded, folder)), SETUP)
        samples = interleave(entries, effort)
    events = {column: batches * BATCH for column, batches in GROUPS.items()} | {BY_HUB: BATCH}
    samples = samples.divided(events)
    report.tables.append(Table(TITLE, Unit.THOUSANDS_PER_SECOND, PLAIN.name, samples))
    report.claims += _claims(samples)


def _claims(samples: Samples) -> list[Claim]:
    ratios = [
        Claim(
            f"recording, {column}",
            samples.rounds(lambda mine, plain: plain / mine, (JOURNAL.name, column), (PLAIN.name, column)),
            RATIO_MIN,
            "x the plain loop",
            at_least=True,
        )
        for column in GROUPS
    ]
    # One batch a commit is not among them: how many of those there are in a second is the disk's affair.
    cells = [(JOURNAL.name, column) for column, batches in GROUPS.items() if batches > 1] + [(HUB, BY_HUB)]
    rates = [
        Claim(
            f"recording, {', '.join(cell)}",
            samples.rounds(lambda seconds: 1e-6 / seconds, cell),
            RATE_MIN,
            "million/s",
            at_least=True,
        )
        for cell in cells
    ]
    return ratios + rates


@contextmanager
def _keeping(keeper: Keeper, folder: Path, batches: int, setup: Setup) -> Iterator[Session]:
    """Give the session in which a keeper makes commits of so many batches."""
    records = [batch_of_events(setup.batch)] * batches

    def session(count: int) -> float:
        place = Path(tempfile.mkdtemp(dir=folder))
        with keeper.keep(place, records) as commit:
            commit()
            begun = time.perf_counter()
            for _ in range(count):
                commit()
            elapsed = time.perf_counter() - begun
        shutil.rmtree(place)
        return elapsed / count

    yield session


@contextmanager
def _recorded(folder: Path, setup: Setup) -> Iterator[Session]:
    """Give the session in which batches are submitted to a channel that another process records."""
    from echoic import Hub

    records = batch_of_events(setup.batch)
    with Hub() as hub:
        channel = hub.create("kept", records.dtype)
        argument: Argument = {"id": channel.id, "path": str(folder / "recorded")}
        with start_peers(RECORDER, setup, [argument]) as (peer,), channel.source() as source:
            peer.address()

            def session(count: int) -> float:
                begun = time.perf_counter()
                for _ in range(count):
                    source.submit_batch(records)
                source.drain(DRAIN_SECONDS_MAX)
                return (time.perf_counter() - begun) / count

            yield session


def record(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Record a channel; this runs in the peer. What lies far back is let go, so that the disk does not fill up."""
    from echoic import Hub
    from echoic.recorder import Retention

    with Hub() as hub:
        hub.record(str(argument["id"]), str(argument["path"]), retention=Retention(bytes_max=2**30))
        control.ready()
        control.wait()
