"""What does it cost that nobody can read along?

The same hubs, channels and events over TCP in the clear and over TCP with TLS 1.3, where both sides show a certificate;
beside them raw sockets with TLS and without, and what links on one host use when they may choose. What raw sockets lose
by TLS is what nobody who uses this OpenSSL from Python can avoid.

TLS is for links between hosts, so there it is held to half the rate of what it replaces: TCP with checksums, which a
link in the clear has there (`hosts`). On one host TCP has none, and nobody needs TLS; it is measured all the same.

Processor time is told too, that of both sides together: on a busy machine it is what can be believed.
"""

import ssl
from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered, interleave
from echoic.testing.bench.events import PAYLOADS
from echoic.testing.bench.hubs import ECHOIC, ECHOIC_TCP, ECHOIC_TCP_HOSTS, ECHOIC_TLS, ECHOIC_TLS_HOSTS
from echoic.testing.bench.raw import RAW_TCP, RAW_TLS
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit

__all__ = ["BATCHES_TITLE", "CONTENDERS", "EVENTS_TITLE", "LARGE_SIZES", "LARGE_TITLE", "TRIP_TITLE", "measure"]

CONTENDERS = (RAW_TCP, RAW_TLS, ECHOIC, ECHOIC_TCP, ECHOIC_TLS, ECHOIC_TCP_HOSTS, ECHOIC_TLS_HOSTS)
LARGE_SIZES = ("100 KB", "1 MB", "10 MB")
LARGE_TITLE = "large events, one way"
BATCHES_TITLE = "small events in arrays, one way"
EVENTS_TITLE = "small events one by one, one way"
TRIP_TITLE = "round trip"
WORK_TITLE = f"{LARGE_TITLE}, processor time of both sides"
BATCH = 1000
SHARE_MIN = 0.5
PAIRS = {
    "on one host": (ECHOIC_TLS.name, ECHOIC_TCP.name),
    "between hosts": (ECHOIC_TLS_HOSTS.name, ECHOIC_TCP_HOSTS.name),
}


def measure(effort: Effort, contenders: Sequence[Contender] = CONTENDERS) -> Report:
    """Measure with TLS and without, and return what was found."""
    bytes_by_size = {size: dtype.itemsize for size in LARGE_SIZES if (dtype := PAYLOADS[size].dtype) is not None}
    large = Samples({})
    for size in LARGE_SIZES:
        large = large.joined(interleave(entered(contenders, size, Setup(size, batch=1)), effort))
    batches = interleave(entered(contenders, "100 B", Setup("100 B", batch=BATCH)), effort)
    events = interleave(entered(contenders, "100 B", Setup("100 B")), effort)
    trips = interleave(entered(contenders, "100 B", Setup("100 B", synchronous=True)), effort)
    rates = [
        Table(LARGE_TITLE, Unit.GIGABYTES_PER_SECOND, ECHOIC_TCP.name, large, bytes_by_size),
        Table(BATCHES_TITLE, Unit.THOUSANDS_PER_SECOND, ECHOIC_TCP.name, batches),
        Table(EVENTS_TITLE, Unit.THOUSANDS_PER_SECOND, ECHOIC_TCP.name, events),
    ]
    report = Report("tls", [*rates, Table(TRIP_TITLE, Unit.MICROSECONDS, ECHOIC_TCP.name, trips)])
    if large.processor_seconds:
        report.tables.append(Table(WORK_TITLE, Unit.MICROSECONDS, ECHOIC_TCP.name, large.worked()))
    report.remarks.append(f"with {ssl.OPENSSL_VERSION}")
    for where, (secret, plain) in PAIRS.items():
        for table in rates:
            for size in table.columns:
                if table.has(secret, size) and table.has(plain, size):
                    what = f"events of {size} over TLS {where}, {table.title}"
                    found = table.ratio(secret, size, plain)
                    report.claims.append(Claim(what, found, SHARE_MIN, f"x {plain}", at_least=True))
    return report
