"""How much sooner does a threshold inside the source steer a simulation than one that is told of it?

A reactor in this process heats up, and submits its temperature at every step. Another process steers it:

    inside the source     its E-Code compares, and switches the heating off in the source's context, within `submit`
    over the network      the event passes the same filter there, the other process asks the source to stop by `steer`

Measured is the time from before the `submit` of the event that crosses the threshold until the heating is off. A raw
round trip of 100 bytes is what the kernel takes for the way there and back.
"""

import statistics
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

from echoic.formats import event
from echoic.testing.bench.contest import Effort, Setup
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.eager.handlers import is_thorough
from echoic.testing.bench.eager.turns import Case, opened, take_turns
from echoic.testing.bench.peers import start_peers
from echoic.testing.bench.raw import RAW_TCP
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Unit

if TYPE_CHECKING:
    from echoic import Hub

__all__ = ["COLUMN", "ORDER", "TITLE", "Heating", "Temperature", "measure"]

TITLE = "from a threshold to the change in the simulation"
INSIDE, NETWORK, TCP = ORDER = ("inside the source", "over the network", "raw tcp, there and back")
COLUMN = "latency"
LIMIT: Final = 90.0
STEPS_BELOW: Final = 3
SWITCH: Final = "{ if (input.temperature > param.limit) context.heating = -1.0; return 0; }"
HOT: Final = "input.temperature > param.limit"
STEERER: Final = f"{__name__}:steer"
SETUP: Final = Setup("100 B", synchronous=True)
RUNS: Final = {True: 100, False: 5}
STEP_SECONDS: Final = 0.0001
STEER_SECONDS_MAX: Final = 10.0


@event
class Temperature:
    """What the reactor tells."""

    run: int
    temperature: float


@event
class Heating:
    """What can be steered."""

    heating: float


class Reactor:
    """A simulation that heats up until somebody stops it."""

    def __init__(self, hub: "Hub", name: str) -> None:
        from echoic import Context, Controls

        self.channel = hub.create(name, Temperature, context=Heating)
        self._run = 0
        self._off = threading.Event()
        self._context = Context(Heating(1.0), writable=("heating",))
        self._source = self.channel.source(context=self._context, controls=Controls(tune=self._tune))

    def sample(self, cell: Cell, count: int) -> Mapping[Cell, float]:
        """Return how long it took from crossing the threshold until the heating was off, in the median."""
        return {cell: statistics.median(self._heated() for _ in range(count))}

    def _tune(self, number: int, heating: float) -> None:
        if number == self._run:
            self._context.heating = heating
            self._off.set()

    def _heated(self) -> float:
        self._run += 1
        self._off.clear()
        self._context.heating = 1.0
        for step in range(STEPS_BELOW):
            self._submit(LIMIT - STEPS_BELOW + step)
            time.sleep(STEP_SECONDS)
        crossed = time.perf_counter()
        self._submit(LIMIT + 1.0)
        if self._context.heating > 0 and not self._off.wait(STEER_SECONDS_MAX):
            raise TimeoutError(f"nobody has steered in {STEER_SECONDS_MAX} seconds")
        return time.perf_counter() - crossed

    def _submit(self, temperature: float) -> None:
        self._source.submit(Temperature(self._run, temperature))


def measure(effort: Effort, report: Report) -> None:
    """Measure both ways to steer, and add it to the report."""
    from echoic import Hub

    effort.told("starting those who steer")
    runs = RUNS[is_thorough(effort)]
    with ExitStack() as stack:
        hub = stack.enter_context(Hub())
        reactors = {case: Reactor(hub, f"reactor-{number}") for number, case in enumerate((INSIDE, NETWORK))}
        for case, reactor in reactors.items():
            argument: Argument = {"id": reactor.channel.id, "inside": int(case == INSIDE)}
            (peer,) = stack.enter_context(start_peers(STEERER, SETUP, [argument]))
            peer.address()
        cases: list[Case] = [partial(reactor.sample, (case, COLUMN), runs) for case, reactor in reactors.items()]
        cases.append(opened(RAW_TCP, SETUP, (TCP, COLUMN), runs, stack))
        samples = take_turns(cases, effort, [(case, COLUMN) for case in ORDER])
    table = table_of(TITLE, Unit.MICROSECONDS, samples, INSIDE)
    report.tables.append(table)
    report.remarks.append(f"over the network, steering takes {table.ratio(NETWORK, COLUMN)} x as long as in the source")


def steer(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Steer a reactor; this runs in the peer."""
    from echoic import Hub

    with Hub() as hub:
        channel = hub.open(str(argument["id"]), Temperature)
        if argument["inside"]:
            channel.derive(SWITCH, params={"limit": LIMIT}).subscribe(lambda _: None)
        else:
            hot = channel.derive(HOT, params={"limit": LIMIT})
            # In a thread of its own, because whoever steers waits for the answer.
            hot.subscribe(lambda told: channel.steer("tune", number=told.run, heating=-1.0), thread=True)
        control.ready()
        control.wait()
