"""What does it cost to keep events, to read them and to replay them? Beside the loop that everybody would write.

record     how many events a second are on the disk, beside write and fdatasync in plain Python with equal batches
read       how many events a second become Arrow columns: all, some columns, some events
replay     how many events a second a local sink is handed from a journal, beside the same events from memory
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from echoic.testing.bench.contest import Effort
from echoic.testing.bench.journal import reading, recording, replaying
from echoic.testing.bench.journal.keepers import Keeper
from echoic.testing.bench.report import Report

__all__ = ["PARTS", "measure"]

PARTS = ("record", "read", "replay")


def measure(effort: Effort, rivals: Sequence[Keeper] = (), parts: Sequence[str] = PARTS) -> Report:
    """Measure all of it, or some parts, and return what was found."""
    report = Report("journal")
    known: Mapping[str, Callable[[Effort, Report], None]] = {
        "record": partial(recording.measure, rivals=rivals),
        "read": partial(reading.measure, rivals=rivals),
        "replay": replaying.measure,
    }
    for part in parts:
        known[part](effort, report)
    return report
