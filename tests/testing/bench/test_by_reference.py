"""The benchmark of references: its processes move values in every manner, and its figures become targets and plots."""

import random
from pathlib import Path

import pytest

from benchmarks import by_reference
from benchmarks.by_reference import CASES, GAINS, MEMORY_CASES, MEMORY_SIZES, PARTS, RECEIVERS, SIZES
from benchmarks.by_reference_fleet import (
    AUTOMATIC,
    BY_REFERENCE,
    BY_VALUE,
    PLAIN,
    SHARED,
    STREAMED,
    TCP,
    Fleet,
    Manner,
    fleets,
    script,
)
from benchmarks.harness import Report, Results, Table
from echoic.scripts.checking import require
from echoic.scripts.syntax import load

VALUE_BYTES = 2_000_000


@pytest.mark.system
@pytest.mark.parametrize(
    ("links", "receivers", "cases"), [(TCP, 2, (AUTOMATIC,)), (SHARED, 1, (BY_REFERENCE, STREAMED))]
)
def test_values_are_moved_in_every_manner(links: str, receivers: int, cases: tuple[str, ...]) -> None:
    with fleets([Manner(case, links, receivers) for case in cases]) as there:
        assert list(there) == [PLAIN, *cases]
        assert all(each.transfer(VALUE_BYTES, 2) > 0 for each in there.values())


@pytest.mark.system
def test_only_a_bus_that_is_given_values_grows_with_them() -> None:
    size = 10 * VALUE_BYTES
    with fleets([Manner(case, TCP) for case in (BY_VALUE, BY_REFERENCE)], plain=False) as there:
        grown = {case: fleet.growth(size, 2) for case, fleet in there.items() if isinstance(fleet, Fleet)}
    assert grown[BY_VALUE]["bus"][0] > size / 2
    assert grown[BY_REFERENCE]["bus"][0] < size / 2
    assert {role: len(figures) for role, figures in grown[BY_VALUE].items()} == {"bus": 1, "sender": 1, "receiver": 1}


@pytest.mark.parametrize("receivers", RECEIVERS)
def test_the_script_is_in_order(receivers: int) -> None:
    assert require(load(script(receivers), "fleet.tb")).warnings == ()


def tables() -> list[Table]:
    """Return tables as a run gives them, in which by reference is twice as fast and needs nothing at the bus."""
    found = []
    chance = random.Random(1)
    for links in (TCP, SHARED):
        for receivers in RECEIVERS:
            table = Table(by_reference.time_title(links, receivers), "ms", BY_VALUE)
            for name, size in SIZES.items():
                samples = {case: [size * 1e-9 * chance.uniform(1.0, 1.01)] * 5 for case in (PLAIN, *CASES)}
                samples[BY_VALUE] = [2 * seconds for seconds in samples[BY_REFERENCE]]
                table.add(name, Results(samples))
            found.append(table)
        for part in PARTS:
            table = Table(by_reference.memory_title(links, part), "MB", BY_VALUE)
            for name in MEMORY_SIZES:
                table.add(name, Results({case: [400_000.0 * len(case)] * 5 for case in MEMORY_CASES}))
            found.append(table)
    return found


def test_each_figure_stands_beside_a_target_and_the_thesis(tmp_path: Path) -> None:
    report = Report("by_reference", tables(), header={})
    by_reference.judge(report)
    met = {target.name: target.met for target in report.targets}
    assert len(met) == len(report.targets) == 4 * len(SIZES) + 7 * len(MEMORY_SIZES) + 2
    assert met["one value to 1 receiver, TCP, 50 MB, by reference"]
    assert not met["one value to 1 receiver, shared memory, 50 MB, by reference"]  # three times are promised there
    assert "one value to 2 receivers, TCP, 128 KB, automatic" in met
    assert not met["growth of the bus, TCP, 5 MB, streamed"]
    assert met["growth of the bus, TCP, 5 MB, by reference"]
    assert sum(f"the thesis {GAINS['1 MB'][0][1]:g}" in remark for remark in report.remarks) >= 2
    assert any("the thesis by reference 3, by value 100" in remark for remark in report.remarks)
    by_reference.plot(report.tables, tmp_path / "by_reference.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["by_reference_memory.svg", "by_reference_time.svg"]
