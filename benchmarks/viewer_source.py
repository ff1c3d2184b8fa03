"""The source of `viewer.py`: four series of 5,000 points a second, until standard input ends.

    python -m benchmarks.viewer_source        prints the address of its name server

The points are made beforehand and submitted in batches, so that what the source costs is what a submit costs.
"""

import sys
import threading
import time
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from echoic import Hub, event
from echoic.formats import Format

CHANNEL = "points"
POINTS_A_SECOND = 5_000
BATCHES_A_SECOND = 50
SERIES = ("a", "b", "c", "d")


@event
class Point:
    """A point of each series."""

    at: float
    a: float
    b: float
    c: float
    d: float


def points(first: int, count: int) -> numpy.ndarray:
    """Return so many points, as an array of records: sines that lie apart, with noise."""
    made = numpy.zeros(count, Format.of(Point).dtype)
    at = (first + numpy.arange(count)) / POINTS_A_SECOND
    made["at"] = at
    noise = numpy.random.default_rng(first)
    for number, name in enumerate(SERIES):
        made[name] = 10 * number + 3 * numpy.sin(at * (number + 1)) + noise.normal(0, 0.5, count)
    return made


def main() -> None:
    ending = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ending.set()), daemon=True).start()
    with Hub(name="names") as names, Hub(names=names.address, name="source") as hub:
        channel = hub.create(CHANNEL, Point)
        size = POINTS_A_SECOND // BATCHES_A_SECOND
        with channel.source() as source:
            print(names.address, flush=True)
            begun, sent = time.monotonic(), 0
            while not ending.wait(max(0.0, begun + sent / POINTS_A_SECOND - time.monotonic())):
                source.submit_batch(points(sent, size))
                sent += size


if __name__ == "__main__":
    main()
