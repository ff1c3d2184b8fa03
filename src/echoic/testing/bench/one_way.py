"""How many events a second reach a handler in another process when nobody waits for each of them?

From the first `submit` until the sink has counted the last event and said so. Two ways: Python objects in one at a time
and a callback for each; and batches, arrays in and arrays out, of which a thousand events cost little more than one.
Rivals pack and unpack objects with msgspec; the raw sockets move ready-made bytes.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered, interleave
from echoic.testing.bench.hubs import ECHOIC, ECHOIC_TCP
from echoic.testing.bench.raw import RAW_TCP, RAW_TCP_PACKED, RAW_UNIX, RAW_UNIX_PACKED
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit

__all__ = ["BATCH", "BATCHES_TITLE", "CONTENDERS", "EVENTS_TITLE", "SIZES", "measure"]

CONTENDERS = (RAW_TCP, RAW_TCP_PACKED, RAW_UNIX_PACKED, ECHOIC, ECHOIC_TCP)
BATCH_CONTENDERS = (RAW_TCP, RAW_UNIX, ECHOIC, ECHOIC_TCP)
SIZES = ("100 B", "1 KB")
BATCH = 1000
EVENTS_TITLE = "one way, objects one at a time"
BATCHES_TITLE = f"one way, arrays of {BATCH} events"
BATCHES_PER_SECOND_MIN = 7_000.0  # thousand; what the prototype did with ready-made bytes


def measure(
    effort: Effort,
    contenders: Sequence[Contender] = CONTENDERS,
    batch_contenders: Sequence[Contender] = BATCH_CONTENDERS,
) -> Report:
    """Measure rates and return what was found."""
    report = Report("one_way")
    for title, batch, several in ((EVENTS_TITLE, 0, contenders), (BATCHES_TITLE, BATCH, batch_contenders)):
        samples = Samples({})
        for size in SIZES:
            samples = samples.joined(interleave(entered(several, size, Setup(size, batch=batch)), effort))
        report.tables.append(Table(title, Unit.THOUSANDS_PER_SECOND, RAW_TCP.name, samples))
    events, batches = report.tables
    own = {contender.name for contender in CONTENDERS}
    rivals = [case for case in events.cases if case not in own]
    report.claims += _claims_beside_rivals(events, rivals)
    if batches.has(ECHOIC.name, SIZES[0]):
        found = batches.value(ECHOIC.name, SIZES[0])
        report.claims.append(
            Claim(f"{SIZES[0]} events in arrays", found, BATCHES_PER_SECOND_MIN, "thousand/s", at_least=True)
        )
    return report


def _claims_beside_rivals(events: Table, rivals: Sequence[str]) -> list[Claim]:
    """Return the claim that nobody who takes objects one at a time is faster."""
    size = SIZES[0]
    taking_part = [rival for rival in rivals if events.has(rival, size)]
    if not taking_part or not events.has(ECHOIC.name, size):
        return []
    best = max(taking_part, key=lambda rival: events.value(rival, size).median)
    return [Claim(f"{size} objects one at a time", events.ratio(ECHOIC.name, size, best), 1.0, f"x {best}", True)]
