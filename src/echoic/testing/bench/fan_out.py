"""What does each further sink cost?

JECho's figure 4. A synchronous event to several sinks need not take several round trips: it is sent to all before the
first acknowledgement is read, so that the sinks work side by side. There each additional sink cost about half of what
it would have cost one after the other; with more sinks than processors that is the best one can hope for.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered_throughout, interleave
from echoic.testing.bench.hubs import ECHOIC, ECHOIC_TCP
from echoic.testing.bench.raw import RAW_TCP, RAW_TCP_IN_TURN, RAW_TCP_PACKED
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Table, Unit

__all__ = ["ASYNC_TITLE", "CONTENDERS", "SINKS", "SYNC_TITLE", "measure"]

CONTENDERS = (RAW_TCP, RAW_TCP_IN_TURN, RAW_TCP_PACKED, ECHOIC, ECHOIC_TCP)
SINKS = (1, 2, 4, 8)
SYNC_TITLE = "a synchronous event to several sinks"
ASYNC_TITLE = "an asynchronous event to several sinks"
FURTHER_SINK_MAX = 0.5


def measure(effort: Effort, contenders: Sequence[Contender] = CONTENDERS) -> Report:
    """Measure fan-out and return what was found."""
    report = Report("fan_out")
    for title, synchronous, baseline in ((SYNC_TITLE, True, RAW_TCP), (ASYNC_TITLE, False, RAW_TCP_PACKED)):
        setups = {str(sinks): Setup("100 B", synchronous=synchronous, sinks=sinks) for sinks in SINKS}
        entries = entered_throughout(contenders, setups)
        report.tables.append(Table(title, Unit.MICROSECONDS, baseline.name, interleave(entries, effort)))
    for contender in (ECHOIC, ECHOIC_TCP):
        report.claims += _claims(report.tables[0], contender.name)
    return report


def _claims(table: Table, case: str) -> list[Claim]:
    """Return the claim about the cost of each further sink, in round trips to one."""
    few, many = SINKS[0], SINKS[-1]
    if not table.has(case, str(many)):
        return []

    def further(one: float, all_of_them: float) -> float:
        return (all_of_them - one) / (many - few) / one

    found = table.samples.rounds(further, (case, str(few)), (case, str(many)))
    return [Claim(f"each further synchronous sink, {case}", found, FURTHER_SINK_MAX, "round trips")]
