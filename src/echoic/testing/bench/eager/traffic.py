"""How much does a consumer spare who sends his view to the source? JECho, section 5: up to 85 % of the traffic.

The paper's application in small: an atmosphere of layers, latitudes and longitudes, of which a model in another process
submits every cell at every step. Two viewers look at parts of it. The atmosphere is the same for all, so the number of
events is the same in every run; the time is what it takes until both viewers have handled a step.

    everything      both subscribe without modulators, and throw away what they do not look at
    window          the bounding box of appendix A, which is a shared object
    other window    the shared object is changed to another box
    difference      appendix B: cells whose temperature has moved by more than a threshold
"""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy

from echoic.eager import Modulator, SharedObject
from echoic.eager.ready import Difference, Window
from echoic.formats import Format, event, float64, int32
from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort, Setup
from echoic.testing.bench.control import Argument, Control
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.eager.handlers import is_thorough
from echoic.testing.bench.eager.turns import Case, take_turns
from echoic.testing.bench.events import Records
from echoic.testing.bench.peers import Peer, start_peers
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Unit
from echoic.testing.bench.spread import Spread

if TYPE_CHECKING:
    from echoic import Channel, EagerSink, Sink

__all__ = ["COLUMN", "ORDER", "TITLE", "VIEWERS", "GridData", "atmosphere", "measure"]

TITLE = "a step of the atmosphere for two viewers"
EVERYTHING, WINDOW, OTHER, DIFFERENCE = ORDER = ("everything", "window", "other window", "difference")
COLUMN = "elapsed"
LAYERS, LATITUDES, LONGITUDES = 4, 18, 36
DAY: Final = 24
STEPS: Final = {True: 4 * DAY, False: 2}
MODEL: Final = f"{__name__}:run"
SETUP: Final = Setup("100 B")
IDLE_SECONDS: Final = 0.0005
PAPER_SPARED: Final = 85.0
CHANGE_SECONDS_MAX: Final = 10.0

Bounds = tuple[int, int, int, int, int, int]


@event
class GridData:
    """One cell of the atmosphere at one step."""

    step: int32
    layer: int32
    latitude: int32
    longitude: int32
    temperature: float64
    wind_east: float64
    wind_north: float64


class Box(SharedObject):
    """What a viewer looks at."""

    start_layer: int = 0
    end_layer: int = LAYERS - 1
    start_latitude: int = 0
    end_latitude: int = LATITUDES - 1
    start_longitude: int = 0
    end_longitude: int = LONGITUDES - 1


# Which two parts each viewer looks at, and by how many degrees a cell must change to be heard of after that.
VIEWERS: Final[Mapping[str, tuple[Bounds, Bounds, float]]] = {
    "teacher": ((0, 1, 0, 17, 0, 35), (0, 3, 0, 8, 9, 26), 0.75),
    "student": ((0, 0, 6, 11, 0, 17), (2, 2, 3, 8, 18, 29), 2.5),
}


class Viewer:
    """One who looks at the atmosphere, in one of the four ways."""

    def __init__(self, channel: "Channel", name: str, case: str) -> None:
        first, second, alarm = VIEWERS[name]
        self.name = name
        self._box = Box(*first)
        self._sink: EagerSink | Sink
        if case == EVERYTHING:
            self._sink, self._counted = channel.subscribe(self._handle, thread=True), channel
            return
        modulator: Modulator = Window(self._box, declared=GridData)
        handle = channel.subscribe(self._handle, modulator=modulator)
        if case == OTHER:
            self._move(second, handle.channel)
        elif case == DIFFERENCE:
            cells = {"layer": (0, LAYERS - 1), "latitude": (0, LATITUDES - 1), "longitude": (0, LONGITUDES - 1)}
            handle.reset(Difference("temperature", alarm, cells=cells, declared=GridData))
        self._sink, self._counted = handle, handle.channel

    def received(self) -> tuple[int, int]:
        """Return how many events have come, and how many bytes they had."""
        counts = self._counted.statistics()
        return counts.events_in, counts.bytes_in

    def _move(self, bounds: Bounds, derived: "Channel") -> None:
        """Look elsewhere; return when the source knows."""
        box = self._box
        box.start_layer, box.end_layer, box.start_latitude, box.end_latitude = bounds[:4]
        box.start_longitude, box.end_longitude = bounds[4:]
        box.publish()
        begun = time.monotonic()
        while derived.params.values != box.snapshot():
            if time.monotonic() - begun > CHANGE_SECONDS_MAX:
                raise TimeoutError(f"a view was not changed in {CHANGE_SECONDS_MAX} seconds")
            time.sleep(IDLE_SECONDS)

    def _handle(self, cell: GridData) -> None:
        """Do nothing: what a viewer does with what it sees is its own affair."""


