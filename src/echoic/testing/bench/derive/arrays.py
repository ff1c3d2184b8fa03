"""What does it save to average an array where it is made? The paper's figure 8B.

Arrays of 37 times 253 doubles, 74,888 bytes, go to a sink in another process as they are, or as their average, which
figure 5 computes at the source. Per array: user and system time of the source's process, and the time from the first
`submit` until the sink has counted the last one. Arrays are submitted one by one, each of which then leaves by itself,
or sixteen at once. On one host events travel by a Unix socket and shared memory, so the same is measured over TCP as
well, which is how they would go to another host; the network itself is missing there, and with it most of what the
paper saved.
"""

import random
import resource
import time
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

import numpy

from echoic.formats import Format
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.derive.figures import Atmosphere, Average, atmosphere
from echoic.testing.bench.derive.sinks import ARRAYS, SETUP
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.hubs import environment
from echoic.testing.bench.peers import Peer, join, start_peers
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Samples, Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from echoic import Source
    from echoic.testing.bench.events import Records

__all__ = ["AVERAGED", "BATCH", "ELAPSED", "LINKS", "MODES", "SYSTEM", "TITLE", "USER", "WHOLE", "measure"]

TITLE = "sending arrays of 37 x 253 numbers, per array"
WHOLE, AVERAGED = "whole", "averaged at the source"
USER, SYSTEM, ELAPSED = "user", "system", "elapsed"
LINKS: Final[Mapping[str, Mapping[str, str]]] = {"": {}, ", tcp": {"ECHOIC_LINKS": "tcp"}}
BATCH: Final = 16
MODES: Final[Mapping[str, int]] = {"": 1, f", by {BATCH}": BATCH}
DIFFERENT: Final = 64
SAMPLE_ARRAYS: Final = {True: 1008, False: 48}
SAMPLE_SECONDS_THOROUGH: Final = 0.1


class Way:
    """One way for arrays to reach their sink."""

    def __init__(self, source: "Source", peer: Peer, batch: int) -> None:
        self._peer = peer
        records: Records = numpy.concatenate([atmosphere()] * DIFFERENT)
        records["wind_velocity"] += numpy.arange(DIFFERENT)[:, None, None]
        self._submit: Callable[[object], None] = source.submit if batch == 1 else source.submit_batch
        self._batch = batch
        self._events: Sequence[object] = (
            [Atmosphere(each["wind_velocity"]) for each in records]
            if batch == 1
            else [records[at : at + batch] for at in range(0, DIFFERENT, batch)]
        )

    def submit(self, count: int) -> None:
        """Submit so many arrays, which take turns."""
        submit, events = self._submit, self._events
        for number in range(count // self._batch):
            submit(events[number % len(events)])

    def sample(self, count: int) -> tuple[float, float, float]:
        """Return user, system and elapsed seconds of one array."""
        self._peer.expect(count)
        begun, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
        self.submit(count)
        self._peer.wait_counted()
        elapsed, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
        return (after.ru_utime - before.ru_utime) / count, (after.ru_stime - before.ru_stime) / count, elapsed / count


def measure(effort: Effort, report: Report) -> None:
    """Measure both ways to send an array, and add it to the report."""
    effort.told("starting the sinks of arrays")
    chance = random.Random(effort.seed)
    count = SAMPLE_ARRAYS[effort.sample_seconds >= SAMPLE_SECONDS_THOROUGH]
    seconds: dict[Cell, list[float]] = {}
    with ExitStack() as stack:
        ways = {name + links: way for links in LINKS for name, way in _opened(links, stack).items()}
        for number in range(effort.rounds):
            effort.told(f"round {number + 1} of {effort.rounds}")
            for name in chance.sample(list(ways), len(ways)):
                for column, taken in zip((USER, SYSTEM, ELAPSED), ways[name].sample(count), strict=True):
                    seconds.setdefault((name, column), []).append(taken)
    ordered = {(name, column): seconds[name, column] for name in ways for column in (USER, SYSTEM, ELAPSED)}
    report.tables.append(table_of(TITLE, Unit.MICROSECONDS, Samples(ordered)))
    whole, averaged = Format.of(Atmosphere).size, Format.of(Average).size
    report.remarks.append(f"an array has {whole} bytes, its average {averaged}: a {whole // averaged}th")


def _opened(links: str, stack: ExitStack) -> dict[str, Way]:
    """Return the ways by one kind of link; how arrays are submitted makes no difference to those who listen."""
    from echoic import Hub

    made: dict[str, Way] = {}
    with environment(LINKS[links]):
        hub = stack.enter_context(Hub())
        for number, name in enumerate((WHOLE, AVERAGED)):
            channel = hub.create(f"arrays-{number}", Atmosphere)
            argument: dict[str, str | int | list[str]] = {"id": channel.id, "averaged": int(name == AVERAGED)}
            (peer,) = stack.enter_context(start_peers(ARRAYS, SETUP, [argument], LINKS[links]))
            peer.address()
            source = channel.source()
            join([peer], Way(source, peer, 1).submit)
            made |= {name + mode: Way(source, peer, batch) for mode, batch in MODES.items()}
    return made
