"""What does each further sink cost?

JECho's figure 4. A synchronous event to several sinks need not take several round trips: it is sent to all before the
first acknowledgement is read, so that the sinks work side by side. There each additional sink cost about half of what
it would have cost one after the other; with more sinks than processors that is the best one can hope for.

What it would have cost is measured here and not deduced from the round trip to a single sink: a process that has just
worked is awake and has its data in the cache, one that waits until seven others have had their turn is not. So as many
sinks as there are get a channel each, and the source makes a call to one after the other.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered_throughout, interleave
from echoic.testing.bench.hubs import ECHOIC, ECHOIC_IN_TURN, ECHOIC_TCP
from echoic.testing.bench.raw import RAW_TCP, RAW_TCP_IN_TURN, RAW_TCP_PACKED
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit
from echoic.testing.bench.spread import Spread

__all__ = ["ASYNC_TITLE", "CONTENDERS", "SINKS", "SYNC_TITLE", "further_sink", "measure"]

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
    return report


def further_sink(samples: Samples) -> Spread:
    """Return what each further sink adds, relative to a call to one of as many sinks that are called in turn."""
    few, many = SINKS[0], SINKS[-1]

    def further(one: float, all_at_once: float, all_in_turn: float) -> float:
        return (all_at_once - one) / (many - few) / (all_in_turn / many)

    cells = (ECHOIC.name, str(few)), (ECHOIC.name, str(many)), (ECHOIC_IN_TURN.name, str(many))
    return samples.rounds(further, *cells)
