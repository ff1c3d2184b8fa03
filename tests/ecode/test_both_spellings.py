"""Programs side by side in C's and in Python's spelling: both, by both back ends, come to the same."""

from dataclasses import dataclass
from typing import Any

import numpy
import pytest

from echoic.formats import Array, char, event, float32, int16, int32, uint32
from tests.ecode.programs import Ran, run_everywhere

GENERATOR = numpy.random.default_rng(20260)


@event
class Trade:
    symbol: str
    trade_price: float
    volume: int32
    venue: Array[char, 4]
    sequence: int


@event
class Wind:
    time: float
    wind_velocity: Array[float, 253, 37]


@event
class Average:
    average_velocity: float


@event
class Bounds:
    range_low_bound: float
    range_high_bound: float


@event
class Cell:
    speed: float32
    rank: int16


@event
class Reading:
    station: str
    n: int32
    samples: Array[float, "n"]
    mask: uint32
    cells: Array[Cell, ...]
    grid: Array[int32, 3, 4]


@event
class Summary:
    station: str
    count: int
    sum: float
    best: float32
    n: int32
    kept: Array[float, "n"]
    others: Array[int32, ...]


TRADES = [
    Trade(symbol, 70 + 14 * float(GENERATOR.random()), int(volume), venue, number)
    for number, (symbol, volume, venue) in enumerate(
        zip(
            GENERATOR.choice(["IBM", "HPQ", "SUNW", ""], 60).tolist(),
            GENERATOR.integers(-5, 1000, 60),
            [b"NYSE", b"N", b"", b"LSE"] * 15,
            strict=True,
        )
    )
]
WINDS = [Wind(float(hour), GENERATOR.normal(size=(253, 37))) for hour in range(4)]
READINGS = [
    Reading(
        f"station {number}",
        count,
        GENERATOR.normal(size=count),
        int(GENERATOR.integers(0, 1 << 32)),
        [Cell(float(numpy.float32(speed)), rank) for rank, speed in enumerate(GENERATOR.normal(size=number % 4))],
        GENERATOR.integers(-9, 9, (3, 4)),
    )
    for number, count in enumerate([0, 1, 2, 5, 9, 14, 3, 0, 7])
]


@dataclass(frozen=True)
class Twins:
    """One program in two spellings, with what it works on."""

    name: str
    c: str
    python: str
    events: list[Any]
    output: type | None = None
    params: object = None
    ports: int = 0


