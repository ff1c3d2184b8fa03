"""Ways to turn the code of a figure into something that runs.

A compiler is asked for two things: to compile a figure from nothing, as often as it is measured, and to make calls that
run what it has compiled. The calls handle one trade, a batch of trades, or one array, all from the same memory; where
code cannot read that memory the copy belongs to the call. `verify` sees to it that all come to the same result.

echoic's own are here, with CPython beside them; who else competes is the caller's business.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, Literal

import numpy

from echoic.codegen import library
from echoic.ecode import Kernel, analyse, check, compile_native, compile_python
from echoic.formats import Format
from echoic.testing.bench.derive.calls import Call
from echoic.testing.bench.derive.figures import (
    EVENTS,
    FIGURE_4,
    FIGURE_5,
    FIGURE_6,
    HIGH,
    LOW,
    Average,
    Figure,
    Range,
    trade,
)
from echoic.testing.bench.events import Records

__all__ = [
    "CACHED",
    "COMPILERS",
    "ECHOIC",
    "EMPTY",
    "FULL",
    "GENERATED",
    "PYTHON",
    "Compiler",
    "Ready",
    "compile_known",
    "compile_unknown",
    "memory_of",
    "objects_forgotten",
    "verify",
]

FILTERS: Final = (FIGURE_4, FIGURE_6)


@dataclass(frozen=True, slots=True)
class Ready:
    """Compiled code, to be called.

    Attributes:
        one: For each filter, by its figure's name, the call that handles a trade that passes.
        batch: The same for `EVENTS` trades, every second of which passes.
        average: The call that averages one array.
        passed: Tells of what a call for a batch has returned how many passed.
        value: Tells of what the call for an array has returned the average.
    """

    one: Mapping[str, Call] = field(default_factory=dict)
    batch: Mapping[str, Call] = field(default_factory=dict)
    average: Call | None = None
    passed: Callable[[Any], int] = int
    value: Callable[[Any], float] = float


@dataclass(frozen=True, slots=True)
class Compiler:
    """One way to run the code of a figure.

    Attributes:
        name: How it is called in tables.
        compile: Compiles a figure from nothing, and returns what would run.
        ready: Makes calls, given the trades and the array; None if only compiling is of interest.
    """

    name: str
    compile: Callable[[Figure], object] | None
    ready: Callable[[Records, Records], Ready] | None = None


def memory_of(records: Records) -> memoryview:
    """Return the bytes of an array, where they lie."""
    return records.view(numpy.uint8).reshape(-1).data


@contextmanager
def objects_forgotten() -> Iterator[None]:
    """Let compilations begin from nothing meanwhile."""
    objects = library._objects  # noqa: SLF001 - no user would want this
    kept = dict(objects)
    objects.clear()
    yield
    objects.update(kept)


def verify(compiler: Compiler, ready: Ready, array: Records) -> None:
    """See that compiled code does what the figures say.

    Raises:
        AssertionError: It does not.
    """
    for name, call in ready.one.items():
        if not call.function(call.argument):
            raise AssertionError(f"{compiler.name} rejects a trade that passes {name}")
    for name, call in ready.batch.items():
        passed = ready.passed(call.function(call.argument))
        if passed != EVENTS // 2:
            raise AssertionError(f"{compiler.name} passes {passed} of {EVENTS} trades by {name}, not every second one")
    if ready.average is not None:
        found, expected = ready.value(ready.average.function(ready.average.argument)), array["wind_velocity"].mean()
        if abs(found - expected) > 1e-9:
            raise AssertionError(f"{compiler.name} finds an average of {found}, not {expected}")


def compile_known(figure: Figure, tier: Literal["light", "full"] = "light") -> Kernel:
    """Compile a figure; if that was done before, its code is linked anew and no more."""
    program = check(figure.code, figure.signature)
    return compile_native(program, analyse(program), tier=tier)


def compile_unknown(figure: Figure, tier: Literal["light", "full"] = "light") -> Kernel:
    """Compile a figure as if it had never been seen."""
    with objects_forgotten():
        return compile_known(figure, tier)


def _compile_generated(figure: Figure) -> Kernel:
    program = check(figure.code, figure.signature)
    return compile_python(program, analyse(program))


def _kernels_ready(compile: Callable[[Figure], Kernel], records: Records, array: Records) -> Ready:  # noqa: A002
    filters = {figure.name: (figure, compile(figure)) for figure in FILTERS}
    average = compile(FIGURE_5)
    one_record, statics = records[1:2].tobytes(), bytearray()
    several, single = memory_of(records), memory_of(array)

    def run(kernel_and_params: tuple[Kernel, bytes]) -> object:
        kernel, params = kernel_and_params
        return kernel.run(several, None, EVENTS, params, statics)

    def run_average(kernel: Kernel) -> object:
        return kernel.run(single, None, 1, b"", statics)

    return Ready(
        {name: Call(kernel.bind(figure.params, statics), one_record) for name, (figure, kernel) in filters.items()},
        {name: Call(run, (kernel, figure.params), EVENTS) for name, (figure, kernel) in filters.items()},
        Call(run_average, average),
        lambda outcome: len(outcome.selected),
        lambda outcome: float(numpy.frombuffer(outcome.records, Format.of(Average).dtype)["average_velocity"][0]),
    )


def _compile_function(figure: Figure) -> Callable[..., int]:
    space: dict[str, Any] = {}
    exec(compile(figure.python, figure.name, "exec"), space)  # noqa: S102 - our own text
    function: Callable[..., int] = space["f"]
    return function


def _functions_ready(records: Records, array: Records) -> Ready:
    """Return Python functions that work on objects, as a handler in Python does."""
    figure_4, figure_5, figure_6 = map(_compile_function, (FIGURE_4, FIGURE_5, FIGURE_6))
    params, event = Range(LOW, HIGH), trade(passes=True)
    events = [trade(passes=bool(price < LOW)) for price in records["trade_price"]]
    nested, output = SimpleNamespace(wind_velocity=array["wind_velocity"][0].tolist()), Average(0.0)

    def average(input: object) -> float:  # noqa: A002 - what the figures call it
        figure_5(input, output)
        return output.average_velocity

    def one_of_figure_6(input: object) -> int:  # noqa: A002 - what the figures call it
        return figure_6(input, params)

    return Ready(
        {FIGURE_4.name: Call(figure_4, event), FIGURE_6.name: Call(one_of_figure_6, event)},
        {
            FIGURE_4.name: Call(lambda several: [each for each in several if figure_4(each)], events, EVENTS),
            FIGURE_6.name: Call(lambda several: [each for each in several if figure_6(each, params)], events, EVENTS),
        },
        Call(average, nested),
        len,
    )


def _empty(argument: object) -> None:
    """Do nothing: what calling costs."""


EMPTY: Final = Call(_empty)
ECHOIC: Final = Compiler(
    "echoic",
    compile_unknown,
    partial(_kernels_ready, compile_unknown),
)
CACHED: Final = Compiler("echoic, code known", compile_known)
FULL: Final = Compiler(
    "echoic, all of the optimiser",
    partial(compile_unknown, tier="full"),
    partial(_kernels_ready, partial(compile_unknown, tier="full")),
)
GENERATED: Final = Compiler("echoic, generated Python", _compile_generated, partial(_kernels_ready, _compile_generated))
PYTHON: Final = Compiler("CPython", _compile_function, _functions_ready)
COMPILERS: Final = (ECHOIC, CACHED, FULL, GENERATED, PYTHON)
