"""The application of the JECho paper: an atmosphere model, watched by two viewers in processes of their own.

The model computes temperature and wind on a grid of layers, latitudes and longitudes, and submits one event for every
cell and step. No viewer can show all of that, so each sends a modulator into the model's process: first a window (the
paper's appendix A), whose bounds are a shared object that the viewer changes when its user looks elsewhere, and then,
by resetting the handler, a difference: only cells whose temperature has moved since the viewer last heard of them
(appendix B). Both are E-Code, so the model compiles them to machine code and needs to trust nobody.

    python examples/atmosphere.py
"""

import multiprocessing
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy

import echoic
from echoic.eager import SharedObject
from echoic.eager.ready import Difference, Window

LAYERS, LATITUDES, LONGITUDES = 4, 18, 36
CELLS = {"layer": (0, LAYERS - 1), "latitude": (0, LATITUDES - 1), "longitude": (0, LONGITUDES - 1)}
STEPS = 24  # of each phase: a day


@echoic.event
class GridData:
    """One cell of the atmosphere at one step."""

    step: echoic.int32
    layer: echoic.int32
    latitude: echoic.int32
    longitude: echoic.int32
    temperature: float
    wind_east: float
    wind_north: float


class BBox(SharedObject):
    """What a viewer looks at: the paper's class of this name."""

    start_layer: int = 0
    end_layer: int = LAYERS - 1
    start_latitude: int = 0
    end_latitude: int = LATITUDES - 1
    start_longitude: int = 0
    end_longitude: int = LONGITUDES - 1


@dataclass(frozen=True)
class Viewer:
    """A viewer: which two parts of the atmosphere its user looks at, and by how much cells must change after that."""

    name: str
    first: tuple[int, int, int, int, int, int]
    second: tuple[int, int, int, int, int, int]
    alarm: float


VIEWERS = (
    Viewer("teacher", (0, 1, 0, 17, 0, 35), (0, 3, 0, 8, 9, 26), 0.75),
    Viewer("student", (0, 0, 6, 11, 0, 17), (2, 2, 3, 8, 18, 29), 2.5),
)
ROW = "{:<8} {:<13} {:>8} {:>7} {:>7} {:>7} {:>7}  {}"
PHASES = ("window", "other window", "difference")


class Atmosphere:
    """A small model: the sun goes round, heat spreads and is carried by the wind, and a storm crosses the map."""

    def __init__(self) -> None:
        self.step = 0
        layer, latitude, longitude = numpy.indices((LAYERS, LATITUDES, LONGITUDES))
        self._cells = (layer, latitude, longitude)
        self._elevation = numpy.cos(numpy.pi * (latitude - (LATITUDES - 1) / 2) / LATITUDES)
        self.temperature = -30.0 + 45.0 * self._elevation - 12.0 * layer

    def steps(self, count: int) -> Iterator[numpy.ndarray]:
        """Yield the events of so many steps, a whole grid at a time."""
        for _ in range(count):
            self._advance()
            self.step += 1
            yield self._events()

    def _advance(self) -> None:
        layer, latitude, longitude = self._cells
        sun = LONGITUDES * (self.step % STEPS) / STEPS
        height = numpy.cos(2 * numpy.pi * (longitude - sun) / LONGITUDES)
        field = self.temperature
        carried = numpy.roll(field, 1, axis=2)
        around = (field + carried + numpy.roll(field, -1, axis=2)) / 3
        storm = numpy.exp(-((latitude - 6) ** 2 + (longitude - self.step % LONGITUDES) ** 2) / 4.0)
        heat = 0.9 * numpy.maximum(height, 0) * self._elevation / (1 + layer) - 0.25
        self.temperature = 0.6 * around + 0.4 * carried + heat - 2.0 * storm

    def _events(self) -> numpy.ndarray:
        layer, latitude, longitude = self._cells
        events = numpy.zeros(self.temperature.size, echoic.Format.of(GridData).dtype)
        events["step"] = self.step
        events["layer"], events["latitude"], events["longitude"] = layer.ravel(), latitude.ravel(), longitude.ravel()
        events["temperature"] = self.temperature.ravel()
        events["wind_east"] = (8.0 + 3.0 * layer).ravel()
        events["wind_north"] = numpy.gradient(self.temperature, axis=1).ravel()
        return events


