"""The question of journals: does each part find what it looks for? No timing decides anything here."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy
import pytest

from benchmarks.rivals import FILES, installed_rivals
from echoic.testing.bench import Effort, Report, Samples, Table, journal
from echoic.testing.bench.events import Records
from echoic.testing.bench.journal import Commit, Keeper, reading, recording, replaying
from echoic.testing.bench.journal.journals import JOURNAL
from echoic.testing.bench.journal.keepers import EVERYTHING, WISHES, batch_of_events, sync_remark, workshop
from echoic.testing.bench.journal.plain import PLAIN

EFFORT = Effort(rounds=1, sample_seconds=0.002)
RIVALS = [each for each in installed_rivals(FILES) if isinstance(each, Keeper)]
KEEPERS = [PLAIN, JOURNAL, *RIVALS]


def table_of(report: Report) -> Table:
    (table,) = report.tables
    assert all(seconds and min(seconds) > 0 for seconds in table.samples.seconds.values())
    return table


def named(keepers: Sequence[Keeper]) -> list[str]:
    return [keeper.name for keeper in keepers]


def test_events_are_those_of_about_a_hundred_bytes_and_one_of_a_hundred_is_cold() -> None:
    records = batch_of_events()
    assert (len(records), records.itemsize, len(records.dtype)) == (1000, 96, 12)
    assert (records["temperature"] < 1.0).sum() == 10


@pytest.mark.parametrize("keeper", KEEPERS, ids=named(KEEPERS))
def test_a_keeper_gives_back_what_it_was_given(keeper: Keeper, tmp_path: Path) -> None:
    first, second = batch_of_events(300), batch_of_events(200)
    with keeper.keep(tmp_path, [first, second]) as commit:
        commit()
        commit()
    for column, wish in WISHES.items():
        if column != EVERYTHING and not keeper.selective:
            continue
        expected = numpy.concatenate([first, second] * 2)
        if wish.colder_than is not None:
            expected = expected[expected["temperature"] < wish.colder_than]
        batches = list(keeper.read(tmp_path, wish))
        names = wish.columns or expected.dtype.names
        assert all(set(batch.schema.names) == set(names) for batch in batches)
        for name in names:
            found = [value for batch in batches for value in batch.column(name).to_pylist()]
            assert found == expected[name].tolist()


def test_a_keeper_that_loses_an_event_is_found_out(tmp_path: Path) -> None:
    @contextmanager
    def forgetful(folder: Path, batches: Sequence[Records]) -> Iterator[Commit]:
        with PLAIN.keep(folder, [*batches[:-1], batches[-1][:-1]]) as commit:
            yield commit

    keeper = Keeper("forgetful", forgetful, PLAIN.read)
    with pytest.raises(RuntimeError, match="forgetful has read"):
        reading.measure(EFFORT, Report("journal"), [keeper])


def test_what_an_operation_takes_is_divided_among_its_events() -> None:
    samples = Samples({("a", "x"): [2.0], ("a", "y"): [3.0]}, {("a", "x"): [1.0]}).divided({"x": 10})
    assert samples.seconds == {("a", "x"): [0.2], ("a", "y"): [3.0]}
    assert samples.processor_seconds == {("a", "x"): [0.1]}


def test_the_disk_is_told_of_and_the_folder_is_removed() -> None:
    assert "fdatasync behind 96000 bytes" in sync_remark()
    with workshop() as folder:
        assert folder.is_dir()
    assert not folder.exists()


@pytest.mark.system
def test_recording_is_measured_beside_the_plain_loop_and_through_a_hub() -> None:
    report = Report("journal")
    recording.measure(EFFORT, report)
    table = table_of(report)
    assert table.cases == [PLAIN.name, JOURNAL.name, recording.HUB]
    assert table.columns == [*recording.GROUPS, recording.BY_HUB]
    assert [claim.limit for claim in report.claims] == [0.5] * 3 + [2.0] * 3


def test_reading_is_measured_for_every_wish() -> None:
    report = Report("journal")
    reading.measure(EFFORT, report, [each for each in RIVALS if not each.name.startswith("MCAP")])
    table = table_of(report)
    assert table.cases[:2] == [PLAIN.name, JOURNAL.name]
    assert table.columns == list(WISHES)
    assert [claim.limit for claim in report.claims] == [5.0] * 3


@pytest.mark.system
def test_replaying_is_measured_beside_events_from_memory() -> None:
    report = Report("journal")
    replaying.measure(EFFORT, report)
    assert table_of(report).cases == [replaying.MEMORY, replaying.REPLAY]
    assert [claim.limit for claim in report.claims] == [1.0]


def test_only_the_parts_that_are_asked_for_are_measured() -> None:
    assert journal.measure(EFFORT, parts=[]).tables == []
    assert journal.PARTS == ("record", "read", "replay")
