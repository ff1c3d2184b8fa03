"""The question of packing: do runs come to their end, and are their numbers possible? No timing decides anything."""

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from benchmarks import packing, packing_plots, packing_rivals
from benchmarks.events import Choice
from echoic.errors import LocalError
from echoic.testing.bench import Claim, Effort, Samples, Spread, Table, Unit
from echoic.testing.bench.groups import (
    Case,
    Moment,
    Result,
    Source,
    changing,
    degrees,
    measure,
    measure_all,
    question,
    replica,
    simulated,
)
from echoic.testing.bench.groups.replicas import launch_program
from echoic.testing.bench.groups.rounds import GroupReport, Runs, is_slight, run_of, shortened, take_turns

EFFORT = Effort(rounds=1, sample_seconds=0.01)
SECONDS = 0.3


def result_of(throughput: float, **fields: float) -> Result:
    return Result(replica="n1", messages=1, seconds=1.0, throughput=throughput, gap=0.0, **fields)  # type: ignore[arg-type]


def check(result: Result, case: Case) -> None:
    assert result.submitted >= result.messages > 0
    assert 0 < result.throughput < 1e8
    assert 0 < result.latency_p50 <= result.latency_p99
    assert 0 < result.latency < 60
    assert 0 < result.cpu < 64
    assert 0 <= result.source_cpu <= result.cpu
    assert 0 < result.encoding < 1
    assert result.degree >= 1
    assert result.seconds < case.seconds + 60
    messages = [moment.messages for moment in result.course]
    assert messages == sorted(messages)


@pytest.mark.system
@pytest.mark.parametrize(
    "case",
    [
        Case(packing="static:1", seconds=SECONDS),
        Case(size=100, packing="auto", seconds=SECONDS, warm_up=0.1),
        Case(packing="static:8", seconds=SECONDS, at="follower", stability="majority"),
        Case(packing="auto", seconds=SECONDS, durability="disk"),
        Case(packing="static:4", seconds=SECONDS, replicas=1),
        Case(source=Source((1000, 3000), each=500), packing="paper:ta=0.05", seconds=SECONDS),
        Case(source=Source(burst=5, pause=0.005), packing="auto", seconds=SECONDS),
    ],
    ids=lambda case: f"{case.packing} {case.messages.sizes} {case.durability} {case.at}",
)
def test_a_run_comes_to_its_end_and_its_numbers_are_possible(case: Case) -> None:
    check(measure(case), case)


@pytest.mark.system
def test_every_replica_is_given_what_the_source_has_sent() -> None:
    results = measure_all(Case(packing="static:8", seconds=SECONDS))
    assert len(results) == 3
    (source,) = [result for result in results.values() if result.submitted]
    others = [result for result in results.values() if not result.submitted]
    # What the others have not been given when they are asked is on its way.
    assert all(source.submitted / 2 < result.messages <= source.submitted for result in others)


@pytest.mark.system
def test_survivors_go_on_when_the_leader_is_killed() -> None:
    case = Case(source=Source(burst=1, pause=0.002), seconds=1.5, kill_after=0.3, election_timeout=0.15)
    results = measure_all(case)
    assert len(results) == 2
    assert all(result.messages > 0 and result.gap > 0.01 for result in results.values())


@pytest.mark.system
def test_a_replica_can_be_a_program_of_its_own() -> None:
    case = Case(packing="static:8", seconds=SECONDS, replicas=1)
    check(measure(case, launch_program), case)


@pytest.mark.system
def test_pysyncobj_is_measured_by_the_same_code() -> None:
    pytest.importorskip("pysyncobj")
    from benchmarks.rivals import pysyncobj

    result = measure(Case(packing="static:8", seconds=1.0), pysyncobj.launch)
    assert result.submitted >= result.messages > 0
    assert 0 < result.latency < 60


@pytest.mark.parametrize(
    "case",
    [
        Case(size=8),
        Case(source=Source(())),
        Case(seconds=1.0, warm_up=1.0),
        Case(seconds=1e9),
        Case(replicas=0),
        Case(replicas=1, at="follower"),
        Case(at="somewhere"),
    ],
)
def test_a_case_that_cannot_be_run_is_refused(case: Case) -> None:
    with pytest.raises(LocalError):
        measure(case)


@pytest.mark.parametrize("source", [Source((1000,)), Source((1000, 3000), each=2)])
def test_messages_are_as_long_as_they_are_said_to_be_and_tell_when_they_were_submitted(source: Source) -> None:
    from echoic.wire import Batch

    declared = replica.message_type(source)
    sent: list[object] = []

    def submit(event: object) -> None:
        sent.append(declared(event.at, event.body))  # type: ignore[attr-defined]

    count = replica.run_source(source, declared, submit, 0.001)
    assert count == len(sent) > 0
    batch = Batch.of(sent, declared)
    bounds = batch.bounds
    sizes = {end - start for start, end in itertools.pairwise(bounds)}
    assert sizes <= set(source.sizes)
    found = replica.submitted_at(batch, fixed=len(source.sizes) == 1)
    assert found.tolist() == [event.at for event in sent]  # type: ignore[attr-defined]


def test_sizes_take_turns() -> None:
    source = Source((1000, 3000), each=16)
    sizes: list[int] = []
    replica.run_source(
        source,
        replica.message_type(source),
        lambda event: sizes.append(len(event.body)),
        0.01,  # type: ignore[attr-defined]
    )
    assert sizes[:16] == [984] * 16
    assert sizes[16:32] == [2984] * 16


