"""The code of the paper, and the events it works on.

Figures 4, 5 and 6 of "A Middleware Toolkit for Client-Initiated Service Specialization": a filter that passes trades
outside of a range, the average of an array of 37 times 253 numbers, and the filter with its range as parameters. Each
is here as E-Code, word for word, and as the Python that somebody would write who has no E-Code.

A trade has 96 bytes, where the paper has "100 byte records". Of the trades that are measured every second one passes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy

from echoic.ecode import Signature
from echoic.formats import NATIVE, Array, Format, char, event, float64, int32, int64
from echoic.testing.bench.events import Numbers, Records

__all__ = [
    "COLUMNS",
    "EVENTS",
    "FIGURES",
    "FIGURE_4",
    "FIGURE_5",
    "FIGURE_6",
    "HIGH",
    "LOW",
    "ROWS",
    "Atmosphere",
    "Average",
    "Figure",
    "Range",
    "Trade",
    "atmosphere",
    "trade",
    "trades",
]

ROWS: Final = 253
COLUMNS: Final = 37
EVENTS: Final = 1024
LOW, HIGH = 75.5, 78.5
INSIDE, OUTSIDE = 77.0, 70.0


@event
class Trade:
    """What figures 4 and 6 filter."""

    symbol: Array[char, 12]
    sequence: int32
    trade_price: float64
    volume: int64
    at: float64 = 0.0
    bid: float64 = 0.0
    ask: float64 = 0.0
    opened: float64 = 0.0
    highest: float64 = 0.0
    lowest: float64 = 0.0
    turnover: float64 = 0.0
    closed: float64 = 0.0


@event
class Range:
    """The parameters of figure 6."""

    range_low_bound: float64
    range_high_bound: float64


@event
class Atmosphere:
    """What figure 5 averages."""

    wind_velocity: Annotated[Numbers, Array[float64, ROWS, COLUMNS]]


@event
class Average:
    """What figure 5 makes of it."""

    average_velocity: float64


@dataclass(frozen=True, slots=True)
class Figure:
    """One piece of code.

    Attributes:
        name: As the paper calls it.
        code: E-Code.
        python: The same as a function `f` of Python; it gets the event, and for figure 6 the parameters.
        signature: The types around the code.
        params: The parameter block as it lies in memory.
    """

    name: str
    code: str
    python: str
    signature: Signature
    params: bytes = b""


def trade(*, passes: bool, number: int = 0) -> Trade:
    """Return a trade that the filters let through, or one that they reject."""
    return Trade(b"IBM", number, OUTSIDE if passes else INSIDE, 100 + number)


def trades(count: int, passing: float = 0.5) -> Records:
    """Return so many trades, of which a part lies outside of the range, evenly spread."""
    # Memory that nobody has written to is one page of zeros, again and again, which reads faster than any other.
    made = numpy.full(count, 1, Format.of(Trade).dtype)
    numbers = numpy.arange(count)
    made["symbol"] = b"IBM"
    made["sequence"] = numbers
    passes = numpy.floor((numbers + 1) * passing) > numpy.floor(numbers * passing)
    made["trade_price"] = numpy.where(passes, OUTSIDE, INSIDE)
    return made


def atmosphere() -> Records:
    """Return one record with numbers that do not repeat."""
    made: numpy.ndarray[Any, Any] = numpy.zeros(1, Format.of(Atmosphere).dtype)
    made["wind_velocity"] = numpy.random.default_rng(5).normal(10, 4, (ROWS, COLUMNS))
    return made


FIGURE_4: Final = Figure(
    "figure 4",
    """{
    if ((input.trade_price < 75.5) || (input.trade_price > 78.5)) {
        return 1; /* submit event into derived channel */
    }
    return 0; /* do not submit event into derived channel */
}""",
    """
def f(input):
    if input.trade_price < 75.5 or input.trade_price > 78.5:
        return 1
    return 0
""",
    Signature(Format.of(Trade)),
)

FIGURE_5: Final = Figure(
    "figure 5",
    """{
    int i;
    int j;
    double sum = 0.0;
    for(i = 0; i<37; i= i+1) {
        for(j = 0; j<253; j=j+1) {
            sum = sum + input.wind_velocity[j][i];
        }
    }
    output.average_velocity = sum / (37 * 253);
    return 1;
}""",
    """
def f(input, output):
    wind_velocity = input.wind_velocity
    sum = 0.0
    for i in range(37):
        for j in range(253):
            sum = sum + wind_velocity[j][i]
    output.average_velocity = sum / (37 * 253)
    return 1
""",
    Signature(Format.of(Atmosphere), Format.of(Average).on(NATIVE)),
)

FIGURE_6: Final = Figure(
    "figure 6",
    """{
    if ((input.trade_price < param.range_low_bound) ||
        (input.trade_price > param.range_high_bound)) {
        return 1; /* submit event into derived channel */
    }
    return 0; /* do not submit event into derived channel */
}""",
    """
def f(input, param):
    if input.trade_price < param.range_low_bound or input.trade_price > param.range_high_bound:
        return 1
    return 0
""",
    Signature(Format.of(Trade), None, Format.of(Range).on(NATIVE)),
    numpy.array([LOW, HIGH]).tobytes(),
)

FIGURES: Final[Mapping[str, Figure]] = {each.name: each for each in (FIGURE_4, FIGURE_5, FIGURE_6)}
