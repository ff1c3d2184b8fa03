"""The question of derived channels: do all ways to run the figures agree, and does each part find what it looks for?

No timing decides anything here.
"""

import re
from collections.abc import Callable

import numpy
import pytest

from benchmarks.rivals import CODE, installed_rivals, missing_rivals
from echoic.codegen import library
from echoic.testing.bench import Effort, Report, Spread, derive
from echoic.testing.bench.derive import arrays, code, hostile, latency, load
from echoic.testing.bench.derive.calls import Call, interleave_calls
from echoic.testing.bench.derive.compilers import (
    CACHED,
    COMPILERS,
    ECHOIC,
    Compiler,
    Ready,
    compile_known,
    objects_forgotten,
    verify,
)
from echoic.testing.bench.derive.figures import EVENTS, FIGURE_4, FIGURES, HIGH, LOW, atmosphere, trades

EFFORT = Effort(rounds=2, sample_seconds=0.002)


def ready(compiler: Compiler) -> Ready:
    assert compiler.ready is not None
    return compiler.ready(trades(EVENTS), atmosphere())


@pytest.mark.parametrize("compiler", [each for each in COMPILERS if each.ready], ids=lambda each: each.name)
def test_every_way_of_ours_to_run_the_figures_does_what_they_say(compiler: Compiler) -> None:
    records, array = trades(EVENTS), atmosphere()
    assert compiler.ready is not None
    made = compiler.ready(records, array)
    verify(compiler, made, array)
    assert set(made.one) == set(made.batch) == {"figure 4", "figure 6"}
    assert made.average is not None


@pytest.mark.parametrize("module", CODE.modules)
def test_every_rival_that_is_installed_does_what_the_figures_say(module: str) -> None:
    if module in missing_rivals(CODE):
        pytest.skip(f"{module} is not installed")
    records, array = trades(EVENTS), atmosphere()
    own = [each for each in installed_rivals(CODE) if each.compile.__module__.endswith(CODE.modules[module])]
    assert own
    for compiler in own:
        verify(compiler, compiler.ready(records, array), array)
        assert all(compiler.compile(figure) for figure in FIGURES.values())


def test_names_of_compilers_are_their_own() -> None:
    names = [compiler.name for compiler in (*COMPILERS, *installed_rivals(CODE))]
    assert len(names) == len(set(names))


WRONG: dict[str, Callable[[Ready], Ready]] = {
    "rejects a trade": lambda _: Ready(one={FIGURE_4.name: Call(lambda _: 0)}),
    "not every second one": lambda _: Ready(batch={FIGURE_4.name: Call(lambda _: EVENTS)}),
    "an average of 0.0": lambda _: Ready(average=Call(lambda _: 0.0)),
}


