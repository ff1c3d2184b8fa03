"""How long does it take to compile the paper's figures, and how long does an event take then?

The paper: 4 ms and 5.5 ms to generate code for figures 4 and 5 on a Sparc of 248 MHz, 165 ns and 1.28 ms to run it; in
Java 1.8 us and 13.3 ms.
"""

from collections.abc import Sequence

from echoic.ecode import Program, analyse, check
from echoic.ecode.native.batch_loop import write_routine
from echoic.ecode.native.routine import Routine
from echoic.testing.bench.claims import Claim
from echoic.testing.bench.contest import Effort
from echoic.testing.bench.derive.calls import Call, interleave_calls
from echoic.testing.bench.derive.compilers import (
    CACHED,
    COMPILERS,
    ECHOIC,
    EMPTY,
    FULL,
    Compiler,
    Ready,
    compile_known,
    compile_unknown,
    verify,
)
from echoic.testing.bench.derive.figures import EVENTS, FIGURE_4, FIGURE_5, FIGURES, Figure, atmosphere, trades
from echoic.testing.bench.derive.tables import table_of
from echoic.testing.bench.report import Report
from echoic.testing.bench.results import Cell, Samples, Unit

__all__ = ["AVERAGE_TITLE", "BATCH_TITLE", "COMPILE_TITLE", "ONE_TITLE", "STEPS_TITLE", "measure"]

COMPILE_TITLE = "from text to something that runs"
STEPS_TITLE = "the same, echoic's steps"
ONE_TITLE = "one event from Python"
BATCH_TITLE = f"batches of {EVENTS}, per event"
AVERAGE_TITLE = "the average of one array of 37 x 253 numbers"
NUMBA = "numba"
EMPTY_CALL = "an empty function of Python"
COMPILE_MS_MAX = 8.0
ONE_NS_MAX = 60.0
BATCH_NS_MAX = 2.0
NUMBA_MAX = 1.2
CHECK, ANALYSE, WRITE, GENERATE, LINK = "check", "analyse", "write LLVM text", "optimise, generate", "link"


def measure(effort: Effort, report: Report, rivals: Sequence[Compiler] = ()) -> None:
    """Measure compilers and what they have compiled, and add it to the report."""
    everybody = (*COMPILERS, *rivals)
    _measure_compiling(effort, report, everybody)
    _measure_steps(effort, report)
    _measure_running(effort, report, everybody)


def _measure_compiling(effort: Effort, report: Report, everybody: Sequence[Compiler]) -> None:
    effort.told("compiling the figures")
    samples = Samples({})
    for figure in FIGURES.values():
        calls = {(each.name, figure.name): Call(each.compile, figure) for each in everybody if each.compile is not None}
        samples = samples.joined(interleave_calls(calls, effort))
    table = table_of(COMPILE_TITLE, Unit.MILLISECONDS, samples, ECHOIC.name)
    report.tables.append(table)
    for name in FIGURES:
        report.claims.append(Claim(f"compile {name}", table.value(ECHOIC.name, name), COMPILE_MS_MAX, "ms"))


def _measure_steps(effort: Effort, report: Report) -> None:
    """Take echoic's own compilation apart; what has no function of its own is the difference of two that have one."""
    seconds: dict[Cell, list[float]] = {}
    for name, figure in FIGURES.items():
        whole, cached = (ECHOIC.name, name), (CACHED.name, name)
        compiling = {whole: Call(compile_unknown, figure), cached: Call(compile_known, figure)}
        found = interleave_calls({**_steps(figure), **compiling}, effort)
        known = [found.seconds[step, name] for step in (CHECK, ANALYSE, WRITE)]
        seconds |= {(step, name): list(found.seconds[step, name]) for step in (CHECK, ANALYSE, WRITE)}
        pairs = list(zip(found.seconds[whole], found.seconds[cached], *known, strict=True))
        seconds[GENERATE, name] = [total - again for total, again, *_ in pairs]
        seconds[LINK, name] = [again - sum(others) for _, again, *others in pairs]
    report.tables.append(table_of(STEPS_TITLE, Unit.MILLISECONDS, Samples(seconds)))


def _steps(figure: Figure) -> dict[Cell, Call]:
    program = check(figure.code, figure.signature)
    found = analyse(program)

    def write(checked: Program) -> object:
        return write_routine(Routine(checked, found, "rows"))

    return {
        (CHECK, figure.name): Call(lambda code: check(code, figure.signature), figure.code),
        (ANALYSE, figure.name): Call(analyse, program),
        (WRITE, figure.name): Call(write, program),
    }


def _measure_running(effort: Effort, report: Report, everybody: Sequence[Compiler]) -> None:
    effort.told("running what was compiled")
    records, array = trades(EVENTS), atmosphere()
    made: dict[str, Ready] = {}
    for each in everybody:
        if each.ready is not None:
            made[each.name] = ready = each.ready(records, array)
            verify(each, ready, array)
    ones = {(case, name): call for case, ready in made.items() for name, call in ready.one.items()}
    ones |= {(EMPTY_CALL, name): EMPTY for name in dict.fromkeys(column for _, column in ones)}
    batches = {(case, name): call for case, ready in made.items() for name, call in ready.batch.items()}
    averages = {(case, FIGURE_5.name): ready.average for case, ready in made.items() if ready.average is not None}
    one = table_of(ONE_TITLE, Unit.NANOSECONDS, interleave_calls(ones, effort), ECHOIC.name)
    batch = table_of(BATCH_TITLE, Unit.NANOSECONDS, interleave_calls(batches, effort), ECHOIC.name)
    average = table_of(AVERAGE_TITLE, Unit.MICROSECONDS, interleave_calls(averages, effort), FULL.name)
    report.tables += [one, batch, average]
    figure = FIGURE_4.name
    report.claims.append(Claim(f"one event by {figure}", one.value(ECHOIC.name, figure), ONE_NS_MAX, "ns"))
    report.claims.append(Claim(f"{figure} in batches", batch.value(ECHOIC.name, figure), BATCH_NS_MAX, "ns"))
    if average.has(NUMBA, FIGURE_5.name):
        found = average.ratio(FULL.name, FIGURE_5.name, NUMBA)
        report.claims.append(Claim(f"an array by {FIGURE_5.name}", found, NUMBA_MAX, f"x {NUMBA}"))
