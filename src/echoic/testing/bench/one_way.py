"""How many events a second reach a handler in another process when nobody waits for each of them?

From the first `submit` until the sink has counted the last event and said so. Two ways: Python objects in one at a time
and a callback for each; and batches, arrays in and arrays out, of which a thousand events cost little more than one.
Rivals pack and unpack objects with msgspec; the raw sockets move ready-made bytes.

The objects of JECho's table 1 are measured in its unit, microseconds per event, beside raw sockets only.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered, interleave
from echoic.testing.bench.events import OBJECTS
from echoic.testing.bench.hubs import ECHOIC, ECHOIC_TCP
from echoic.testing.bench.raw import RAW_TCP, RAW_TCP_PACKED, RAW_UNIX, RAW_UNIX_PACKED
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit
from echoic.testing.bench.spread import Spread

__all__ = ["BATCH", "BATCHES_TITLE", "CONTENDERS", "EVENTS_TITLE", "OBJECTS_TITLE", "SIZES", "measure"]

CONTENDERS = (RAW_TCP, RAW_TCP_PACKED, RAW_UNIX_PACKED, ECHOIC, ECHOIC_TCP)
BATCH_CONTENDERS = (RAW_TCP, RAW_UNIX, ECHOIC, ECHOIC_TCP)
SIZES = ("100 B", "1 KB")
BATCH = 1000
EVENTS_TITLE = "one way, objects one at a time"
BATCHES_TITLE = f"one way, arrays of {BATCH} events"
OBJECTS_TITLE = "one way, JECho's objects"
ZEROMQ = "zeromq tcp, push/pull"
OBJECTS_MIN = 1.5
ARRAYS_MIN = 5.0


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
    if objects := _measure_objects(effort, contenders):
        report.tables.append(objects)
    size = SIZES[0]
    if events.has(ZEROMQ, size) and events.has(ECHOIC.name, size) and batches.has(ECHOIC.name, size):
        one_at_a_time = events.ratio(ECHOIC.name, size, ZEROMQ)
        rival, arrays = events.samples.seconds[ZEROMQ, size], batches.samples.seconds[ECHOIC.name, size]
        beside = Spread.of([theirs / ours for theirs, ours in zip(rival, arrays, strict=True)])
        report.claims.append(
            Claim(f"{size} objects one at a time", one_at_a_time, OBJECTS_MIN, f"x {ZEROMQ}", at_least=True)
        )
        report.claims.append(Claim(f"{size} events in arrays", beside, ARRAYS_MIN, f"x {ZEROMQ}", at_least=True))
    return report


def _measure_objects(effort: Effort, contenders: Sequence[Contender]) -> Table | None:
    own = [each for each in contenders if each in CONTENDERS]
    if not own:
        return None
    samples = Samples({})
    for name in OBJECTS:
        samples = samples.joined(interleave(entered(own, name, Setup(name)), effort))
    return Table(OBJECTS_TITLE, Unit.MICROSECONDS, RAW_TCP_PACKED.name, samples)
