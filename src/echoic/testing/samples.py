"""Event types and events to test with: the papers' stock trades and wind fields, and one type with everything.

Arrays are declared in the spelling that type checkers understand: `Annotated[static type, Array[...]]`.
"""

import enum
from typing import Annotated, Any, TypeAlias

import numpy
from numpy.typing import NDArray

from echoic.formats import Array, char, event, float32, float64, int16, uint8, uint16

__all__ = ["Everything", "Mean", "Side", "Station", "Trade", "WindField", "sample_events"]

Numbers: TypeAlias = NDArray[Any]


class Side(enum.IntEnum):
    """Who asked for the trade."""

    BUY = 1
    SELL = 2


@event
class Trade:
    """A stock trade (ECho, section 1)."""

    symbol: str
    price: float
    volume: int
    venue: uint16 = 0
    side: Side = Side.BUY
    note: str | None = None


@event
class Mean:
    """What is left of a wind field (ECho, figure 5)."""

    at: float
    average_velocity: float


@event
class Station:
    """Where something was measured."""

    name: str
    latitude: float
    longitude: float


@event
class WindField:
    """One step of an atmosphere model, with a coarser grid than the paper's 37 x 253."""

    at: float
    n: int
    wind: Annotated[Numbers, Array[float64, 4, 6]]
    samples: Annotated[Numbers, Array[float32, "n"]]
    station: Station


@event
class Everything:
    """Every kind of field."""

    flag: bool
    letter: char
    code: Annotated[bytes, Array[char, 6]]
    small: uint8
    count: int16
    cells: Annotated[Numbers, Array[float64, "count", 3]]
    stations: Annotated[list[Station], Array[Station, "count"]]
    pair: Annotated[list[Station], Array[Station, 2]]
    tags: Annotated[list[str], Array[str, ...]]
    data: bytes
    at: float


def sample_events() -> list[list[object]]:
    """Return a few events of each type."""
    here, there = Station("Zürich", 47.4, 8.5), Station("", 0.0, -0.0)
    return [
        [Trade("IBM", 75.5, 100), Trade("ECHO", 0.25, -3, 65535, Side.SELL, "odd lot"), Trade("", 1e300, 0, note="")],
        [Mean(0.5, 12.25), Mean(1.0, float("nan"))],
        [WindField(float(n), n, numpy.arange(24.0).reshape(4, 6), numpy.arange(n), here) for n in range(4)],
        [
            Everything(
                n % 2 == 0,
                b"x",
                b"code",
                n,
                n,
                numpy.ones((n, 3)),
                [here] * n,
                [here, there],
                ["a"] * n,
                b"\0" * n,
                0.5,
            )
            for n in range(3)
        ],
    ]
