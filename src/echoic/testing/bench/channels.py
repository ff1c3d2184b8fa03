"""Does it matter how many channels there are?

JECho's figure 6: the channel of each event is chosen by turns, among 1 to 4096 between the same two processes. And what
a channel costs that nobody uses, so that a program may have as many as it has things to talk about.

A sample gives every channel many events, a hundred unless told otherwise, whatever the number of channels. With one
event to each it would measure how long 4096 first events take to arrive, a latency, and not what an event costs when
events keep coming. The samples of one channel have as many events as those of 4096, so that beginning and end weigh the
same in both.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered_throughout, interleave
from echoic.testing.bench.hubs import ECHOIC, measure_memory
from echoic.testing.bench.raw import RAW_TCP_PACKED
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Table, Unit
from echoic.testing.bench.spread import Spread, show_number

__all__ = ["CHANNELS", "CONTENDERS", "TITLE", "WORK_TITLE", "measure"]

CONTENDERS = (RAW_TCP_PACKED, ECHOIC)
CHANNELS = (1, 16, 256, 4096)
TITLE = "an event to one of so many channels"
WORK_TITLE = f"{TITLE}, processor time"
MANY_MAX = 1.1
IDLE_BYTES_MAX = 2048.0


def measure(effort: Effort, contenders: Sequence[Contender] = CONTENDERS) -> Report:
    """Measure channels that take turns, and idle ones, and return what was found."""
    report = Report("channels")
    entries = entered_throughout(contenders, {str(number): Setup("100 B", channels=number) for number in CHANNELS})
    events_min = effort.turns_min * CHANNELS[-1]
    samples = interleave(entries, effort, operations_min=events_min)
    table = Table(TITLE, Unit.MICROSECONDS, RAW_TCP_PACKED.name, samples)
    report.tables.append(table)
    if samples.processor_seconds:
        report.tables.append(Table(WORK_TITLE, Unit.MICROSECONDS, RAW_TCP_PACKED.name, samples.worked()))
    report.remarks.append(
        f"a sample has at least {events_min} events, {effort.turns_min} for each of {CHANNELS[-1]} channels: "
        "with one for each it would measure a latency"
    )
    few, many = str(CHANNELS[0]), str(CHANNELS[-1])
    if table.has(ECHOIC.name, many):
        found = table.samples.rounds(lambda one, all_: all_ / one, (ECHOIC.name, few), (ECHOIC.name, many))
        report.claims.append(Claim(f"{many} channels by turns", found, MANY_MAX, "x one channel"))
        _weigh(report)
    return report


def _weigh(report: Report) -> None:
    """Add what an idle channel costs in memory."""
    memory = measure_memory(CHANNELS[-1])
    each = memory.traced_bytes / memory.channels
    report.claims.append(Claim("memory of an idle channel", Spread.of([each]), IDLE_BYTES_MAX, "bytes"))
    resident = show_number(memory.resident_bytes / memory.channels)
    report.remarks.append(f"{memory.channels} idle channels made the process grow by {resident} bytes each")
