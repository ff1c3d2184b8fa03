"""The committed journal against the program, in both directions."""

import shutil
from pathlib import Path

from echoic.recorder import Disk, Journal, JournalWriter, Missing, verify
from echoic.wire import Batch
from tests.golden import recorded
from tests.golden.recorded import BEGUN_NS, CHANNEL, GOLDEN, SECOND_NS, SHIP, STATION, Remark, Weather, remarks, weather

BLOCKS = [
    (0, STATION, 0, 1, weather(0, 3)),
    (3, SHIP, 5, 2, remarks()),
    (6, STATION, 3, 4, weather(3, 2)),
    (8, SHIP, 10, 6, remarks()),
    (11, STATION, 20, 0, weather(20, 3)),
]


def copied(folder: Path) -> Path:
    shutil.copytree(GOLDEN, folder / "journal")
    return folder / "journal"


def test_the_program_still_writes_the_committed_journal(tmp_path: Path) -> None:
    recorded.write(tmp_path)
    assert recorded.files(tmp_path) == recorded.files(GOLDEN)


def test_the_golden_journal_is_read_as_described() -> None:
    journal = Journal(GOLDEN)
    assert (journal.name, journal.id, journal.partitions) == (CHANNEL, recorded.ID.hex(), 1)
    assert (journal.firsts, journal.heads) == ((0,), (14,))
    assert [format.name for format in journal.formats] == ["Weather", "Remark"]
    found = [
        (each.sequence, each.source, each.first, (each.time_ns - BEGUN_NS) // SECOND_NS, each.batch)
        for each in journal.read()
    ]
    types = {"Weather": Weather, "Remark": Remark}
    assert [(*place, batch.to(types[batch.format.name]).events()) for *place, batch in found] == BLOCKS


def test_the_golden_journal_is_read_in_part_across_its_segments() -> None:
    found = [(each.sequence, each.count) for each in Journal(GOLDEN).read(7, 12)]
    assert found == [(7, 1), (8, 3), (11, 1)]


def test_nothing_is_wrong_with_the_golden_journal() -> None:
    assert list(verify(Disk(GOLDEN), CHANNEL)) == []


def test_the_golden_journal_is_taken_up_where_it_ends(tmp_path: Path) -> None:
    writer = JournalWriter.open(Disk(copied(tmp_path)), CHANNEL, id=bytes(16), now_ns=BEGUN_NS)
    assert writer.id == recorded.ID.hex()
    assert writer.recovered == ()
    assert dict(writer.positions) == {STATION: 23, SHIP: 13}
    assert (writer.firsts, writer.heads, writer.marked("billing")) == ((0,), (14,), (14,))
    assert writer.append(Batch.of(weather(22, 2)), STATION, 22, BEGUN_NS) == 1
    assert writer.commit(BEGUN_NS).heads == (15,)
    writer.close(BEGUN_NS)


def test_what_never_arrived_is_told_of_the_golden_journal() -> None:
    missing: list[Missing] = []
    for _ in Journal(GOLDEN).read(on_missing=missing.append):
        pass
    told = [(each.source, each.first, each.last, each.reason) for each in missing]
    assert told == [(SHIP, 8, 9, "the sink did not keep up"), (STATION, 5, 19, "never arrived")]
