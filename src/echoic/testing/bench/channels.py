"""Does it matter how many channels there are?

JECho's figure 6: the channel of each event is chosen by turns, among 1 to 4096 between the same two processes. And what
a channel costs that nobody uses, so that a program may have as many as it has things to talk about.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered_throughout, interleave
from echoic.testing.bench.hubs import ECHOIC, measure_memory
from echoic.testing.bench.raw import RAW_TCP_PACKED
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Table, Unit
from echoic.testing.bench.spread import Spread, show_number

__all__ = ["CHANNELS", "CONTENDERS", "TITLE", "measure"]

CONTENDERS = (RAW_TCP_PACKED, ECHOIC)
CHANNELS = (1, 16, 256, 4096)
TITLE = "an event to one of so many channels"
MANY_MAX = 1.1
IDLE_BYTES_MAX = 2048.0


def measure(effort: Effort, contenders: Sequence[Contender] = CONTENDERS) -> Report:
    """Measure channels that take turns, and idle ones, and return what was found."""
    report = Report("channels")
    entries = entered_throughout(contenders, {str(number): Setup("100 B", channels=number) for number in CHANNELS})
    table = Table(TITLE, Unit.MICROSECONDS, RAW_TCP_PACKED.name, interleave(entries, effort))
    report.tables.append(table)
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
