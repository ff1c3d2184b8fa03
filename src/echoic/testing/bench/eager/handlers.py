"""The events, shared objects and modulators that the parts have in common.

A modulator class of echoic itself is not shipped as text, because the other side has it: its parcel says `from ...
import`. Users' classes are shipped. So those that are measured are made within functions, which are shipped like
theirs. With its text go the constants that it names, as they are when it is first sent: a class that is made again and
sent with another `EDITION` is another text, which no source has seen.

Who signs is a key of this run, which crosses to the other processes of the benchmark in a file: a modulator runs in the
process of a source that trusts it, in a sandbox where the source only allows that.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import numpy
from numpy.typing import NDArray

from echoic.eager import EcodeModulator, Modulator, SharedObject, SigningKey
from echoic.formats import Array, Format, event, float64, int32, int64
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.events import Records

__all__ = [
    "INTEGERS",
    "Tick",
    "View",
    "begin_edition",
    "ecode_table",
    "followers",
    "is_thorough",
    "key_file",
    "passing",
    "table_class",
    "tick",
    "ticks",
]

INTEGERS: Final = 100
SAMPLE_SECONDS_THOROUGH: Final = 0.1
EDITION = 0


@event
class Tick:
    """What the sources submit: twelve numbers, as many bytes as a trade of the other benchmarks."""

    number: int64
    level: int64
    values: Annotated[NDArray[Any], Array[float64, 10]]


class View(SharedObject):
    """What a consumer and its code in the sources have in common: six bounds, like the paper's, and a way back."""

    number: int = 0
    start_layer: int = 0
    end_layer: int = 0
    start_latitude: int = 0
    end_latitude: int = 0
    start_longitude: int = 0
    end_longitude: int = 0
    echo: int = 0
    arrived_ns: int = 0
    left_ns: int = 0


def tick() -> Tick:
    """Return one event."""
    return Tick(1, 0, numpy.zeros(10))


def ticks(events: int) -> Records:
    """Return events as an array."""
    made = numpy.zeros(events, Format.of(Tick).dtype)
    made["number"] = numpy.arange(events)
    return made


def table_class() -> type[Modulator]:
    """Return a modulator whose state is a table of 100 integers."""

    class Table(Modulator):
        table: Array[int32, INTEGERS]

        def enqueue(self, event: Any) -> None:  # noqa: ANN401 - a tick, as the source has it
            if event.level >= self.table[0] and EDITION >= 0:  # type: ignore[index] # an array, as users write it
                super().enqueue(event)

    return Table


def begin_edition() -> None:
    """Let classes that are sent for the first time from here on have texts of their own."""
    global EDITION  # noqa: PLW0603 - what is shipped with a class are the constants that its text names
    EDITION += 1


@event
class Block:
    """A parameter block of 100 integers."""

    table: Annotated[NDArray[Any], Array[int32, INTEGERS]]


def ecode_table(number: int) -> EcodeModulator:
    """Return the same in E-Code, with the table in its parameter block, filled with one number."""
    return EcodeModulator("input.level >= param.table[0]", params=Block(numpy.full(INTEGERS, number, numpy.int32)))


def passing(*, everything: bool) -> Modulator:
    """Return a modulator that looks at one field of every event, and passes all of them or none."""

    class Threshold(Modulator):
        limit: int

        def enqueue(self, event: Any) -> None:  # noqa: ANN401 - a tick, as the source has it
            if event.level >= self.limit:
                super().enqueue(event)

    return Threshold(0 if everything else 1)


def followers(view: View) -> tuple[Modulator, EcodeModulator]:
    """Return what passes one event whenever a view has another number: in Python, and in E-Code."""

    class Follower(Modulator):
        view: View
        last: int = 0

        def enqueue(self, event: object) -> None:
            number = self.view.number
            if number != self.last:
                self.last = number
                super().enqueue(event)

    code = "{ static long last = 0; if (param.number == last) return 0; last = param.number; return 1; }"
    return Follower(view), EcodeModulator(code, params=view)


@contextmanager
def key_file(key: SigningKey) -> Iterator[str]:
    """Keep a key in a file that other processes of this user can load."""
    with tempfile.TemporaryDirectory(prefix="echoic-") as folder:
        path = Path(folder) / "key"
        key.save(path)
        yield str(path)


def is_thorough(effort: Effort) -> bool:
    """Tell whether numbers are wanted, and not only that it works."""
    return effort.sample_seconds >= SAMPLE_SECONDS_THOROUGH
