"""numba: Python functions over NumPy's structured arrays, compiled by the LLVM that echoic uses too.

What is compiled is a loop over a batch, as echoic's kernels are, with an explicit signature, so that nothing is left to
the first call. One event is a batch of one: a scalar of a structured array takes longer to hand over.
"""

import numba
import numpy

from echoic.testing.bench.derive import (
    EVENTS,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    HIGH,
    LOW,
    Call,
    Compiler,
    Figure,
    Ready,
)

__all__ = ["COMPILERS"]

LOOPS = {
    FIGURE_4.name: """
def f(events, selected):
    count = 0
    for number in range(len(events)):
        price = events[number].trade_price
        if price < 75.5 or price > 78.5:
            selected[count] = number
            count += 1
    return count
""",
    FIGURE_5.name: """
def f(events, outputs):
    count = 0
    for number in range(len(events)):
        sum = 0.0
        wind_velocity = events[number].wind_velocity
        for i in range(37):
            for j in range(253):
                sum = sum + wind_velocity[j, i]
        outputs[count] = sum / (37 * 253)
        count += 1
    return count
""",
    FIGURE_6.name: """
def f(events, selected, params):
    low, high = params[0], params[1]
    count = 0
    for number in range(len(events)):
        price = events[number].trade_price
        if price < low or price > high:
            selected[count] = number
            count += 1
    return count
""",
}


def compile_figure(figure: Figure) -> numba.core.registry.CPUDispatcher:
    """Compile from the text on, without a cache."""
    space: dict[str, object] = {}
    exec(compile(LOOPS[figure.name], figure.name, "exec"), space)
    events = numba.from_dtype(figure.signature.input.dtype)[::1]
    third = numba.float64[::1] if figure is FIGURE_5 else numba.uint32[::1]
    signature = (events, third, numba.float64[::1]) if figure is FIGURE_6 else (events, third)
    return numba.njit([signature])(space["f"])


def ready(records: numpy.ndarray, array: numpy.ndarray) -> Ready:
    """Make calls."""
    figure_4, figure_5, figure_6 = map(compile_figure, (FIGURE_4, FIGURE_5, FIGURE_6))
    selected, outputs = numpy.zeros(EVENTS, numpy.uint32), numpy.zeros(1)
    params, one = numpy.array([LOW, HIGH]), records[1:2]

    def average(events: numpy.ndarray) -> float:
        figure_5(events, outputs)
        return outputs[0]

    def by_figure_4(events: numpy.ndarray) -> int:
        return figure_4(events, selected)

    def by_figure_6(events: numpy.ndarray) -> int:
        return figure_6(events, selected, params)

    return Ready(
        {FIGURE_4.name: Call(by_figure_4, one), FIGURE_6.name: Call(by_figure_6, one)},
        {FIGURE_4.name: Call(by_figure_4, records, EVENTS), FIGURE_6.name: Call(by_figure_6, records, EVENTS)},
        Call(average, array),
    )


COMPILERS = (Compiler("numba", compile_figure, ready),)
