"""What does each further stage cost?

JECho's figure 5: stages in processes of their own, each of which submits to the next channel what it receives. The rate
is that of the slowest stage, the relay, so that from length 2 on the time per event does not grow, as long as every
stage has a processor. With fewer processors than stages it must grow by what relaying costs; relaying whole batches
costs next to nothing.

    length 1    source > sink                         2 processes
    length 3    source > relay > relay > sink         4 processes

So there are two tables of each: the time that elapses per event, and the processor time per event and stage, all
processes together. A relay receives and submits, as sink and source do, so that a chain of any length has as many
relays' work in it as it has stages. That work does not depend on how many processors do it, and should not grow with
the length.
"""

import os
from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered_throughout, interleave
from echoic.testing.bench.hubs import ECHOIC
from echoic.testing.bench.raw import RAW_TCP, RAW_TCP_PACKED
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Table, Unit

__all__ = ["BATCH", "BATCHES_TITLE", "CONTENDERS", "EVENTS_TITLE", "LENGTHS", "measure"]

CONTENDERS = (RAW_TCP, RAW_TCP_PACKED, ECHOIC)
LENGTHS = (1, 2, 3, 4, 5)
BATCH = 1000
EVENTS_TITLE = "through a pipeline, event by event"
BATCHES_TITLE = f"through a pipeline, whole batches of {BATCH}"
FLAT_MAX = 1.25


def measure(effort: Effort, contenders: Sequence[Contender] = CONTENDERS) -> Report:
    """Measure pipelines and return what was found."""
    report = Report("pipeline")
    for title, batch, baseline in ((EVENTS_TITLE, 0, RAW_TCP_PACKED), (BATCHES_TITLE, BATCH, RAW_TCP)):
        setups = {str(length): Setup("100 B", stages=length, batch=batch) for length in LENGTHS}
        samples = interleave(entered_throughout(contenders, setups), effort)
        report.tables.append(Table(title, Unit.MICROSECONDS, baseline.name, samples))
        if samples.processor_seconds:
            worked = samples.worked({str(length): length for length in LENGTHS})
            title = f"{title}, processor time per stage"
            report.tables.append(Table(title, Unit.MICROSECONDS, baseline.name, worked))
    for table in report.tables:
        report.claims += _claims(table)
    processors = os.cpu_count() or 1
    if processors <= LENGTHS[-1]:
        report.remarks.append(_explain(processors))
    return report


def _explain(processors: int) -> str:
    return (
        f"up to {LENGTHS[-1] + 1} processes share {processors} processors: once these are full, the time that elapses "
        "must grow with the work of all stages together; whether a stage has more work in a longer pipeline shows in "
        "the processor time per stage"
    )


def _claims(table: Table) -> list[Claim]:
    """Return the claim that the time does not grow after length 2."""
    case, second, last = ECHOIC.name, str(LENGTHS[1]), str(LENGTHS[-1])
    if not table.has(case, last):
        return []
    found = table.samples.rounds(lambda two, five: five / two, (case, second), (case, last))
    return [Claim(f"{table.title}, length {last}", found, FLAT_MAX, f"x length {second}")]
