"""Edge: touches processes and sockets. How fast is it, beside what the machine can do and beside others?

One module per question, each with a function `measure` that returns a report: `round_trip`, `one_way`, `fan_out`,
`pipeline`, `channels`, `bandwidth`, `tls`, `derive`, `eager`, `journal`. They compare echoic with raw sockets,
`derive` with CPython, `journal` with a loop of writes; a caller adds contenders of its own. This is the code
of `echoic bench` as well as of the benchmarks that are published.
"""

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import (
    Contender,
    Effort,
    Session,
    Setup,
    entered,
    entered_throughout,
    interleave,
    time_call,
)
from echoic.testing.bench.control import Argument, Control, Tally
from echoic.testing.bench.events import PAYLOADS, Payload, touch
from echoic.testing.bench.peers import Peer, join, start_chain, start_peers, time_counted
from echoic.testing.bench.placement import Placement, released
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Samples, Table, Unit
from echoic.testing.bench.spread import Spread

__all__ = [
    "PAYLOADS",
    "Argument",
    "Claim",
    "Contender",
    "Control",
    "Effort",
    "Payload",
    "Peer",
    "Placement",
    "Report",
    "Samples",
    "Session",
    "Setup",
    "Spread",
    "Table",
    "Tally",
    "Unit",
    "entered",
    "entered_throughout",
    "interleave",
    "join",
    "released",
    "start_chain",
    "start_peers",
    "time_call",
    "time_counted",
    "touch",
]
