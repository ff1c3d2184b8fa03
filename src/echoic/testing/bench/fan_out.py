"""What does each further sink cost?

JECho's figure 4. A synchronous event to several sinks need not take several round trips: it is sent to all before the
first acknowledgement is read, so that the sinks work side by side. There each additional sink cost about half of what
it would have cost one after the other; with more sinks than processors that is the best one can hope for.

What it would have cost is measured here, and not deduced from the round trip to a lone sink as JECho did for RMI: as
many sinks get a channel each, and the source makes a call to one after the other. This is the easier measure, because
such a call takes longer than one to a lone sink. So the report also says what a further sink costs in round trips to a
lone one. Both depend on how many of the processes the kernel keeps on one processor, where nothing is side by side.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered_throughout, interleave
from echoic.testing.bench.hubs import ECHOIC, ECHOIC_IN_TURN, ECHOIC_TCP
from echoic.testing.bench.raw import RAW_TCP, RAW_TCP_IN_TURN, RAW_TCP_PACKED
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit
from echoic.testing.bench.spread import Spread

__all__ = ["ASYNC_TITLE", "CONTENDERS", "SINKS", "SYNC_TITLE", "further_sink", "further_sink_beside_lone", "measure"]

CONTENDERS = (RAW_TCP, RAW_TCP_IN_TURN, RAW_TCP_PACKED, ECHOIC, ECHOIC_IN_TURN, ECHOIC_TCP)
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
    most, together = str(SINKS[-1]), report.tables[0]
    if together.has(ECHOIC.name, most) and together.has(ECHOIC_IN_TURN.name, most):
        found = further_sink(together.samples)
        report.claims.append(Claim("each further synchronous sink", found, FURTHER_SINK_MAX, "calls in turn"))
        lone = further_sink_beside_lone(together.samples)
        report.remarks.append(f"each further synchronous sink costs {lone} round trips to a lone sink")
    return report


def further_sink(samples: Samples) -> Spread:
    """Return what each further sink adds, relative to a call to one of as many sinks that are called in turn."""
    few, many = SINKS[0], SINKS[-1]

    def further(one: float, all_at_once: float, all_in_turn: float) -> float:
        return (all_at_once - one) / (many - few) / (all_in_turn / many)

    cells = (ECHOIC.name, str(few)), (ECHOIC.name, str(many)), (ECHOIC_IN_TURN.name, str(many))
    return samples.rounds(further, *cells)


def further_sink_beside_lone(samples: Samples) -> Spread:
    """Return what each further sink adds, relative to the round trip to a lone sink."""
    few, many = SINKS[0], SINKS[-1]
    cells = (ECHOIC.name, str(few)), (ECHOIC.name, str(many))
    return samples.rounds(lambda one, all_at_once: (all_at_once - one) / (many - few) / one, *cells)
