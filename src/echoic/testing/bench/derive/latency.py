"""How long after `derive` does the first event arrive, and how long does it take to change a parameter?

This process is the sink; the source is another one, which submits a trade about five times in a millisecond. Measured
from before `derive` until the handler of the derived channel is called for the first time: the code is checked here,
sent, checked and compiled there, then the next event passes through it.

    nothing derived           `subscribe` to the channel itself: what there is to wait for in any case
    code seen for the first time      other numbers in figure 4 each time, so that nothing is known of it
    the same, new process     the first derivation of a source that has just started, which also sets up LLVM
    the same code again       another hub derives what one has derived that is gone; the source still has it
    on another channel        the same code, for a channel of the same source's process: linked anew, not compiled
"""

import random
import statistics
import threading
import time
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Final

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort, Setup
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.derive.figures import FIGURE_4, FIGURE_6, HIGH, LOW, Range, Trade, trade
from echoic.testing.bench.derive.sinks import SETUP
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.peers import start_peers
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Samples, Unit

if TYPE_CHECKING:
    from collections.abc import Callable

    from echoic import Channel

__all__ = ["AGAIN", "COLD", "ELSEWHERE", "FIRST", "NOTHING", "PARAMETER", "TITLE", "measure", "supply"]

TITLE = "until the first event"
NOTHING, COLD, FIRST, AGAIN, ELSEWHERE, PARAMETER = (
    "nothing derived",
    "code seen for the first time",
    "the same, new process",
    "the same code again",
    "on another channel",
    "a parameter changed",
)
COLUMN = "latency"
SOURCE: Final = f"{__name__}:supply"
INTERVAL_SECONDS: Final = 0.0001
FORGET_SECONDS: Final = 0.02
ARRIVE_SECONDS_MAX: Final = 10.0
REPETITIONS: Final = {True: 15, False: 2}
UPDATES: Final = {True: 200, False: 10}
SAMPLE_SECONDS_THOROUGH: Final = 0.1
COLD_MS_MAX, AGAIN_MS_MAX, PARAMETER_MS_MAX = 15.0, 3.0, 0.5

_numbers: Final = count(1)


def measure(effort: Effort, report: Report) -> None:
    """Measure how long derivations and changes take, and add it to the report."""
    effort.told("starting the source of events")
    thorough = effort.sample_seconds >= SAMPLE_SECONDS_THOROUGH
    seconds: dict[Cell, list[float]] = {}
    chance = random.Random(effort.seed)
    with start_peers(SOURCE, SETUP, [{}]) as (peer,):
        address = peer.address()
        here, there = str(address["here"]), str(address["there"])
        _first_event(here, FIGURE_4.code)
        cases: dict[str, Callable[[], float]] = {
            NOTHING: lambda: _first_event(here, ""),
            COLD: lambda: _first_event(here, unseen_code()),
            AGAIN: lambda: _first_event(here, FIGURE_4.code),
            ELSEWHERE: lambda: _first_event(there, FIGURE_4.code, share=False),
        }
        for number in range(effort.rounds):
            effort.told(f"round {number + 1} of {effort.rounds}")
            for case in chance.sample(list(cases), len(cases)):
                taken = [cases[case]() for _ in range(REPETITIONS[thorough])]
                seconds.setdefault((case, COLUMN), []).append(statistics.median(taken))
            seconds.setdefault((FIRST, COLUMN), []).append(_first_event_of_new_process())
            seconds.setdefault((PARAMETER, COLUMN), []).append(_parameter_changed(here, UPDATES[thorough]))
    order = (NOTHING, COLD, FIRST, AGAIN, ELSEWHERE, PARAMETER)
    table = table_of(TITLE, Unit.MILLISECONDS, Samples({(case, COLUMN): seconds[case, COLUMN] for case in order}))
    report.tables.append(table)
    for case, limit in ((COLD, COLD_MS_MAX), (AGAIN, AGAIN_MS_MAX), (ELSEWHERE, AGAIN_MS_MAX)):
        report.claims.append(Claim(f"{TITLE}, {case}", table.value(case, COLUMN), limit, "ms"))
    report.claims.append(Claim(PARAMETER, table.value(PARAMETER, COLUMN), PARAMETER_MS_MAX, "ms"))


def unseen_code() -> str:
    """Return figure 4 with a range that nobody has asked for before."""
    return FIGURE_4.code.replace("78.5", f"{78.5 + next(_numbers) * 1e-6!r}")


def _first_event(channel_id: str, code: str, *, share: bool = True) -> float:
    """Return how long it takes from deriving to the first event, for a hub that has never asked for anything."""
    from echoic import Hub

    arrived: list[float] = []
    came = threading.Event()

    def handle(_: object) -> None:
        if not arrived:
            arrived.append(time.perf_counter())
            came.set()

    with Hub() as hub:
        channel = hub.open(channel_id, Trade)
        begun = time.perf_counter()
        if code:
            channel = channel.derive(code, share=share)
        channel.subscribe(handle)
        if not came.wait(ARRIVE_SECONDS_MAX):
            raise TimeoutError(f"no event has arrived in {ARRIVE_SECONDS_MAX} seconds")
    time.sleep(FORGET_SECONDS)
    return arrived[0] - begun


def _first_event_of_new_process() -> float:
    with start_peers(SOURCE, SETUP, [{}]) as (peer,):
        return _first_event(str(peer.address()["here"]), FIGURE_4.code)


def _parameter_changed(channel_id: str, updates: int) -> float:
    """Return how long it takes until the source has taken another parameter: the median of several."""
    from echoic import Hub

    taken = []
    with Hub() as hub:
        channel = hub.open(channel_id, Trade).derive(FIGURE_6.code, params=Range(LOW, HIGH), share=False)
        channel.subscribe(lambda _: None)
        for number in range(updates):
            begun = time.perf_counter()
            channel.params.update(range_high_bound=HIGH + number)
            taken.append(time.perf_counter() - begun)
    time.sleep(FORGET_SECONDS)
    return statistics.median(taken)


def supply(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Submit trades to two channels for as long as anybody wants them; this runs in the peer."""
    from echoic import Hub

    with Hub() as hub, ExitStack() as stack:
        channels = [hub.create(name, Trade) for name in ("here", "there")]
        ended = threading.Event()
        stack.callback(ended.set)
        threading.Thread(target=_submit_for_ever, args=(channels, ended), daemon=True).start()
        control.ready(here=channels[0].id, there=channels[1].id)
        control.wait()


def _submit_for_ever(channels: "list[Channel]", ended: threading.Event) -> None:
    submits, event = [channel.source().submit for channel in channels], trade(passes=True)
    while not ended.is_set():
        for submit in submits:
            submit(event)
        time.sleep(INTERVAL_SECONDS)