def measure(effort: Effort, report: Report) -> None:
    """Measure what is spared, and add it to the report."""
    effort.told("starting the atmosphere and its viewers")
    steps, found = STEPS[is_thorough(effort)], dict[tuple[str, str], tuple[int, int, int]]()
    with ExitStack() as stack:
        cases: list[Case] = [_opened(case, steps, found, stack) for case in ORDER]
        samples = take_turns(cases, effort, [(case, COLUMN) for case in ORDER])
    report.tables.append(table_of(TITLE, Unit.MILLISECONDS, samples, EVERYTHING))
    shares = {key: 100 * (1 - events / made) for key, (made, events, _) in found.items()}
    for case in ORDER:
        report.remarks.append(f"{case}, a step: {_told(case, found)}")
    best = max(share for (case, _), share in shares.items() if case in (WINDOW, OTHER))
    spared = Spread(best, best, best)
    report.claims.append(
        Claim("traffic that filtering spares a viewer, at best", spared, PAPER_SPARED, "% of the events", at_least=True)
    )


def _told(case: str, found: Mapping[tuple[str, str], tuple[int, int, int]]) -> str:
    texts = []
    for name in VIEWERS:
        made, events, size = found[case, name]
        cells = LAYERS * LATITUDES * LONGITUDES
        per_step = cells / made
        texts.append(
            f"the {name} gets {events * per_step:.0f} of {cells} events, {size * per_step / 1000:.1f} kB, "
            f"spared {1 - events / made:.1%}"
        )
    return "; ".join(texts)


def _opened(case: str, steps: int, found: dict[tuple[str, str], tuple[int, int, int]], stack: ExitStack) -> Case:
    """Return a case: a model of its own, and both viewers, each with a hub of its own."""
    from echoic import Hub

    (model,) = stack.enter_context(start_peers(MODEL, SETUP, [{}]))
    id = str(model.address()["id"])
    hubs: list[Hub] = [stack.enter_context(Hub()) for _ in VIEWERS]
    viewers = [Viewer(hub.open(id, GridData), name, case) for hub, name in zip(hubs, VIEWERS, strict=True)]
    return partial(_run, case, model, viewers, steps, found)


def _run(
    case: str, model: Peer, viewers: list[Viewer], steps: int, found: dict[tuple[str, str], tuple[int, int, int]]
) -> Mapping[Cell, float]:
    """Let the model run for some steps; return how long one took, and note what each viewer got."""
    before = [viewer.received() for viewer in viewers]
    begun = time.perf_counter()
    model.expect(steps)
    model.wait_counted()
    elapsed = time.perf_counter() - begun
    for viewer, (events, size) in zip(viewers, before, strict=True):
        now_events, now_size = viewer.received()
        made = steps * LAYERS * LATITUDES * LONGITUDES
        found[case, viewer.name] = made, now_events - events, now_size - size
    return {(case, COLUMN): elapsed / steps}


def run(control: Control, setup: Setup, argument: Argument) -> None:  # noqa: ARG001 - for other peers
    """Compute as many steps as are expected, again and again; this runs in the peer."""
    from echoic import Hub

    with Hub() as hub, ExitStack() as stack:
        channel, ended = hub.create("atmosphere", GridData), threading.Event()
        stack.callback(ended.set)
        threading.Thread(target=_compute, args=(channel, control, ended), daemon=True).start()
        control.ready(id=channel.id)
        control.wait()


def _compute(channel: "Channel", control: Control, ended: threading.Event) -> None:
    source, steps = channel.source(), list(atmosphere(4 * DAY))
    number = 0
    while not ended.is_set():
        if control.tally.left <= 0:
            time.sleep(IDLE_SECONDS)
            continue
        source.submit_batch(steps[number % len(steps)])
        number += 1
        if control.tally.left == 1:
            source.drain()
        control.tally.event(None)


def atmosphere(steps: int) -> Iterator[Records]:
    """Yield the cells of so many steps: the sun goes round, heat spreads with the wind, a storm crosses the map."""
    layer, latitude, longitude = numpy.indices((LAYERS, LATITUDES, LONGITUDES))
    elevation = numpy.cos(numpy.pi * (latitude - (LATITUDES - 1) / 2) / LATITUDES)
    temperature = -30.0 + 45.0 * elevation - 12.0 * layer
    for step in range(steps):
        height = numpy.cos(2 * numpy.pi * (longitude / LONGITUDES - step % DAY / DAY))
        carried = numpy.roll(temperature, 1, axis=2)
        around = (temperature + carried + numpy.roll(temperature, -1, axis=2)) / 3
        storm = numpy.exp(-((latitude - 6) ** 2 + (longitude - step % LONGITUDES) ** 2) / 4.0)
        heat = 0.9 * numpy.maximum(height, 0) * elevation / (1 + layer) - 0.25
        temperature = 0.6 * around + 0.4 * carried + heat - 2.0 * storm
        cells = numpy.zeros(temperature.size, Format.of(GridData).dtype)
        cells["step"] = step + 1
        for name, values in (("layer", layer), ("latitude", latitude), ("longitude", longitude)):
            cells[name] = values.ravel()
        cells["temperature"] = temperature.ravel()
        cells["wind_east"] = (8.0 + 3.0 * layer).ravel()
        cells["wind_north"] = numpy.gradient(temperature, axis=1).ravel()
        yield cells