@pytest.mark.parametrize("told", WRONG)
def test_code_that_does_something_else_is_found_out(told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        verify(ECHOIC, WRONG[told](ready(ECHOIC)), atmosphere())


@pytest.mark.parametrize("passing", [0.0, 0.25, 0.5, 1.0])
def test_trades_pass_in_the_proportion_that_is_asked_for(passing: float) -> None:
    price = trades(1000, passing)["trade_price"]
    assert ((price < LOW) | (price > HIGH)).sum() == 1000 * passing
    assert trades(1).nbytes == 96


def test_arrays_are_those_of_the_paper() -> None:
    (values,) = atmosphere()["wind_velocity"]
    assert values.shape == (253, 37)
    assert len(numpy.unique(values)) == values.size


def test_compiled_objects_are_forgotten_for_a_while_only() -> None:
    objects = library._objects  # noqa: SLF001 - what is to be forgotten
    compile_known(FIGURE_4)
    before = dict(objects)
    with objects_forgotten():
        assert not objects
    assert objects == before


def test_calls_take_turns_and_cost_what_one_event_of_theirs_does() -> None:
    seen: list[str] = []
    calls = {
        ("one", "x"): Call(seen.append, "one"),
        ("thousand", "x"): Call(seen.append, "thousand", events=1000),
    }
    samples = interleave_calls(calls, EFFORT)
    assert {len(seconds) for seconds in samples.seconds.values()} == {EFFORT.rounds}
    assert set(seen) == {"one", "thousand"}
    one, thousand = (sum(samples.seconds[name, "x"]) for name in ("one", "thousand"))
    assert 0 < thousand < one


def test_code_is_measured_for_every_figure_and_every_compiler() -> None:
    report = Report("derive")
    code.measure(EFFORT, report)
    compiling, steps, one, batch, average = report.tables
    assert compiling.columns == steps.columns == list(FIGURES)
    assert compiling.cases == [compiler.name for compiler in COMPILERS]
    assert CACHED.name not in batch.cases
    assert [*batch.cases, code.EMPTY_CALL] == one.cases
    assert average.columns == ["figure 5"]
    assert [claim.limit for claim in report.claims] == [8.0, 8.0, 8.0, 60.0, 2.0]  # numba's is for those who have it


@pytest.mark.system
def test_the_load_of_a_source_is_told_for_every_scenario() -> None:
    report = Report("derive")
    load.measure(Effort(rounds=1, sample_seconds=0.01), report)
    (table,) = report.tables
    assert table.cases == [load.NOBODY, load.PLAIN, load.NONE, load.HALF, load.ALL]
    assert table.columns == [load.LONE, load.BATCHES]
    assert all(each > 0 for seconds in table.samples.seconds.values() for each in seconds)
    assert len(report.claims) == 6


@pytest.mark.system
def test_arrays_are_sent_whole_and_averaged_over_both_links() -> None:
    report = Report("derive")
    arrays.measure(Effort(rounds=1, sample_seconds=0.002), report)
    (table,) = report.tables
    names = [name + mode for name in (arrays.WHOLE, arrays.AVERAGED) for mode in arrays.MODES]
    assert table.cases == [name + links for links in arrays.LINKS for name in names]
    assert table.columns == [arrays.USER, arrays.SYSTEM, arrays.ELAPSED]
    assert "74888 bytes" in report.remarks[0]


@pytest.mark.system
def test_the_first_event_of_a_derivation_arrives_and_parameters_change() -> None:
    report = Report("derive")
    latency.measure(Effort(rounds=1, sample_seconds=0.002), report)
    (table,) = report.tables
    assert table.cases[0] == latency.NOTHING
    assert len(table.cases) == 6
    assert len(report.claims) == 4


def test_no_two_codes_that_nobody_has_seen_are_alike() -> None:
    assert len({latency.unseen_code() for _ in range(100)}) == 100


@pytest.mark.system
def test_all_hostile_code_is_refused_or_suspended() -> None:
    report = Report("derive")
    hostile.measure(Effort(rounds=1, sample_seconds=0.002), report)
    (table,) = report.tables
    assert table.cases == [hostile.WITHOUT, hostile.WITH, hostile.ARRIVING]
    told = re.compile(r"of 10 hostile derivations (\d+) were refused, (\d+) suspended, 0 went on")
    (found,) = filter(None, map(told.fullmatch, report.remarks))
    refused, suspended = map(int, found.groups())
    assert refused >= 1  # one is too costly for any source, more if compiling takes too long on a busy machine
    assert refused + suspended == 10


def test_only_the_parts_that_are_asked_for_are_measured() -> None:
    assert derive.measure(EFFORT, parts=[]).tables == []
    assert derive.PARTS == ("code", "load", "arrays", "latency", "hostile")


def test_quartiles_lie_within_the_extremes() -> None:
    values = [5.0, 1.0, 2.0, 3.0, 100.0]
    assert Spread.quartiles_of(values) == Spread(3.0, 2.0, 5.0)
    assert Spread.quartiles_of([7.0]) == Spread.of([7.0])