def test_everybody_has_a_turn_in_each_round_and_what_fails_once_is_repeated() -> None:
    failures = [RuntimeError("a replica has ended")]

    def shaky() -> Result:
        if failures:
            raise failures.pop()
        return result_of(2.0)

    runs = take_turns({("a", "x"): shaky, ("b", "x"): lambda: result_of(4.0)}, Effort(rounds=3))
    assert {cell: len(results) for cell, results in runs.results.items()} == {("a", "x"): 3, ("b", "x"): 3}
    assert runs.ratio(("b", "x"), ("a", "x")).median == 2.0
    assert runs.best("x", lambda _: True) == "b"
    assert runs.rates().seconds["a", "x"] == [0.5] * 3


def test_what_fails_again_and_again_ends_the_benchmark() -> None:
    def broken() -> Result:
        raise RuntimeError("a replica has ended")

    with pytest.raises(RuntimeError, match="a replica has ended"):
        take_turns({("a", "x"): broken}, EFFORT)


def test_a_slight_effort_shortens_a_run() -> None:
    case = Case(seconds=20.0, warm_up=5.0, kill_after=3.0)
    assert is_slight(EFFORT)
    short = shortened(case, EFFORT)
    assert short.warm_up == 0.0
    assert 0 < short.kill_after < short.seconds < 5
    assert shortened(case, Effort()) == case


def test_a_course_tells_the_rate_of_the_last_moments_and_of_all() -> None:
    course = [Moment(0.1 * number, 100 * number, 5.0, 0) for number in range(1, 31)]
    points = changing.course_of(result_of(1000.0, course=course))  # type: ignore[arg-type]
    assert len(points) == 30
    for seconds, now, ever, degree in points:
        assert (now, ever, degree) == (pytest.approx(1000), pytest.approx(1000), 5.0), seconds


def test_every_degree_and_auto_is_entered_for_each_size() -> None:
    for size, known in degrees.DEGREES.items():
        entered = degrees.entries(Effort(), size)
        assert list(entered) == [(f"static:{n}", f"{size} B") for n in known] + [("auto", f"{size} B")]
        assert degrees.PAPER_BEST[size][0] in known
        assert 1 in known


def test_the_simulation_is_part_of_the_question() -> None:
    report = GroupReport("packing")
    simulated.measure(EFFORT, report)
    rates, latencies = report.tables
    assert rates.cases == [simulated.BEST, *simulated.POLICIES] == latencies.cases
    assert len(report.claims) == 1


@pytest.mark.system
def test_only_the_parts_that_are_asked_for_are_measured_and_drawn(tmp_path: Path) -> None:
    report = packing.measure(EFFORT, Choice((), ["failing", "simulated"]))
    assert next(table.title for table in report.tables) == "longest time without a delivery"
    packing_plots.plot(report, tmp_path / "packing.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["packing_simulated.svg"]
    assert json.loads(json.dumps(report.as_json()))["courses"] == {}
    assert question.measure(EFFORT, []).tables == []


def invented(cases: Sequence[str], columns: Sequence[str]) -> Samples:
    return Samples({(case, column): [1e-5, 2e-5] for case in cases for column in columns})


def test_every_figure_can_be_drawn(tmp_path: Path) -> None:
    report = GroupReport("packing")
    statics, sizes = ["static:1", "static:11", "auto"], [degrees.column_of(size) for size in degrees.SIZES]
    for where in ("", packing_rivals.WHERE):
        for title, unit in ((degrees.THROUGHPUT, Unit.THOUSANDS_PER_SECOND), (degrees.LATENCY, Unit.MILLISECONDS)):
            report.tables.append(Table(title + where, unit, "static:1", invented(statics, sizes)))
    drawn: list[tuple[str, Unit, str, Sequence[str], Sequence[str]]] = [
        (changing.TITLE, Unit.THOUSANDS_PER_SECOND, "static:1", [*statics, changing.PAPER], [changing.COLUMN]),
        (packing_plots.bursts.LATENCY, Unit.MILLISECONDS, "static:1", statics, ["5 every 20 ms"]),
        (packing_plots.bursts.WORK, Unit.MICROSECONDS, "static:1", statics, ["5 every 20 ms"]),
        (packing_plots.keeping.THROUGHPUT, Unit.THOUSANDS_PER_SECOND, "memory", ["memory", "disk"], ["auto"]),
        (packing_rivals.TITLE, Unit.THOUSANDS_PER_SECOND, "echoic", ["echoic", "other"], ["static:1", "static:8"]),
        (packing_plots.packing_counter.RATE, Unit.THOUSANDS_PER_SECOND, "static:1", statics, ["20 clients"]),
    ]
    report.tables += [
        Table(title, unit, baseline, invented(cases, columns)) for title, unit, baseline, cases, columns in drawn
    ]
    report.courses = {f"changing, {policy}": [[0.1, 9.0, 9.0, 2.0]] * 2 for policy in changing.POLICIES}
    report.courses |= {"fill, 20 clients": [[1, 0.1], [2, 0.2]], "intervals, 20 clients": [[1.0, 1.0, 50.0, 2]]}
    report.claims.append(Claim("nothing", Spread.of([1.0]), 1.0, "x"))
    packing_plots.plot(report, tmp_path / "packing.svg")
    names = {path.stem.removeprefix("packing_") for path in tmp_path.iterdir()}
    assert names == {"degrees", "corosync", "changing", "bursts", "keeping", "rivals", "counter"}


@pytest.mark.parametrize(
    "number", [lambda runs: runs.rates(), lambda runs: runs.latencies(), lambda runs: runs.costs()]
)
def test_samples_have_one_number_for_each_round(number: Callable[[Runs], Samples]) -> None:
    runs = Runs({("a", "x"): [result_of(1.0, latency=0.5, cpu=0.5), result_of(2.0, latency=0.25, cpu=1.0)]})
    assert len(number(runs).seconds["a", "x"]) == 2
    assert callable(run_of(Case(), EFFORT))
