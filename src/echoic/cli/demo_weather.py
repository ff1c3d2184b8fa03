"""The atmosphere model of `echoic demo`, a process of its own: `python -m echoic.cli.demo_weather HOST:PORT`.

A slice of the atmosphere along a circle of latitude: 37 layers of 253 points. A jet stream blows in the upper layers
and slowly wanders up and down. Eddies, which arise at random places, are carried along by it, spread in both
directions, and die away:

    d eddies / dt  =  - jet(layer) d eddies / dx  +  k (d2/dx2 + d2/dz2) eddies  -  eddies / lifetime  +  births

solved by upwind and central differences on a ring. The step is small enough for both (Courant number below 1).
"""

import time
from typing import Any, Final, TypeAlias

import numpy
from numpy.typing import NDArray

from echoic.cli.demo_events import LAYERS, POINTS, Wind
from echoic.cli.demo_stage import Cues, Report, perform
from echoic.hub import Source

__all__ = ["FIELDS_A_SECOND", "Atmosphere", "main"]

Numbers: TypeAlias = NDArray[Any]

FIELDS_A_SECOND: Final = 20
COURANT: Final = 0.02
"""How many points a wind of 1 m/s carries something in a step."""
SPREADING: Final = 0.05
FADING: Final = 0.01
CALM: Final = 5.0
JET: Final = 30.0
PERIOD_STEPS: Final = 400


class Atmosphere:
    """The state of the model."""

    def __init__(self, seed: int) -> None:
        self._random = numpy.random.default_rng(seed)
        self._heights = numpy.linspace(0, 1, LAYERS)[:, None]
        self._places = numpy.arange(POINTS)[None, :]
        self._eddies: Numbers = numpy.zeros((LAYERS, POINTS))
        self.steps = 0

    def step(self) -> Numbers:
        """Go on by one step and return the wind."""
        jet, eddies = self._jet(), self._eddies
        carried = eddies - COURANT * jet * (eddies - numpy.roll(eddies, 1, axis=1))
        padded = numpy.pad(eddies, ((1, 1), (0, 0)), mode="edge")
        across = padded[2:] + padded[:-2] - 2 * eddies
        along = numpy.roll(eddies, 1, axis=1) + numpy.roll(eddies, -1, axis=1) - 2 * eddies
        self._eddies = (carried + SPREADING * (along + across)) * (1 - FADING) + self._birth()
        self.steps += 1
        wind: Numbers = jet + self._eddies
        return wind

    def _jet(self) -> Numbers:
        """Return the mean wind of each layer: strongest in the middle of the jet."""
        middle = 0.65 + 0.2 * numpy.sin(2 * numpy.pi * self.steps / PERIOD_STEPS)
        winds: Numbers = CALM + JET * numpy.exp(-(((self._heights - middle) / 0.15) ** 2))
        return winds

    def _birth(self) -> Numbers:
        """Return an eddy: air that is faster, or slower, around some place."""
        height, place, strength = self._random.random(), self._random.integers(POINTS), self._random.normal(0, 3)
        distance = numpy.minimum(abs(self._places - place), POINTS - abs(self._places - place))
        eddy: Numbers = strength * numpy.exp(-(((self._heights - height) / 0.1) ** 2) - (distance / 12) ** 2)
        return eddy


def main() -> None:
    """Publish wind fields from cue to cue."""
    perform("atmosphere", "wind", Wind, _publish)


def _publish(source: Source, cues: Cues) -> Report:
    atmosphere = Atmosphere(seed=1)
    begun = time.time()
    while not cues.ending.wait(max(0.0, begun + atmosphere.steps / FIELDS_A_SECOND - time.time())):
        source.submit(Wind(time.time(), atmosphere.steps, atmosphere.step()))
    seconds = time.time() - begun
    source.drain()
    return Report(atmosphere.steps, seconds)


if __name__ == "__main__":
    main()
