"""What does a source that is derived from have to do? The paper's figure 8A.

Trades of about 100 bytes come at a given rate, one by one or in batches, to one sink in another process. What is
measured is the processor time of the source's process, all threads, as a share of one processor and per event:

    nobody listens                 what it costs to submit at all, the clock that paces the events included
    nothing derived                every event is sent
    derived, 0 % rejected          figure 4 looks at every event, and every event is sent
    derived, 50 % rejected
    derived, 100 % rejected        figure 4 looks at every event, and nothing is sent

What an event costs is what it costs beyond `nobody listens`. A filter pays for itself when it rejects more than

    (derived, 0 % - nothing derived) / (derived, 0 % - derived, 100 %)

of the events; the paper's does if it rejects 1 in 30.
"""

import random
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.derive.figures import FIGURE_4, Trade, trade, trades
from echoic.testing.bench.derive.sinks import SETUP, TRADES
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.peers import join, start_peers
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Samples, Unit
from echoic.testing.bench.spread import Spread

if TYPE_CHECKING:
    from echoic import Hub

__all__ = ["ALL", "BATCHES", "HALF", "LONE", "NOBODY", "NONE", "PLAIN", "RATES", "TITLE", "measure"]

TITLE = "processor time of the source, per event"
NOBODY, PLAIN, NONE, HALF, ALL = (
    "nobody listens",
    "nothing derived",
    "derived, 0 % rejected",
    "derived, 50 % rejected",
    "derived, 100 % rejected",
)
LONE, BATCHES = "one by one", "in batches"
BATCH: Final = 1000
RATES: Final[Mapping[str, int]] = {LONE: 1_000, BATCHES: 1_000_000}
SAMPLE_FACTOR: Final = 3
REJECTED_MAX: Final = 0.1
PAPER_BREAK_EVEN: Final = 100 / 30


@dataclass(frozen=True, slots=True)
class Scenario:
    """What somebody wants of a source, and how much of it he gets."""

    name: str
    listens: bool = True
    code: str = FIGURE_4.code
    passing: float = 1.0


SCENARIOS: Final = (
    Scenario(NOBODY, listens=False, code=""),
    Scenario(PLAIN, code=""),
    Scenario(NONE),
    Scenario(HALF, passing=0.5),
    Scenario(ALL, passing=0.0),
)


def measure(effort: Effort, report: Report) -> None:
    """Measure what a source has to do, and add it to the report."""
    from echoic import Hub

    effort.told("starting the sinks of a source")
    with ExitStack() as stack:
        hub = stack.enter_context(Hub())
        paced = {
            (scenario.name, column): pace
            for number, scenario in enumerate(SCENARIOS)
            for column, pace in _opened(hub, f"bench-{number}", scenario, stack).items()
        }
        samples = _take_turns(paced, effort)
    report.tables.append(table_of(TITLE, Unit.MICROSECONDS, samples, PLAIN))
    for column, rate in RATES.items():
        _judge(samples, column, rate, report)


def _opened(hub: "Hub", name: str, scenario: Scenario, stack: ExitStack) -> dict[str, Callable[[float], int]]:
    """Return what submits events for so many seconds and tells how many, one by one and in batches."""
    channel = hub.create(name, Trade)
    source = channel.source()
    if scenario.listens:
        peers = stack.enter_context(start_peers(TRADES, SETUP, [{"id": channel.id, "code": scenario.code}]))
        peers[0].address()
        welcome = trade(passes=True)
        join(peers, lambda _: source.submit(welcome))
    events = [trade(passes=bool(each["trade_price"] < 75)) for each in trades(BATCH, scenario.passing)]
    records = trades(BATCH, scenario.passing)
    return {
        LONE: partial(_submit_paced, source.submit, cycle(events).__next__, 1, 1 / RATES[LONE]),
        BATCHES: partial(_submit_paced, source.submit_batch, lambda: records, BATCH, BATCH / RATES[BATCHES]),
    }


def _submit_paced(
    submit: Callable[[object], None], draw: Callable[[], object], events: int, interval: float, seconds: float
) -> int:
    clock, sleep, submitted = time.perf_counter, time.sleep, 0
    due = clock()
    end = due + seconds
    while due < end:
        submit(draw())
        submitted += events
        # Whoever comes late does not hurry: two events in quick succession would no longer be lone ones.
        due = max(due, clock()) + interval
        sleep(max(0.0, due - clock()))
    return submitted


def _take_turns(paced: Mapping[Cell, Callable[[float], int]], effort: Effort) -> Samples:
    seconds: dict[Cell, list[float]] = {cell: [] for cell in paced}
    chance = random.Random(effort.seed)
    for number in range(effort.rounds):
        effort.told(f"round {number + 1} of {effort.rounds}")
        for cell in chance.sample(list(paced), len(paced)):
            before = time.process_time()
            submitted = paced[cell](SAMPLE_FACTOR * effort.sample_seconds)
            seconds[cell].append((time.process_time() - before) / submitted)
    return Samples(seconds)


def _judge(samples: Samples, column: str, rate: int, report: Report) -> None:
    nobody, plain, none, everything = (samples.seconds[case, column] for case in (NOBODY, PLAIN, NONE, ALL))
    costs = list(zip(nobody, plain, none, everything, strict=True))
    rejected = Spread.quartiles_of([(least - idle) / (passed - idle) for idle, _, passed, least in costs])
    unfiltered = Spread.quartiles_of([(least - idle) / (sent - idle) for idle, sent, _, least in costs])
    even = Spread.quartiles_of([100 * (most - sent) / (most - least) for _, sent, most, least in costs])
    report.claims += [
        Claim(f"a rejected event, {column}", rejected, REJECTED_MAX, "x one that passes and is sent"),
        Claim(f"a rejected event, {column}", unfiltered, REJECTED_MAX, "x one that is sent without a filter"),
        Claim(f"rejections that repay the filter, {column}", even, PAPER_BREAK_EVEN, "% of the events"),
    ]
    shares = ", ".join(
        f"{scenario.name} {100 * rate * Spread.of(samples.seconds[scenario.name, column]).median:.2f} %"
        for scenario in SCENARIOS
    )
    report.remarks.append(f"{column}, {rate} events a second, of one processor: {shares}")
