"""What does it cost that nobody can read along?

The same hubs, channels and events over TCP in the clear and over TCP with TLS 1.3, where both sides show a certificate;
beside them the raw socket, and what links on one host use when they may choose. TLS is compared with TCP, which is what
it replaces between machines; with shared memory it has nothing in common.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered, interleave
from echoic.testing.bench.events import PAYLOADS
from echoic.testing.bench.hubs import ECHOIC, ECHOIC_TCP, ECHOIC_TLS
from echoic.testing.bench.raw import RAW_TCP
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit

__all__ = ["CONTENDERS", "EVENTS_TITLE", "LARGE_SIZES", "LARGE_TITLE", "TRIP_TITLE", "measure"]

CONTENDERS = (RAW_TCP, ECHOIC, ECHOIC_TCP, ECHOIC_TLS)
LARGE_SIZES = ("100 KB", "1 MB", "10 MB")
LARGE_TITLE = "large events, one way"
EVENTS_TITLE = "small events in arrays, one way"
TRIP_TITLE = "round trip"
BATCH = 1000
SHARE_MIN = 0.5


def measure(effort: Effort, contenders: Sequence[Contender] = CONTENDERS) -> Report:
    """Measure with TLS and without, and return what was found."""
    bytes_by_size = {size: dtype.itemsize for size in LARGE_SIZES if (dtype := PAYLOADS[size].dtype) is not None}
    large = Samples({})
    for size in LARGE_SIZES:
        large = large.joined(interleave(entered(contenders, size, Setup(size, batch=1)), effort))
    small = interleave(entered(contenders, "100 B", Setup("100 B", batch=BATCH)), effort)
    trips = interleave(entered(contenders, "100 B", Setup("100 B", synchronous=True)), effort)
    tables = [
        Table(LARGE_TITLE, Unit.GIGABYTES_PER_SECOND, ECHOIC_TCP.name, large, bytes_by_size),
        Table(EVENTS_TITLE, Unit.THOUSANDS_PER_SECOND, ECHOIC_TCP.name, small),
        Table(TRIP_TITLE, Unit.MICROSECONDS, ECHOIC_TCP.name, trips),
    ]
    report = Report("tls", tables)
    for table, size in [(tables[0], size) for size in LARGE_SIZES] + [(tables[1], "100 B")]:
        if table.has(ECHOIC_TLS.name, size) and table.has(ECHOIC_TCP.name, size):
            found = table.ratio(ECHOIC_TLS.name, size)
            report.claims.append(
                Claim(f"events of {size} over TLS", found, SHARE_MIN, f"x {ECHOIC_TCP.name}", at_least=True)
            )
    return report
