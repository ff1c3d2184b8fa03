"""How many gigabytes a second do large events move?

Each event is one record with a large array, submitted as an array of one and handed to the sink as a view; the sink
reads one byte of every page, as every contender's does. On one host echoic writes large blocks to memory that both
processes share, so that the kernel copies nothing.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered, interleave
from echoic.testing.bench.events import PAYLOADS
from echoic.testing.bench.hubs import ECHOIC, ECHOIC_TCP
from echoic.testing.bench.raw import RAW_TCP, RAW_UNIX
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit

__all__ = ["CONTENDERS", "SIZES", "TITLE", "measure"]

CONTENDERS = (RAW_TCP, RAW_UNIX, ECHOIC, ECHOIC_TCP)
SIZES = ("100 KB", "1 MB", "10 MB")
TITLE = "large events, one way"


def measure(effort: Effort, contenders: Sequence[Contender] = CONTENDERS) -> Report:
    """Measure bandwidth and return what was found."""
    samples = Samples({})
    for size in SIZES:
        samples = samples.joined(interleave(entered(contenders, size, Setup(size, batch=1)), effort))
    bytes_by_size = {size: dtype.itemsize for size in SIZES if (dtype := PAYLOADS[size].dtype) is not None}
    table = Table(TITLE, Unit.GIGABYTES_PER_SECOND, RAW_TCP.name, samples, bytes_by_size)
    report = Report("bandwidth", [table])
    for case, size, limit, words in (
        (ECHOIC_TCP.name, SIZES[0], 0.9, "over TCP"),
        (ECHOIC.name, SIZES[-1], 2.0, "over shared memory"),
    ):
        if table.has(case, size) and table.has(RAW_TCP.name, size):
            found = table.ratio(case, size)
            report.claims.append(Claim(f"events of {size} {words}", found, limit, "x raw tcp", at_least=True))
    return report