TWINS = [
    Twins(
        "figure 4: trades outside of a range",
        """{
            if ((input.trade_price < 75.5) || (input.trade_price > 78.5)) {
                return 1; /* submit event into derived channel */
            }
            return 0; /* do not submit event into derived channel */
        }""",
        """
def outside(input):
    if input.trade_price < 75.5 or input.trade_price > 78.5:
        return True
    return False
""",
        TRADES,
    ),
    Twins(
        "figure 5: the average of an array",
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
def average(input, output):
    sum = 0.0
    for i in range(37):
        for j in range(253):
            sum = sum + input.wind_velocity[j][i]
    output.average_velocity = sum / (37 * 253)
    return 1
""",
        WINDS,
        Average,
    ),
    Twins(
        "figure 6: the range as parameters",
        """{
            if ((input.trade_price < param.range_low_bound) ||
                (input.trade_price > param.range_high_bound)) {
                return 1; /* submit event into derived channel */
            }
            return 0; /* do not submit event into derived channel */
        }""",
        """
def outside(input, param):
    return not param.range_low_bound <= input.trade_price <= param.range_high_bound
""",
        TRADES,
        params=Bounds(74.25, 80.0),
    ),
    Twins(
        "every third event",
        "static int count = 0; count = count + 1; if (count == 3) { count = 0; return 1; } return 0;",
        """
def third(input):
    count: static[int32] = 0
    count += 1
    if count == 3:
        count = 0
        return 1
""",
        TRADES,
    ),
    Twins(
        "a moving average",
        """
        static double window[8];
        static int next, filled;
        double sum = 0;
        window[next] = input.trade_price;
        next = (next + 1) % 8;
        if (filled < 8) filled++;
        for (int i = 0; i < filled; i++) sum += window[i];
        output.average_velocity = sum / filled;
        return filled == 8;
        """,
        """
def moving(input, output):
    window: static[Array[float64, 8]]
    next: static[int32] = 0
    filled: static[int32] = 0
    window[next] = input.trade_price
    next = (next + 1) % 8
    if filled < 8:
        filled += 1
    sum = 0.0
    for i in range(filled):
        sum += window[i]
    output.average_velocity = sum / filled
    return filled == 8
""",
        TRADES,
        Average,
    ),
    Twins(
        "one expression",
        'input.volume % 2 == 0 && input.symbol == "IBM"',
        'def f(input):\n    return input.volume % 2 == 0 and input.symbol == "IBM"\n',
        TRADES,
    ),
    Twins(
        "texts and char arrays",
        'return (input.venue == "NYSE" || strlen(input.venue) == 1) && input.symbol[0] != 73 && input.venue[0] > 70;',
        """
def f(input):
    return (input.venue == "NYSE" or len(input.venue) == 1) and input.symbol[0] != 73 and input.venue[0] > 70
""",
        TRADES,
    ),
    Twins(
        "a router",
        """
        if (input.symbol == "") return -1;
        if (input.symbol == "IBM") return 0;
        return input.volume > 300 ? 1 : 2;
        """,
        """
def f(input):
    if input.symbol == "":
        return -1
    elif input.symbol == "IBM":
        return 0
    return 1 if input.volume > 300 else 2
""",
        TRADES,
        ports=3,
    ),
    Twins(
        "a port that is not there",
        "return input.volume;",
        "def f(input):\n    return input.volume\n",
        TRADES[:10],
        ports=3,
    ),
    Twins(
        "dynamic arrays in and out",
        """
        long i;
        double best = -1e300;
        output.station = input.station;
        resize(output.others, length(input.cells));
        for (i = 0; i < length(input.samples); i++) {
            if (input.samples[i] > 0) {
                output.kept[output.n] = input.samples[i] * 2;
                output.n++;
            }
            best = input.samples[i] > best ? input.samples[i] : best;
        }
        for (i = 0; i < length(input.cells); i++) output.others[i] = input.cells[i].rank * 10;
        output.best = best;
        output.count = i;
        return strlen(output.station) > 0;
        """,
        """
def f(input, output):
    best = -1e300
    output.station = input.station
    resize(output.others, len(input.cells))
    for i in range(len(input.samples)):
        if input.samples[i] > 0:
            output.kept[output.n] = input.samples[i] * 2
            output.n += 1
        best = max(best, input.samples[i])
    for i in range(len(input.cells)):
        output.others[i] = input.cells[i].rank * 10
    output.best = best
    output.count = len(input.cells)
    return len(output.station) > 0
""",
        READINGS,
        Summary,
    ),
    Twins(
        "an index outside of an array",
        "output.sum = input.samples[input.n / 2 + 1]; return 1;",
        "def f(input, output):\n    output.sum = input.samples[input.n // 2 + 1]\n    return 1\n",
        READINGS,
        Summary,
    ),
    Twins(
        "a division by zero",
        "output.count = 100 / (input.n - 3); return output.count > -50;",
        "def f(input, output):\n    output.count = int(100 / (input.n - 3)) if 100 // (input.n - 3) else 0\n"
        "    return output.count > -50\n",
        READINGS,
        Summary,
    ),
    Twins(
        "a length beyond the capacity",
        "output.n = input.n * 200 - 200; return 1;",
        "def f(input, output):\n    output.n = input.n * 200 - 200\n    return 1\n",
        READINGS,
        Summary,
    ),
    Twins(
        "loops without a count",
        """
        unsigned long mask = input.mask;
        while (mask != 0) { mask &= mask - 1; output.count++; }
        for (;;) { if (output.sum * output.sum >= input.n) break; output.sum += 1; }
        return 1;
        """,
        """
def f(input, output):
    mask: uint64 = input.mask
    while mask:
        mask &= mask - 1
        output.count += 1
    while True:
        if output.sum * output.sum >= input.n:
            break
        output.sum += 1
    return 1
""",
        READINGS,
        Summary,
    ),
    Twins(
        "out of fuel",
        "while (input.n == 5) ; return input.n > 2;",
        "def f(input):\n    while input.n == 5:\n        pass\n    return input.n > 2\n",
        READINGS,
    ),
    Twins(
        "sorting in a local array",
        """
        int sorted[12], i, j, k;
        for (i = 0; i < 3; i++) for (j = 0; j < 4; j++) sorted[i * 4 + j] = input.grid[i][j];
        for (i = 0; i < 12; i++)
            for (j = 0; j < 11 - i; j++)
                if (sorted[j] > sorted[j + 1]) { k = sorted[j]; sorted[j] = sorted[j + 1]; sorted[j + 1] = k; }
        output.count = sorted[0] * 1000 + sorted[11];
        output.sum = (sorted[5] + sorted[6]) / 2.0;
        return sorted[6] != sorted[5];
        """,
        """
def f(input, output):
    sorted: Array[int32, 12]
    for i in range(3):
        for j in range(4):
            sorted[i * 4 + j] = input.grid[i, j]
    for i in range(12):
        for j in range(11 - i):
            if sorted[j] > sorted[j + 1]:
                k = sorted[j]
                sorted[j] = sorted[j + 1]
                sorted[j + 1] = k
    output.count = sorted[0] * 1000 + sorted[11]
    output.sum = (sorted[5] + sorted[6]) / 2
    return sorted[6] != sorted[5]
""",
        READINGS,
        Summary,
    ),
    Twins(
        "mathematics",
        """
        double x = input.trade_price - 75;
        output.average_velocity = sqrt(fabs(x)) + pow(x, 3) + floor(x) * atan2(x, 2) + (isnan(x) ? 1 : hypot(x, 1));
        return fmod(x, 2) > 0 && (int) trunc(x) != 3;
        """,
        """
import math

def f(input, output):
    x = input.trade_price - 75
    output.average_velocity = sqrt(abs(x)) + x**3 + floor(x) * math.atan2(x, 2) + (1 if isnan(x) else hypot(x, 1))
    return math.fmod(x, 2) > 0 and math.trunc(x) != 3
""",
        TRADES,
        Average,
    ),
    Twins(
        "narrow types and casts",
        """
        static unsigned char small;
        short narrow = (short) (input.mask >> 3);
        small = small + narrow;
        output.count = (signed char) small * 3L + (unsigned short) narrow;
        output.best = (float) input.mask / 7;
        output.sum = (double) (float) 0.1 + small;
        return narrow & 1;
        """,
        """
def f(input, output):
    small: static[uint8] = 0
    narrow: int16 = int16(input.mask >> 3)
    small = small + narrow
    output.count = int8(small) * 3 + uint16(narrow)
    output.best = float32(float32(input.mask) / 7)
    output.sum = float32(0.1) + small
    return narrow & 1
""",
        READINGS,
        Summary,
    ),
    Twins(
        "jumps",
        """
        for (int i = 0; i < 12; i += 2) {
            if (i == input.n) continue;
            if (i > input.n + 4) break;
            for (int j = 3; j > 0; j--) {
                if (j == 2) continue;
                if (input.grid[j - 1][i & 3] < -6) return i;
                output.count += i * j;
            }
        }
        return output.count != 0;
        """,
        """
def f(input, output):
    for i in range(0, 12, 2):
        if i == input.n:
            continue
        if i > input.n + 4:
            break
        for j in range(3, 0, -1):
            if j == 2:
                continue
            if input.grid[j - 1][i & 3] < -6:
                return i
            output.count += i * j
    return output.count != 0
""",
        READINGS,
        Summary,
    ),
]


def ran(twins: Twins, spelling: str) -> Ran:
    source = twins.c if spelling == "ecode" else twins.python
    options: dict[str, Any] = {"params": twins.params, "ports": twins.ports, "spelling": spelling}
    return run_everywhere(source, twins.events, twins.output, **options)


@pytest.mark.parametrize("twins", TWINS, ids=lambda twins: twins.name)
def test_both_spellings_come_to_the_same(twins: Twins) -> None:
    c, python = ran(twins, "ecode"), ran(twins, "python")
    assert c.selected == python.selected
    assert c.ports == python.ports
    assert repr(c.events) == repr(python.events)
    assert repr(c.statics) == repr(python.statics)
    assert [fault[:2] for fault in c.faults] == [fault[:2] for fault in python.faults]


@pytest.mark.parametrize("twins", TWINS, ids=lambda twins: twins.name)
def test_the_programs_of_the_table_do_something(twins: Twins) -> None:
    result = ran(twins, "python")
    assert result.selected or result.faults
    assert len(result.selected) < len(twins.events) or result.events


def test_figure_4_selects_what_its_text_says() -> None:
    expected = [number for number, trade in enumerate(TRADES) if not 75.5 <= trade.trade_price <= 78.5]
    assert ran(TWINS[0], "python").selected == expected


def test_figure_5_computes_the_average() -> None:
    made = ran(TWINS[1], "python").events
    expected = [float(numpy.mean(wind.wind_velocity)) for wind in WINDS]
    assert [each.average_velocity for each in made] == pytest.approx(expected)


def test_every_third_event_is_every_third_event() -> None:
    assert ran(TWINS[3], "python").selected == list(range(2, 60, 3))