def view(viewer: Viewer, channel: str, model: Connection) -> None:
    """Watch the atmosphere until the model says that it is over; runs in a process of its own."""
    seen: list[GridData] = []
    box = BBox(*viewer.first)
    with echoic.Hub() as hub:
        grid = hub.open(channel, GridData)
        handle = grid.subscribe(seen.append, modulator=Window(box, declared=GridData))
        model.send("ready")
        for request in iter(model.recv, "end"):
            begun = time.perf_counter()
            if request == "count":
                model.send((len(seen), span(seen)))
                seen.clear()
                continue
            if request == "other window":
                look_elsewhere(box, viewer.second, handle.channel)
            else:
                handle.reset(Difference("temperature", viewer.alarm, cells=CELLS, declared=GridData), sync=True)
            model.send(1000 * (time.perf_counter() - begun))


def look_elsewhere(box: BBox, bounds: tuple[int, int, int, int, int, int], derived: echoic.Channel) -> None:
    """Change the view as a whole: nothing leaves before `publish`, which does not wait for the sources; this does."""
    box.start_layer, box.end_layer, box.start_latitude, box.end_latitude, box.start_longitude, box.end_longitude = (
        bounds
    )
    box.publish()
    deadline = time.monotonic() + 10
    while derived.params.values != box.snapshot() and time.monotonic() < deadline:
        time.sleep(0.0001)


def span(seen: list[GridData]) -> str:
    """Return which part of the atmosphere was seen."""
    names = ("layer", "latitude", "longitude")
    ends = [(min(event[name] for event in seen), max(event[name] for event in seen)) for name in names if seen]
    return ", ".join(f"{low}-{high}" for low, high in ends)


def ask(viewers: list[Connection], request: str) -> list[object]:
    """Ask all viewers for something at the same time, and wait for their answers."""
    for viewer in viewers:
        viewer.send(request)
    return [viewer.recv() for viewer in viewers]


def start_viewers(channel: str) -> list[Connection]:
    """Start a process for each viewer, and return the lines to them once all are watching."""
    spawn = multiprocessing.get_context("spawn")
    lines = []
    for viewer in VIEWERS:
        line, theirs = spawn.Pipe()
        spawn.Process(target=view, args=(viewer, channel, theirs)).start()
        lines.append(line)
    for line in lines:
        line.recv()
    return lines


def main() -> None:
    """Run the model for a day in each mode, and print what each viewer was spared and how long a change took."""
    with echoic.Hub() as hub:
        grid = hub.create("atmosphere", GridData)
        source, model = grid.source(), Atmosphere()
        viewers = start_viewers(grid.id)
        print(
            ROW.format("viewer", "mode", "change", "made", "sent", "kbytes", "spared", "layers, latitudes, longitudes")
        )
        for phase in PHASES:
            changes = [f"{taken:.1f} ms" for taken in ask(viewers, phase)] if phase != PHASES[0] else ["", ""]
            made = 0
            for events in model.steps(STEPS):
                source.submit_batch(events)
                made += len(events)
            source.drain()
            for viewer, change, (sent, part) in zip(VIEWERS, changes, ask(viewers, "count"), strict=True):
                kilobytes, spared = sent * grid.format.size // 1000, f"{1 - sent / made:.1%}"
                print(ROW.format(viewer.name, phase, change, made, sent, kilobytes, spared, part))
        for viewer in viewers:
            viewer.send("end")


if __name__ == "__main__":
    main()
