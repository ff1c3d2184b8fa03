"""How long does a synchronous event take: submitted, handled by one sink in another process, acknowledged?

JECho's table 1, with sizes from 100 B to 100 KB beside its five objects. The limit is one `send` and one `recv` on
either side, of bytes that need no encoding. There a synchronous event took three times the round trip of the sockets
beneath it (791 us against 260).

Sizes are measured with source and sink on one processor, which shows what the software costs, and on a processor each,
where waking the other one costs more than that; the objects on one.
"""

from collections.abc import Sequence

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Contender, Effort, Setup, entered, interleave
from echoic.testing.bench.events import OBJECTS
from echoic.testing.bench.hubs import ECHOIC, ECHOIC_TCP
from echoic.testing.bench.placement import Placement
from echoic.testing.bench.raw import RAW_TCP, RAW_UNIX
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit

__all__ = ["CONTENDERS", "OBJECTS_TITLE", "SIZES", "SIZES_TITLE", "measure"]

CONTENDERS = (RAW_TCP, RAW_UNIX, ECHOIC, ECHOIC_TCP)
SIZES = ("100 B", "1 KB", "10 KB", "100 KB")
SIZES_TITLE = "round trip by size"
OBJECTS_TITLE = "round trip of JECho's objects"
JECHO_NULL = 791 / 260
RAW_MAX = 1.3
ZEROMQ = "zeromq tcp, req/rep"
ZEROMQ_MIN = 1.8


def measure(effort: Effort, contenders: Sequence[Contender] = CONTENDERS) -> Report:
    """Measure round trips and return what was found."""
    report = Report("round_trip")
    for payloads, placement in ((SIZES, Placement.TOGETHER), (SIZES, Placement.APART), (OBJECTS, Placement.TOGETHER)):
        if not placement.possible:
            report.remarks.append(
                f"{placement.value}: not possible on this machine, so they are where the kernel likes"
            )
        samples = Samples({})
        for payload in payloads:
            entries = entered(contenders, payload, Setup(payload, synchronous=True))
            samples = samples.joined(interleave(entries, effort.placed(placement)))
        title = OBJECTS_TITLE if payloads is OBJECTS else SIZES_TITLE
        report.tables.append(Table(f"{title}, {placement.value}", Unit.MICROSECONDS, RAW_TCP.name, samples))
    *by_size, objects = report.tables
    for table in by_size:
        report.claims += _claim(table, ECHOIC.name, "100 B", RAW_TCP.name, RAW_MAX)
        report.claims += _claim(table, ZEROMQ, "100 B", ECHOIC.name, ZEROMQ_MIN, at_least=True)
    report.claims += _claim(objects, ECHOIC.name, "null", RAW_TCP.name, JECHO_NULL)
    return report


def _claim(table: Table, mine: str, payload: str, other: str, limit: float, *, at_least: bool = False) -> list[Claim]:
    if not (table.has(mine, payload) and table.has(other, payload)):
        return []
    found = table.ratio(mine, payload, other)
    return [Claim(f"{table.title}: {payload}, {mine}", found, limit, f"x {other}", at_least)]
