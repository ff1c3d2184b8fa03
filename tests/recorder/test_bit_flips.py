"""One flipped bit in the parts of a journal that chance seldom hits; anywhere else it is in `tests/reliability`."""

import pytest

from echoic.recorder import index
from echoic.recorder.verifying import recover, verify
from echoic.testing.flip_campaign import FlippedJournal
from echoic.testing.journal_sight import see


def test_every_bit_of_a_header_and_of_the_small_files_is_watched() -> None:
    journal = FlippedJournal(7)
    for path in [journal.segments[0], journal.segments[-1], *journal.small]:
        for bit in range(8 * min(64, journal.disk.files()[path])):
            journal.check(path, bit, recovering=bit % 16 == 0)


def test_a_flipped_bit_of_an_index_changes_nothing_for_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "STRETCH_BYTES", 500)
    flips = 0
    for seed in range(8):
        journal = FlippedJournal(seed, batches=20, segment_bytes_max=4000)
        for path in (path for path in journal.small if path.endswith(".index")):
            for bit in range(seed, 8 * journal.disk.files()[path], 17):
                journal.check(path, bit, recovering=bit % 8 == 0)
                flips += 1
    assert flips > 500


def test_a_segment_that_cannot_be_read_is_named_and_a_hole_and_the_rest_is_recovered() -> None:
    journal = FlippedJournal(3, batches=20)
    path = journal.segments[1]
    lost = {
        sequence
        for block in journal.blocks[path]
        if block.entry is not None
        for sequence in range(block.entry.sequence, block.entry.sequence_end)
    }
    journal.disk.fail_read(path)
    assert [flaw.path for flaw in verify(journal.disk, "trades")] == [path]
    sight = see(journal.disk, "trades")
    assert sight.holes[0] == lost
    assert {event.sequence for event in journal.whole.events[0] - sight.events[0]} == lost
    recover(journal.disk, "trades")
    assert see(journal.disk, "trades").events == sight.events
    assert see(journal.disk, "trades").holes == sight.holes
    assert f"{path}.damaged" in journal.disk.files()
