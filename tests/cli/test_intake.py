"""`echoic intake`, beside writers that commit, also after it was killed."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from echoic import Hub, Journal
from tests.cli.terminals import Desk, desk, type_here
from tests.hub.intake_parties import Writer, recorded

pytestmark = pytest.mark.system

TICK = "Tick{producer: int, number: int}"


@pytest.fixture
def system() -> Iterator[Desk]:
    with desk() as made:
        yield made


@pytest.fixture
def hub(system: Desk) -> Iterator[Hub]:
    with Hub(names=system.names) as made:
        yield made


def test_rows_are_taken_until_it_is_told_to_end(system: Desk, hub: Hub, tmp_path: Path) -> None:
    words = ["intake", "ticks", TICK, "--folder", str(tmp_path), "--json"]
    taking = system.start(*words)
    taking.says("taking rows for echoic://")
    writer = Writer(hub, "ticks")
    writer.write(0, [1, 2])
    writer.write(1, [3])
    writer.write(1, [3])
    assert taking.interrupt(signal.SIGTERM) == 0
    assert json.loads(taking.out) == {"channel": "ticks", "epochs": 2, "rows": 3, "repeated": 1, "under_way": 0}
    assert "took 3 rows in 2 epochs for 'ticks'" in taking.err
    assert recorded(tmp_path) == [1, 2, 3]
    again = system.start(*words)
    again.says("which has 3 events")
    again.kill()
    third = system.start("intake", "ticks", "--folder", str(tmp_path))
    third.says("taking rows for echoic://")
    writer.write(2, [4])
    assert third.interrupt() == 0
    assert recorded(tmp_path) == [1, 2, 3, 4]


def test_without_a_type_it_takes_that_of_the_first_rows(system: Desk, hub: Hub, tmp_path: Path) -> None:
    taking = system.start("intake", "ticks", "--folder", str(tmp_path), "--partitions", "2")
    taking.says("taking rows for echoic://")
    Writer(hub, "ticks").write(0, [1])
    assert taking.interrupt() == 0
    journal = Journal(tmp_path, "ticks")
    assert (journal.format.name, journal.partitions) == ("Tick", 2)


def test_it_ends_by_itself_and_in_silence_when_told_so(system: Desk, tmp_path: Path) -> None:
    taking = system.start("intake", "ticks", "--folder", str(tmp_path), "--for", "0.5", "--quiet")
    assert (taking.ends(), taking.out, taking.err) == (0, "", "")
    assert Journal.channels(tmp_path) == ["ticks"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--partitions", "0"], "expected at least 1 partition, got 0"),
        (["--for", "-1"], "expected --for to be a number of seconds above 0"),
        (["Tick{number: nonsense}"], "nonsense"),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_begun(tmp_path: Path, words: list[str], message: str) -> None:
    code, _, told = type_here("intake", "ticks", *words, "--folder", str(tmp_path / "journals"))
    assert code == 1
    assert message in told
    assert not (tmp_path / "journals").exists()
